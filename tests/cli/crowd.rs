//! More clients than the process has descriptors for.

use super::serve::Serving;
use crate::harness::{Place, wait_until};
use rustix::process::{Resource, Rlimit, prlimit};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Descriptors that the daemon gets beside those it holds.
const SPARE: usize = 6;

/// How long the daemon is watched for what it does while it can accept nobody.
const WATCHED: Duration = Duration::from_secs(2);

/// Processor time that a daemon which only waits may need in that time; one that spins takes several times as much, even
/// of a machine that is shared.
const TICKS_MAX: u64 = 20;

fn asks(daemon: &Serving) -> UnixStream {
    let mut stream = UnixStream::connect(&daemon.socket).expect("the kernel queues it");
    stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n").expect("a buffer");
    stream
}

fn is_answered(stream: &UnixStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a bound");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok() && line.contains("\"result\"")
}

/// Ticks of processor time so far.
fn ticks(daemon: &Serving) -> u64 {
    let pid = daemon.pid().as_raw_nonzero();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

#[test]
fn without_descriptors_the_daemon_waits_says_so_once_and_goes_on() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).expect("a folder");
    // What is confined lets nobody but root look at it.
    let config = place.home.join("config.toml");
    std::fs::write(&config, "[server]\nconfine = \"off\"\n").expect("a file");
    let mut daemon = Serving::start(&place, &["--config", config.to_str().expect("UTF-8")]);
    let said = |daemon: &Serving, what| daemon.said().matches(what).count();
    wait_until("it has opened what it needs", || daemon.said().contains("every watch is armed"));

    let held =
        std::fs::read_dir(format!("/proc/{}/fd", daemon.pid().as_raw_nonzero())).expect("ours").count();
    let few = Some((held + SPARE) as u64);
    prlimit(Some(daemon.pid()), Resource::Nofile, Rlimit { current: few, maximum: few }).expect("ours");
    let crowd: Vec<UnixStream> = (0..4 * SPARE).map(|_| asks(&daemon)).collect();
    wait_until("it runs out", || daemon.said().contains("accepting paused"));
    let (begun, before) = (Instant::now(), ticks(&daemon));
    std::thread::sleep(WATCHED);
    let needed = ticks(&daemon) - before;
    assert!(needed <= TICKS_MAX, "{needed} ticks in {:?}", begun.elapsed());
    let answered = crowd.iter().filter(|stream| is_answered(stream)).count();
    assert!((1..crowd.len()).contains(&answered), "{answered} of {} were answered", crowd.len());
    assert_eq!((said(&daemon, "accepting paused"), said(&daemon, "accepting goes on")), (1, 0));

    drop(crowd);
    wait_until("it answers again", || is_answered(&asks(&daemon)));
    wait_until("it says so", || said(&daemon, "accepting goes on") == 1);
    assert_eq!(said(&daemon, "accepting paused"), 1, "{}", daemon.said());
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.ends(), 0);
}

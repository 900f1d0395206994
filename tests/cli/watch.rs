//! `status --watch`: every change is shown, on a terminal in place, and it ends as whoever watches expects.

use super::program;
use super::serve::{Kept, Serving};
use crate::daemon::register;
use crate::harness::{Daemon, PATIENCE, Place, file, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use staled::client::Client;
use staled::protocol::request::Subscribe;
use std::fs::{File, FileTimes};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// A watch that goes on while the test does.
struct Watching {
    child: Kept,
    out: Followed,
    err: Followed,
}

/// What came out of a pipe so far, and the thread that reads on.
struct Followed {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Watching {
    fn start(place: &Place, socket: &Path, args: &[&str]) -> Self {
        let mut command = watch(place, socket, args);
        let mut child = Kept(command.stdout(Stdio::piped()).spawn().expect("it runs"));
        let out = follow(child.0.stdout.take().expect("piped"));
        let err = follow(child.0.stderr.take().expect("piped"));
        Self { child, out, err }
    }

    fn out(&self) -> String {
        self.out.so_far()
    }

    fn err(&self) -> String {
        self.err.so_far()
    }

    /// The counts of stale rows that were shown, one after the other.
    fn stale(&self) -> Vec<u64> {
        let out = self.out();
        let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let of = |line: &str| {
            serde_json::from_str::<Value>(line).expect("a line of JSON")["counts"]["stale"].as_u64()
        };
        whole.lines().map(|line| of(line).expect("a number")).collect()
    }

    fn ended(&mut self) -> ExitStatus {
        wait_until("the watch ends", || self.child.0.try_wait().expect("it was started").is_some());
        // What it said last may still be in the pipes.
        self.out.end();
        self.err.end();
        self.child.0.wait().expect("it ended")
    }
}

impl Followed {
    fn so_far(&self) -> String {
        self.text.lock().expect("no panic").clone()
    }

    fn end(&mut self) {
        self.reader.take().map_or(Ok(()), JoinHandle::join).expect("the reader does not panic");
    }
}

fn watch(place: &Place, socket: &Path, args: &[&str]) -> Command {
    let mut command = program(place);
    command.args(["status", "--watch", "--socket"]).arg(socket).args(args).stderr(Stdio::piped());
    command
}

fn follow(mut pipe: impl Read + Send + 'static) -> Followed {
    let text = Arc::<Mutex<String>>::default();
    let theirs = Arc::clone(&text);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        // A terminal that nobody holds any more ends with an error.
        while let Ok(len @ 1..) = pipe.read(&mut bytes) {
            theirs.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
    });
    Followed { text, reader: Some(reader) }
}

/// Changes a file in one step, for one that is being rewritten is empty for a moment.
fn change(place: &Place, text: &str) {
    place.write("new", text);
    std::fs::rename(place.root.join("new"), place.root.join("a")).expect("it is renamed");
}

fn scene() -> (Place, Daemon) {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    (place, daemon)
}

#[test]
fn every_change_is_one_line_of_json() {
    let (place, daemon) = scene();
    let watching = Watching::start(&place, &daemon.folders.socket, &["s", "--json"]);
    wait_until("the first is shown", || watching.stale() == [0]);
    change(&place, "2");
    wait_until("the change is shown", || watching.stale() == [0, 1]);
    change(&place, "1");
    wait_until("the revert is shown", || watching.stale() == [0, 1, 0]);
    // The clock moves, and nothing else. It is asked for again meanwhile, and there is nothing to show.
    change(&place, "1");
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(watching.stale(), [0, 1, 0], "{}", watching.out());
    // What no event tells of is asked for: a row that is fresh from its first moment.
    place.write("b", "1");
    daemon.ask("context.record", &json!({ "session": "s", "results": [file("b", "1")] }));
    wait_until("the new row is shown", || watching.stale().len() == 4);
    assert!(watching.out().ends_with('\n') && watching.err().is_empty(), "{}", watching.err());
}

#[test]
fn off_a_terminal_a_change_is_a_block_of_its_own() {
    let (place, daemon) = scene();
    let watching = Watching::start(&place, &daemon.folders.socket, &["s"]);
    wait_until("the first is shown", || watching.out().contains("1 row: 1 fresh"));
    change(&place, "2");
    wait_until("the change is shown", || watching.out().contains("  stale  a"));
    let out = watching.out();
    assert_eq!(out.matches("\n\ns  ").count(), 1, "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
    let health = Watching::start(&place, &daemon.folders.socket, &[]);
    wait_until("the health is shown", || health.out().contains("gaps"));
    daemon.ask("context.drop", &json!({ "session": "s" }));
    let mut watching = watching;
    assert_eq!(watching.ended().code(), Some(2));
    assert!(watching.err().contains("there is no session \"s\""), "{}", watching.err());
    wait_until("the health is shown again", || health.out().matches("ok  staled").count() >= 2);
}

#[test]
fn on_a_terminal_the_same_place_is_written_over() {
    let (place, daemon) = scene();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    unlockpt(&terminal).expect("it is ours");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let inside = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let inside = File::options().read(true).write(true).open(inside).expect("the other side");
    let mut command = watch(&place, &daemon.folders.socket, &["s"]);
    let _child = Kept(command.env("TERM", "xterm").stdout(inside).spawn().expect("it runs"));
    drop(command);
    let screen = follow(File::from(terminal));
    let shown = || screen.so_far();
    wait_until("the first is shown", || shown().contains("1 fresh"));
    change(&place, "2");
    wait_until("the change is shown", || shown().contains("1 stale") && shown().ends_with("\u{1b}[J"));
    let shown = shown();
    assert!(shown.starts_with("\u{1b}[2J\u{1b}[H"), "{shown:?}");
    assert_eq!(shown.matches("\u{1b}[2J").count(), 1, "cleared once: {shown:?}");
    let screens: Vec<&str> = shown.split("\u{1b}[H").skip(1).collect();
    assert!(screens.len() >= 2 && screens.iter().all(|screen| screen.ends_with("\u{1b}[J")), "{shown:?}");
    let lines = screens.iter().flat_map(|screen| screen.lines()).filter(|line| *line != "\u{1b}[J");
    assert!(lines.clone().all(|line| line.trim_end_matches('\r').ends_with("\u{1b}[K")), "{shown:?}");
}

#[test]
fn it_ends_with_its_reader_or_on_ctrl_c_without_a_word() {
    let (place, daemon) = scene();
    let mut command = watch(&place, &daemon.folders.socket, &["s"]);
    let mut unread = Kept(command.stdout(Stdio::piped()).spawn().expect("it runs"));
    let mut reader = BufReader::new(unread.0.stdout.take().expect("piped"));
    reader.read_line(&mut String::new()).expect("a line");
    drop(reader);
    // Nothing changes any more, so nothing is written that would tell.
    wait_until("it ends", || unread.0.try_wait().expect("it was started").is_some());
    let mut err = String::new();
    unread.0.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
    assert_eq!((unread.0.wait().expect("it ended").code(), err.as_str()), (Some(0), ""));
    let mut watching = Watching::start(&place, &daemon.folders.socket, &["s"]);
    wait_until("it watches", || watching.out().contains("1 fresh"));
    let pid = i32::try_from(watching.child.0.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(watching.ended().signal(), Some(Signal::INT.as_raw()));
    assert_eq!(watching.err(), "");
}

#[test]
fn a_daemon_that_comes_back_is_watched_again() {
    let (place, daemon) = scene();
    let socket = daemon.folders.socket.clone();
    let watching = Watching::start(&place, &socket, &["s", "--json"]);
    wait_until("the first is shown", || watching.stale() == [0]);
    daemon.stop();
    wait_until("it is said", || watching.err().contains("the daemon went away"));
    change(&place, "2");
    let _daemon = Daemon::start(&place.home);
    wait_until("it is back", || watching.err().contains("the daemon is back\n"));
    wait_until("what changed meanwhile is shown", || watching.stale() == [0, 1]);
    change(&place, "1");
    wait_until("what changes now is shown", || watching.stale() == [0, 1, 0]);
    assert_eq!(watching.err().lines().count(), 2, "{}", watching.err());
}

#[test]
fn what_cannot_be_watched_is_said_at_once() {
    let (place, daemon) = scene();
    let run = super::staled(&place, &daemon.folders.socket, &["status", "nobody", "--watch"]);
    run.fails(2, "there is no session \"nobody\"");
    super::staled(&place, Path::new("/nowhere/s"), &["status", "--watch"]).fails(2, "`staled serve`");
}

/// A daemon that is held while more happens than the kernel keeps for it.
#[test]
fn a_gap_is_told_to_subscribers_with_its_epoch() {
    let place = Place::new();
    let paths = ["a", "b"];
    paths.iter().for_each(|path| place.write(path, "1"));
    let daemon = Serving::start(&place, &[]);
    let mut client = Client::connect(&daemon.socket).expect("it answers");
    let context = json!({ "session": "s", "root": place.root, "results": paths.map(|path| file(path, "1")) });
    client.ask("context.register", &context).expect("it is registered");
    let wanted = Subscribe { topics: vec!["gap".to_owned()], session: Some("another".to_owned()) };
    let mut told =
        Client::connect(&daemon.socket).expect("it answers").subscribe(&wanted).expect("it is taken");
    let max = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("inotify is there");
    let max: usize = max.trim().parse().expect("a number");
    let files = paths.map(|path| File::options().write(true).open(place.root.join(path)).expect("a file"));
    daemon.signal(Signal::STOP);
    // In turns, for the kernel drops an event that is the same as the one before.
    for round in 0..max {
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(round as u64));
        files[round % 2].set_times(times).expect("ours");
    }
    // Who holds a file open for writing makes it unknown.
    drop(files);
    daemon.signal(Signal::CONT);
    let gap = told.next(PATIENCE).expect("it is there").expect("the gap is told");
    let gap: Value = serde_json::from_str(&gap).expect("JSON");
    assert_eq!((&gap["method"], &gap["params"]["topic"]), (&json!("event"), &json!("gap")), "{gap}");
    let status: Value =
        serde_json::from_str(&client.ask("status", &json!({})).expect("it answers")).expect("JSON");
    assert_eq!(gap["params"]["why"], status["last_gap"], "{gap}");
    assert!(gap["params"]["why"].as_str().expect("a sentence").contains("max_queued_events"), "{gap}");
    if status["gaps"] == 1 {
        assert_eq!(gap["params"]["epoch"], status["clock"]["epoch"]);
    }
    let report = client.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 })).expect("it answers");
    assert!(report.contains("\"transition\":\"resume\""), "no byte changed: {report}");
}

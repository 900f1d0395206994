//! Clients that mean harm, and somebody who takes the socket's place: what they cost is theirs, and nobody believes them.

use super::serve::{Kept, Serving, refused_by, state};
use super::{program, staled};
use crate::harness::{Place, ask, file, refusal, skipped, wait_until};
use rustix::fs::{CWD, RenameFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use staled::client::Client;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

const HELLO: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n";

/// One whose descriptors and memory can be looked at, which a confined one shows to root only.
fn open_daemon(place: &Place, server: &str) -> Serving {
    let config = place.home.with_file_name("config.toml");
    fs::write(&config, format!("[server]\nconfine = \"off\"\n{server}")).expect("a file");
    let daemon = Serving::start(place, &["--config", config.to_str().expect("UTF-8")]);
    wait_until("it has opened what it needs", || daemon.said().contains("every watch is armed"));
    daemon
}

fn descriptors(daemon: &Serving) -> usize {
    fs::read_dir(format!("/proc/{}/fd", daemon.pid())).expect("ours").count()
}

fn connect(daemon: &Serving) -> UnixStream {
    UnixStream::connect(&daemon.socket).expect("it serves")
}

fn line(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a line");
    line
}

#[test]
fn descriptors_that_are_sent_along_are_not_kept() {
    let place = Place::new();
    let daemon = open_daemon(&place, "");
    let sent = fs::File::open("/dev/null").expect("a device");
    let before = descriptors(&daemon);
    let mut streams = Vec::new();
    for _ in 0..8 {
        let stream = connect(&daemon);
        for _ in 0..20 {
            let fds = [sent.as_fd(); 64];
            let mut space = [MaybeUninit::uninit(); 1024];
            let mut along = SendAncillaryBuffer::new(&mut space);
            assert!(along.push(SendAncillaryMessage::ScmRights(&fds)), "there is space");
            let sent = sendmsg(&stream, &[IoSlice::new(HELLO)], &mut along, SendFlags::empty())
                .expect("it takes it");
            assert_eq!(sent, HELLO.len());
            assert!(line(&stream).contains("\"protocol\""));
        }
        streams.push(stream);
    }
    let with_them = descriptors(&daemon);
    assert!(with_them <= before + streams.len(), "{with_them} descriptors, {before} before");
    drop(streams);
    wait_until("the connections are closed", || descriptors(&daemon) <= before);
}

/// A daemon with that many sessions, `s0` and on, a client of it, and how many descriptors it has.
fn with_sessions(place: &Place, sessions: usize) -> (Serving, Client, usize) {
    place.write("a", "1");
    let daemon = open_daemon(place, "");
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    for number in 0..sessions {
        let name = format!("s{number}");
        let context = json!({ "session": name, "root": place.root, "results": [file("a", "1")] });
        ask(&mut client, "context.register", &context);
    }
    let before = descriptors(&daemon);
    (daemon, client, before)
}

fn held(session: usize, pid: u32) -> Value {
    json!({ "session": format!("s{session}"), "holder": { "pid": pid } })
}

#[test]
fn a_holder_costs_one_descriptor_until_its_sessions_end() {
    const SESSIONS: usize = 50;
    let place = Place::new();
    let (daemon, mut client, before) = with_sessions(&place, SESSIONS);
    let own = std::process::id();
    for unknown in SESSIONS..1_200 {
        assert_eq!(refusal(&mut client, "decide", &held(unknown, own)), "no_session_context");
    }
    assert_eq!(descriptors(&daemon), before, "for sessions that nobody knows");
    for session in 0..SESSIONS {
        assert_eq!(ask(&mut client, "decide", &held(session, own))["held_by"], Value::Null);
    }
    assert_eq!(descriptors(&daemon), before + 1, "for all of them together");
    for session in 0..SESSIONS {
        assert_eq!(descriptors(&daemon), before + 1, "{session} are dropped");
        ask(&mut client, "context.drop", &json!({ "session": format!("s{session}") }));
    }
    assert_eq!(descriptors(&daemon), before, "when all are dropped");
    // A name that begins again has no holder yet.
    let context = json!({ "session": "s0", "root": place.root, "results": [file("a", "1")] });
    ask(&mut client, "context.register", &context);
    let report = ask(&mut client, "decide", &json!({ "session": "s0" }));
    assert_eq!(report["held_by"], Value::Null);
}

#[test]
fn dead_holders_of_sessions_that_nobody_asks_about_do_not_pile_up() {
    const SESSIONS: usize = 150;
    let place = Place::new();
    let (daemon, mut client, before) = with_sessions(&place, SESSIONS);
    for session in 0..SESSIONS {
        let mut holder = Command::new("sleep").arg("600").spawn().expect("a process");
        ask(&mut client, "decide", &held(session, holder.id()));
        holder.kill().expect("it runs");
        holder.wait().expect("it ends");
        let more = descriptors(&daemon).saturating_sub(before);
        assert!(more <= 40, "{more} descriptors after {session} dead holders");
    }
}

#[test]
fn whoever_goes_without_reading_costs_nobody_anything() {
    let place = Place::new();
    let names: Vec<String> = (0..1_000).map(|number| format!("{}/f{number}", "long".repeat(20))).collect();
    names.iter().for_each(|name| place.write(name, "1"));
    let daemon = open_daemon(&place, "");
    let results: Vec<Value> = names.iter().map(|name| file(name, "1")).collect();
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    ask(&mut client, "context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    let before = descriptors(&daemon);
    let decide = json!({ "jsonrpc": "2.0", "id": 1, "method": "decide", "params": { "session": "s" } });
    for half in [true, false] {
        for _ in 0..2 {
            let mut stream = connect(&daemon);
            // Each answer is some 400 kB.
            let asked = format!("{decide}\n").repeat(25);
            stream.write_all(asked.as_bytes()).expect("it reads");
            if half {
                let mut begun = [0; 4096];
                stream.read_exact(&mut begun).expect("an answer begins");
            }
        }
        ask(&mut client, "hello", &json!({}));
    }
    wait_until("the connections are closed", || descriptors(&daemon) <= before);
    let report = ask(&mut client, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
    assert_eq!(report["transition"], "resume");
    assert!(report.to_string().len() > 300_000, "they would have been long");
}

#[test]
fn those_who_say_nothing_or_a_byte_now_and_then_make_room_again() {
    let place = Place::new();
    let daemon =
        open_daemon(&place, "connections_max = 24\nidle_timeout_ms = 1500\nline_timeout_ms = 1500\n");
    let silent: Vec<UnixStream> = (0..20).map(|_| connect(&daemon)).collect();
    let mut slow: Vec<UnixStream> = (0..4).map(|_| connect(&daemon)).collect();
    assert!(line(&connect(&daemon)).contains("\"overloaded\""));
    let mut said = 0;
    wait_until("the slow are told that it takes too long", || {
        for stream in &mut slow {
            // A byte at a time renews nothing.
            let _ = stream.write_all(b" ");
        }
        std::thread::sleep(Duration::from_millis(50));
        said += 1;
        slow[0].set_nonblocking(true).expect("ours");
        !matches!(slow[0].peek_one(), Err(error) if error.kind() == ErrorKind::WouldBlock)
    });
    slow[0].set_nonblocking(false).expect("ours");
    assert!(line(&slow[0]).contains("server.line_timeout_ms"), "after {said} bytes");
    wait_until("there is room again", || {
        let mut stream = connect(&daemon);
        stream.write_all(HELLO).is_ok() && line(&stream).contains("\"protocol\"")
    });
    drop((silent, slow));
}

trait Peek {
    fn peek_one(&self) -> std::io::Result<usize>;
}

impl Peek for UnixStream {
    fn peek_one(&self) -> std::io::Result<usize> {
        let (flags, mut byte) = (rustix::net::RecvFlags::PEEK, [0; 1]);
        Ok(rustix::net::recv(self, &mut byte[..], flags)?.0)
    }
}

fn answers(daemon: &Serving) -> bool {
    let Ok(mut client) = Client::connect(&daemon.socket) else { return false };
    client.ask("hello", &json!({})).is_ok_and(|hello| hello.contains(&format!("\"pid\":{}", daemon.pid())))
}

#[test]
fn a_socket_that_is_taken_away_is_bound_anew() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    let mut old = Client::connect(&daemon.socket).expect("it serves");
    for times in 1..=3 {
        fs::remove_file(&daemon.socket).expect("ours");
        wait_until("it is bound anew", || answers(&daemon));
        old.ask("hello", &json!({})).expect("who was connected stays so");
        assert_eq!(daemon.said().matches("bound anew").count(), times, "{}", daemon.said());
    }
    assert_eq!(fs::metadata(&daemon.socket).expect("a socket").permissions().mode() & 0o777, 0o600);

    // Somebody else listens there, and then somebody puts theirs over it.
    let aside = daemon.socket.with_extension("aside");
    for by_rename in [false, true] {
        let thief = if by_rename {
            let thief = UnixListener::bind(&aside).expect("a socket");
            fs::rename(&aside, &daemon.socket).expect("ours");
            thief
        } else {
            fs::remove_file(&daemon.socket).expect("ours");
            let Ok(thief) = UnixListener::bind(&daemon.socket) else { continue };
            thief
        };
        wait_until("it has its place again", || {
            // A client that the thief never answers would wait for long.
            thief.set_nonblocking(true).expect("ours");
            drop(thief.accept());
            daemon.said().matches("bound anew").count() > if by_rename { 4 } else { 3 }
        });
        assert!(answers(&daemon), "by rename: {by_rename}");
    }
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    assert!(!daemon.socket.exists());
}

/// In one step: a daemon that sees that its socket is gone would be there first.
fn put_folder(daemon: &Serving) {
    let made = daemon.socket.with_extension("made");
    fs::create_dir(&made).expect("ours");
    rustix::fs::renameat_with(CWD, &made, CWD, &daemon.socket, RenameFlags::EXCHANGE).expect("ours");
    fs::remove_file(&made).expect("ours");
}

const TRIED_AGAIN: &str = "cannot be bound anew; tried again";

#[test]
fn a_folder_in_the_place_of_the_socket_is_set_aside() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    let aside = |number: u32| state(&place).join(format!("run/staled.sock.aside-{number}"));
    for number in 1..=16 {
        put_folder(&daemon);
        wait_until("it is set aside", || answers(&daemon) && aside(number).is_dir());
    }
    assert!(!daemon.said().contains(TRIED_AGAIN), "{}", daemon.said());

    // There is no name left, until somebody removes the folder.
    put_folder(&daemon);
    wait_until("it is said", || daemon.said().contains(TRIED_AGAIN));
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(daemon.said().matches(TRIED_AGAIN).count(), 1, "{}", daemon.said());
    assert!(daemon.said().contains("Is a directory"), "{}", daemon.said());
    fs::remove_dir(&daemon.socket).expect("ours");
    wait_until("it is bound anew", || answers(&daemon));

    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    fs::remove_dir(aside(7)).expect("ours");
    fs::create_dir(&daemon.socket).expect("ours");
    fs::write(daemon.socket.join("kept"), "").expect("a file");
    let daemon = Serving::start(&place, &[]);
    assert!(answers(&daemon) && aside(7).join("kept").exists());
}

#[test]
fn a_socket_that_is_taken_away_while_no_descriptor_is_left_is_bound_anew_later() {
    let place = Place::new();
    let daemon = Serving::start(&place, &[]);
    wait_until("it has opened what it needs", || daemon.said().contains("every watch is armed"));
    let limit = |current| {
        let new = Rlimit { current: Some(current), ..getrlimit(Resource::Nofile) };
        prlimit(Some(daemon.pid()), Resource::Nofile, new).expect("ours").current
    };
    let usual = limit(0);
    fs::remove_file(&daemon.socket).expect("ours");
    wait_until("it is said", || daemon.said().contains(TRIED_AGAIN));
    assert!(daemon.said().contains("Too many open files"), "{}", daemon.said());
    limit(usual.unwrap_or(1024));
    wait_until("it is bound anew", || answers(&daemon));
    assert_eq!(daemon.said().matches(TRIED_AGAIN).count(), 1, "{}", daemon.said());
}

#[test]
fn a_daemon_whose_folder_is_replaced_ends_and_touches_nothing_there() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    let (run, theirs) = (state(&place).join("run"), place.root.join("theirs"));
    fs::create_dir(&theirs).expect("a folder");
    let _thief = UnixListener::bind(theirs.join("staled.sock")).expect("a socket");
    fs::write(theirs.join("staled.pid"), "1\n").expect("a file");
    fs::rename(&run, run.with_extension("away")).expect("ours");
    symlink(&theirs, &run).expect("a link");
    assert_eq!(daemon.ends(), 2, "{}", daemon.said());
    assert!(daemon.said().contains("its folder was replaced"), "{}", daemon.said());
    assert!(theirs.join("staled.sock").exists() && theirs.join("staled.pid").exists(), "it is not ours");
    let mut again = program(&place);
    again.arg("serve").arg("--state").arg(state(&place));
    let refused = refused_by(again);
    assert_eq!(refused.code, 2, "a symlink is no folder of ours: {refused:?}");
    fs::remove_file(&run).expect("ours");
    let daemon = Serving::start(&place, &[]);
    assert!(answers(&daemon));
}

/// Answers everybody, in another user's name.
const STRANGER: &str = r#"
import os, socket, sys
os.setgroups([]); os.setuid(4242)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen(8)
print("ready", flush=True)
while True:
    peer, _ = listener.accept()
    peer.settimeout(2)
    try: peer.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"name":"staled","health":"ok"}}\n')
    except OSError: pass
    try: heard = peer.recv(100)
    except OSError: heard = b""
    print("heard", len(heard), flush=True)
"#;

#[test]
fn a_client_believes_no_daemon_of_another_user_and_tells_it_nothing() {
    if !rustix::process::geteuid().is_root() {
        return skipped("nobody but root can be two users");
    }
    let place = Place::new();
    let folder = place.root.join("run");
    fs::create_dir(&folder).expect("a folder");
    for path in place.root.ancestors().take(2).chain([folder.as_path()]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    rustix::fs::chown(&folder, Some(rustix::fs::Uid::from_raw(4242)), None).expect("root may");
    let socket = folder.join("staled.sock");
    let mut stranger = Command::new("python3");
    stranger.args(["-c", STRANGER]).arg(&socket);
    let mut stranger = Kept(stranger.stdout(Stdio::piped()).spawn().expect("it runs"));
    let mut told = BufReader::new(stranger.0.stdout.take().expect("piped")).lines();
    assert_eq!(told.next().expect("a line").expect("UTF-8"), "ready");
    let run = staled(&place, &socket, &["status"]);
    run.fails(2, "its server runs as uid 4242");
    assert_eq!(told.next().expect("a line").expect("UTF-8"), "heard 0");
}

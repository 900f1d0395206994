//! Reports about how much there is: storms, queues that overflow, watches and instances that pile up, and what the
//! daemon does to others and to itself by looking. The daemon is a process of its own.

use super::Scene;
use crate::cli::serve::Serving;
use crate::daemon::{cause, commit_all};
use crate::harness::{Place, ask, file, lax, wait_until};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, Signal, setpriority_process};
use serde_json::{Value, json};
use staled::client::Client;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// More events than the kernel keeps for anybody who does not take them.
const STORM: usize = 20_000;

struct Process(Serving);

impl Process {
    fn start(place: &Place, config: &str) -> Self {
        let path = place.root.with_file_name("config.toml");
        fs::write(&path, config).expect("a file");
        Self(Serving::start(place, &["--config", path.to_str().expect("UTF-8")]))
    }

    fn client(&self) -> Client {
        Client::connect(&self.0.socket).expect("the daemon answers")
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        ask(&mut self.client(), method, params)
    }

    fn register(&self, place: &Place, session: &str, results: &Value) -> Value {
        let context = json!({ "session": session, "root": place.root, "results": results });
        self.ask("context.register", &context)
    }

    fn decide(&self) -> Value {
        self.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }))
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0.pid()))
    }

    /// Watches of each inotify instance, as the kernel counts them, but for the one that sees to the socket alone.
    fn watches(&self) -> Vec<usize> {
        let ino = fs::metadata(self.0.socket.parent().expect("a folder")).expect("it is there").ino();
        let sees_to_the_socket = format!("ino:{ino:x} ");
        let handles = fs::read_dir(self.proc("fd")).expect("it runs").map(|entry| entry.expect("a handle"));
        let ours = handles.filter(|handle| {
            fs::read_link(handle.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:inotify")
        });
        let told = ours.map(|handle| fs::read_to_string(self.proc("fdinfo").join(handle.file_name())));
        let told =
            told.map(|told| told.expect("it is open")).filter(|told| !told.contains(&sees_to_the_socket));
        told.map(|told| told.matches("inotify wd:").count()).collect()
    }
}

/// Two files in a watched folder, touched in turn, so that the kernel merges no event with the one before it.
fn storm(place: &Place, events: usize, folder: &str) {
    let folder = place.root.join(folder);
    let files = ["a", "b"].map(|name| fs::File::create(folder.join(name)).expect("a file"));
    for number in 0..events {
        files[number % 2].set_modified(SystemTime::UNIX_EPOCH).expect("a time");
    }
}

fn with_two_files(config: &str) -> (Place, Process) {
    let place = Place::new();
    place.write("d/f", "one\n");
    place.write("d/g", "one\n");
    let daemon = Process::start(&place, config);
    daemon.register(&place, "s", &json!([file("d/f", "one\n"), file("d/g", "one\n")]));
    assert_eq!(daemon.decide()["transition"], "resume");
    (place, daemon)
}

fn words(report: &Value) -> [String; 2] {
    ["d/f", "d/g"].map(|id| cause(report, id))
}

#[test]
fn w1_what_was_lost_in_an_overflow_is_looked_at() {
    let (place, daemon) = with_two_files("");
    daemon.0.signal(Signal::STOP);
    storm(&place, STORM, "d");
    place.write("d/f", "two\n");
    daemon.0.signal(Signal::CONT);
    assert_eq!(words(&daemon.decide()), ["content", "fresh"]);
    let health = daemon.ask("status", &json!({}));
    assert!(health["last_gap"].as_str().is_some_and(|why| why.contains("overflowed")), "{health}");
    place.write("d/g", "two\n");
    assert_eq!(words(&daemon.decide()), ["content", "content"]);
}

#[test]
fn w6_a_daemon_that_gets_no_processor_says_no_false_fresh() {
    let (place, daemon) = with_two_files("");
    for task in fs::read_dir(daemon.proc("task")).expect("it runs") {
        let id = task.expect("a thread").file_name().to_string_lossy().parse().expect("a number");
        // A thread may have ended by now.
        let _ = setpriority_process(Pid::from_raw(id), 19);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        storm(&place, 2 * STORM, "d");
        place.write("d/f", "two\n");
        let report = daemon.decide();
        stop.store(true, Ordering::Relaxed);
        assert_ne!(words(&report)[0], "fresh", "{report}");
    });
    assert_eq!(words(&daemon.decide()), ["content", "fresh"]);
}

#[test]
fn w39_an_edit_in_the_midst_of_a_storm_is_seen() {
    let scene = Scene::new();
    for (text, word) in [("two\n", "content"), ("one\n", "fresh"), ("six\n", "content")] {
        storm(&scene.place, 5 * STORM, "d");
        scene.place.write("d/f", text);
        storm(&scene.place, 5 * STORM, "d");
        scene.is(word, text);
        assert_eq!(scene.word("d/g"), "fresh", "{text}");
    }
}

/// Bytes read by a process so far, from files and inotify alike.
fn bytes_read(daemon: &Process) -> u64 {
    let told = fs::read_to_string(daemon.proc("io")).expect("it runs");
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("it is counted");
    line.parse().expect("a number")
}

#[test]
fn w7_looking_sets_off_no_further_looks() {
    let place = Place::new();
    let names: Vec<String> = (0..5_000).map(|number| format!("d{}/f{number}", number % 20)).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let daemon = Process::start(&place, "[verify]\nscrub_pass_s = 0\n");
    daemon.register(&place, "s", &json!(names.iter().map(|name| file(name, "one\n")).collect::<Vec<_>>()));
    // A gap: everything is looked at again.
    daemon.0.signal(Signal::STOP);
    storm(&place, STORM, "d0");
    daemon.0.signal(Signal::CONT);
    wait_until("all are verified", || daemon.decide()["transition"] == "resume");
    assert!(daemon.ask("status", &json!({}))["gaps"].as_u64() > Some(0));
    wait_until("nothing is read any more", || {
        let before = bytes_read(&daemon);
        std::thread::sleep(Duration::from_millis(300));
        bytes_read(&daemon) == before
    });
    place.write("d0/f0", "two\n");
    assert_eq!(cause(&daemon.decide(), "d0/f0"), "content");
}

#[test]
fn w35_sessions_share_their_watches_and_give_them_back() {
    let place = Place::new();
    let names: Vec<String> = (0..1_000).map(|number| format!("d{}/f{number}", number % 10)).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let results: Vec<Value> = names.iter().map(|name| file(name, "one\n")).collect();
    let daemon = Process::start(&place, "");
    let before = daemon.watches();
    for session in 0..200 {
        // Each has its own part; together they have all of it many times.
        let part: Vec<&Value> = results.iter().cycle().skip(session * 37).take(100).collect();
        daemon.register(&place, &format!("s{session}"), &json!(part));
    }
    let distinct = names.len() + 10 + place.root.ancestors().count();
    assert_eq!(daemon.watches(), [before[0] + distinct]);
    for session in 0..200 {
        daemon.ask("context.drop", &json!({ "session": format!("s{session}") }));
    }
    wait_until("the watches have gone", || daemon.watches() == before);
}

#[test]
fn w38_three_hundred_clients_need_one_instance() {
    let place = Place::new();
    place.write("f", "one\n");
    let daemon = Process::start(&place, "[server]\nconnections_max = 400\n");
    let mut clients: Vec<Client> = (0..300).map(|_| daemon.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let context =
            json!({ "session": format!("s{number}"), "root": place.root, "results": [file("f", "one\n")] });
        ask(client, "context.register", &context);
    }
    assert_eq!(daemon.watches().len(), 1);
    assert_eq!(daemon.ask("status", &json!({}))["sessions"], 300);
}

#[test]
fn w42_the_digest_of_a_file_that_changed_while_it_was_read_counts_for_nothing() {
    const SIZE: u64 = 128 << 20;
    let place = Place::new();
    let path = place.root.join("big");
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::io::repeat(0).take(SIZE)).expect("zeros");
    let zeros = format!("blake3:{}", hasher.finalize().to_hex());
    let daemon = Process::start(&place, "");
    for round in 0..3 {
        fs::File::create(&path).and_then(|file| file.set_len(SIZE)).expect("a file");
        let result = json!({ "id": "big", "source": { "kind": "file", "path": "big" }, "digest": zeros });
        std::thread::scope(|scope| {
            let registration = scope.spawn(|| daemon.register(&place, "s", &json!([result])));
            // Somewhere on its way through the file, whose beginning was read first.
            wait_until("it is being read", || registration.is_finished() || is_open(&daemon, &path));
            let file = fs::File::options().write(true).open(&path).expect("a file");
            std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).expect("a write");
        });
        let word = cause(&daemon.decide(), "big");
        assert!(["content", "born_stale"].contains(&word.as_str()), "round {round}: {word}");
    }
}

fn is_open(daemon: &Process, path: &std::path::Path) -> bool {
    let mut handles = fs::read_dir(daemon.proc("fd")).expect("it runs");
    handles
        .any(|handle| handle.is_ok_and(|handle| fs::read_link(handle.path()).is_ok_and(|open| open == path)))
}

#[test]
fn w43_nobody_who_watches_the_repository_hears_of_a_question() {
    let place = Place::new();
    place.write("src/a", "one\n");
    place.write("Cargo.lock", "1");
    let commit = commit_all(&place);
    let daemon = Process::start(&place, "[verify]\nscrub_pass_s = 0\n");
    let context = json!({ "session": "s", "root": place.root,
        "results": [file("src/a", "one\n"), { "id": "all", "source": { "kind": "tree", "path": "." } }],
        "invariants": [super::head(".", "strict", &commit)] });
    daemon.ask("context.register", &context);
    let ours = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("an instance");
    for folder in ["", "src", ".git", ".git/refs", ".git/refs/heads"] {
        inotify::add_watch(&ours, place.root.join(folder), WatchFlags::ALL_EVENTS).expect("a watch");
    }
    let mut client = daemon.client();
    let mut ask_often = |times: u32| {
        for _ in 0..times {
            let report = ask(&mut client, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
            assert_eq!(report["transition"], "resume");
        }
    };
    let mut heard = [0; 4_096];
    let mut hears = || rustix::io::read(&ours, &mut heard).is_ok();
    // What the registration left in doubt is looked at once more.
    wait_until("there is nothing left to look at", || {
        ask_often(10);
        !hears()
    });
    ask_often(1_000);
    assert!(!hears(), "somebody heard of it");
    place.write("src/a", "one\n");
    assert!(hears(), "we would have heard");
}

#[test]
fn w46_the_same_size_in_the_same_moment_is_seen_after_a_kill() {
    let place = Place::new();
    for round in 0..4 {
        place.write("f", "aaaa");
        let daemon = Process::start(&place, "");
        place.write("f", "aaaa");
        daemon.register(&place, "s", &json!([lax("f", "aaaa")]));
        place.write("f", "bbbb");
        daemon.0.signal(Signal::KILL);
        drop(daemon);
        let daemon = Process::start(&place, "");
        assert_eq!(cause(&daemon.decide(), "f"), "content", "round {round}");
    }
}

/// Somebody tidies up, and takes the folder by which the daemon knows that it still hears.
#[test]
fn a_cookie_folder_that_was_cleaned_away_costs_no_truth() {
    let (place, daemon) = with_two_files("");
    fs::remove_dir_all(daemon.0.socket.with_file_name("cookies")).expect("a folder");
    place.write("d/f", "two\n");
    assert_ne!(words(&daemon.decide())[0], "fresh");
    wait_until("it knows again", || words(&daemon.decide()) == ["content", "fresh"]);
    place.write("d/g", "two\n");
    wait_until("it goes on knowing", || words(&daemon.decide()) == ["content", "content"]);
}

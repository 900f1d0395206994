//! What a panic costs: a handler's its connection, any other the process, which then says which thread it was.

use super::serve::Serving;
use crate::harness::{Place, digest, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::path::PathBuf;

/// A daemon, one of whose threads panics as soon as the file is there.
struct Doomed {
    place: Place,
    daemon: Serving,
    trigger: PathBuf,
}

impl Doomed {
    fn start(thread: &str) -> Self {
        let place = Place::new();
        std::fs::create_dir_all(&place.home).expect("a folder");
        let trigger = place.home.join("now");
        let fault = PathBuf::from(format!("{thread}:{}", trigger.display()));
        let config = config(&place);
        let daemon = Serving::start_under(&place, &["--config", &config], &[("STALED_FAULT", &fault)]);
        Self { place, daemon, trigger }
    }

    fn arm(&self) {
        std::fs::write(&self.trigger, "").expect("a file");
    }
}

/// Every line is synced, so that there is something to do for the log's syncer; a scrub comes round at once.
fn config(place: &Place) -> String {
    let path = place.home.join("config.toml");
    let text = "[log]\nsync = \"always\"\n[verify]\nscrub_pass_s = 1\n";
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

fn ask(daemon: &Serving, method: &str, params: &Value) -> Option<Value> {
    let answer = Client::connect(&daemon.socket).ok()?.ask(method, params).ok()?;
    Some(serde_json::from_str(&answer).expect("JSON"))
}

fn decide(daemon: &Serving) -> Option<String> {
    let report = ask(daemon, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }))?;
    Some(report["transition"].as_str().expect("a transition").to_owned())
}

fn register(doomed: &Doomed) {
    doomed.place.write("a", "1");
    let result = json!({ "id": "a", "source": { "kind": "file", "path": "a" }, "digest": digest("1") });
    let context = json!({ "session": "s", "root": doomed.place.root, "results": [result] });
    ask(&doomed.daemon, "context.register", &context).expect("registered");
    wait_until("it is fresh", || decide(&doomed.daemon).as_deref() == Some("resume"));
}

/// Kills the thread by what `provoke` does, after which nothing is called fresh and the process ends by itself; another
/// one decides truly.
fn ends_the_process(thread: &str, provoke: impl Fn(&Doomed)) {
    let mut doomed = Doomed::start(thread);
    register(&doomed);
    doomed.arm();
    provoke(&doomed);
    doomed.place.write("a", "2");
    wait_until("it refuses", || match decide(&doomed.daemon) {
        Some(transition) => {
            assert_ne!(transition, "resume", "{thread}");
            false
        }
        None => true,
    });
    assert_eq!(doomed.daemon.ends(), 2, "{thread}: {}", doomed.daemon.said());
    let why = format!("the {thread} thread died of a panic");
    assert!(doomed.daemon.said().contains(&why), "{}", doomed.daemon.said());
    let again = Serving::start(&doomed.place, &["--config", &config(&doomed.place)]);
    assert_eq!(decide(&again).as_deref(), Some("fresh"), "{thread}");
    doomed.place.write("a", "1");
    wait_until("what was changed back is fresh", || decide(&again).as_deref() == Some("resume"));
}

#[test]
fn a_verifier_that_dies_ends_the_process() {
    ends_the_process("verifier", |_| ());
}

#[test]
fn a_watcher_that_dies_ends_the_process() {
    ends_the_process("watcher", |_| ());
}

#[test]
fn a_syncer_of_the_journal_that_dies_ends_the_process() {
    ends_the_process("journal-sync", |doomed| {
        let context = json!({ "session": "t", "root": doomed.place.root });
        assert_eq!(ask(&doomed.daemon, "context.register", &context), None, "nothing was synced");
    });
}

#[test]
fn a_syncer_of_the_decision_log_that_dies_ends_the_process() {
    ends_the_process("log-sync", |doomed| assert_eq!(decide(&doomed.daemon), None, "nothing was logged"));
}

#[test]
fn a_scrub_that_dies_ends_the_process() {
    ends_the_process("scrub", |_| ());
}

#[test]
fn an_accept_loop_that_dies_ends_the_process() {
    ends_the_process("server", |_| ());
}

#[test]
fn a_listener_for_signals_that_dies_ends_the_process() {
    ends_the_process("signals", |doomed| doomed.daemon.signal(Signal::USR1));
}

#[test]
fn a_handler_that_dies_costs_its_connection_and_nobody_else() {
    let mut doomed = Doomed::start("handler");
    register(&doomed);
    let mut other = Client::connect(&doomed.daemon.socket).expect("it serves");
    other.ask("hello", &json!({})).expect("an answer");
    doomed.arm();
    for _ in 0..50 {
        assert_eq!(ask(&doomed.daemon, "hello", &json!({})), None);
    }
    std::fs::remove_file(&doomed.trigger).expect("ours");
    other.ask("hello", &json!({})).expect("the other connection is as it was");
    assert_eq!(decide(&doomed.daemon).as_deref(), Some("resume"));
    assert_eq!(doomed.daemon.said().matches("panic").count(), 50, "{}", doomed.daemon.said());
    doomed.daemon.signal(Signal::TERM);
    assert_eq!(doomed.daemon.ends(), 0);
}

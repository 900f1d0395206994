//! What a panic costs: a handler's its connection, any other the process, which then says which thread it was.

use super::serve::Serving;
use crate::harness::{Place, digest, file, wait_until};
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

/// Every line is synced, so that there is something to do for the log's syncer; a scrub comes
/// round at once, and little has to be told before the journal is compacted.
fn config(place: &Place) -> String {
    let path = place.home.join("config.toml");
    let text = "[log]\nsync = \"always\"\n[verify]\nscrub_pass_s = 1\n[journal]\ncompact_bytes = 4096\n";
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
    let doomed = ended(thread, provoke);
    decides_truly(&doomed, thread);
}

fn decides_truly(doomed: &Doomed, thread: &str) {
    doomed.place.write("a", "2");
    let again = Serving::start(&doomed.place, &["--config", &config(&doomed.place)]);
    assert_eq!(decide(&again).as_deref(), Some("fresh"), "{thread}");
    doomed.place.write("a", "1");
    wait_until("what was changed back is fresh", || decide(&again).as_deref() == Some("resume"));
}

fn ended(thread: &str, provoke: impl Fn(&Doomed)) -> Doomed {
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
    doomed
}

/// The same of a thread that dies of one source whenever it looks at it: the next process does not look there.
fn ends_one_process(thread: &str) {
    let doomed = ended(thread, |_| ());
    let fault = PathBuf::from(format!("{thread}:{}", doomed.trigger.display()));
    let config = config(&doomed.place);
    for content in ["2", "1"] {
        doomed.place.write("a", content);
        let again = Serving::start_under(&doomed.place, &["--config", &config], &[("STALED_FAULT", &fault)]);
        // Settled, and so by now looked at if it is at all.
        assert_eq!(decide(&again).as_deref(), Some("fresh"), "{thread}: {}", again.said());
        doomed.place.write("a", "3");
        doomed.place.write("a", content);
        assert_eq!(decide(&again).as_deref(), Some("fresh"), "{thread}: {}", again.said());
        let status = ask(&again, "status", &json!({})).expect("it lives").to_string();
        assert!(status.contains("a look at it ended an earlier process"), "{status}");
        let row = ask(&again, "status", &json!({ "session": "s" })).expect("it lives")["rows"][0].clone();
        assert_eq!(row["cause"], "unreadable", "{row}");
    }
    std::fs::remove_file(super::serve::state(&doomed.place).join("stumbled")).expect("it was noted");
    decides_truly(&doomed, thread);
}

#[test]
fn a_verifier_that_dies_of_a_source_ends_one_process() {
    ends_one_process("verifier");
}

/// Several are placed together before any of them is looked at. Each is told to the verifiers once, by its registration.
#[test]
fn what_stumbles_while_it_is_placed_is_not_placed_again() {
    let mut doomed = Doomed::start("place");
    let names: Vec<String> = (0..16).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| doomed.place.write(name, "1"));
    let results: Vec<Value> = names.iter().map(|name| file(name, "1")).collect();
    doomed.arm();
    // Whether it is answered before the process ends is nobody's promise.
    ask(
        &doomed.daemon,
        "context.register",
        &json!({ "session": "s", "root": doomed.place.root, "results": results }),
    );
    assert_eq!(doomed.daemon.ends(), 2, "{}", doomed.daemon.said());
    let notes = std::fs::read(super::serve::state(&doomed.place).join("stumbled")).expect("it was noted");
    let mut paths: Vec<&[u8]> = notes.split(|&byte| byte == 0).filter_map(|note| note.get(28..)).collect();
    let noted = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert!(noted > 0 && paths.len() == noted, "noted twice: {}", String::from_utf8_lossy(&notes));
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
fn a_compaction_that_dies_ends_the_process() {
    ends_the_process("journal-compact", |doomed| {
        let told = |number: usize| {
            let question = "?".repeat(900);
            let context = json!({ "session": "t", "root": doomed.place.root, "open_questions": [question, number.to_string()] });
            ask(&doomed.daemon, "context.register", &context).is_some()
        };
        assert!((0..1_000).any(|number| !told(number)), "it was never due");
    });
}

#[test]
fn a_syncer_of_the_decision_log_that_dies_ends_the_process() {
    ends_the_process("log-sync", |doomed| assert_eq!(decide(&doomed.daemon), None, "nothing was logged"));
}

#[test]
fn an_engine_that_dies_ends_the_process() {
    ends_the_process("engine", |_| ());
}

#[test]
fn an_appender_that_dies_ends_the_process() {
    ends_the_process("appender", |doomed| assert_eq!(decide(&doomed.daemon), None, "nothing was logged"));
}

#[test]
fn a_scrub_that_dies_of_a_source_ends_one_process() {
    ends_one_process("scrub");
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

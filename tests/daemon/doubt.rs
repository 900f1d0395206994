//! A session that may have lost records: what is said of it, and what it takes to have done with that.

use super::{cause, decide, register};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};

const REMEDY: &str = "register the session again with replace: true";

/// A daemon that begins with a journal in doubt, and a session from before of two files and what cannot be watched.
fn doubting(place: &Place) -> (Daemon, Value) {
    place.write("a", "1");
    place.write("b", "1");
    let volatile = json!({ "id": "v", "source": { "kind": "volatile", "what": "network" } });
    let results = json!([file("a", "1"), file("b", "other"), volatile]);
    let daemon = Daemon::start(&place.home);
    let registered = register(&daemon, place, "s", &results);
    assert!(!registered["warnings"].to_string().contains(REMEDY), "{registered}");
    daemon.stop();
    // What an opening leaves that found damage, and ended before it could say so.
    std::fs::write(place.home.join("state/journal/in-doubt"), "").expect("a file");
    (Daemon::start(&place.home), results)
}

/// What is stale or unknown over all sessions, as it is counted.
fn counted(daemon: &Daemon) -> Vec<String> {
    let metrics = daemon.ask("metrics", &json!({}));
    let text = metrics.as_str().expect("a text");
    let rows = text.lines().filter(|line| line.starts_with("staled_rows_doubtful{"));
    let mut rows: Vec<String> = rows.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_registration_that_does_not_end_the_doubt_says_what_would() {
    let place = Place::new();
    let (daemon, results) = doubting(&place);
    let told = json!({ "session": "s", "root": place.root, "results": results });
    for method in ["context.record", "context.register"] {
        let answer = daemon.ask(method, &told);
        assert!(answer["warnings"].to_string().contains(REMEDY), "{method}: {answer}");
        assert_eq!(cause(&decide(&daemon, "s"), "a"), "gap");
    }
    let anew = json!({ "session": "s", "root": place.root, "results": [file("a", "1")], "replace": true });
    let answer = daemon.ask("context.register", &anew);
    assert!(!answer["warnings"].to_string().contains(REMEDY), "{answer}");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

#[test]
fn rows_in_doubt_are_counted_once() {
    let place = Place::new();
    let (daemon, _) = doubting(&place);
    decide(&daemon, "s");
    let doubted = [
        "staled_rows_doubtful{status=\"stale\",cause=\"volatile\"} 1",
        "staled_rows_doubtful{status=\"unknown\",cause=\"gap\"} 2",
    ];
    assert_eq!(counted(&daemon), doubted);
    let problems = daemon.ask("status", &json!({}))["problems"].to_string();
    assert!(problems.contains("2 results or invariants are in doubt"), "{problems}");
    daemon.ask("context.drop", &json!({ "session": "s" }));
    assert_eq!(counted(&daemon), [""; 0]);
}

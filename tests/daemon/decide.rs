//! `decide`: what the world does, and what follows.

use crate::harness::{Daemon, Place, file, lax};
use serde_json::json;

#[test]
fn a_change_is_seen_by_the_decide_that_follows_it() {
    let place = Place::new();
    place.write("src/a.rs", "one\n");
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("src/a.rs", "one\n")] });
    let registered = daemon.ask("context.register", &context);
    assert_eq!(registered["results"][0]["status"], "fresh", "{registered}");
    let decide = || daemon.ask("decide", &json!({ "session": "s" }));
    assert_eq!(decide()["transition"], "resume");
    place.write("src/a.rs", "two\n");
    let report = decide();
    assert_eq!(report["transition"], "fresh", "{report}");
    assert_eq!(report["typed_summary"]["stale_dropped"], json!(["src/a.rs"]));
    place.write("src/a.rs", "one\n");
    assert_eq!(decide()["transition"], "resume");
}

#[test]
fn goals_and_budgets_decide_when_nothing_critical_changed() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let results = [file("a", "1"), lax("b", "1")];
    let context = json!({ "session": "s", "root": place.root, "results": results });
    daemon.ask("context.register", &context);
    for (goal, transition, code) in [
        (json!({}), "resume", "valid"),
        (json!({ "branchable": true, "hypotheses": ["x"] }), "resume", "valid"),
        (json!({ "branchable": true, "hypotheses": ["x", "x", "../.."] }), "fork", "branchable"),
        (json!({ "hypotheses": ["x", "y"] }), "resume", "valid"),
        (
            json!({ "branchable": true, "shares_mutable_state": true, "hypotheses": ["x", "y"] }),
            "resume",
            "fork_blocked_shared_state",
        ),
    ] {
        let report = daemon.ask("decide", &json!({ "session": "s", "goal": goal, "deadline_ms": 10_000 }));
        assert_eq!(
            (&report["transition"], &report["reason"]["code"]),
            (&json!(transition), &json!(code)),
            "{goal}"
        );
        assert_eq!(report["drop"], json!(["b"]), "stale but not critical");
    }
}

#[test]
fn rows_are_all_or_those_in_doubt_and_at_least_one() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    (0..1_001).for_each(|i| place.write(&format!("f{i}"), "1"));
    let results: Vec<_> = (0..1_001).map(|i| file(&format!("f{i}"), "1")).collect();
    let mut ten = json!({ "session": "ten", "root": place.root, "results": results[..10] });
    daemon.ask("context.register", &ten);
    ten = json!({ "session": "many", "root": place.root, "results": results });
    daemon.ask("context.register", &ten);
    let rows = |session: &str, rows: &str| {
        let report =
            daemon.ask("decide", &json!({ "session": session, "rows": rows, "deadline_ms": 10_000 }));
        report["staleness_results"].as_array().expect("rows").len()
    };
    assert_eq!(
        [rows("ten", "all"), rows("ten", "stale"), rows("many", "all"), rows("many", "stale")],
        [10, 1, 1, 1]
    );
    place.write("f3", "2");
    place.write("f4", "2");
    assert_eq!(
        [rows("ten", "all"), rows("ten", "stale"), rows("many", "all"), rows("many", "stale")],
        [10, 2, 2, 2]
    );
    let bad = json!({ "session": "ten", "rows": "none" });
    assert_eq!(crate::harness::refusal(&mut daemon.client(), "decide", &bad), "-32602");
}

/// No time at all: whatever could not be seen by then is unknown, and never fresh by silence.
#[test]
fn without_time_to_look_there_is_no_false_fresh() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    daemon
        .ask("context.register", &json!({ "session": "s", "root": place.root, "results": [file("a", "1")] }));
    for round in 0..100 {
        place.write("a", &format!("other {round}"));
        let report = daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 0 }));
        assert_eq!(report["transition"], "fresh", "{report}");
    }
    place.write("a", "1");
    let report = daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
    assert_eq!(report["transition"], "resume", "{report}");
}

#[test]
fn a_context_without_results_and_invariants_is_none() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let client = &mut daemon.client();
    let fact = json!([{ "statement": "s", "sources": ["a"] }]);
    for (name, more) in [
        ("empty", json!({})),
        ("facts", json!({ "facts": fact })),
        ("goal", json!({ "goal": { "statement": "g" } })),
    ] {
        let mut context = json!({ "session": name, "root": place.root });
        context.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        daemon.ask("context.register", &context);
        for ask in [json!({ "session": name }), json!({ "session": name, "rows": "stale" })] {
            assert_eq!(crate::harness::refusal(client, "decide", &ask), "no_session_context", "{name}");
        }
    }
    // The last result goes, and with it the context.
    daemon.ask(
        "context.register",
        &json!({ "session": "s", "root": place.root, "results": [file("a", "1")], "facts": fact }),
    );
    daemon.ask("context.record", &json!({ "session": "s", "remove": ["a"] }));
    assert_eq!(crate::harness::refusal(client, "decide", &json!({ "session": "s" })), "no_session_context");
}

#[test]
fn another_live_holder_is_named_and_a_dead_one_is_forgotten() {
    let place = Place::new();
    place.write("a", "one\n");
    let daemon = Daemon::start(&place.home);
    daemon.ask(
        "context.register",
        &json!({ "session": "s", "root": place.root, "results": [file("a", "one\n")] }),
    );
    let held_by = |pid: u32| {
        daemon.ask("decide", &json!({ "session": "s", "holder": { "pid": pid } }))["held_by"].clone()
    };
    let mut other = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    assert_eq!(held_by(other.id()), json!(null));
    assert_eq!(held_by(std::process::id()), json!({ "pid": other.id() }));
    assert_eq!(daemon.ask("decide", &json!({ "session": "s" }))["held_by"], json!({ "pid": other.id() }));
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert_eq!(held_by(std::process::id()), json!(null));
    assert_eq!(held_by(std::process::id()), json!(null));
}

/// A registration that wants another digest of a shared file has it looked at anew. Who asks in the same moment waits
/// for that look, and is not told that the file cannot be verified.
#[test]
fn a_registration_in_the_same_moment_casts_no_doubt() {
    use std::io::{BufRead, BufReader, Write};
    const FILES: usize = 60;
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let names: Vec<String> = (0..FILES).map(|n| format!("f{n}")).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let results: Vec<_> = names.iter().map(|name| file(name, "one\n")).collect();
    daemon.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    let sha256 = "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806";
    let mut stream = std::os::unix::net::UnixStream::connect(&daemon.folders.socket).expect("it listens");
    let mut answers = BufReader::new(stream.try_clone().expect("a second handle"));
    for name in &names {
        let told = json!({ "id": "r", "source": { "kind": "file", "path": name }, "digest": sha256 });
        let register = json!({ "session": name, "root": place.root, "results": [told] });
        let lines = [("context.register", register), ("decide", json!({ "session": "s" }))].map(
            |(method, params)| json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }),
        );
        stream.write_all(format!("{}\n{}\n", lines[0], lines[1]).as_bytes()).expect("it reads");
        for _ in 0..2 {
            let mut line = String::new();
            answers.read_line(&mut line).expect("it answers");
            let answer: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            match answer["id"].as_str() {
                Some("decide") => assert_eq!(answer["result"]["transition"], "resume", "{answer}"),
                _ => assert_eq!(answer["result"]["results"][0]["status"], "fresh", "{answer}"),
            }
        }
    }
}

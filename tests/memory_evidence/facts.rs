//! Facts that a fresh start takes from the memory: only what is fresh at the very clock of the decision, of the session's
//! own user, about what is below its root, and about nothing that the session has at the same place as stale.

use super::{calmly, scene};
use crate::cli::staled;
use crate::daemon::{essence, register};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// A daemon, and a session of `ann` that will start over: its file `stale` is not what it saw.
fn session() -> (Place, Daemon) {
    let (place, daemon) = scene();
    place.write("stale", "two\n");
    let context =
        json!({ "session": "s", "user": "ann", "root": place.root, "results": [file("stale", "one\n")] });
    daemon.ask("context.register", &context);
    (place, daemon)
}

fn remember(daemon: &Daemon, user: &str, content: &str, sources: &Value) -> u64 {
    let params = json!({ "user_id": user, "type": "discovery", "title": content, "content": content, "sources": sources });
    daemon.ask("mem_save", &params)["id"].as_u64().expect("a number")
}

/// Every report passes the gate, which the harness asks.
fn decided(daemon: &Daemon, session: &str, memory: bool) -> Value {
    let params = json!({ "session": session, "memory": memory, "deadline_ms": 10_000 });
    calmly(|| daemon.ask("decide", &params), |report| report.to_string().contains("\"live_writer\""))
}

/// What the memory adds to a fresh start.
fn facts(daemon: &Daemon, session: &str) -> Vec<Value> {
    let report = decided(daemon, session, true);
    assert_eq!(report["transition"], "fresh", "{report}");
    let facts = report["typed_summary"]["verified_facts"].as_array().expect("facts").clone();
    facts.into_iter().filter(|fact| fact["from"] == "memory").collect()
}

fn statements(daemon: &Daemon) -> Vec<String> {
    facts(daemon, "s").iter().map(|fact| fact["statement"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn what_is_fresh_is_carried_on_and_labelled() {
    let (place, daemon) = session();
    place.write("src/f", "one\n");
    let path = place.root.join("src/f");
    let id = remember(&daemon, "ann", "f is one", &json!([path]));
    let told = facts(&daemon, "s");
    assert_eq!(told.len(), 1, "{told:?}");
    let fact = &told[0];
    let said = ["statement", "sources", "digest", "from", "observation"].map(|name| fact[name].clone());
    assert_eq!(
        said,
        [json!("f is one"), json!([path]), json!(digest("one\n")), json!("memory"), json!(id)],
        "{fact}"
    );
    assert!(fact["evidence"].as_str().is_some_and(|evidence| evidence.contains(&id.to_string())), "{fact}");
    assert_eq!(
        decided(&daemon, "s", false)["typed_summary"]["verified_facts"],
        json!([]),
        "nobody asked the memory"
    );
    place.write("src/f", "two\n");
    assert_eq!(statements(&daemon), [""; 0], "it is stale");
    place.write("src/f", "one\n");
    assert_eq!(statements(&daemon), ["f is one"], "it is as it was");
    daemon.ask("mem_forget", &json!({ "user_id": "ann", "id": id }));
    assert_eq!(statements(&daemon), [""; 0], "it is forgotten");
}

#[test]
fn nothing_else_is_carried_on() {
    let (place, daemon) = session();
    ["f", "g", "d/f"].iter().for_each(|name| place.write(name, "one\n"));
    place.write("../outside", "one\n");
    let path = |name: &str| place.root.join(name);
    let file = |name: &str| json!({ "kind": "file", "path": path(name) });
    remember(&daemon, "ben", "another user's", &json!([path("f")]));
    remember(&daemon, "ann", "on nothing", &json!([]));
    remember(&daemon, "ann", "outside", &json!([place.root.with_file_name("outside")]));
    remember(&daemon, "ann", "outside by a detour", &json!([path("../outside")]));
    remember(&daemon, "ann", "unknown", &json!([path("f"), "/proc/version"]));
    remember(&daemon, "ann", "always stale", &json!([path("f"), { "kind": "volatile", "what": "clock" }]));
    remember(&daemon, "ann", "never there", &json!([path("none")]));
    remember(&daemon, "ann", "born stale", &json!([{ "source": file("f"), "digest": digest("two\n") }]));
    // What the session has as stale, under every name.
    symlink(path("stale"), path("link")).expect("a link");
    symlink(path("."), path("way")).expect("a link");
    for spelled in ["stale", "./stale", "d/../stale", "link", "way/stale"] {
        remember(&daemon, "ann", spelled, &json!([path(spelled)]));
        remember(&daemon, "ann", &format!("{spelled} and f"), &json!([path("f"), path(spelled)]));
    }
    remember(
        &daemon,
        "ann",
        "lines of stale",
        &json!([{ "kind": "file", "path": path("stale"), "range": { "start_line": 1, "lines": 1 } }]),
    );
    remember(
        &daemon,
        "ann",
        "reads stale",
        &json!([path("f"), { "kind": "command", "command": "make", "inputs": [file("g"), file("stale")] }]),
    );
    daemon.ask("mem_session_summary", &json!({ "user_id": "ann", "summary": "a summary" }));
    assert_eq!(statements(&daemon), [""; 0]);
    // And what is.
    remember(&daemon, "ann", "f", &json!([path("f")]));
    remember(&daemon, "ann", "partly outside", &json!([path("g"), place.root.with_file_name("outside")]));
    remember(
        &daemon,
        "ann",
        "reads g",
        &json!([{ "kind": "command", "command": "make", "inputs": [file("g")] }]),
    );
    remember(&daemon, "ann", "no such", &json!([{ "kind": "absent", "path": path("no-such") }]));
    remember(&daemon, "ann", "d", &json!([{ "kind": "tree", "path": path("d") }]));
    let mut told = statements(&daemon);
    told.sort();
    assert_eq!(told, ["d", "f", "no such", "partly outside", "reads g"]);
}

/// A path that stands in a summary's list of what is dropped is nothing that a fact of it may rest on, whatever of it the
/// session had and the memory has: the report could not be spoken.
#[test]
fn what_goes_by_the_name_of_something_stale_is_not_carried_on() {
    let (place, daemon) = scene();
    place.write("f", "one\ntwo\n");
    place.write("t/g", "one\n");
    let path = |name: &str| place.root.join(name);
    let range = json!({ "kind": "file", "path": path("f"), "range": { "start_line": 2, "lines": 1 } });
    let names = json!({ "kind": "tree", "path": path("t"), "contents": false });
    let relative = json!({ "kind": "tree", "path": "./t" });
    let results = json!([
        { "id": "lines", "source": range },
        { "id": "names", "source": names },
        { "id": "all", "source": relative },
        // An id may be spelled like a path.
        { "id": path("other"), "source": { "kind": "volatile", "what": "clock" } },
    ]);
    daemon.ask(
        "context.register",
        &json!({ "session": "s", "user": "ann", "root": place.root, "results": results }),
    );
    place.write("f", "one\nsix\n");
    place.write("t/h", "one\n");
    place.write("other", "one\n");
    let tree = json!({ "kind": "tree", "path": path("t") });
    for (content, source) in
        [("f", json!(path("f"))), ("t", tree), ("other", json!(path("other"))), ("lines", json!(range))]
    {
        remember(&daemon, "ann", content, &json!([source]));
    }
    remember(&daemon, "ann", "a file of the tree", &json!([path("t/g")]));
    assert_eq!(statements(&daemon), ["a file of the tree"]);
}

/// The session's own facts are held to the same.
#[test]
fn a_fact_told_later_than_what_is_stale_at_its_place_does_not_end_in_an_error() {
    let (place, daemon) = scene();
    place.write("f", "one\ntwo\n");
    let range = json!({ "kind": "file", "path": "f", "range": { "start_line": 2, "lines": 1 } });
    register(&daemon, &place, "s", &json!([{ "id": "lines", "source": range }]));
    place.write("f", "one\nsix\n");
    let fact = json!({ "id": "later", "statement": "f has a six", "sources": ["f"] });
    daemon.ask("context.record", &json!({ "session": "s", "facts": [fact] }));
    let report = decided(&daemon, "s", false);
    assert_eq!(
        (&report["transition"], &report["typed_summary"]["verified_facts"]),
        (&json!("fresh"), &json!([])),
        "{report}"
    );
}

#[test]
fn ten_are_the_most_and_the_best_come_first() {
    let (place, daemon) = session();
    for n in 0..25 {
        place.write(&format!("f{n}"), "one\n");
        remember(&daemon, "ann", &format!("fact {n}"), &json!([place.root.join(format!("f{n}"))]));
    }
    let best: Vec<String> = (15..25).rev().map(|n| format!("fact {n}")).collect();
    assert_eq!(statements(&daemon), best, "the newest of them");
    // Those that are not fresh make room for others.
    (10..20).for_each(|n| place.write(&format!("f{n}"), "two\n"));
    let best: Vec<String> = (20..25).rev().chain((5..10).rev()).map(|n| format!("fact {n}")).collect();
    assert_eq!(statements(&daemon), best);
}

#[test]
fn a_long_observation_is_carried_on_by_its_title() {
    let (place, daemon) = session();
    place.write("f", "one\n");
    let params = json!({ "user_id": "ann", "type": "discovery", "title": "in short", "content": "long ".repeat(1_000),
        "sources": [place.root.join("f")] });
    daemon.ask("mem_save", &params);
    assert_eq!(statements(&daemon), ["in short"]);
}

#[test]
fn neither_a_resume_nor_a_fork_is_another_one_with_a_memory() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    place.write("g", "one\n");
    remember(&daemon, "ann", "f is one", &json!([place.root.join("f")]));
    remember(&daemon, "ann", "g is one", &json!([place.root.join("g")]));
    let goal = json!({ "statement": "g", "branchable": true, "hypotheses": ["one way", "another way"] });
    let context = |session: &str| json!({ "session": session, "user": "ann", "root": place.root, "results": [file("f", "one\n")] });
    daemon.ask("context.register", &context("resumes"));
    let mut forks = context("forks");
    forks["goal"] = goal;
    daemon.ask("context.register", &forks);
    for deed in ["all is fresh", "the memory is stale"] {
        for session in ["resumes", "forks"] {
            let [without, with] = [false, true].map(|memory| essence(decided(&daemon, session, memory)));
            assert_eq!(without["transition"], if session == "forks" { "fork" } else { "resume" }, "{deed}");
            let paths = |mut report: Value| {
                report["forks"].as_array_mut().expect("a list").iter_mut().for_each(|fork| {
                    fork["workspace"].take();
                    fork["scratchpad"].take();
                });
                report
            };
            assert_eq!(paths(without), paths(with), "{deed}");
        }
        place.write("g", "two\n");
    }
}

#[test]
fn whoever_has_no_session_or_no_memory_is_answered_as_without_one() {
    let (_place, daemon) = session();
    let client = &mut daemon.client();
    assert_eq!(
        crate::harness::refusal(client, "decide", &json!({ "session": "none", "memory": true })),
        "no_session_context"
    );
    let [without, with] = [false, true].map(|memory| essence(decided(&daemon, "s", memory)));
    assert_eq!(without, with);
}

#[test]
fn the_log_judges_again_what_the_memory_had_a_part_in() {
    let (place, daemon) = session();
    place.write("f", "one\n");
    remember(&daemon, "ann", "f is one", &json!([place.root.join("f")]));
    for text in ["one\n", "two\n", "one\n"] {
        place.write("f", text);
        assert_eq!(statements(&daemon).len(), usize::from(text == "one\n"));
    }
    fs::remove_file(place.root.join("f")).expect("it is there");
    assert_eq!(statements(&daemon).len(), 0);
    let log = daemon.folders.state.join("decisions.jsonl");
    daemon.stop();
    let log = log.to_str().expect("UTF-8");
    let nowhere = std::path::Path::new("/nowhere");
    staled(&place, nowhere, &["log", "replay", log]).ends(0);
    staled(&place, nowhere, &["check", log]).ends(0);
    let verified = format!("{:?}", staled(&place, nowhere, &["log", "verify", log]));
    assert!(!verified.contains("broken"), "{verified}");
}

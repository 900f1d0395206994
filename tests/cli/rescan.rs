//! `decide --no-daemon`: one plain rescan says what the daemon says.

use super::{feed, git, json_file, staled};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use std::path::Path;

/// What both must agree on. A rescan knows no registration, so to it nothing is born stale.
fn essence(report: &Value) -> Value {
    let rows = report["staleness_results"].as_array().expect("rows").iter().map(|row| {
        let cause = if row["cause"] == "born_stale" { &json!("content") } else { &row["cause"] };
        json!([
            row["result_id"],
            row["source"],
            row["signal_type"],
            row["status"],
            row["critical"],
            cause,
            row["was"],
            row["now"]
        ])
    });
    let rows: Vec<Value> = rows.collect();
    let summary = &report["typed_summary"];
    let summary = ["goal", "decisions", "verified_facts", "stale_dropped", "reload"]
        .map(|field| summary[field].clone());
    json!([
        report["transition"],
        report["reason"]["code"],
        rows,
        report["counts"],
        report["stale"],
        report["drop"],
        summary
    ])
}

/// Every state that a row can be in, once the world has moved.
fn mixed(place: &Place) -> Value {
    for name in ["fresh", "content", "deleted", "kind"] {
        place.write(name, name);
    }
    place.write("Cargo.lock", "v1");
    place.write("born", "on disk");
    git(place, &["init", "-q"]);
    git(place, &["add", "."]);
    git(place, &["commit", "-qm", "one"]);
    let head = std::fs::read_to_string(place.root.join(".git/refs/heads/main")).expect("a commit");
    let absent = json!({ "id": "appeared", "source": { "kind": "absent", "path": "appeared" } });
    let aside = json!({ "id": "aside", "critical": false, "source": { "kind": "file", "path": "./content" }, "content": "content" });
    let results = ["fresh", "content", "deleted", "kind"].map(|name| file(name, name));
    let results: Vec<Value> =
        results.into_iter().chain([file("born", "as the agent saw it"), absent, aside]).collect();
    let invariants = json!([
        { "name": "head", "source": { "kind": "git_head", "path": "." }, "digest": head.trim() },
        { "name": "lock", "source": { "kind": "lockfile", "path": "Cargo.lock" }, "content": "v1" },
        { "name": "net", "source": { "kind": "volatile", "what": "network" } }
    ]);
    let fact =
        |text: &str, source: &str| json!({ "statement": text, "evidence": source, "sources": [source] });
    json!({
        "session": "s", "root": place.root, "goal": { "statement": "g" }, "decisions": ["d"], "results": results, "invariants": invariants,
        "facts": [fact("holds", "fresh"), fact("fell", "content"), fact("by another name", "./content"), fact("lock", "Cargo.lock")]
    })
}

fn move_the_world(place: &Place) {
    place.write("content", "changed");
    std::fs::remove_file(place.root.join("deleted")).expect("it was there");
    std::fs::remove_file(place.root.join("kind")).expect("it was there");
    std::fs::create_dir(place.root.join("kind")).expect("a folder");
    place.write("appeared", "now");
    git(place, &["commit", "-qam", "two"]);
}

#[test]
fn a_rescan_agrees_with_the_daemon() {
    let place = Place::new();
    let context = mixed(&place);
    let daemon = Daemon::start(&place.home);
    daemon.ask("context.register", &context);
    let context = json_file(&place, "context.json", &context);
    for moved in [false, true] {
        if moved {
            move_the_world(&place);
        }
        for rows in ["all", "stale"] {
            let theirs = daemon.ask("decide", &json!({ "session": "s", "rows": rows }));
            let args = ["decide", "--no-daemon", "--context", &context, "--rows", rows, "--json"];
            let ours = staled(&place, Path::new("/nowhere"), &args).ends(11).json();
            assert_eq!(essence(&ours), essence(&theirs), "moved: {moved}, rows: {rows}");
            assert!(ours["receipt"].is_null() && staled::protocol::gate::check(&ours).is_empty());
        }
    }
}

#[test]
fn a_rescan_decides_by_exit_code_and_refuses_what_says_nothing() {
    let place = Place::new();
    place.write("a", "one");
    let decide = |context: &Value| {
        feed(
            &place,
            Path::new("/nowhere"),
            &["decide", "--no-daemon", "--context", "-"],
            &context.to_string(),
        )
    };
    let of = |results: Value, goal: Value| json!({ "root": place.root, "results": results, "goal": goal });
    let run = decide(&of(json!([file("a", "one")]), json!({}))).ends(0);
    assert_eq!(run.err, "");
    let ways = json!({ "branchable": true, "hypotheses": ["x", "y"] });
    assert!(decide(&of(json!([file("a", "one")]), ways)).ends(10).out.contains("staled/forks/"));
    assert!(
        decide(&of(json!([file("a", "two")]), json!({})))
            .ends(11)
            .out
            .starts_with("fresh  a changed since it was read")
    );
    decide(&of(json!([]), json!({}))).fails(2, "no results and no invariants");
    decide(&json!({ "results": [] })).fails(2, "root, an absolute path");
    decide(&json!({ "nonsense": 1 })).fails(2, "nonsense");
    let weak =
        decide(&of(json!([{ "id": "w", "source": { "kind": "file", "path": "a" } }]), json!({}))).ends(0);
    assert!(weak.err.contains("note: 1 row came without a digest"), "{weak:?}");
}

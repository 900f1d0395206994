//! `decide`: the exit code is the decision, and the output fits a screen.

use super::{Run, staled};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::{Value, json};

fn decide(daemon: &Daemon, place: &Place, args: &[&str]) -> Run {
    staled(place, &daemon.folders.socket, &[&["decide", "s"], args].concat())
}

fn register(daemon: &Daemon, place: &Place, more: &Value) {
    let mut context =
        json!({ "session": "s", "root": place.root, "replace": true, "results": [file("a", "one")] });
    context.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    daemon.ask("context.register", &context);
}

#[test]
fn the_exit_code_is_the_decision() {
    let place = Place::new();
    place.write("a", "one");
    let daemon = Daemon::start(&place.home);
    decide(&daemon, &place, &[]).fails(2, "there is no session \"s\"");
    register(&daemon, &place, &json!({}));
    let run = decide(&daemon, &place, &[]).ends(0);
    assert!(run.out.starts_with("resume  All 1 results"), "{run:?}");
    register(
        &daemon,
        &place,
        &json!({ "goal": { "statement": "g", "branchable": true, "hypotheses": ["The cache", "The clock"] } }),
    );
    let run = decide(&daemon, &place, &[]).ends(10);
    assert!(run.out.starts_with("fork  The goal has 2"), "{run:?}");
    assert!(
        run.out.contains("branches    staled/s/the-cache  in ") && run.out.contains("staled/s/the-clock"),
        "{run:?}"
    );
    place.write("a", "two");
    let run = decide(&daemon, &place, &[]).ends(11);
    assert!(run.out.starts_with("fresh  a changed since it was read"), "{run:?}");
    decide(&daemon, &place, &["--rows", "some"]).fails(2, "--rows");
    assert_eq!(
        decide(&daemon, &place, &["--json", "--rows", "stale", "--deadline-ms", "1000"]).ends(11).json()["stale"],
        json!(["a"])
    );
}

#[test]
fn a_fresh_start_says_what_to_drop_what_to_read_again_and_what_still_holds() {
    let place = Place::new();
    place.write("a", "one");
    place.write("b", "two");
    let daemon = Daemon::start(&place.home);
    let fact = |text: &str, path: &str| json!({ "statement": text, "evidence": format!("{path}:1"), "sources": [path] });
    let facts = json!([fact("A holds", "a"), fact("B holds", "b")]);
    register(
        &daemon,
        &place,
        &json!({ "goal": { "statement": "Fix expiry" }, "results": [file("a", "one"), file("b", "two")], "facts": facts }),
    );
    place.write("a", "changed");
    let run = decide(&daemon, &place, &[]).ends(11);
    let was = &digest("one")[..15];
    let now = &digest("changed")[..15];
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(
        lines[2].starts_with(&format!("  stale  a  content  {was}… → {now}…  "))
            && lines[2].ends_with(" s ago"),
        "{run:?}"
    );
    for line in
        ["  goal        Fix expiry", "  still true  B holds (b:1)", "  dropped     a", "  read again  a"]
    {
        assert!(lines.contains(&line), "{line:?} is not in {run:?}");
    }
    assert!(!run.out.contains('\u{1b}'), "no colour in a pipe: {run:?}");
}

#[test]
fn long_lists_are_cut_to_one_screen() {
    let place = Place::new();
    let results: Vec<Value> = (0..30).map(|number| file(&format!("f{number:02}"), "never")).collect();
    place.write("keep", "kept");
    let facts: Vec<Value> =
        (0..9).map(|number| json!({ "statement": format!("Fact {number}"), "sources": ["keep"] })).collect();
    let daemon = Daemon::start(&place.home);
    register(
        &daemon,
        &place,
        &json!({ "goal": { "statement": "g".repeat(500) }, "results": results, "facts": facts }),
    );
    let run = decide(&daemon, &place, &[]).ends(11);
    assert!(run.out.lines().count() <= 24, "{}", run.out);
    assert!(run.out.contains("… and 25 more (--json shows all)"), "{}", run.out);
    assert!(run.out.contains("… and 27 more (--json shows all)"), "{}", run.out);
    assert!(run.out.contains("… and 6 more (--json shows all)"), "{}", run.out);
    let report = decide(&daemon, &place, &["--json"]).ends(11).json();
    assert_eq!(report["stale"].as_array().map(Vec::len), Some(30));
}

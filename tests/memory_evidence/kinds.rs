//! Sources of every kind: what makes an observation stale that rests on one, by which name it is said, and what makes it
//! fresh again.

use super::{evidence, is, save, scene, word};
use crate::daemon::{commit_all, git};
use crate::harness::{Place, digest};
use serde_json::{Value, json};
use std::fs;

struct Case {
    name: &'static str,
    source: Value,
    /// How its source is called.
    label: Value,
    breaks: fn(&Place),
    expected: &'static str,
    mends: fn(&Place),
}

fn cases(place: &Place) -> Vec<Case> {
    let path = |name: &str| place.root.join(name);
    let range = |start_line: u64| json!({ "kind": "file", "path": path("f"), "range": { "start_line": start_line, "lines": 1 } });
    let same = |place: &Place| place.write("f", "one\ntwo\nsix\n");
    let command = json!({ "kind": "command", "command": "make test", "cwd": path("."),
        "inputs": [{ "kind": "file", "path": path("f") }, { "kind": "tree", "path": path("t") }] });
    let case = |name, source, label: &str, breaks, expected, mends| Case {
        name,
        source,
        label: if label == "make test" { json!(label) } else { json!(path(label)) },
        breaks,
        expected,
        mends,
    };
    vec![
        case(
            "absent",
            json!({ "kind": "absent", "path": path("none") }),
            "none",
            |place| place.write("none", "x"),
            "stale appeared",
            |place| fs::remove_file(place.root.join("none")).expect("it is there"),
        ),
        case("lines", range(2), "f", |place| place.write("f", "one\nten\nsix\n"), "stale content", same),
        case(
            "lines that move",
            range(2),
            "f",
            |place| place.write("f", "new\none\ntwo\nsix\n"),
            "stale range_moved",
            same,
        ),
        case("other lines", range(2), "f", |place| place.write("f", "ten\ntwo\nten\nten\n"), "fresh", same),
        case(
            "a tree's names",
            json!({ "kind": "tree", "path": path("t") }),
            "t",
            |place| place.write("t/new", "x"),
            "stale names",
            |place| fs::remove_file(place.root.join("t/new")).expect("it is there"),
        ),
        case(
            "a tree's files",
            json!({ "kind": "tree", "path": path("t") }),
            "t",
            |place| place.write("t/s/g", "two\n"),
            "stale content",
            |place| place.write("t/s/g", "one\n"),
        ),
        case(
            "names alone",
            json!({ "kind": "tree", "path": path("t"), "contents": false }),
            "t",
            |place| place.write("t/s/g", "two\n"),
            "fresh",
            |place| place.write("t/s/g", "one\n"),
        ),
        case(
            "a command's file",
            command.clone(),
            "make test",
            |place| place.write("f", "two\n"),
            "stale input",
            same,
        ),
        case(
            "a command's tree",
            command,
            "make test",
            |place| place.write("t/s/g", "two\n"),
            "stale input",
            |place| place.write("t/s/g", "one\n"),
        ),
        case(
            "a lockfile",
            json!({ "kind": "lockfile", "path": path("Cargo.lock") }),
            "Cargo.lock",
            |place| place.write("Cargo.lock", "two\n"),
            "stale content",
            |place| place.write("Cargo.lock", "one\n"),
        ),
        case(
            "a head",
            json!({ "kind": "git_head", "path": path("r") }),
            "r",
            |place| drop(git(&place.root.join("r"), &["commit", "-q", "--allow-empty", "-m", "two"])),
            "stale head_moved",
            |place| drop(git(&place.root.join("r"), &["reset", "-q", "--hard", "HEAD~1"])),
        ),
    ]
}

#[test]
fn every_kind_of_source_is_watched_and_called_by_its_name() {
    let (place, daemon) = scene();
    place.write("f", "one\ntwo\nsix\n");
    place.write("t/s/g", "one\n");
    place.write("Cargo.lock", "one\n");
    place.write("r/f", "one\n");
    git(&place.root.join("r"), &["init", "-q"]);
    git(&place.root.join("r"), &["commit", "-q", "--allow-empty", "-m", "one"]);
    for (at, case) in cases(&place).into_iter().enumerate() {
        let Case { name, source, label, breaks, expected, mends } = case;
        let id = save(&daemon, &format!("case{at}"), &json!([source]));
        is(&daemon, id, "fresh", name);
        breaks(&place);
        let told = is(&daemon, id, expected, name);
        if expected != "fresh" {
            assert_eq!(told["changed"][0]["path"], label, "{name}: {told}");
        }
        mends(&place);
        is(&daemon, id, "fresh", &format!("{name}, mended"));
    }
}

#[test]
fn what_was_not_there_when_it_was_saved_is_never_fresh() {
    let (place, daemon) = scene();
    let id = save(&daemon, "missing", &json!([place.root.join("f")]));
    is(&daemon, id, "stale deleted", "it was never there");
    place.write("f", "one\n");
    is(&daemon, id, "stale born_stale", "it came later");
    fs::remove_file(place.root.join("f")).expect("it is there");
    is(&daemon, id, "stale deleted", "as it was when it was saved");
    place.write("f", "one\n");
    assert_eq!(save(&daemon, "missing", &json!([place.root.join("f")])), id);
    is(&daemon, id, "fresh", "saved anew");
}

#[test]
fn what_the_agent_saw_counts_and_not_what_the_disk_says() {
    let (place, daemon) = scene();
    place.write("f", "two\n");
    let seen = |text: &str| json!([{ "source": { "kind": "file", "path": place.root.join("f") }, "digest": digest(text) }]);
    let id = save(&daemon, "seen", &seen("one\n"));
    let told = is(&daemon, id, "stale born_stale", "another digest was told");
    let changed = &told["changed"][0];
    assert_eq!(
        (&changed["was"], &changed["now"]),
        (&json!(digest("one\n")), &json!(digest("two\n"))),
        "{told}"
    );
    place.write("f", "one\n");
    is(&daemon, id, "fresh", "it is what was seen");
    place.write("f", "two\n");
    is(&daemon, id, "stale content", "it is not any more");
    assert_eq!(save(&daemon, "seen", &seen("two\n")), id);
    is(&daemon, id, "fresh", "what is there was told");
}

#[test]
fn what_is_always_stale_is_so_for_the_memory_too() {
    let (_place, daemon) = scene();
    let id = save(&daemon, "clock", &json!([{ "kind": "volatile", "what": "clock" }]));
    let told = is(&daemon, id, "stale volatile", "it cannot be watched");
    assert_eq!(told["changed"][0]["path"], "clock");
}

#[test]
fn one_repository_is_one_head_however_it_is_packed() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    commit_all(&place);
    let id = save(&daemon, "head", &json!([{ "kind": "git_head", "path": place.root }]));
    git(&place.root, &["pack-refs", "--all"]);
    is(&daemon, id, "fresh", "packed");
    place.write("f", "two\n");
    let to = commit_all(&place);
    let told = is(&daemon, id, "stale head_moved", "another commit");
    assert!(told["changed"][0]["now"].as_str().is_some_and(|now| now.contains(&to)), "{told}");
    git(&place.root, &["checkout", "-q", "--detach", "HEAD~1"]);
    assert_eq!(word(&evidence(&daemon, id)), "fresh", "the commit that was seen");
}

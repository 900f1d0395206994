//! Trees and commands: a search, a listing, test output are stale when, and only when, what they rest on changed.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::daemon::{cause, decide, register, row};
use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A tree at the root, watched as `filter` says.
fn tree(id: &str, filter: Value) -> Value {
    let mut source = json!({ "kind": "tree", "path": "." });
    source.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
    json!({ "id": id, "source": source })
}

fn planted(place: &Place) {
    for (path, text) in [
        ("src/a.rs", "a\n"),
        ("src/deep/b.rs", "b\n"),
        ("src/notes.md", "n\n"),
        ("docs/d.md", "d\n"),
        ("target/out.o", "o\n"),
        (".gitignore", "target/\n*.log\n"),
    ] {
        place.write(path, text);
    }
}

/// What happens to the root, and what each of the trees of [`FILTERS`] is then.
type Case = (&'static str, fn(&Path), [&'static str; 5]);

fn filters() -> [Value; 5] {
    [
        tree("all", json!({})),
        tree("names", json!({ "contents": false })),
        tree("rust", json!({ "include": ["*.rs"] })),
        tree("docs", json!({ "include": ["docs/**"] })),
        tree("ignored too", json!({ "gitignore": false, "exclude": ["docs/"] })),
    ]
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const CASES: &[Case] = &[
    ("nothing", |_| {}, ["fresh"; 5]),
    (
        "a file is edited",
        |r| put(&r.join("src/a.rs"), "A\n"),
        ["content", "fresh", "content", "fresh", "content"],
    ),
    (
        "a file far below",
        |r| put(&r.join("src/deep/b.rs"), "B\n"),
        ["content", "fresh", "content", "fresh", "content"],
    ),
    ("a name more", |r| put(&r.join("src/new.rs"), "\n"), ["names", "names", "names", "fresh", "names"]),
    (
        "a name less",
        |r| fs::remove_file(r.join("docs/d.md")).unwrap(),
        ["names", "names", "fresh", "names", "fresh"],
    ),
    (
        "an ignored file",
        |r| put(&r.join("target/out.o"), "O\n"),
        ["fresh", "fresh", "fresh", "fresh", "content"],
    ),
    ("an ignored name", |r| put(&r.join("src/x.log"), "O\n"), ["fresh", "fresh", "fresh", "fresh", "names"]),
    (
        "folders in one breath",
        |r| put(&r.join("src/x/y/z.rs"), "\n"),
        ["names", "names", "names", "fresh", "names"],
    ),
    ("touch", |r| put(&r.join("src/a.rs"), "a\n"), ["fresh"; 5]),
    (
        "rename-over with the same bytes",
        |r| {
            put(&r.join("target/t"), "a\n");
            fs::rename(r.join("target/t"), r.join("src/a.rs")).unwrap();
        },
        ["fresh"; 5],
    ),
    (
        "a folder is renamed",
        |r| fs::rename(r.join("src/deep"), r.join("src/deeper")).unwrap(),
        ["names", "names", "names", "fresh", "names"],
    ),
    (
        "a folder is swapped",
        |r| {
            put(&r.join("src/other/b.rs"), "x\n");
            fs::rename(r.join("src/deep"), r.join("docs/deep")).unwrap();
            fs::rename(r.join("src/other"), r.join("src/deep")).unwrap();
        },
        ["names", "names", "names", "names", "content"],
    ),
    (
        "the rules change",
        |r| put(&r.join(".gitignore"), "*.log\n"),
        ["content", "names", "fresh", "fresh", "content"],
    ),
    (
        "a folder becomes a link",
        |r| {
            fs::rename(r.join("src/deep"), r.join("target/deep")).unwrap();
            symlink("../target/deep", r.join("src/deep")).unwrap();
        },
        ["names", "names", "names", "fresh", "names"],
    ),
    (
        "a mode",
        |r| fs::set_permissions(r.join("src/a.rs"), fs::Permissions::from_mode(0o600)).unwrap(),
        ["fresh"; 5],
    ),
];

#[test]
fn a_tree_is_stale_when_and_only_when_what_it_counts_changed() {
    for (what, deed, causes) in CASES {
        let place = Place::new();
        planted(&place);
        let daemon = Daemon::start(&place.home);
        let results = filters();
        register(&daemon, &place, "s", &json!(results));
        let ids: Vec<&str> = results.iter().map(|result| result["id"].as_str().unwrap()).collect();
        let all_fresh = decide(&daemon, "s");
        assert_eq!(all_fresh["transition"], "resume", "before {what}: {all_fresh}");
        deed(&place.root);
        let report = decide(&daemon, "s");
        let found: Vec<String> = ids.iter().map(|id| cause(&report, id)).collect();
        assert_eq!(found, causes, "{what}: {report:#}");
        daemon.stop();
        let daemon = Daemon::start(&place.home);
        let report = decide(&daemon, "s");
        let found: Vec<String> = ids.iter().map(|id| cause(&report, id)).collect();
        assert_eq!(found, causes, "{what}, after a restart: {report:#}");
    }
}

#[test]
fn what_changed_while_nobody_watched_is_seen_after_a_restart() {
    for (what, deed, causes) in CASES {
        let place = Place::new();
        planted(&place);
        let daemon = Daemon::start(&place.home);
        let results = filters();
        register(&daemon, &place, "s", &json!(results));
        daemon.stop();
        deed(&place.root);
        let daemon = Daemon::start(&place.home);
        let report = decide(&daemon, "s");
        let found: Vec<String> =
            results.iter().map(|result| cause(&report, result["id"].as_str().unwrap())).collect();
        assert_eq!(found, causes, "{what}: {report:#}");
    }
}

#[test]
fn the_first_changed_paths_and_their_number_are_named_from_each_moment() {
    let place = Place::new();
    for number in 0..30 {
        place.write(&format!("d/{number:02}"), "0");
    }
    let daemon = Daemon::start(&place.home);
    let changed = |report: &Value, id: &str| {
        let changed = &row(report, id)["changed"];
        let paths = changed["paths"].as_array().map_or(0, Vec::len);
        (
            changed["number"].as_u64().unwrap_or(0),
            paths,
            changed["paths"][0].as_str().unwrap_or("").to_owned(),
        )
    };
    register(&daemon, &place, "s", &json!([tree("first", json!({}))]));
    for number in 0..20 {
        place.write(&format!("d/{number:02}"), "1");
    }
    decide(&daemon, "s");
    register(&daemon, &place, "s", &json!([tree("second", json!({}))]));
    for number in 15..25 {
        place.write(&format!("d/{number:02}"), "2");
    }
    let report = decide(&daemon, "s");
    assert_eq!(changed(&report, "first"), (25, 10, "d/00".to_owned()), "{report:#}");
    assert_eq!(changed(&report, "second"), (10, 10, "d/15".to_owned()), "{report:#}");
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    assert_eq!(changed(&report, "first"), (25, 10, "d/00".to_owned()), "after a restart: {report:#}");
    for number in 0..25 {
        place.write(&format!("d/{number:02}"), if number < 20 { "1" } else { "0" });
    }
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "second"), "fresh", "put back: {report:#}");
    assert_eq!(changed(&report, "first").0, 20, "{report:#}");
    for number in 0..20 {
        place.write(&format!("d/{number:02}"), "0");
    }
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "first"), "fresh", "put back: {report:#}");
    assert_eq!(changed(&report, "second").0, 20, "{report:#}");
}

#[test]
fn a_command_is_as_fresh_as_its_inputs() {
    let place = Place::new();
    planted(&place);
    let daemon = Daemon::start(&place.home);
    let command = |id: &str, source: Value| {
        let mut told = json!({ "kind": "command", "command": format!("make {id}") });
        told.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        json!({ "id": id, "source": told })
    };
    let narrow = json!({ "inputs": [
        { "kind": "file", "path": "src/a.rs" },
        { "kind": "tree", "path": "docs" },
        { "kind": "absent", "path": "Makefile.local" },
    ] });
    let results = json!([command("test", json!({})), command("docs", narrow)]);
    let told = register(&daemon, &place, "s", &results);
    assert_eq!(told["results"].as_array().unwrap().len(), 2, "inputs are no results: {told}");
    assert_eq!(told["results"][0]["baseline"], "registration", "{told}");
    let report = decide(&daemon, "s");
    assert_eq!(report["counts"], json!({ "results": 2, "fresh": 2, "stale": 0, "unknown": 0 }), "{report}");
    place.write("src/deep/b.rs", "B\n");
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "fresh");
    assert_eq!(cause(&report, "test"), "input");
    assert_eq!(row(&report, "test")["input"], ".");
    assert_eq!(row(&report, "test")["changed"]["paths"], json!(["src/deep/b.rs"]));
    assert_eq!(cause(&report, "docs"), "fresh");
    assert!(report["reason"]["text"].as_str().unwrap().contains("src/deep/b.rs"), "{report}");
    place.write("src/deep/b.rs", "b\n");
    place.write("Makefile.local", "x");
    let report = decide(&daemon, "s");
    assert_eq!(row(&report, "docs")["input"], "Makefile.local", "{report}");
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    fs::remove_file(place.root.join("Makefile.local")).unwrap();
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "resume", "{report}");
}

#[test]
fn what_no_tree_counts_may_change_without_end() {
    let place = Place::new();
    planted(&place);
    let daemon = Daemon::start(&place.home);
    register(
        &daemon,
        &place,
        "s",
        &json!([tree("all", json!({})), tree("docs", json!({ "include": ["*.md"] }))]),
    );
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = fs::File::create(place.root.join("src/x.log")).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::io::Write::write_all(&mut log, b"line\n").unwrap();
            }
        });
        for _ in 0..20 {
            let report = daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 2_000 }));
            assert_eq!(report["transition"], "resume", "{report}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    place.write("src/notes.md", "N\n");
    let report = decide(&daemon, "s");
    assert_eq!((cause(&report, "all"), cause(&report, "docs")), ("content".to_owned(), "content".to_owned()));
}

#[test]
fn an_index_made_again_from_the_journal_still_knows_what_the_trees_were() {
    for (what, deed, causes) in CASES {
        let place = Place::new();
        planted(&place);
        let daemon = Daemon::start(&place.home);
        let results = filters();
        register(&daemon, &place, "s", &json!(results));
        daemon.stop();
        fs::remove_dir_all(place.home.join("state/index")).unwrap();
        deed(&place.root);
        let daemon = Daemon::start(&place.home);
        let report = decide(&daemon, "s");
        for (result, expected) in results.iter().zip(causes) {
            let id = result["id"].as_str().unwrap();
            // Which paths changed is not known any more, only that some did.
            assert_eq!(cause(&report, id) == "fresh", *expected == "fresh", "{what}: {id} in {report:#}");
        }
    }
}

#[test]
fn a_folder_of_many_files_is_told_file_by_file() {
    let place = Place::new();
    for number in 0..700 {
        place.write(&format!("d/{number}"), "0");
    }
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([tree("t", json!({}))]));
    place.write("d/77", "1");
    fs::remove_file(place.root.join("d/99")).unwrap();
    let paths = |report: &Value| row(report, "t")["changed"]["paths"].clone();
    assert_eq!(paths(&decide(&daemon, "s")), json!(["d/77", "d/99"]));
    // So many fewer that they are laid out otherwise.
    (100..700).for_each(|number| fs::remove_file(place.root.join(format!("d/{number}"))).unwrap());
    assert_eq!(row(&decide(&daemon, "s"), "t")["changed"]["number"], 602);
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    assert_eq!(row(&decide(&daemon, "s"), "t")["changed"]["number"], 602);
    (100..700).chain([77, 99]).for_each(|number| place.write(&format!("d/{number}"), "0"));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

//! Clocks that jump, changes inside one tick, and folders that close: no time is believed, and no silence.

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, lax};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

fn set_mtime(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).expect("a file").set_modified(time).expect("a time");
}

#[test]
fn no_file_time_is_believed_over_the_bytes_whether_we_watch_or_not() {
    let now = SystemTime::now();
    let times = [
        ("the future", now + 400 * DAY),
        ("now", now),
        ("the past", now - 400 * DAY),
        ("1970", SystemTime::UNIX_EPOCH),
    ];
    for (before, first) in times {
        for (after, second) in times {
            let place = Place::new();
            let path = place.root.join("f");
            place.write("f", "one\n");
            set_mtime(&path, first);
            let mut daemon = Daemon::start(&place.home);
            register(&daemon, &place, "s", &json!([lax("f", "one\n")]));
            assert_eq!(cause(&decide(&daemon, "s"), "f"), "fresh");
            let change = |text: &str| {
                place.write("f", text);
                set_mtime(&path, second);
            };
            change("two\n");
            assert_eq!(cause(&decide(&daemon, "s"), "f"), "content", "watched: {before}, {after}");
            change("one\n");
            assert_eq!(cause(&decide(&daemon, "s"), "f"), "fresh", "watched: {before}, {after}");
            daemon.stop();
            change("two\n");
            daemon = Daemon::start(&place.home);
            assert_eq!(cause(&decide(&daemon, "s"), "f"), "content", "while down: {before}, {after}");
        }
    }
}

#[test]
fn everything_may_change_while_the_daemon_is_down() {
    let place = Place::new();
    let deeds: [(&str, fn(&Path), &str); 6] = [
        ("same", |_| (), "fresh"),
        ("bytes", |path| fs::write(path, "two\n").expect("a file"), "content"),
        ("gone", |path| fs::remove_file(path).expect("a file"), "deleted"),
        ("away", |path| fs::rename(path, path.with_extension("x")).expect("a rename"), "deleted"),
        (
            "folder",
            |path| fs::remove_file(path).and_then(|()| fs::create_dir(path)).expect("a folder"),
            "kind_changed",
        ),
        (
            "link",
            |path| {
                fs::rename(path, path.with_extension("y"))
                    .and_then(|()| std::os::unix::fs::symlink("link.y", path))
                    .expect("a link");
            },
            "fresh",
        ),
    ];
    let daemon = Daemon::start(&place.home);
    for (name, ..) in deeds {
        place.write(name, "one\n");
    }
    let results: Vec<Value> = deeds.iter().map(|(name, ..)| lax(name, "one\n")).collect();
    register(&daemon, &place, "s", &json!(results));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    daemon.stop();
    for (name, deed, _) in deeds {
        deed(&place.root.join(name));
    }
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    for (name, _, word) in deeds {
        assert_eq!(cause(&report, name), word, "{name}");
    }
}

/// Times before there were any, and times that do not fit in 64 bits of nanoseconds.
#[test]
fn what_rests_on_files_of_impossible_times_is_judged_by_their_bytes() {
    let times = [
        ("1960", SystemTime::UNIX_EPOCH - 3_653 * DAY),
        ("1970", SystemTime::UNIX_EPOCH),
        ("2242", SystemTime::UNIX_EPOCH + 99_500 * DAY),
        ("2400", SystemTime::UNIX_EPOCH + 157_100 * DAY),
    ];
    for (when, time) in times {
        let place = Place::new();
        let write = |text: &str| {
            for path in ["d/x", "d/e/y", "f", "Cargo.lock"] {
                place.write(path, text);
                set_mtime(&place.root.join(path), time);
            }
        };
        write("one\nend\n");
        let tree = json!({ "kind": "tree", "path": "d" });
        let lines = json!({ "kind": "file", "path": "f", "range": { "start_line": 1, "lines": 1 } });
        let sources = json!([
            tree, lines,
            { "kind": "lockfile", "path": "Cargo.lock" },
            { "kind": "command", "command": "make", "inputs": [tree, lines] },
        ]);
        let ids = ["tree", "lines", "lockfile", "command"];
        let results: Vec<Value> = ids
            .iter()
            .zip(sources.as_array().expect("a list"))
            .map(|(id, source)| json!({ "id": id, "source": source, "critical": false }))
            .collect();
        let assert_all = |daemon: &Daemon, word: &str, story: &str| {
            let report = decide(daemon, "s");
            for id in ids {
                let fresh = cause(&report, id) == "fresh";
                assert_eq!(fresh, word == "fresh", "{id}, {story}, of {when}: {report}");
            }
        };
        let mut daemon = Daemon::start(&place.home);
        register(&daemon, &place, "s", &json!(results));
        for story in ["watched", "watched again", "while down"] {
            assert_all(&daemon, "fresh", story);
            if story == "while down" {
                daemon.stop();
                write("two\nend\n");
                daemon = Daemon::start(&place.home);
            } else {
                write("two\nend\n");
            }
            assert_all(&daemon, "stale", story);
            write("one\nend\n");
        }
        assert_all(&daemon, "fresh", "at the end");
    }
}

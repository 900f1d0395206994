//! The hint that only line ends differ: told where it can be told truly, and nowhere else.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::daemon::{cause, decide, register, row};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::{Value, json};

fn eol_only(report: &Value, id: &str) -> bool {
    row(report, id)["eol_only"].as_bool().unwrap_or(false)
}

#[test]
fn a_stale_file_says_whether_only_its_line_ends_differ() {
    for (seen, now, expected) in [
        ("a\nb\n", "a\r\nb\r\n", true),
        ("a\r\nb\r\n", "a\nb\n", true),
        ("a\r\nb\n", "a\nb\r\n", true),
        ("a\nb\n", "a\r\nB\r\n", false),
        ("a\nb\n", "a\nb", false),
        ("a\rb\n", "a\nb\n", false),
        ("a\r\r\n", "a\n", false),
    ] {
        let place = Place::new();
        for path in ["content", "looked", "sha"] {
            place.write(path, seen);
        }
        let daemon = Daemon::start(&place.home);
        let sha = format!("sha256:{}", sha256(seen));
        let results = json!([
            { "id": "content", "source": { "kind": "lockfile", "path": "content" }, "content": seen },
            file("looked", seen),
            { "id": "sha", "source": { "kind": "file", "path": "sha" }, "digest": sha },
            { "id": "unsaid", "source": { "kind": "file", "path": "looked" } },
        ]);
        register(&daemon, &place, "s", &results);
        let report = decide(&daemon, "s");
        assert_eq!(report["transition"], "resume", "{report:#}");
        for path in ["content", "looked", "sha"] {
            place.write(path, now);
        }
        let judged = |daemon: &Daemon, when: &str| {
            let report = decide(daemon, "s");
            for id in ["content", "looked", "sha", "unsaid"] {
                assert_eq!(cause(&report, id), "content", "{seen:?} → {now:?}, {when}");
                assert_eq!(eol_only(&report, id), expected, "{seen:?} → {now:?}, {when}: {id} in {report:#}");
            }
        };
        judged(&daemon, "at once");
        daemon.stop();
        let daemon = Daemon::start(&place.home);
        judged(&daemon, "after a restart");
        for path in ["content", "looked", "sha"] {
            place.write(path, seen);
        }
        let report = decide(&daemon, "s");
        assert!(!eol_only(&report, "content") && report["transition"] == "resume", "{report:#}");
    }
}

#[test]
fn of_a_file_that_was_born_stale_only_who_told_the_text_can_know() {
    let place = Place::new();
    place.write("a", "a\r\n");
    let daemon = Daemon::start(&place.home);
    let source = json!({ "kind": "file", "path": "a" });
    let results = json!([
        { "id": "content", "source": source, "content": "a\n" },
        { "id": "told", "source": source, "digest": digest("a\n"), "lf_digest": digest("a\n") },
        { "id": "digest", "source": source, "digest": digest("a\n") },
    ]);
    register(&daemon, &place, "s", &results);
    let judged = |daemon: &Daemon| {
        let report = decide(daemon, "s");
        for (id, expected) in [("content", true), ("told", true), ("digest", false)] {
            assert_eq!(cause(&report, id), "born_stale", "{report:#}");
            assert_eq!(eol_only(&report, id), expected, "{id} in {report:#}");
        }
    };
    judged(&daemon);
    let state = daemon.folders.state.clone();
    daemon.stop();
    std::fs::remove_dir_all(state.join("index")).unwrap();
    judged(&Daemon::start(&place.home));
}

#[test]
fn an_acknowledged_write_is_what_counts_from_then_on() {
    let place = Place::new();
    place.write("a", "a\n");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "a\n")]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    // Acknowledged, and gone before anybody saw it.
    let ack = json!({ "session": "s", "path": "a", "digest": digest("b\n") });
    place.write("a", "a\r\n");
    daemon.ask("touch_ack", &ack);
    let report = decide(&daemon, "s");
    assert_eq!((cause(&report, "a"), eol_only(&report, "a")), ("content".to_owned(), false), "{report:#}");
}

#[test]
fn what_was_there_is_known_to_an_index_that_is_made_again() {
    let place = Place::new();
    place.write("a", "a\r\n");
    place.write("b", "b\r\n");
    let daemon = Daemon::start(&place.home);
    let unsaid = json!({ "id": "b", "source": { "kind": "file", "path": "b" } });
    let told = json!({ "id": "a", "source": { "kind": "file", "path": "a" }, "digest": format!("sha256:{}", sha256("a\r\n")) });
    register(&daemon, &place, "s", &json!([told, unsaid]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    let state = daemon.folders.state.clone();
    daemon.stop();
    std::fs::remove_dir_all(state.join("index")).unwrap();
    place.write("a", "a\n");
    place.write("b", "b\n");
    let report = decide(&Daemon::start(&place.home), "s");
    for id in ["a", "b"] {
        assert_eq!((cause(&report, id), eol_only(&report, id)), ("content".to_owned(), true), "{report:#}");
    }
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text.as_bytes());
    staled::session::digest::Digest::new(staled::session::digest::Algorithm::Sha256, &digest)
        .unwrap()
        .to_hex()
}

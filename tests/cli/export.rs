//! `export` and `import-state`: everything and only that, all or nothing.

use super::{feed, staled};
use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const NOWHERE: &str = "/nowhere";

/// A place whose daemon knows two sessions, one of them resting on what it cannot know any more.
fn scene() -> (Place, Daemon) {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "1")]));
    register(&daemon, &place, "t", &json!([file("a", "0")]));
    daemon.ask("fact.refute", &json!({ "session": "s", "source": "b" }));
    (place, daemon)
}

fn exported(place: &Place) -> String {
    let state = place.home.join("state");
    let run =
        staled(place, Path::new(NOWHERE), &["export", "--state", state.to_str().expect("a name in UTF-8")])
            .ok();
    assert!(run.err.contains("exported 2 sessions with 3 rows"), "{run:?}");
    run.out
}

#[test]
fn what_was_exported_decides_the_same_elsewhere() {
    let (place, daemon) = scene();
    let lines = exported(&place);
    assert_eq!(lines.lines().count(), 4, "{lines}");
    let there = Place::new();
    let state = there.home.join("state");
    let args = ["import-state", "-", "--state", state.to_str().unwrap()];
    let run = feed(&there, Path::new(NOWHERE), &args, &lines).ok();
    assert!(run.out.starts_with("imported 2 sessions with 3 rows into "), "{run:?}");
    let moved = Daemon::start(&there.home);
    for session in ["s", "t"] {
        let told = |daemon: &Daemon| {
            let report = decide(daemon, session);
            let context = daemon.ask("context.get", &json!({ "session": session }));
            (report["transition"].clone(), report["stale"].clone(), context)
        };
        assert_eq!(told(&moved), told(&daemon), "{session}");
    }
    moved.stop();
    assert_eq!(exported(&there), lines);
}

#[test]
fn lines_that_were_touched_are_refused_and_nothing_is_left_of_them() {
    let (place, daemon) = scene();
    daemon.stop();
    let whole = exported(&place);
    let there = Place::new();
    let state = there.home.join("state");
    let import = |text: &[u8]| {
        let path = there.root.join("lines");
        fs::write(&path, text).unwrap();
        let args = ["import-state", path.to_str().unwrap(), "--state", state.to_str().unwrap()];
        staled(&there, Path::new(NOWHERE), &args)
    };
    let refused = |text: &[u8], what: &str| {
        let run = import(text);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{what}: {run:?}");
        assert!(run.err.contains("line ") && run.err.contains("lines: "), "{what}: {run:?}");
        assert!(!state.join("journal").exists() && !state.join("journal.new").exists(), "{what}");
    };
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for left_out in 0..lines.len() {
        let rest: String =
            lines.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| *line).collect();
        refused(rest.as_bytes(), &format!("without line {left_out}"));
        let until: String = lines[..left_out].concat();
        refused(until.as_bytes(), &format!("only {left_out} lines"));
    }
    refused([lines[0], lines[2], lines[1], lines[3]].concat().as_bytes(), "two lines exchanged");
    refused(format!("{whole}{}", lines[1]).as_bytes(), "a line behind the end");
    refused(whole.replace("\"refuted\":true,", "").as_bytes(), "a belief that is no longer refuted");
    refused(whole.replace(":1}", ":2}").as_bytes(), "a later format");
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..60 {
        let mut bytes = whole.clone().into_bytes();
        let at = random.usize(..bytes.len() - 1);
        bytes[at] ^= 1 << random.u8(..7);
        refused(&bytes, &format!("another byte at {at}"));
    }
    let json = ["import-state", "lines", "--json", "--state", state.to_str().unwrap()];
    fs::write(there.root.join("lines"), &whole).unwrap();
    let told = staled(&there, Path::new(NOWHERE), &json).ok().json();
    assert_eq!(told, json!({ "sessions": 2, "rows": 3, "state": state }));
}

#[test]
fn a_state_that_is_used_or_not_empty_stays_as_it_is() {
    let (place, daemon) = scene();
    let lines = exported(&place);
    let state = place.home.join("state");
    let args = ["import-state", "-", "--state", state.to_str().unwrap()];
    let import = || feed(&place, Path::new(NOWHERE), &args, &lines);
    import().fails(2, "`staled stop` ends it");
    daemon.stop();
    import().fails(2, "it has 2 session(s)");
    let daemon = Daemon::start(&place.home);
    let transition = |session: &str| -> Value { decide(&daemon, session)["transition"].clone() };
    assert_eq!((transition("s"), transition("t")), (json!("fresh"), json!("fresh")));
    // Sessions that were dropped are none.
    for session in ["s", "t"] {
        daemon.ask("context.drop", &json!({ "session": session }));
    }
    daemon.stop();
    import().ok();
    assert_eq!(exported(&place), lines);
}

#[test]
fn doubt_that_no_daemon_has_taken_note_of_yet_goes_along() {
    let (place, daemon) = scene();
    daemon.stop();
    // What an opening leaves that found damage, and ended before it could say so.
    fs::write(place.home.join("state/journal/in-doubt"), "").unwrap();
    let lines = exported(&place);
    let there = Place::new();
    let state = there.home.join("state");
    feed(&there, Path::new(NOWHERE), &["import-state", "-", "--state", state.to_str().unwrap()], &lines).ok();
    let report = decide(&Daemon::start(&there.home), "s");
    assert_eq!((&report["transition"], cause(&report, "a").as_str()), (&json!("fresh"), "gap"), "{report:#}");
}

#[test]
fn where_there_is_no_journal_nothing_is_exported() {
    let place = Place::new();
    staled(&place, Path::new(NOWHERE), &["export"]).fails(2, "there is no journal in ");
}

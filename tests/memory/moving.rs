//! A memory that is exported and imported: the same bytes, the same answers, and nothing that could not have been told.

use super::audit;
use super::restart::{tell, told};
use crate::cli::export::sealed;
use crate::cli::{feed, staled};
use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use std::path::Path;

const NOWHERE: &str = "/nowhere";

fn state(place: &Place) -> String {
    place.home.join("state").to_str().expect("a name in UTF-8").to_owned()
}

fn exported(place: &Place) -> String {
    staled(place, Path::new(NOWHERE), &["export", "--state", &state(place)]).ends(0).out
}

#[test]
fn what_was_exported_is_the_same_memory_elsewhere() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    tell(&daemon, &place);
    let before = told(&daemon);
    // Of a daemon that runs, and of one that has ended.
    let lines = exported(&place);
    daemon.stop();
    assert_eq!(exported(&place), lines);
    assert!(!lines.contains("words that are forgotten"));
    let there = Place::new();
    let run =
        feed(&there, Path::new(NOWHERE), &["import-state", "-", "--state", &state(&there)], &lines).ends(0);
    assert!(run.out.contains("imported"), "{run:?}");
    assert_eq!(exported(&there), lines);
    let moved = Daemon::start(&there.home);
    assert_eq!(told(&moved), before);
    moved.stop();
    audit(&there);
    assert_eq!(exported(&there), lines, "what rests on the same files is told by the same bytes");
    // What is there already is not written over.
    let again = feed(&there, Path::new(NOWHERE), &["import-state", "-", "--state", &state(&there)], &lines);
    again.fails(2, "is not empty");
}

/// A small memory, as the lines of its export: one observation with two revisions, one on a file, two sessions.
fn small() -> Vec<Value> {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let save = |fields: Value| {
        let mut params = json!({ "user_id": "u", "type": "decision", "title": "t" });
        params.as_object_mut().expect("an object").extend(fields.as_object().expect("one").clone());
        daemon.ask("mem_save", &params)
    };
    save(json!({ "content": "first words", "topic_key": "k" }));
    daemon.ask("mem_session_end", &json!({ "user_id": "u", "summary": "it ended" }));
    save(json!({ "content": "second words", "topic_key": "k" }));
    save(json!({ "content": "on a file", "sources": [place.root.join("a")] }));
    daemon.stop();
    let lines: Vec<Value> =
        exported(&place).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines[..lines.len() - 1].to_vec()
}

/// The line that says something about a revision of an observation.
fn saved(lines: &[Value], id: u64, revision: u64) -> usize {
    let is_it = |line: &Value| {
        let saved = &line["remembered"]["saved"];
        saved["id"] == id && saved["revision"] == revision
    };
    lines.iter().position(is_it).unwrap_or_else(|| panic!("no {id}.{revision} in {lines:#?}"))
}

fn session(lines: &[Value], no: u64) -> usize {
    let is_it = |line: &Value| line["remembered"]["sessions"][0]["no"] == no;
    lines.iter().position(is_it).unwrap_or_else(|| panic!("no session {no} in {lines:#?}"))
}

/// What is done to the lines.
type Change = fn(&mut Vec<Value>);

fn with_saved(lines: &mut [Value], id: u64, revision: u64, field: &str, value: Value) {
    let at = saved(lines, id, revision);
    lines[at]["remembered"]["saved"][field] = value;
}

fn with_session(lines: &mut [Value], no: u64, field: &str, value: Value) {
    let at = session(lines, no);
    lines[at]["remembered"]["sessions"][0][field] = value;
}

fn changes() -> Vec<(&'static str, Change)> {
    vec![
        ("private content", |lines| with_saved(lines, 1, 2, "content", json!("a <private>x</private>"))),
        ("a private title", |lines| with_saved(lines, 1, 2, "title", json!("<PRIVATE >x"))),
        ("private content of the past", |lines| with_saved(lines, 1, 1, "content", json!("<private>x"))),
        ("a private topic key", |lines| {
            with_saved(lines, 1, 1, "topic_key", json!("k<private>x"));
            with_saved(lines, 1, 2, "topic_key", json!("k<private>x"));
        }),
        ("a private summary", |lines| with_session(lines, 0, "summary", json!("<private>x</private>"))),
        ("a private user", |lines| {
            for line in lines.iter_mut().filter(|line| line["remembered"]["user"] == "u") {
                line["remembered"]["user"] = json!("u<private>x");
            }
        }),
        ("a user of control characters", |lines| {
            for line in lines.iter_mut().filter(|line| line["remembered"]["user"] == "u") {
                line["remembered"]["user"] = json!("u\nv");
            }
        }),
        ("a revision missing", |lines| drop(lines.remove(saved(lines, 1, 1)))),
        ("a later revision", |lines| with_saved(lines, 1, 2, "revision", json!(3))),
        ("no revision", |lines| with_saved(lines, 2, 1, "revision", json!(0))),
        ("two revisions exchanged", |lines| {
            let (one, two) = (saved(lines, 1, 1), saved(lines, 1, 2));
            lines.swap(one, two);
        }),
        ("sources missing", |lines| {
            let own = staled::session::SessionId::of_observation(2);
            lines.retain(|line| line["kept"]["session"] != own.as_str());
            for line in lines.iter_mut() {
                line["remembered"].as_object_mut().map(|told| told.remove("sources"));
            }
        }),
        ("sources of nothing", |lines| with_saved(lines, 2, 1, "has_sources", json!(false))),
        ("sources of what has none", |lines| with_saved(lines, 1, 2, "has_sources", json!(true))),
        ("an observation missing, and its sources there", |lines| drop(lines.remove(saved(lines, 2, 1)))),
        ("a session missing", |lines| drop(lines.remove(session(lines, 0)))),
        ("a session that never was", |lines| with_saved(lines, 1, 2, "session", json!(7))),
        ("two active sessions", |lines| with_session(lines, 0, "ended_at", Value::Null)),
        ("a session without end of numbers", |lines| with_session(lines, 1, "no", json!(u32::MAX))),
        ("the number 0", |lines| with_saved(lines, 2, 1, "id", json!(0))),
        ("the last number", |lines| with_saved(lines, 2, 1, "id", json!(u64::MAX))),
        ("a number that nobody can ask for", |lines| {
            let id = u64::try_from(i64::MAX).expect("positive") + 1;
            let at = saved(lines, 1, 1);
            lines[at]["remembered"]["saved"]["id"] = json!(id);
            let at = saved(lines, 1, 2);
            lines[at]["remembered"]["saved"]["id"] = json!(id);
        }),
        ("a long title", |lines| with_saved(lines, 1, 2, "title", json!("t".repeat(81)))),
        ("no title", |lines| with_saved(lines, 1, 2, "title", json!(""))),
        ("a blank title", |lines| with_saved(lines, 1, 2, "title", json!(" \n"))),
        ("no content", |lines| with_saved(lines, 1, 2, "content", json!(""))),
        ("blank content", |lines| with_saved(lines, 1, 2, "content", json!("\u{a0}"))),
        ("a long topic key", |lines| {
            let key = json!("k".repeat(201));
            with_saved(lines, 1, 1, "topic_key", key.clone());
            with_saved(lines, 1, 2, "topic_key", key);
        }),
        ("a topic key that was another", |lines| with_saved(lines, 1, 1, "topic_key", json!("j"))),
        ("a topic key twice", |lines| with_saved(lines, 2, 1, "topic_key", json!("k"))),
        ("no type", |lines| with_saved(lines, 1, 2, "type", json!(""))),
        ("a blank session id", |lines| with_session(lines, 0, "id", json!(""))),
        ("one id of two sessions", |lines| {
            let id = lines[session(lines, 0)]["remembered"]["sessions"][0]["id"].clone();
            with_session(lines, 1, "id", id);
        }),
        ("a number taken twice", |lines| {
            let at = saved(lines, 2, 1);
            let mut twin = lines[at].clone();
            twin["remembered"]["user"] = json!("v");
            lines.push(twin);
        }),
        ("what was forgotten", |lines| lines.push(json!({ "forgotten": { "user": "u", "forgotten": 1 } }))),
        ("a blank summary", |lines| with_session(lines, 0, "summary", json!(" "))),
    ]
}

#[test]
fn what_no_client_could_have_told_is_refused() {
    let lines = small();
    let mut taken = Vec::new();
    for (what, change) in changes() {
        let mut changed = lines.clone();
        change(&mut changed);
        assert_ne!(changed, lines, "{what} changes nothing");
        let there = Place::new();
        let run = feed(
            &there,
            Path::new(NOWHERE),
            &["import-state", "-", "--state", &state(&there)],
            &sealed(&changed),
        );
        if run.out.is_empty() {
            run.fails(2, "line ");
            assert!(!there.home.join("state/journal").exists(), "{what}");
        } else {
            taken.push(what);
        }
    }
    assert_eq!(taken, [] as [&str; 0]);
    let there = Place::new();
    feed(&there, Path::new(NOWHERE), &["import-state", "-", "--state", &state(&there)], &sealed(&lines))
        .ends(0);
}

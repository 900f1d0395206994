//! `export` and `import-state`: everything and only that, all or nothing.

use super::{feed, staled};
use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use staled::store::export::export;
use staled::store::journal::Journal;
use staled::store::told::settled;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

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
    assert_eq!(told, json!({ "sessions": 2, "rows": 3, "observations": 0, "state": state }));
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
    // What an opening has set aside is nowhere else.
    fs::write(state.join("journal/00000000000000000001.seg.damaged-9"), "precious").unwrap();
    import().ok();
    assert_eq!(exported(&place), lines);
    let kept = fs::read(state.join("journal.old/00000000000000000001.seg.damaged-9")).unwrap();
    assert_eq!(kept, b"precious");
    assert!(state.join("journal.old/00000000000000000001.seg").exists());
}

/// The lines again, with a seal that fits: whoever can write them can compute it.
pub(crate) fn sealed(lines: &[Value]) -> String {
    let (mut text, mut seal) = (String::new(), String::new());
    for line in lines {
        let line = line.to_string();
        seal = blake3::hash(format!("{seal}{line}").as_bytes()).to_hex().to_string();
        text += &(line + "\n");
    }
    text + &json!({ "end": { "lines": lines.len(), "seal": seal } }).to_string() + "\n"
}

#[test]
fn what_no_client_could_have_told_is_refused_whatever_its_seal() {
    type Change = fn(&mut Value);
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let input = json!({ "kind": "file", "path": "a" });
    let make = json!({ "id": "make", "source": { "kind": "command", "command": "make", "inputs": [input] } });
    let fact = json!({ "id": "f", "statement": "it is 1", "sources": ["a"] });
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1"), make], "facts": [fact], "decisions": ["d"] });
    daemon.ask("context.register", &context);
    daemon.stop();
    let run = staled(
        &place,
        Path::new(NOWHERE),
        &["export", "--state", place.home.join("state").to_str().unwrap()],
    )
    .ok();
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = &lines[..lines.len() - 1];
    assert_eq!(sealed(lines), run.out, "the seal is computed here as it is there");
    let there = Place::new();
    let state = there.home.join("state");
    let args = ["import-state", "-", "--state", state.to_str().unwrap()];
    let cases: [(&str, Change, &str); 13] = [
        ("a row too many", |kept| kept["head"]["next_row"] = json!(2), "comes after the last"),
        ("numbers without end", |kept| kept["head"]["next_row"] = json!(u32::MAX), "numbered too high"),
        ("two rows of one number", |kept| kept["rows"][1]["no"] = json!(0), "a row 0 already"),
        ("two rows of one id", |kept| kept["rows"][1]["id"] = json!("a"), "stands twice"),
        ("a command that read nothing", |kept| kept["rows"][1]["inputs"] = json!([]), "what it read"),
        ("a command that read itself", |kept| kept["rows"][1]["inputs"] = json!([1]), "what it read"),
        (
            "a command that read what is not there",
            |kept| kept["rows"][1]["inputs"] = json!([7]),
            "what it read",
        ),
        ("an input of nothing", |kept| kept["rows"][2]["input_of"] = json!(0), "what it read"),
        ("another input", |kept| kept["rows"][2]["source"]["path"] = json!("b"), "what it read"),
        ("a fact about nothing", |kept| kept["facts"][0]["rows"] = json!([9]), "a fact rests on"),
        (
            "private text",
            |kept| kept["decisions"] = json!(["<private>x</private>"]),
            "could not have been told",
        ),
        ("a relative root", |kept| kept["head"]["root"] = json!("w"), "absolute"),
        ("a long id", |kept| kept["rows"][0]["id"] = json!("x".repeat(3_000)), "the most is"),
    ];
    for (what, change, says) in cases {
        let mut lines = lines.to_vec();
        change(&mut lines[1]["kept"]);
        let run = feed(&there, Path::new(NOWHERE), &args, &sealed(&lines));
        run.fails(2, says);
        assert!(!state.join("journal").exists(), "{what}: {run:?}");
    }
    let mut rest = lines.to_vec();
    rest[1]["kept"].as_object_mut().unwrap().remove("head");
    feed(&there, Path::new(NOWHERE), &args, &sealed(&rest)).fails(2, "it has not begun");
    feed(&there, Path::new(NOWHERE), &args, &sealed(lines)).ok();
}

#[test]
fn a_journal_that_lost_its_end_is_exported_in_doubt() {
    let (place, daemon) = scene();
    daemon.stop();
    // Its last record, which says that a belief was refuted, is cut off where it begins.
    let segment = place.home.join("state/journal/00000000000000000001.seg");
    let bytes = fs::read(&segment).unwrap();
    let refuted = bytes.windows(12).rposition(|text| text == b"{\"refuted\":{").unwrap_or_else(|| {
        bytes.windows(11).rposition(|text| text == b"{\"refuted\":").expect("it was refuted")
    });
    fs::write(&segment, &bytes[..refuted - 28]).unwrap();
    let lines = exported(&place);
    assert_eq!(lines.matches("\"doubted\":true").count(), 2, "{lines}");
}

#[test]
fn long_sessions_are_told_in_lines_of_bounded_length() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let volatile = |id: usize| json!({ "id": format!("t{id}"), "source": { "kind": "volatile", "what": "w".repeat(2_000) } });
    let sources: Vec<String> = (0..900).map(|at| format!("t{}", at % 3)).collect();
    let fact = |id: usize| json!({ "id": format!("f{id}"), "statement": "s", "sources": sources });
    let context = json!({ "session": "s", "root": place.root, "results": (0..700).map(volatile).collect::<Vec<_>>(),
        "facts": (0..400).map(fact).collect::<Vec<_>>(),
        "decisions": (0..900).map(|at| format!("{}{at}", "d".repeat(2_000))).collect::<Vec<_>>() });
    daemon.ask("context.register", &context);
    daemon.stop();
    let state = place.home.join("state");
    let run = staled(&place, Path::new(NOWHERE), &["export", "--state", state.to_str().unwrap()]).ok();
    assert!(run.out.lines().count() > 6 && run.out.lines().all(|line| line.len() < 2 << 20), "{}", run.err);
    let there = Place::new();
    let moved = there.home.join("state");
    feed(&there, Path::new(NOWHERE), &["import-state", "-", "--state", moved.to_str().unwrap()], &run.out)
        .ok();
    let again = staled(&there, Path::new(NOWHERE), &["export", "--state", moved.to_str().unwrap()]).ok();
    assert!(again.out == run.out, "what was imported exports the same bytes");
}

#[test]
fn a_registration_that_was_never_answered_is_said() {
    let place = Place::new();
    let state = place.home.join("state");
    fs::create_dir_all(&state).unwrap();
    let (mut journal, _) = Journal::open(&state.join("journal"), [1; 16], &mut |_| Ok(())).unwrap();
    let unsaid = json!({ "id": "a", "source": { "kind": "file", "path": "a" } });
    let context = json!({ "session": "s", "root": "/w", "results": [unsaid] });
    journal.append(json!({ "told": { "at": 1, "context": context } }).to_string().as_bytes()).unwrap();
    let run = staled(&place, Path::new(NOWHERE), &["export", "--state", state.to_str().unwrap()]).ok();
    assert!(run.err.contains("1 row came without a digest"), "{run:?}");
    assert!(!run.err.contains("waiting"), "nobody answers it any more: {run:?}");
}

#[test]
fn a_registration_that_is_being_answered_is_waited_for() {
    let place = Place::new();
    let (mut journal, _) = Journal::open(&place.home.join("journal"), [1; 16], &mut |_| Ok(())).unwrap();
    let unsaid = json!({ "id": "a", "source": { "kind": "file", "path": "a" } });
    let context = json!({ "session": "s", "root": "/w", "results": [unsaid] });
    let now = UNIX_EPOCH.elapsed().unwrap().as_micros();
    let at = u64::try_from(now).unwrap();
    let memory = staled::session::SessionId::of_observation(1);
    let sources = json!({ "session": memory.as_str(), "root": "/w", "results": [unsaid] });
    let mut append = |record: Value| journal.append(record.to_string().as_bytes()).unwrap();
    append(json!({ "told": { "at": at, "context": context } }));
    append(json!({ "remembered": { "user": "u", "sources": sources, "at": at } }));
    let mut waited = Vec::new();
    let told = settled(&place.home, &mut |rows| {
        waited.push(rows);
        let session = if rows == 2 { "s" } else { memory.as_str() };
        let seen = json!({ "role": "result", "id": "a", "seen": "absent" });
        append(json!({ "settled": { "session": session, "adopted": [seen] } }));
    });
    let moved = export(&told.unwrap(), &mut Vec::new()).unwrap();
    assert_eq!((waited, moved.rows, moved.unanswered), (vec![2, 1], 2, 0));
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

//! Nothing acknowledged is lost, and nothing that happened meanwhile is missed: by a restart, by an index that is gone
//! or full of garbage, by torn ends.

use crate::daemon::{cause, commit_all, decide, essence, files_below, git, register, write_each};
use crate::harness::{Daemon, Place, digest, file, lax, refusal};
use serde_json::{Value, json};
use staled::config::Config;
use staled::daemon::{self, Command, Fatal, FolderError, Folders, Start};
use staled::store::decision_log::{Outcome, verify};
use staled::store::export::{export, import};
use staled::store::told::settled;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What may happen to a stopped daemon's state.
type Mishap = fn(&Path);

fn files_of(folder: &Path) -> Vec<PathBuf> {
    files_below(&folder.join("index"))
}

const MISHAPS: &[(&str, Mishap, bool)] = &[
    ("nothing", |_| (), false),
    ("the index is gone", |state| fs::remove_dir_all(state.join("index")).expect("a folder"), false),
    ("it was exported, and imported into an empty state", moved_to_another_state, false),
    (
        "the index is garbage",
        |state| {
            for file in files_of(state) {
                let len = fs::metadata(&file).expect("a file").len();
                let garbage: Vec<u8> = (0..len).map(|_| fastrand::u8(..)).collect();
                fs::write(file, garbage).expect("a file");
            }
        },
        true,
    ),
    (
        "the index is cut to half",
        |state| {
            for file in files_of(state) {
                let opened = fs::File::options().write(true).open(&file).expect("a file");
                opened.set_len(opened.metadata().expect("a file").len() / 2).expect("a length");
            }
        },
        true,
    ),
    (
        "the index is zeros",
        |state| {
            for file in files_of(state) {
                let len = fs::metadata(&file).expect("a file").len();
                fs::write(file, vec![0; usize::try_from(len).expect("a length")]).expect("a file");
            }
        },
        true,
    ),
    (
        "the index is a file",
        |state| {
            fs::remove_dir_all(state.join("index")).expect("a folder");
            fs::write(state.join("index"), "x").expect("a file");
        },
        true,
    ),
];

fn moved_to_another_state(state: &Path) {
    let settled = || settled(state, &mut |_| {}).expect("it can be read");
    let mut lines = Vec::new();
    let exported = export(&settled(), &mut lines).expect("it can be written");
    fs::remove_dir_all(state.join("journal")).expect("a folder");
    let imported = import(state, &mut lines.as_slice(), [9; 16]).expect("it is whole");
    assert_eq!(imported, exported);
    let mut again = Vec::new();
    export(&settled(), &mut again).expect("it can be written");
    assert_eq!(String::from_utf8(again), String::from_utf8(lines));
}

/// One session for each thing that can be acknowledged.
fn acknowledge_everything(place: &Place, daemon: &Daemon) -> Vec<&'static str> {
    write_each(place, &["a", "b", "c", "d", "acked", "acked-then-changed", "reverted", "Cargo.lock"], "1");
    let head = commit_all(place);
    let context = json!({ "session": "registered", "root": place.root, "user": "alice", "agent": "probe", "scratchpad_bytes": 9,
        "goal": { "statement": "g", "hypotheses": ["h"] }, "decisions": ["d"], "open_questions": ["q"],
        "results": [file("a", "1"), lax("b", "0"), { "id": "none", "source": { "kind": "absent", "path": "none" } },
            { "id": "v", "source": { "kind": "volatile", "what": "clock" } }],
        "invariants": [{ "name": "head", "source": { "kind": "git_head", "path": "." }, "digest": head },
            { "name": "lock", "source": { "kind": "lockfile", "path": "Cargo.lock" }, "digest": digest("1") }],
        "facts": [{ "id": "f", "statement": "s", "sources": ["a", "c"] }] });
    daemon.ask("context.register", &context);
    register(daemon, place, "recorded", &json!([file("a", "1")]));
    daemon.ask(
        "context.record",
        &json!({ "session": "recorded", "results": [file("b", "0")], "decisions": ["more"] }),
    );
    register(daemon, place, "removed", &json!([file("a", "0"), file("b", "1")]));
    daemon.ask("context.record", &json!({ "session": "removed", "remove": ["a"] }));
    register(daemon, place, "dropped", &json!([file("a", "1")]));
    daemon.ask("context.drop", &json!({ "session": "dropped" }));
    for session in ["acked", "acked-then-changed"] {
        register(daemon, place, session, &json!([file(session, "1")]));
        place.write(session, "2");
        daemon.ask("touch_ack", &json!({ "session": session, "path": session, "digest": digest("2") }));
    }
    assert_eq!(decide(daemon, "acked-then-changed")["transition"], "resume");
    place.write("acked-then-changed", "3");
    register(daemon, place, "refuted", &json!([file("a", "1"), file("b", "1")]));
    daemon.ask("fact.refute", &json!({ "session": "refuted", "source": "a" }));
    register(
        daemon,
        place,
        "baseline",
        &json!([{ "id": "c", "source": { "kind": "file", "path": "c" } },
        { "id": "d", "source": { "kind": "file", "path": "d" } },
        { "id": "never", "critical": false, "source": { "kind": "file", "path": "never" } }]),
    );
    place.write("d", "2");
    register(daemon, place, "reverted", &json!([file("reverted", "0")]));
    place.write("reverted", "0");
    assert_eq!(decide(daemon, "reverted")["transition"], "resume");
    place.write("reverted", "1");
    vec![
        "registered",
        "recorded",
        "removed",
        "acked",
        "acked-then-changed",
        "refuted",
        "baseline",
        "reverted",
    ]
}

fn told(daemon: &Daemon, sessions: &[&str]) -> Vec<(Value, Value)> {
    let of = |session: &&str| {
        (essence(decide(daemon, session)), daemon.ask("context.get", &json!({ "session": session })))
    };
    sessions.iter().map(of).collect()
}

#[test]
fn decisions_are_the_same_after_every_mishap() {
    let place = Place::new();
    let mut daemon = Daemon::start(&place.home);
    let sessions = acknowledge_everything(&place, &daemon);
    let before = told(&daemon, &sessions);
    let expected = [
        ("recorded", "b", "born_stale"),
        ("acked", "acked", "fresh"),
        ("acked-then-changed", "acked-then-changed", "content"),
        ("refuted", "a", "refuted"),
        ("baseline", "c", "fresh"),
        ("baseline", "d", "content"),
        ("reverted", "reverted", "content"),
    ];
    for (session, id, why) in expected {
        assert_eq!(cause(&decide(&daemon, session), id), why, "{session}");
    }
    for &(what, mishap, aside) in MISHAPS {
        daemon.stop();
        mishap(&place.home.join("state"));
        daemon = Daemon::start(&place.home);
        for (session, (before, after)) in sessions.iter().zip(before.iter().zip(told(&daemon, &sessions))) {
            assert_eq!(after, *before, "{session}, when {what}");
        }
        assert_eq!(
            refusal(&mut daemon.client(), "decide", &json!({ "session": "dropped" })),
            "no_session_context",
            "{what}"
        );
        let log = fs::read_to_string(place.home.join("state/decisions.jsonl")).expect("a log");
        let start = log.lines().rev().take_while(|line| !line.contains("\"event\":\"epoch\""));
        let healed = start.filter(|line| line.contains("\"healed\"") && line.contains("set aside")).count();
        assert_eq!(healed == 1, aside, "{what}: said so in the log");
        let kept = fs::read_dir(place.home.join("state")).expect("a folder");
        let kept = kept
            .filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().contains("aside"))
            .count();
        assert!(!aside || kept > 0, "{what}: set aside under a name");
    }
}

/// One byte of the index at a time, anywhere: found and mended, or harmless.
#[test]
fn a_damaged_byte_in_the_index_changes_no_decision() {
    let place = Place::new();
    let mut daemon = Daemon::start(&place.home);
    let sessions = acknowledge_everything(&place, &daemon);
    let before = told(&daemon, &sessions);
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..12 {
        daemon.stop();
        let files: Vec<PathBuf> = files_of(&place.home.join("state"))
            .into_iter()
            .filter(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0))
            .collect();
        let file = &files[random.usize(..files.len())];
        let mut bytes = fs::read(file).expect("a file");
        // Where something is written: sled's files are mostly zeros.
        let written: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        for _ in 0..=round {
            let at = written[random.usize(..written.len())];
            bytes[at] ^= 1 << random.u8(..8);
        }
        fs::write(file, bytes).expect("a file");
        daemon = Daemon::start(&place.home);
        assert_eq!(told(&daemon, &sessions), before, "seed {seed}, round {round}, {}", file.display());
    }
}

/// What sled is known to do: a key is gone, and nothing else says so. Any of them.
#[test]
fn a_key_that_the_index_lost_changes_no_decision() {
    let place = Place::new();
    let mut daemon = Daemon::start(&place.home);
    let sessions = acknowledge_everything(&place, &daemon);
    let before = told(&daemon, &sessions);
    let trees = ["meta", "names", "summaries", "heads", "rows", "marks", "sources", "keys"];
    let mut lost = 0;
    for tree in trees {
        for which in 0..match tree {
            "meta" => 6,
            "marks" => 9,
            _ => 1,
        } {
            daemon.stop();
            let db = sled::open(place.home.join("state/index")).expect("an index");
            let keys = db.open_tree(tree).expect("a tree");
            let key = keys.iter().keys().nth(which);
            let key = key.map(|key| key.expect("a key"));
            if let Some(key) = &key {
                keys.remove(key).expect("a key");
                lost += 1;
            }
            drop((keys, db));
            daemon = Daemon::start(&place.home);
            let named = key.map(|key| String::from_utf8_lossy(&key).into_owned());
            assert_eq!(told(&daemon, &sessions), before, "{tree}: {named:?}");
            // New ones take no number that is taken.
            place.write("new", "1");
            register(&daemon, &place, "new", &json!([file("new", "1")]));
            place.write("new", "2");
            assert_eq!(decide(&daemon, "new")["transition"], "fresh", "{tree}: {named:?}");
            daemon.ask("context.drop", &json!({ "session": "new" }));
            assert_eq!(told(&daemon, &sessions), before, "{tree}: {named:?}");
            place.write("a", "other");
            assert_eq!(decide(&daemon, "registered")["transition"], "fresh", "{tree}: {named:?}");
            place.write("a", "1");
        }
    }
    assert!(lost >= 10, "{lost}");
}

#[test]
fn what_happened_while_nobody_looked_is_seen() {
    for mishap in [0, 1] {
        let place = Place::new();
        let daemon = Daemon::start(&place.home);
        write_each(&place, &["same", "changed", "disguised", "gone", "folder", "touched", "loose"], "one\n");
        let head = commit_all(&place);
        let ids = ["same", "changed", "disguised", "gone", "folder", "touched"];
        let mut results: Vec<Value> = ids.iter().map(|id| file(id, "one\n")).collect();
        results.push(lax("loose", "one\n"));
        results.push(json!({ "id": "none", "source": { "kind": "absent", "path": "none" } }));
        let context = json!({ "session": "s", "root": place.root, "results": results,
            "invariants": [{ "name": "head", "source": { "kind": "git_head", "path": "." }, "digest": head }] });
        daemon.ask("context.register", &context);
        assert_eq!(decide(&daemon, "s")["transition"], "resume");
        daemon.stop();
        let path = |name: &str| place.root.join(name);
        place.write("changed", "two\n");
        for name in ["disguised", "loose"] {
            let time = fs::metadata(path(name)).expect("a file").modified().expect("a time");
            place.write(name, "two\n");
            fs::File::options()
                .write(true)
                .open(path(name))
                .expect("a file")
                .set_modified(time)
                .expect("a time");
        }
        fs::remove_file(path("gone")).expect("a file");
        fs::remove_file(path("folder")).expect("a file");
        fs::create_dir(path("folder")).expect("a folder");
        place.write("touched", "one\n");
        place.write("none", "");
        git(&place.root, &["commit", "-q", "--allow-empty", "-m", "x"]);
        (MISHAPS[mishap].1)(&place.home.join("state"));
        let daemon = Daemon::start(&place.home);
        let report = decide(&daemon, "s");
        for (id, expected) in [
            ("same", "fresh"),
            ("changed", "content"),
            ("disguised", "content"),
            ("gone", "deleted"),
            ("folder", "kind_changed"),
            ("touched", "fresh"),
            ("loose", "content"),
            ("none", "appeared"),
            ("head", "head_moved"),
        ] {
            assert_eq!(cause(&report, id), expected, "{id}: {report}");
        }
        // And the watches are in force again.
        place.write("same", "two\n");
        assert_eq!(cause(&decide(&daemon, "s"), "same"), "content");
    }
}

/// A registration that was journaled and never answered: what is on disk by now is not what the agent saw then.
#[test]
fn a_baseline_that_was_never_taken_is_not_taken_later() {
    use staled::store::journal::{Journal, Piece};
    use staled::store::record::Record;
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([{ "id": "a", "source": { "kind": "file", "path": "a" } }]));
    daemon.stop();
    let folder = place.home.join("state/journal");
    let mut last = Vec::new();
    let mut keep = |piece: Piece<'_>| {
        if let Piece::Record(_, payload) = piece
            && payload.starts_with(b"{\"told\"")
        {
            last = payload.to_vec();
        }
        Ok(())
    };
    let (mut journal, _) = Journal::open(&folder, [0; 16], &mut keep).expect("a journal");
    Record::from_bytes(&last).expect("what was told");
    journal.append(&last).expect("a record");
    drop(journal);
    place.write("a", "2");
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    assert_ne!(cause(&report, "a"), "fresh", "{report}");
    place.write("a", "3");
    assert_ne!(cause(&decide(&daemon, "s"), "a"), "fresh");
}

#[test]
fn torn_ends_are_cut_and_said() {
    let place = Place::new();
    let mut daemon = Daemon::start(&place.home);
    let sessions = acknowledge_everything(&place, &daemon);
    let before = told(&daemon, &sessions);
    let state = place.home.join("state");
    for torn in [&b"\x01"[..], &[0; 7], &[0xff; 27], b"{\"half\":"] {
        daemon.stop();
        let mut segments = files_below(&state.join("journal"));
        segments.retain(|path| path.extension().is_none_or(|ending| ending != "torn"));
        segments.sort();
        let last = segments.iter().rfind(|path| !path.to_string_lossy().contains("torn")).expect("a segment");
        for file in [last, &state.join("decisions.jsonl")] {
            fs::File::options().append(true).open(file).expect("a file").write_all(torn).expect("a write");
        }
        daemon = Daemon::start(&place.home);
        assert_eq!(told(&daemon, &sessions), before, "{torn:?}");
        let log = fs::read_to_string(state.join("decisions.jsonl")).expect("a log");
        let healed: Vec<&str> = log.lines().filter(|line| line.contains("\"healed\"")).collect();
        assert!(healed.iter().any(|line| line.contains("torn record")), "{healed:?}");
        assert!(healed.iter().any(|line| line.contains("torn line")), "{healed:?}");
        let verdict = verify(&state.join("decisions.jsonl"), None).expect("a log");
        assert!(matches!(verdict.outcome, Outcome::Verified { .. }), "{verdict:?}");
    }
}

#[test]
fn a_second_daemon_on_the_same_state_refuses_and_touches_nothing() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let image = || -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = files_below(&place.home)
            .into_iter()
            .filter(|path| !path.starts_with(place.home.join("state/index")))
            .map(|path| {
                let bytes = fs::read(&path).expect("a file");
                (path, bytes)
            })
            .collect();
        files.sort();
        files
    };
    let before = image();
    let (stop, _) = tokio::sync::watch::channel(Command::Run);
    let start = Start { config: Config::default(), config_file: None, folders: Folders::below(&place.home) };
    let second = daemon::run(start, stop, None);
    assert!(matches!(second, Err(Fatal::Folders(FolderError::Taken { .. }))), "{second:?}");
    assert_eq!(image(), before);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

#[test]
fn the_chain_of_decisions_goes_on_over_restarts() {
    let place = Place::new();
    place.write("a", "1");
    let mut receipts: Vec<String> = Vec::new();
    for round in 0..4 {
        let daemon = Daemon::start(&place.home);
        register(&daemon, &place, "s", &json!([file("a", "1")]));
        let receipt = &decide(&daemon, "s")["receipt"];
        receipts.push(format!("{}:{}", receipt["seq"], receipt["hash"].as_str().expect("a hash")));
        let path = daemon.folders.state.join("decisions.jsonl");
        daemon.stop();
        for receipt in &receipts {
            let verdict = verify(&path, Some(&receipt.parse().expect("a receipt"))).expect("a log");
            assert_eq!(verdict.outcome, Outcome::Verified { anchored: true }, "round {round}, {receipt}");
        }
    }
}

/// What is left of the records that an index lacks is all that the journal has.
#[test]
fn an_index_from_before_a_compaction_is_made_again_and_one_from_after_it_is_not() {
    let place = Place::new();
    write_each(&place, &["a", "b"], "1");
    let config = || {
        let mut config = Config::default();
        config.decision.deadline_ms = config.decision.deadline_ms_max;
        config.journal.compact_bytes = 4_096;
        config
    };
    let start = || Daemon::start_with(&place.home, config());
    let (state, saved) = (place.home.join("state"), place.home.join("saved"));
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert!(std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    };
    let daemon = start();
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "0")]));
    daemon.stop();
    copy(&state.join("index"), &saved);
    let daemon = start();
    daemon.ask("fact.refute", &json!({ "session": "s", "source": "a" }));
    while daemon.ask("status", &json!({}))["compactions"] == 0 {
        register(&daemon, &place, "t", &json!([file("a", "1"), file("b", "1")]));
    }
    let before = told(&daemon, &["s", "t"]);
    daemon.stop();
    let set_aside = |state: &Path| {
        let log = fs::read_to_string(state.join("decisions.jsonl")).unwrap();
        log.lines().filter(|line| line.contains("\"healed\"") && line.contains("set aside")).count()
    };
    for (what, healed) in [("as it was", 0), ("as old as the first session", 1), ("gone", 1), ("as it is", 1)]
    {
        match what {
            "as old as the first session" => copy(&saved, &state.join("index")),
            "gone" => fs::remove_dir_all(state.join("index")).unwrap(),
            _ => {}
        }
        let daemon = start();
        assert_eq!(told(&daemon, &["s", "t"]), before, "an index {what}");
        daemon.stop();
        assert_eq!(set_aside(&state), healed, "an index {what}");
    }
}

/// An id may be anything, and what was journaled about it has to be read back.
#[test]
fn facts_of_any_name_are_refuted_for_good() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let names = ["f\u{0}x", "</x>", "\u{202e}", "a/../b"];
    for (number, name) in names.iter().enumerate() {
        let fact = json!({ "id": name, "statement": "it is so", "sources": ["a"] });
        let context = json!({ "session": format!("s{number}"), "root": place.root, "results": [file("a", "1")], "facts": [fact] });
        daemon.ask("context.register", &context);
        daemon.ask("fact.refute", &json!({ "session": format!("s{number}"), "fact": name }));
    }
    assert_eq!(
        refusal(&mut daemon.client(), "fact.refute", &json!({ "session": "s0", "fact": " " })),
        "-32602"
    );
    daemon.stop();
    fs::remove_dir_all(place.home.join("state/index")).unwrap();
    let daemon = Daemon::start(&place.home);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(cause(&decide(&daemon, &format!("s{number}")), "a"), "refuted", "{name}");
    }
}

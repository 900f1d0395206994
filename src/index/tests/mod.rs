//! The index in single cases: causes, stamps, depth, facts, and what a restart may confirm.

mod pack;

use super::found::{FileFound, Found, Stat};
use super::freshness::{Cause, Doubt, Freshness};
use super::row::{Role, SessionNo};
use super::storage::{Memory, Storage, Summary, Table};
use super::view::{Line, Listed};
use super::{Check, Depth, Index, Outcome, Settled, SourceId};
use crate::session::SessionId;
use crate::session::context::{Belief, Fact, Seen, Update};
use crate::session::digest::{Algorithm, CommitId, Digest};
use crate::session::moment::Moment;
use crate::session::source::{HeadPolicy, Source};
use std::path::{Path, PathBuf};

const S: SessionNo = SessionNo(0);
const AT: Moment = Moment { micros: 5 };

fn digest(byte: u8) -> Digest {
    Digest::blake3([byte; 32])
}

fn commit(byte: u8) -> CommitId {
    CommitId::from_bytes(&[byte; 20]).expect("twenty bytes are a commit id")
}

fn bytes_at(path: &str, byte: u8) -> Found {
    let stat = Stat { dev: 1, ino: 2, size: 3, mode: 4, mtime_ns: -5, ctime_ns: 6, mount: 7 };
    Found::File(FileFound {
        digest: digest(byte),
        also: Vec::new(),
        lf: None,
        stat,
        racy: false,
        canonical: path.into(),
    })
}

fn bytes(byte: u8) -> Found {
    bytes_at("/w/a", byte)
}

fn folder() -> Found {
    Found::Other { kind: "folder".to_owned() }
}

fn head(byte: u8) -> Found {
    Found::Head { commit: Some(commit(byte)), branch: None }
}

fn file(path: &str) -> Source {
    Source::File { path: path.into() }
}

fn update() -> Update {
    let mut update = Update::of(SessionId::new("s").expect("a legal name"));
    update.root = Some("/w".into());
    update
}

fn result(id: &str, source: Source, seen: Seen) -> Belief {
    Belief { id: id.to_owned(), tool: None, critical: false, captured_at: None, source, seen, lf: None }
}

fn fact(id: &str, sources: &[&str]) -> Fact {
    let sources = sources.iter().map(PathBuf::from).collect();
    Fact { id: id.to_owned(), statement: id.to_owned(), evidence: String::new(), sources }
}

fn awake() -> Index<Memory> {
    let mut index = Index::open(Memory::default(), "e").unwrap();
    index.wake().unwrap();
    index
}

fn register(index: &mut Index<Memory>, update: &Update) -> Vec<Check> {
    index.register(update, 100, AT).unwrap().checks
}

fn answer(index: &mut Index<Memory>, check: &Check, found: Found) -> Outcome {
    let Check { source, stamp, .. } = *check;
    index.settle(vec![Settled { source, stamp, found: found.into() }], AT).unwrap()
}

fn answer_all(index: &mut Index<Memory>, checks: &[Check], found: impl Fn(&Check) -> Found) {
    for check in checks {
        answer(index, check, found(check));
    }
}

fn touch(index: &mut Index<Memory>, source: SourceId, depth: Depth) -> Check {
    index.touch([(source, depth)]).unwrap().remove(0)
}

fn lines(index: &Index<Memory>) -> Vec<Line> {
    index.view(S, Listed::AllUpTo(100), None).unwrap().expect("it was registered").lines
}

/// An index in which one belief was registered and these looks were made one after the other.
fn looked(source: Source, seen: Seen, looks: &[Found]) -> Index<Memory> {
    let mut index = awake();
    let mut check =
        register(&mut index, &Update { results: vec![result("r", source, seen)], ..update() }).remove(0);
    for found in looks {
        answer(&mut index, &check, found.clone());
        check = touch(&mut index, check.source, Depth::Bytes);
    }
    let last = looks.last().expect("at least one look").clone();
    answer(&mut index, &check, last);
    index
}

#[test]
fn each_change_has_its_cause() {
    let stale = Freshness::Stale;
    let absent = || Source::Absent { path: "a".into() };
    let git = |policy| Source::GitHead { path: ".".into(), policy };
    let (strict, relevant) = (HeadPolicy::Strict, HeadPolicy::Relevant);
    let saw = || Seen::Digest(digest(1));
    let at = || Seen::Commit(Some(commit(1)));
    let unreadable = Found::Unknown(Doubt::Unreadable);
    for (source, seen, looks, expected) in [
        (file("a"), saw(), vec![bytes(1)], Freshness::Fresh),
        (file("a"), saw(), vec![bytes(2)], stale(Cause::BornStale)),
        (file("a"), saw(), vec![bytes(1), bytes(2)], stale(Cause::Content)),
        (file("a"), saw(), vec![bytes(2), bytes(3)], stale(Cause::BornStale)),
        (file("a"), saw(), vec![bytes(1), bytes(2), bytes(1)], Freshness::Fresh),
        (file("a"), saw(), vec![bytes(1), Found::Missing], stale(Cause::Deleted)),
        (file("a"), saw(), vec![bytes(1), folder()], stale(Cause::KindChanged)),
        (file("a"), saw(), vec![bytes(1), unreadable.clone()], Freshness::Unknown(Doubt::Unreadable)),
        (file("a"), Seen::Unsaid, vec![bytes(7)], Freshness::Fresh),
        (file("a"), Seen::Unsaid, vec![bytes(7), bytes(1)], stale(Cause::Content)),
        (file("a"), Seen::Unsaid, vec![Found::Missing], stale(Cause::Deleted)),
        (file("a"), Seen::Unsaid, vec![Found::Missing, bytes(1)], stale(Cause::BornStale)),
        (Source::Lockfile { path: "a".into() }, saw(), vec![bytes(1), bytes(2)], stale(Cause::Content)),
        (absent(), Seen::Absence, vec![Found::Missing], Freshness::Fresh),
        (absent(), Seen::Absence, vec![Found::Missing, folder()], stale(Cause::Appeared)),
        (absent(), Seen::Absence, vec![bytes(1)], stale(Cause::Appeared)),
        (git(strict), at(), vec![head(1)], Freshness::Fresh),
        (git(strict), at(), vec![head(1), head(2)], stale(Cause::HeadMoved)),
        (git(strict), at(), vec![head(2)], stale(Cause::BornStale)),
        (git(relevant), at(), vec![head(1), head(2)], Freshness::Fresh),
        (git(relevant), at(), vec![head(1), Found::Missing], Freshness::Unknown(Doubt::RepositoryMissing)),
    ] {
        let index = looked(source.clone(), seen.clone(), &looks);
        assert_eq!(lines(&index)[0].freshness, expected, "{source:?} seen as {seen:?} after {looks:?}");
    }
}

#[test]
fn a_moved_head_is_news_under_the_relevant_policy() {
    let source = Source::GitHead { path: ".".into(), policy: HeadPolicy::Relevant };
    let index = looked(source, Seen::Commit(Some(commit(1))), &[head(1), head(2)]);
    let line = &lines(&index)[0];
    assert_eq!(
        (line.was.clone(), line.now.clone()),
        (Some(commit(1).to_string()), Some(commit(2).to_string()))
    );
    assert_eq!(index.summary(S).unwrap(), Summary { rows: 1, next_row: 1, noted: 1, ..Summary::default() });
}

#[test]
fn an_overtaken_answer_changes_nothing() {
    let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1)]);
    let early = touch(&mut index, SourceId(0), Depth::Bytes);
    let late = touch(&mut index, SourceId(0), Depth::Bytes);
    assert_eq!(answer(&mut index, &early, bytes(1)).overtaken, 1);
    assert_eq!(lines(&index)[0].freshness, Freshness::Unknown(Doubt::Unsettled));
    assert_eq!(answer(&mut index, &late, bytes(2)).changed.len(), 1);
    assert_eq!(answer(&mut index, &late, bytes(1)).overtaken, 1, "the same answer twice");
    assert_eq!(lines(&index)[0].freshness, Freshness::Stale(Cause::Content));
}

#[test]
fn names_to_renew_survive_a_later_touch_of_bytes() {
    let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1)]);
    touch(&mut index, SourceId(0), Depth::Names);
    assert_eq!(touch(&mut index, SourceId(0), Depth::Bytes).depth, Depth::Names);
    assert_eq!(index.ask_again(SourceId(0)).unwrap().expect("it is pending").depth, Depth::Names);
    assert_eq!(index.touch([(SourceId(9), Depth::Bytes)]).unwrap(), [], "nobody rests on it");
}

#[test]
fn a_gap_makes_every_source_suspect_in_a_new_epoch() {
    let mut index = awake();
    let results = ["a", "b", "c"].map(|path| result(path, file(path), Seen::Digest(digest(1))));
    let checks = register(&mut index, &Update { results: results.to_vec(), ..update() });
    answer_all(&mut index, &checks, |_| bytes(1));
    assert_eq!(index.suspects(S), 0);
    assert_eq!(index.lose_sync("f").unwrap().len(), 3);
    assert_eq!((index.suspects(S), index.clock().epoch.as_str(), index.clock().tick), (3, "f", 0));
    assert_eq!(index.awaited(S).unwrap().len(), 3);
}

#[test]
fn refuted_stays_until_it_is_registered_or_acknowledged_again() {
    let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1)]);
    for target in ["r", "a", "./a", "/w/a"] {
        let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1)]);
        let hit = index.refute(S, Path::new(target), AT).unwrap();
        assert_eq!(hit.map(|hit| hit.ids), Some(vec!["r".to_owned()]), "{target}");
    }
    assert_eq!(index.refute(S, Path::new("b"), AT).unwrap(), None);
    index.refute(S, Path::new("r"), AT).unwrap();
    let refuted = Freshness::Stale(Cause::Refuted);
    assert_eq!(lines(&index)[0].freshness, refuted);
    let check = touch(&mut index, SourceId(0), Depth::Bytes);
    assert_eq!(lines(&index)[0].freshness, refuted, "not even in doubt while it is verified");
    answer(&mut index, &check, bytes(1));
    assert_eq!(lines(&index)[0].freshness, refuted, "equal bytes do not help");
    let again = Update { results: vec![result("r", file("a"), Seen::Digest(digest(1)))], ..update() };
    register(&mut index, &again);
    assert_eq!(lines(&index)[0].freshness, Freshness::Fresh);
    assert_eq!(index.summary(S).unwrap(), Summary { rows: 1, next_row: 1, ..Summary::default() });

    index.refute(S, Path::new("r"), AT).unwrap();
    index.acknowledge(S, Path::new("a"), digest(1), AT).unwrap();
    assert_eq!(lines(&index)[0].freshness, Freshness::Unknown(Doubt::Unsettled), "no longer refuted");
}

#[test]
fn an_own_write_moves_the_baseline() {
    let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1), bytes(2)]);
    assert_eq!(index.acknowledge(S, Path::new("b"), digest(2), AT).unwrap(), None);
    for (spelled, found, expected) in [
        ("a", bytes(2), Freshness::Fresh),
        ("./a", bytes(2), Freshness::Fresh),
        ("/w/a", bytes(3), Freshness::Stale(Cause::Content)),
    ] {
        let checks =
            index.acknowledge(S, Path::new(spelled), digest(2), AT).unwrap().expect("a row is about it");
        answer(&mut index, &checks[0], found);
        assert_eq!(lines(&index)[0].freshness, expected, "{spelled}");
    }
}

#[test]
fn a_fact_follows_its_path_when_a_row_moves_away() {
    let mut index = awake();
    let told = |path, facts| {
        let results = vec![result("r", file(path), Seen::Digest(digest(1)))];
        Update { results, facts, scratchpad_bytes: Some(1), ..update() }
    };
    let check = register(&mut index, &told("a", vec![fact("f", &["./a"])])).remove(0);
    answer(&mut index, &check, bytes(1));
    let checks = register(&mut index, &told("b", Vec::new()));
    let found = |check: &Check| if check.key.path.ends_with("a") { bytes(1) } else { bytes_at("/w/b", 1) };
    answer_all(&mut index, &checks, found);
    let tracked =
        lines(&index).into_iter().find(|line| line.role == Role::Tracked).expect("the fact's own path");
    assert_eq!(tracked.source, file("./a"));
    let source = checks.iter().find(|check| check.key.path.ends_with("a")).expect("it was looked at").source;
    let check = touch(&mut index, source, Depth::Bytes);
    answer(&mut index, &check, bytes(2));
    let view = index.view(S, Listed::Doubtful, None).unwrap().expect("it was registered");
    assert!(!view.facts[0].fresh, "the bytes under the fact changed");
}

#[test]
fn facts_are_judged_by_identity_not_by_spelling() {
    for (doubtful, found, sources, fresh) in [
        ("a", bytes(2), ["link"], false),
        ("a", bytes(2), ["./a"], false),
        ("a", bytes(2), ["/w/a"], false),
        ("a", bytes(2), ["r"], false),
        ("a", bytes(2), ["b"], true),
        ("b", bytes_at("/w/b", 2), ["link"], true),
    ] {
        let mut index = awake();
        let results = vec![result("r", file(doubtful), Seen::Digest(digest(1)))];
        let checks = register(&mut index, &Update { results, facts: vec![fact("f", &sources)], ..update() });
        for check in &checks {
            let found = match check.key.path.to_str() {
                Some(path) if path.ends_with(doubtful) => found.clone(),
                Some("/w/b") => bytes_at("/w/b", 9),
                _ => bytes(9),
            };
            answer(&mut index, check, found);
        }
        let view = index.view(S, Listed::Doubtful, None).unwrap().expect("it was registered");
        assert_eq!(view.facts[0].fresh, fresh, "{sources:?} while {doubtful} changed");
    }
}

#[test]
fn a_fact_falls_with_any_row_about_a_path_that_is_gone() {
    let mut index = awake();
    let results = vec![
        result("looked", Source::Absent { path: "a".into() }, Seen::Absence),
        result("read", file("a"), Seen::Digest(digest(1))),
    ];
    let checks = register(&mut index, &Update { results, facts: vec![fact("f", &["a"])], ..update() });
    answer_all(&mut index, &checks, |_| Found::Missing);
    let view = index.view(S, Listed::Doubtful, None).unwrap().expect("it was registered");
    assert!(!view.facts[0].fresh, "{:?}", view.lines);
}

#[test]
fn after_a_restart_only_a_whole_and_quiet_reading_may_be_confirmed() {
    let racy = || match bytes(1) {
        Found::File(file) => Found::File(FileFound { racy: true, ..file }),
        other => other,
    };
    let sha = Seen::Digest(Digest::new(Algorithm::Sha256, &[1; 32]).expect("its own length"));
    let saw = Seen::Digest(digest(1));
    for (critical, found, later, confirmed) in [
        (false, bytes(1), None, true),
        (true, bytes(1), None, false),
        (false, racy(), None, false),
        (false, Found::Missing, None, false),
        (false, bytes(1), Some(sha), false),
    ] {
        let mut index = awake();
        let told = Belief { critical, ..result("r", file("a"), saw.clone()) };
        let check = register(&mut index, &Update { results: vec![told], ..update() }).remove(0);
        answer(&mut index, &check, found.clone());
        if let Some(seen) = later.clone() {
            register(&mut index, &Update { results: vec![result("later", file("a"), seen)], ..update() });
        }
        let mut index = Index::open(index.storage_mut().clone(), "f").unwrap();
        let known = index.wake().unwrap().remove(0).known;
        assert_eq!(known.is_some(), confirmed, "critical: {critical}, {found:?}, later {later:?}");
        assert_eq!(lines(&index)[0].freshness, Freshness::Unknown(Doubt::Unsettled));
    }
}

#[test]
fn a_baseline_nobody_took_in_time_is_never_fresh() {
    let mut index = awake();
    let told = Update { results: vec![result("r", file("a"), Seen::Unsaid)], ..update() };
    let check = register(&mut index, &told).remove(0);
    index.give_up_awaiting(S).unwrap();
    assert_eq!(answer(&mut index, &check, bytes(1)).adopted, []);
    assert_eq!(lines(&index)[0].freshness, Freshness::Stale(Cause::BornStale));
    let row = (Role::Result, "r".to_owned());
    index.restore(S, &[(row.clone(), Seen::Digest(digest(1)))].into(), &[(row, None)].into()).unwrap();
    let check = touch(&mut index, check.source, Depth::Bytes);
    answer(&mut index, &check, bytes(1));
    assert_eq!((lines(&index)[0].freshness, lines(&index)[0].by_registration), (Freshness::Fresh, true));
}

/// sled is known to lose a key without a word. What it says of the rest must not pass for everything.
#[test]
fn a_row_or_a_mark_that_the_storage_lost_is_never_fresh_by_silence() {
    for (lost, key) in [(Table::Marks, &[][..]), (Table::Rows, &[])] {
        let mut index = looked(file("a"), Seen::Digest(digest(1)), &[bytes(1), bytes(2)]);
        let told = Update { results: vec![result("other", file("b"), Seen::Digest(digest(1)))], ..update() };
        let check = register(&mut index, &told).remove(0);
        answer(&mut index, &check, bytes_at("/w/b", 1));
        let view = |index: &Index<Memory>, listed| index.view(S, listed, None);
        let listings = [Listed::Doubtful, Listed::AllUpTo(1), Listed::AllUpTo(100)];
        for listed in listings {
            let stale = view(&index, listed).unwrap().expect("it was registered").counts.stale;
            assert_eq!(stale, 1, "{listed:?}");
        }
        let mut keys = Vec::new();
        index.storage().scan(lost, key, &mut |key, _| keys.push(key.to_vec())).unwrap();
        assert_eq!(keys.len(), 1, "one mark, and one chunk of rows");
        index.storage_mut().remove(lost, &keys[0]).unwrap();
        for listed in listings {
            assert!(view(&index, listed).is_err(), "{lost:?} lost, {listed:?}");
        }
        let check = touch(&mut index, check.source, Depth::Bytes);
        let Check { source, stamp, .. } = check;
        let found = bytes_at("/w/b", 3).into();
        let settled = index.settle(vec![Settled { source, stamp, found }], AT);
        assert_eq!(settled.is_err(), lost == Table::Rows, "a reader that is gone is no reader");
    }
}

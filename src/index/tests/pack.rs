//! Bytes on their way to disk and back: every stored value, every cut, every flipped bit.

use super::{AT, S, bytes, commit, file, folder, head};
use crate::index::found::{Found, Inode};
use crate::index::freshness::{Cause, Doubt, Freshness};
use crate::index::pack::{Pack, from_bytes, to_bytes};
use crate::index::row::{Baseline, Changed, Detail, Mark, Role, Row, RowNo, SessionNo};
use crate::index::storage::{SourceState, StoredFact, StoredHead, Summary};
use crate::index::tree::Rooted;
use crate::index::{KeyKind, SourceId, SourceKey};
use crate::session::SessionId;
use crate::session::context::{Goal, Seen};
use crate::session::digest::{Algorithm, Digest};
use crate::session::moment::Moment;
use crate::session::source::{HeadPolicy, Source};
use std::fmt::Debug;
use std::path::PathBuf;

/// A variant that is packed and stands in no list would be found by no word.
fn lists_every_variant<T: Pack + PartialEq + Debug>(all: &[T]) {
    let packed: Vec<T> = (0..=u8::MAX).filter_map(|byte| from_bytes(&[byte])).collect();
    assert!(packed.iter().all(|variant| all.contains(variant)), "{packed:?} are packed, and listed {all:?}");
    assert_eq!(packed.len(), all.len());
}

#[test]
fn lists_of_all_variants_are_whole() {
    lists_every_variant(&Cause::ALL);
    lists_every_variant(&Doubt::ALL);
    lists_every_variant(&Role::ALL);
    for role in Role::ALL {
        assert_eq!(Role::of(role.word()), Some(role));
    }
    for known in Cause::ALL.map(Freshness::Stale).into_iter().chain(Doubt::ALL.map(Freshness::Unknown)) {
        assert_eq!(known.cause().and_then(Freshness::from_cause), Some(known));
    }
}

/// Packs, unpacks, and then meets a bad disk: every cut and every flipped bit is either refused or another value.
fn survives<T: Pack + PartialEq + Debug>(value: &T) {
    let packed = to_bytes(value);
    assert_eq!(from_bytes::<T>(&packed).as_ref(), Some(value));
    for end in 0..packed.len() {
        assert_eq!(from_bytes::<T>(&packed[..end]), None, "cut at {end} of {packed:?}");
    }
    let longer = [packed.as_slice(), &[0]].concat();
    assert_eq!(from_bytes::<T>(&longer), None, "one byte too many");
    for bit in 0..packed.len() * 8 {
        let mut flipped = packed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let _ = from_bytes::<T>(&flipped);
    }
}

#[test]
fn everything_stored_survives_packing_and_bad_bytes_are_no_panic() {
    [0, 1, 127, 128, u64::MAX].iter().for_each(survives);
    [0, -1, i64::MIN, i64::MAX].iter().for_each(survives);
    assert_eq!(from_bytes::<u32>(&to_bytes(&(u64::from(u32::MAX) + 1))), None);
    assert_eq!(from_bytes::<Vec<u64>>(&to_bytes(&u64::MAX)), None, "a length nobody can hold");
    let algorithms = [Algorithm::Blake3, Algorithm::Sha256, Algorithm::GitSha1, Algorithm::GitSha256];
    let digests =
        algorithms.map(|algorithm| Digest::new(algorithm, &vec![7; algorithm.bytes_len()]).expect("legal"));
    digests.iter().for_each(survives);
    let kinds =
        [file("a"), Source::Absent { path: "é/\u{1}".into() }, Source::Lockfile { path: PathBuf::new() }];
    kinds.iter().for_each(survives);
    survives(&Source::GitHead { path: ".".into(), policy: HeadPolicy::Relevant });
    survives(&Source::Volatile { what: "network".to_owned() });
    let seen = [Seen::Digest(digests[2]), Seen::Commit(Some(commit(9))), Seen::Commit(None), Seen::Absence];
    seen.iter().for_each(survives);
    let baseline = Baseline::Registration(Seen::Unsaid);
    [Baseline::Awaited, Baseline::Missed, baseline.clone()].iter().for_each(survives);
    [bytes(1), Found::Missing, folder(), head(3), Found::Unknown(Doubt::WatchLimit)]
        .iter()
        .for_each(survives);
    survives(&Inode { dev: u64::MAX, ino: 0 });
    for freshness in
        [Freshness::Fresh, Freshness::Stale(Cause::Refuted), Freshness::Unknown(Doubt::Unsettled)]
    {
        let changed = Some(Changed { number: 3, paths: vec!["a".into()] });
        let detail = Detail {
            changed,
            input: Some("src".to_owned()),
            start_line: Some(4),
            eol_only: true,
            moved: None,
        };
        survives(&Mark { freshness, now: Some("é".to_owned()), since: Moment { micros: -1 }, detail });
    }
    let key = SourceKey { kind: KeyKind::Head, path: "/w".into() };
    let readers = vec![(S, RowNo(1)), (SessionNo(u32::MAX), RowNo(2))];
    let rooted = Some(Rooted { folder: "/w".into(), outer: Digest::blake3([3; 32]) });
    survives(&SourceState {
        key,
        found: Some(bytes(1)),
        readers,
        wanted: algorithms.to_vec(),
        version: 7,
        rooted,
    });
    let row = Row {
        no: RowNo(300),
        role: Role::Tracked,
        id: "r".to_owned(),
        tool: Some("Read".to_owned()),
        critical: true,
        captured_at: Some(AT),
        source: file("a"),
        source_id: Some(SourceId(1 << 40)),
        baseline,
        lf: Some(digests[0]),
        ever_fresh: true,
        refuted: false,
        as_of: Some(9),
        inputs: vec![RowNo(301)],
        input_of: Some(RowNo(299)),
    };
    survives(&vec![row.clone(), row]);
    survives(&Summary { rows: 1, tracked: 1, next_row: 2, stale: 3, unknown: 4, noted: 5, critical: 6 });
    let (id, evidence, sources) = ("f".to_owned(), String::new(), vec!["a".into()]);
    let facts = vec![StoredFact { id, statement: "s".to_owned(), evidence, sources, rows: vec![RowNo(1)] }];
    survives(&StoredHead {
        session: SessionId::new("s").expect("a legal name"),
        user: "u".to_owned(),
        agent: String::new(),
        root: "/w".into(),
        captured_at: None,
        goal: Goal { hypotheses: vec!["h".to_owned()], branchable: true, ..Goal::default() },
        facts,
        decisions: vec![String::new()],
        open_questions: Vec::new(),
        scratchpad_bytes: u64::MAX,
        doubted: true,
    });
}

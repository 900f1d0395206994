//! Whatever was told, in whatever order: a session that was kept and put back is the one that its records made, at once
//! and after everything that follows.

use super::of;
use crate::index::found::Found;
use crate::index::row::SessionNo;
use crate::index::storage::{Memory, StorageError, StoredHead, Summary};
use crate::index::view::{Line, Listed};
use crate::index::{Check, Index, Looked, Settled};
use crate::protocol::path::Reference;
use crate::session::context::Seen;
use crate::session::digest::Algorithm;
use crate::session::moment::Moment;
use crate::store::record::{Adopted, Fresh, Named, Record, RoleName};
use crate::store::replay::{ReplayError, apply};
use fastrand::Rng;
use serde_json::{Value, json};

/// Everything that a decision about one session could tell.
#[derive(Debug, PartialEq)]
struct Portrait {
    head: StoredHead,
    summary: Summary,
    lines: Vec<Line>,
}

/// The sessions after everything was looked at once, and nothing was there.
fn portraits(mut index: Index<Memory>) -> Vec<Portrait> {
    let looked = index.wake().unwrap().into_iter();
    let nothing = |check: Check| Settled {
        source: check.source,
        stamp: check.stamp,
        found: Looked::Found(Found::Missing),
    };
    index.settle(looked.map(nothing).collect(), Moment::from_micros(9_000)).unwrap();
    let portrait = |session: SessionNo| Portrait {
        head: index.head(session).unwrap(),
        summary: index.summary(session).unwrap(),
        lines: index.view(session, Listed::AllUpTo(u32::MAX), None).unwrap().expect("it is there").lines,
    };
    index.sessions().unwrap().into_iter().map(portrait).collect()
}

fn records_of(index: &Index<Memory>) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    of(index, &mut |record| {
        records.push(record.to_bytes());
        Ok::<_, StorageError>(())
    })
    .unwrap();
    records
}

fn fresh_index() -> Index<Memory> {
    Index::open(Memory::default(), "e").unwrap()
}

/// What waking asks for, in an order of its own: which sources there are, and what their readers saw. The algorithms of
/// readers that are gone are asked for no longer, and those of the others still are.
fn woken(mut index: Index<Memory>) -> Vec<String> {
    let checks = index.wake().unwrap();
    for row in index.sessions().unwrap().into_iter().flat_map(|session| index.rows(session).unwrap()) {
        let check = checks.iter().find(|check| Some(check.source) == row.source_id);
        let wanted = check.map(|check| check.wanted.as_slice()).unwrap_or_default();
        if let (Some(Seen::Digest(seen)), Some(_)) = (row.baseline.seen(), row.source_id) {
            let algorithm = seen.algorithm();
            assert!(algorithm == Algorithm::Blake3 || wanted.contains(&algorithm), "{row:?}");
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for check in checks {
        let mut sought: Vec<String> = check.sought.iter().map(|seen| format!("{seen:?}")).collect();
        sought.sort();
        lines.push(format!("{:?} {sought:?}", check.key));
    }
    lines.sort();
    lines
}

fn pick<'item, T>(rng: &mut Rng, of: &'item [T]) -> &'item T {
    &of[rng.usize(..of.len())]
}

fn path(rng: &mut Rng) -> Value {
    pick(
        rng,
        &[json!("a"), json!("./a"), json!("b"), json!("c/d"), json!("/other/e"), json!({ "bytes": "YS//" })],
    )
    .clone()
}

fn digest(rng: &mut Rng) -> String {
    let digit = pick(rng, &["1", "2", "3"]);
    let (kind, digits) = *pick(rng, &[("blake3", 64), ("sha256", 64), ("git", 40), ("git", 64)]);
    format!("{kind}:{}", digit.repeat(digits))
}

fn source(rng: &mut Rng, inner: bool) -> Value {
    let path = path(rng);
    match rng.u8(..if inner { 6 } else { 8 }) {
        0 | 1 => json!({ "kind": "file", "path": path }),
        2 => json!({ "kind": "file", "path": path, "range": { "start_line": 2, "lines": rng.u8(1..3) } }),
        3 => json!({ "kind": "absent", "path": path }),
        4 => json!({ "kind": "git_head", "path": path, "policy": pick(rng, &["strict", "relevant"]) }),
        5 => json!({ "kind": "tree", "path": path, "include": ["*.rs"], "contents": rng.bool() }),
        6 => json!({ "kind": "volatile", "what": "network" }),
        _ => {
            let inputs: Vec<Value> = (0..rng.u8(1..4)).map(|_| source(rng, true)).collect();
            json!({ "kind": "command", "command": "make", "cwd": "c", "inputs": inputs })
        }
    }
}

fn belief(rng: &mut Rng, name: &str, id: String) -> Value {
    let source = source(rng, false);
    let mut belief =
        json!({ name: id, "critical": rng.bool(), "captured_at": "2026-11-30T08:00:00.000001Z" });
    match source["kind"].as_str() {
        Some("file") if source.get("range").is_none() && rng.bool() => belief["digest"] = json!(digest(rng)),
        Some("file" | "tree") if rng.bool() => belief["digest"] = json!(format!("blake3:{}", "4".repeat(64))),
        Some("git_head") if rng.bool() => {
            belief["digest"] = json!(pick(rng, &["unborn", &*"5".repeat(40), &*"6".repeat(64)]));
        }
        _ => {}
    }
    if belief["digest"].as_str().is_some_and(|told| told.starts_with("sha256")) {
        belief["lf_digest"] = json!(format!("blake3:{}", "7".repeat(64)));
    }
    belief["source"] = source;
    belief
}

/// A fact's id may be anything.
const FACTS: [&str; 3] = ["f0", "f\u{0}1", ""];

const IDS: [&str; 5] = ["r0", "r1", "a", "b", "c/d"];

fn told(rng: &mut Rng, session: &str) -> Value {
    let (mut results, mut invariants, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    for id in IDS {
        if rng.u8(..3) == 0 {
            results.push(belief(rng, "id", id.to_owned()));
        }
    }
    for number in 0..2 {
        if rng.u8(..4) == 0 {
            invariants.push(belief(rng, "name", format!("n{number}")));
        }
    }
    for (number, id) in FACTS.iter().enumerate() {
        if rng.u8(..3) == 0 {
            let sources: Vec<Value> = (0..rng.u8(1..3))
                .map(|_| if rng.bool() { path(rng) } else { json!(pick(rng, &IDS)) })
                .collect();
            facts.push(json!({ "id": id, "statement": format!("it is {number}"), "sources": sources }));
        }
    }
    let mut told = json!({ "session": session, "root": "/w", "results": results, "invariants": invariants,
        "facts": facts, "replace": rng.u8(..8) == 0 });
    if rng.u8(..4) == 0 {
        told["remove"] = json!([pick(rng, &["r0", "a", "f0", "n1"])]);
        told["goal"] = json!({ "statement": "go", "branchable": rng.bool(), "hypotheses": ["one"] });
        told["decisions"] = json!([pick(rng, &["x", "y"])]);
        told["open_questions"] = json!(["why"]);
        told["scratchpad_bytes"] = json!(rng.u16(..));
        told["captured_at"] = json!("2026-11-30T09:00:00Z");
        told["user"] = json!("u");
    }
    told
}

fn settled(rng: &mut Rng, session: &str) -> Record {
    let named = |rng: &mut Rng| Named {
        role: *pick(rng, &[RoleName::Result, RoleName::Tracked, RoleName::Input]),
        id: (*pick(rng, &["r0", "r1", "a", "b", "r0#0"])).to_owned(),
    };
    let seen =
        ["absent".to_owned(), "unborn".to_owned(), "5".repeat(40), format!("blake3:{}", "8".repeat(64))];
    let lf = rng.bool().then(|| format!("blake3:{}", "9".repeat(64)));
    Record::Settled {
        session: session.to_owned(),
        adopted: (0..3).map(|_| Adopted { row: named(rng), seen: pick(rng, &seen).clone() }).collect(),
        fresh: (0..3).map(|_| Fresh { row: named(rng), lf: lf.clone() }).collect(),
    }
}

fn record(rng: &mut Rng, at: i64) -> Record {
    let session = (*pick(rng, &["s", "t", "u v"])).to_owned();
    let path = |rng: &mut Rng| serde_json::from_value(path(rng)).unwrap();
    match rng.u8(..20) {
        0..10 => Record::Told { at, context: Box::new(serde_json::from_value(told(rng, &session)).unwrap()) },
        10..13 => settled(rng, &session),
        13..15 => Record::Acknowledged { session, path: path(rng), digest: digest(rng), at },
        15..18 => {
            let id = *pick(rng, &["r0", "r1", "n0", FACTS[0], FACTS[1], FACTS[2]]);
            let target = if rng.bool() {
                serde_json::from_value(json!(path(rng))).unwrap()
            } else {
                Reference(id.into())
            };
            Record::Refuted { session, target, at }
        }
        18 => Record::Dropped { session },
        _ if rng.u8(..4) == 0 => Record::Doubted,
        _ => Record::Dropped { session },
    }
}

/// Records as a journal has them: refused ones never get there.
fn journal(rng: &mut Rng, len: usize) -> Vec<Vec<u8>> {
    let mut taken = fresh_index();
    let mut records = Vec::new();
    while records.len() < len {
        let bytes = record(rng, 1_000 + records.len() as i64).to_bytes();
        match apply(&mut taken, Record::from_bytes(&bytes).unwrap()) {
            Ok(()) => records.push(bytes),
            Err(ReplayError::Refused(_) | ReplayError::Register(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    records
}

fn replayed(records: &[&[Vec<u8>]]) -> Index<Memory> {
    let mut index = fresh_index();
    for bytes in records.concat() {
        apply(&mut index, Record::from_bytes(&bytes).unwrap()).unwrap();
    }
    index
}

#[test]
fn what_is_kept_is_what_the_records_made() {
    let (mut sessions, mut stale) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let records = journal(&mut rng, 24);
        let (until, rest) = records.split_at(rng.usize(..=records.len()));
        let kept = records_of(&replayed(&[until]));
        let why = format!("seed {seed}, kept after {} records", until.len());
        assert_eq!(kept, records_of(&replayed(&[&kept])), "{why}");
        let (straight, again) = (|| replayed(&[until, rest]), || replayed(&[&kept, rest]));
        assert_eq!(records_of(&again()), records_of(&straight()), "{why}, and then the rest");
        assert_eq!(woken(again()), woken(straight()), "{why}, woken");
        let (again, straight) = (portraits(again()), portraits(straight()));
        assert!(
            again == straight,
            "{why}, looked at: {:?}",
            again.iter().zip(&straight).find(|(a, b)| a != b)
        );
        sessions += straight.len();
        stale += straight.iter().map(|portrait| portrait.summary.stale).sum::<u32>();
    }
    assert!(sessions > 300 && stale > 300, "{sessions} sessions with {stale} stale rows say little");
}

#[test]
fn a_session_of_many_rows_is_kept_in_several_records() {
    let file = |no: u32| json!({ "kind": "file", "path": format!("f{no}") });
    let beliefs: Vec<Value> =
        (0..20_000).map(|no| json!({ "id": format!("r{no}"), "source": file(no) })).collect();
    let told = json!({ "session": "s", "root": "/w", "results": beliefs });
    let told = Record::Told { at: 1, context: Box::new(serde_json::from_value(told).unwrap()) };
    let kept = records_of(&replayed(&[&[told.to_bytes()]]));
    assert!(kept.len() > 2 && kept.iter().all(|record| record.len() < 3 << 20), "{} records", kept.len());
    assert_eq!(records_of(&replayed(&[&kept])), kept);
    let rows_alone = Record::from_bytes(&kept[1]).unwrap();
    assert!(matches!(apply(&mut fresh_index(), rows_alone), Err(ReplayError::PutBack(_))));
}

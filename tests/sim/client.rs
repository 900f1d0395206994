//! Random clients: what they register, in all kinds and spellings, and what they say afterwards.

use super::oracle::ROOT;
use super::world::{OBJECTS, VERSIONS, commit_id, digest, spelling};
use fastrand::Rng;
use staled::index::row::Role;
use staled::session::SessionId;
use staled::session::context::{Belief, Fact, Goal, Seen, Update};
use staled::session::digest::{Algorithm, Digest};
use staled::session::source::{HeadPolicy, Source};
use std::path::PathBuf;

pub(crate) const SESSIONS: usize = 4;

/// A digest that the world may or may not hold, in an algorithm that it may not have computed yet.
pub(crate) fn any_digest(rng: &mut Rng) -> Digest {
    let algorithm = if rng.u8(..4) == 0 { Algorithm::Sha256 } else { Algorithm::Blake3 };
    digest(algorithm, rng.u32(..=VERSIONS))
}

pub(crate) fn any_update(rng: &mut Rng) -> Update {
    let session = SessionId::new(&format!("s-{}", rng.usize(..SESSIONS))).expect("a legal name");
    let mut update = Update::of(session);
    update.root = Some(PathBuf::from(ROOT));
    update.replace = rng.u8(..6) == 0;
    update.scratchpad_bytes = rng.bool().then(|| rng.u64(..20));
    update.results = (0..rng.usize(..5)).map(|_| result(rng)).collect();
    update.invariants = (0..rng.usize(..2)).map(|_| invariant(rng)).collect();
    update.remove = (0..rng.usize(..3)).map(|_| format!("r{}", rng.u8(..8))).collect();
    update.facts = (0..rng.usize(..3)).map(|_| fact(rng)).collect();
    update.decisions = vec![format!("decision {}", rng.u8(..3))];
    update.goal = (rng.u8(..3) == 0).then(|| goal(rng));
    update
}

/// What an update tells, with its role, in order.
pub(crate) fn told(update: &Update) -> Vec<(Role, Belief)> {
    let results = update.results.iter().map(|belief| (Role::Result, belief.clone()));
    results.chain(update.invariants.iter().map(|belief| (Role::Invariant, belief.clone()))).collect()
}

fn goal(rng: &mut Rng) -> Goal {
    Goal {
        statement: "find out".to_owned(),
        branchable: rng.u8(..3) > 0,
        shares_mutable_state: rng.u8(..3) == 0,
        hypotheses: (0..rng.usize(..4)).map(|n| format!("way {n}")).collect(),
    }
}

fn result(rng: &mut Rng) -> Belief {
    let path = spelling(rng.usize(..OBJECTS), rng);
    let seen = if rng.u8(..4) == 0 { Seen::Unsaid } else { Seen::Digest(any_digest(rng)) };
    let (source, seen) = match rng.u8(..10) {
        0 => (Source::Volatile { what: "network".to_owned() }, Seen::Unsaid),
        1 | 2 => (Source::Absent { path }, Seen::Absence),
        3 => (Source::Lockfile { path }, seen),
        _ => (Source::File { path }, seen),
    };
    belief(format!("r{}", rng.u8(..8)), rng.bool(), source, seen)
}

fn invariant(rng: &mut Rng) -> Belief {
    if rng.bool() {
        let source = Source::Lockfile { path: spelling(rng.usize(..OBJECTS), rng) };
        return belief("lock".to_owned(), rng.bool(), source, Seen::Digest(any_digest(rng)));
    }
    let policy = if rng.bool() { HeadPolicy::Strict } else { HeadPolicy::Relevant };
    let seen = match rng.u8(..5) {
        0 => Seen::Unsaid,
        1 => Seen::Commit(None),
        _ => Seen::Commit(Some(commit_id(rng.u32(1..4)))),
    };
    let path = PathBuf::from(if rng.bool() { "." } else { "sub" });
    belief("git_head".to_owned(), rng.bool(), Source::GitHead { path, policy }, seen)
}

fn belief(id: String, critical: bool, source: Source, seen: Seen) -> Belief {
    Belief { id, tool: None, critical, captured_at: None, source, seen, lf: None }
}

fn fact(rng: &mut Rng) -> Fact {
    let id = format!("f{}", rng.u8(..4));
    let name = |rng: &mut Rng| match rng.u8(..3) {
        0 => PathBuf::from(format!("r{}", rng.u8(..8))),
        _ => spelling(rng.usize(..OBJECTS), rng),
    };
    let sources = (0..rng.usize(1..3)).map(|_| name(rng)).collect();
    Fact { statement: format!("statement {id}"), id, evidence: "seen".to_owned(), sources }
}

//! `SessionContext` in the parts that live on their own: goal, facts, beliefs, and the update that carries them.

use super::SessionId;
use super::digest::{CommitId, Digest};
use super::moment::Moment;
use super::source::Source;
use std::path::PathBuf;

/// What a session is for, and whether it could be pursued in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goal {
    /// One sentence.
    pub statement: String,
    /// Several ways may be tried side by side.
    pub branchable: bool,
    /// The ways would write to the same thing.
    pub shares_mutable_state: bool,
    /// One line for each way.
    pub hypotheses: Vec<String>,
}

/// A verified statement and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The client's id; a later fact with the same id replaces it.
    pub id: String,
    /// The statement itself.
    pub statement: String,
    /// Where it was seen, in the client's words.
    pub evidence: String,
    /// Result ids, invariant names or paths.
    pub sources: Vec<PathBuf>,
}

/// One cached result or invariant: a source, and what the agent saw there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belief {
    /// A result's id or an invariant's name; unique in its session.
    pub id: String,
    /// The tool that produced the result.
    pub tool: Option<String>,
    /// A stale critical belief means that the world changed.
    pub critical: bool,
    /// When the agent looked.
    pub captured_at: Option<Moment>,
    /// Where it looked.
    pub source: Source,
    /// What it saw.
    pub seen: Seen,
    /// BLAKE3 of the bytes it saw with every CR LF read as LF, where that was told.
    pub lf: Option<Digest>,
}

/// What the agent saw at a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Bytes with this digest.
    Digest(Digest),
    /// HEAD at this commit; `None` is a branch without one.
    Commit(Option<CommitId>),
    /// Nothing there.
    Absence,
    /// The client did not say; the daemon's own look at registration stands in, and says so.
    Unsaid,
}

/// What a client tells about a session: a whole context, or what changed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Which session.
    pub session: SessionId,
    /// Forget what was told before.
    pub replace: bool,
    /// Ids of results and invariants, and of facts, that no longer stand.
    pub remove: Vec<String>,
    /// New owner, if told.
    pub user: Option<String>,
    /// New agent, if told.
    pub agent: Option<String>,
    /// New root, if told; beliefs told before keep theirs.
    pub root: Option<PathBuf>,
    /// When it was captured, if told.
    pub captured_at: Option<Moment>,
    /// New goal, if told.
    pub goal: Option<Goal>,
    /// Added, or replacing those with the same id.
    pub results: Vec<Belief>,
    /// Added, or replacing those with the same name.
    pub invariants: Vec<Belief>,
    /// Added, or replacing those with the same id.
    pub facts: Vec<Fact>,
    /// Added unless already there.
    pub decisions: Vec<String>,
    /// Added unless already there.
    pub open_questions: Vec<String>,
    /// New size, if told.
    pub scratchpad_bytes: Option<u64>,
}

impl Update {
    /// An update that says nothing yet.
    #[must_use]
    pub fn of(session: SessionId) -> Self {
        Self {
            session,
            replace: false,
            remove: Vec::new(),
            user: None,
            agent: None,
            root: None,
            captured_at: None,
            goal: None,
            results: Vec::new(),
            invariants: Vec::new(),
            facts: Vec::new(),
            decisions: Vec::new(),
            open_questions: Vec::new(),
            scratchpad_bytes: None,
        }
    }
}

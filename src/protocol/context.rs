//! Twins of `SessionContext` and of what `context.record` tells; the journal keeps contexts in the same words.

use super::path::WirePath;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A context, whole (`context.register`) or in part (`context.record`).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The client's id, 1 to 200 bytes; made when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whose session it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Which agent speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WirePath>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<String>,
    /// What the session is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Cached results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Belief>,
    /// Named invariants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<Belief>,
    /// Verified facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// What is still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<String>,
    /// Size of the scratchpad, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratchpad_bytes: Option<u64>,
    /// Forget what was registered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Ids that no longer stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// What a session is for.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// One sentence.
    #[serde(default)]
    pub statement: String,
    /// Several ways may be tried side by side.
    #[serde(default)]
    pub branchable: bool,
    /// The ways would write to the same thing.
    #[serde(default)]
    pub shares_mutable_state: bool,
    /// One line for each way.
    #[serde(default)]
    pub hypotheses: Vec<String>,
}

/// A result (`id`) or an invariant (`name`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Belief {
    /// A result's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// An invariant's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tool that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Default true; false for `volatile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical: Option<bool>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<String>,
    /// What it rests on.
    pub source: Source,
    /// What the agent saw: `blake3:…`, `sha256:…`, `git:…`; for `git_head` a commit id, or `unborn` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the agent saw, as text or base64; hashed and forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// BLAKE3 of what the agent saw with every CR LF read as LF: then it can be told whether only line ends differ. Not
    /// needed beside `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lf_digest: Option<String>,
    /// `base64`, or `utf-8` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The agent's stat; a weak claim, read and not believed.
    #[serde(default, skip_serializing)]
    pub stat: Option<Box<RawValue>>,
    /// In an answer: `registration` where the daemon's own look stands in for what the agent saw. Read and not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
}

/// What a belief rests on.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `file`, `absent`, `tree`, `command`, `git_head`, `lockfile`, `sqlite_schema`, `volatile`.
    pub kind: String,
    /// Relative to the root, or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<WirePath>,
    /// `strict` or `relevant`; only of `git_head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// `network`, `clock`, `random` or text; only of `volatile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Some lines only; only of `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<LineRange>,
    /// Globs of names that count; only of `tree`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Globs of names that do not; only of `tree`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Whether bytes count, default true; only of `tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<bool>,
    /// Whether `.gitignore` files count, default true; only of `tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitignore: Option<bool>,
    /// Its text; only of `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where it ran; only of `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<WirePath>,
    /// What it read, default the tree at the root; only of `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Source>>,
}

/// Consecutive lines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineRange {
    /// The first line, counted from 1.
    pub start_line: u64,
    /// How many lines.
    pub lines: u64,
}

/// A verified statement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The statement itself when missing: told again, the fact replaces itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The statement.
    pub statement: String,
    /// Where it was seen.
    #[serde(default)]
    pub evidence: String,
    /// Result ids, invariant names or paths; at least one.
    #[serde(default)]
    pub sources: Vec<WirePath>,
}

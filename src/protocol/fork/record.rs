//! One fork, as the journal keeps it: all that cannot be recomputed. Old records are read for ever: a field may be added,
//! never renamed.

use crate::protocol::path::WirePath;
use serde::{Deserialize, Serialize};

/// A fork: one branch of a session, with a tree and notes of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// Its id, which is also the name of its session: the session's slug, a slash, the hypothesis' slug.
    pub fork: String,
    /// Its number: never used again, also not for a fork of the same id.
    pub no: u64,
    /// The session that it branched off.
    pub session: String,
    /// What it tries.
    pub hypothesis: String,
    /// How far it is.
    pub stage: Stage,
    /// How its tree was made.
    pub mode: Mode,
    /// Its branch, `staled/<session>/<slug>`.
    pub branch: String,
    /// The folder that holds all of it.
    pub home: WirePath,
    /// Its tree.
    pub workspace: WirePath,
    /// Its private notes.
    pub scratchpad: WirePath,
    /// What corresponds to the session's root in its tree.
    pub root: WirePath,
    /// Where it came from.
    pub parent: Parent,
    /// The commit that it began at; none outside git, and where there was no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Number of the sessions that say what moved since: forks that were made together share one base.
    pub baseline: u64,
    /// When it was made, in microseconds since the epoch.
    pub made_at: i64,
    /// The boot of the machine in which it was made, until all of it is known to be on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsynced_boot: Option<String>,
    /// Its tree could not be registered when it was made, so what was done in it since cannot be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasurable: bool,
    /// Whether objects of the parent's repository are still needed.
    #[serde(default)]
    pub independent: bool,
    /// What of the parent's tree is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Rows of the session that its tree did not match when it began: stale in the fork from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// Ignored files that were to be copied too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<WirePath>,
    /// What was asked for and is not there, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<WirePath>,
    /// Symlinks that lead out of it into the parent's tree or another fork's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_by_symlink: Vec<WirePath>,
    /// Whether anybody else wrote in it.
    #[serde(default)]
    pub isolation: Isolation,
    /// Where what must not be lost goes while it ends; none when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<WirePath>,
}

/// How far a fork is. What stands at another stage than `ready` when the daemon starts is undone, or finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Being made: whatever there is of it goes.
    Making,
    /// There to be worked in.
    Ready,
    /// Being discarded: what is left of it goes, what must not be lost is kept first.
    Ending,
}

/// How a fork's tree is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A repository of its own, with what was not committed carried over.
    Git,
    /// A copy of the folder.
    Copy,
}

/// Where a fork came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The tree that was copied: the top of the work tree, or the session's root outside git.
    pub tree: WirePath,
    /// The session's root.
    pub root: WirePath,
    /// What the parent's work trees share of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<WirePath>,
    /// The branch that was checked out; none when HEAD was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that HEAD was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Something of the parent's tree that is not in the fork's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Below the tree.
    pub path: WirePath,
    /// `submodule`, `nested_repository`, `special`, `too_big`, `unreadable`, `vanished`.
    pub why: String,
}

/// Whether anybody else wrote in a fork.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Isolation {
    /// `intact`, `unknown` or `broken`.
    pub state: Isolated,
    /// What was seen, oldest first; bounded, and what broke it is always among it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Violation>,
    /// How many more there were.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How isolated a fork is known to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolated {
    /// Nobody else wrote in it.
    #[default]
    Intact,
    /// It was not watched for a while, and something in it changed meanwhile.
    Unknown,
    /// Somebody did.
    Broken,
}

impl Isolated {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Unknown => "unknown",
            Self::Broken => "broken",
        }
    }
}

/// Something that breaks a fork's isolation, or puts it in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// `undeclared_write`: something in the fork changed, nobody had asked and nothing ran under `fork exec`.
    /// `foreign_source`: the fork's session rests on something of another fork or of the parent.
    /// `foreign_write`: the fork's session says that it wrote there. `shared_by_hardlink`: a file is one with a file
    /// elsewhere. `moved_across`: something was moved between two forks. `unwatched`: something changed while nobody
    /// watched. `not_on_disk`: the machine went down before all of it was written.
    pub kind: String,
    /// Where.
    pub path: WirePath,
    /// The other place, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<WirePath>,
    /// When it was seen, RFC 3339.
    pub at: String,
}

/// Whether a violation of this kind breaks a fork's isolation; others only put it in doubt.
#[must_use]
pub fn breaks(kind: &str) -> bool {
    !matches!(kind, "unwatched" | "not_on_disk")
}

/// How many violations of one fork are kept, apart from what breaks it when so many doubts came first.
pub const SEEN_MAX: usize = 100;

impl Isolation {
    /// Notes a violation; those above the bound are only counted, as are repetitions at the same place. What breaks it is
    /// named whatever the bound.
    pub fn note(&mut self, state: Isolated, violation: Violation) {
        let known = self.seen.iter().any(|seen| seen.kind == violation.kind && seen.path == violation.path);
        let first_break = state == Isolated::Broken && self.state != Isolated::Broken;
        if self.state != Isolated::Broken {
            self.state = state;
        }
        if known || (self.seen.len() >= SEEN_MAX && !first_break) {
            self.more += 1;
        } else {
            self.seen.push(violation);
        }
    }
}

impl Fork {
    /// The record as it is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("because a record is made of strings, numbers and paths")
    }

    /// The record that these bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Isolated, Isolation, SEEN_MAX, Violation, breaks};
    use crate::protocol::path::WirePath;

    fn note(isolation: &mut Isolation, kind: &str, name: &str) {
        let state = if breaks(kind) { Isolated::Broken } else { Isolated::Unknown };
        let path = WirePath(name.into());
        let violation = Violation { kind: kind.to_owned(), path, other: None, at: String::new() };
        isolation.note(state, violation);
    }

    #[test]
    fn no_number_of_doubts_hides_a_break_or_its_name() {
        let mut isolation = Isolation::default();
        (0..150).for_each(|number| note(&mut isolation, "unwatched", &number.to_string()));
        assert_eq!(
            (isolation.state, isolation.seen.len(), isolation.more),
            (Isolated::Unknown, SEEN_MAX, 50)
        );
        for (kind, name) in [("moved_across", "a"), ("undeclared_write", "b"), ("unwatched", "c")] {
            note(&mut isolation, kind, name);
        }
        assert_eq!(isolation.state, Isolated::Broken);
        assert_eq!((isolation.seen.len(), isolation.more), (SEEN_MAX + 1, 52));
        assert_eq!(isolation.seen[SEEN_MAX].kind, "moved_across");
    }
}

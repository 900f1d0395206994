//! One belief as the index keeps it, and the mark it carries when there is something to say about it.

use super::SourceId;
use super::freshness::Freshness;
use super::moved::HeadMoved;
use crate::session::context::Seen;
use crate::session::digest::Digest;
use crate::session::moment::Moment;
use crate::session::source::Source;
use std::path::PathBuf;

/// Number of a session in the index; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionNo(pub u32);

/// Number of a row in its session; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowNo(pub u32);

/// What a row is to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A cached result.
    Result,
    /// A named invariant.
    Invariant,
    /// A path that only a fact names.
    Tracked,
    /// What a command read: judged like any other row, and shown only through its command.
    Input,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Result, Self::Invariant, Self::Tracked, Self::Input];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Invariant => "invariant",
            Self::Tracked => "tracked",
            Self::Input => "input",
        }
    }

    /// The role of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// What the agent saw, and how sure we are that it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The client said.
    Client(Seen),
    /// The client did not say; the first look will stand in.
    Awaited,
    /// The daemon's look at registration stands in.
    Registration(Seen),
    /// The client did not say and no look could stand in: never fresh until registered again.
    Missed,
}

impl Baseline {
    /// What a source is compared with.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Client(seen) | Self::Registration(seen) => Some(seen),
            Self::Awaited | Self::Missed => None,
        }
    }
}

/// One belief of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number in the session.
    pub no: RowNo,
    /// What it is to the session.
    pub role: Role,
    /// A result's id, an invariant's name, or a tracked path.
    pub id: String,
    /// The tool that produced it.
    pub tool: Option<String>,
    /// A stale critical row means that the world changed.
    pub critical: bool,
    /// When the agent looked.
    pub captured_at: Option<Moment>,
    /// As the client spelled it.
    pub source: Source,
    /// The source in the index; a volatile row has none.
    pub source_id: Option<SourceId>,
    /// What it is compared with.
    pub baseline: Baseline,
    /// BLAKE3 of what it is compared with, every CR LF read as LF; `None` while nobody has told.
    pub lf: Option<Digest>,
    /// It was verified equal at least once since it was registered.
    pub ever_fresh: bool,
    /// A client said that it failed in use.
    pub refuted: bool,
    /// Version of the tree at which it was last what was seen; what changed is told from there on.
    pub as_of: Option<u64>,
    /// A command's inputs.
    pub inputs: Vec<RowNo>,
    /// The command that it is an input of.
    pub input_of: Option<RowNo>,
}

impl Row {
    /// Whether the daemon's own look stands in for what the client did not say.
    #[must_use]
    pub fn is_by_registration(&self) -> bool {
        !matches!(self.baseline, Baseline::Client(_)) && self.source_id.is_some()
    }

    /// The source in the client's words.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.source {
            Source::GitHead { .. } => "HEAD".to_owned(),
            source => {
                source.path().map_or_else(|| self.id.clone(), |path| path.to_string_lossy().into_owned())
            }
        }
    }
}

/// Something to say about a row. A fresh row without news has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Stale, unknown, or fresh with news (a HEAD that moved under the relevant policy).
    pub freshness: Freshness,
    /// What stands there now, as the wire writes it.
    pub now: Option<String>,
    /// Since when.
    pub since: Moment,
    /// What else there is to say.
    pub detail: Detail,
}

/// What else there is to say about a row; empty for most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// What changed in a tree.
    pub changed: Option<Changed>,
    /// Which input of a command.
    pub input: Option<String>,
    /// Where the same lines stand now.
    pub start_line: Option<u64>,
    /// Only line ends differ.
    pub eol_only: bool,
    /// What lies between the commit that was seen and HEAD.
    pub moved: Option<HeadMoved>,
}

/// What changed in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// How many paths.
    pub number: u64,
    /// The first of them in the order of their names, below the tree.
    pub paths: Vec<PathBuf>,
}

impl Changed {
    /// How many paths are named.
    pub const PATHS_MAX: usize = 10;
}

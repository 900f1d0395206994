//! What clients ask about forks.

use super::record::Mode;
use crate::protocol::path::WirePath;
use serde::{Deserialize, Serialize};

/// One variant a method.
#[derive(Debug)]
pub enum Ask {
    /// `fork.create`
    Create(Create),
    /// `fork.list`
    List(List),
    /// `fork.status`
    Status(OfFork),
    /// `fork.access`
    Access(Access),
    /// `fork.exec`
    Exec(Exec),
    /// `fork.merge`
    Merge(Merge),
    /// `fork.discard`
    Discard(Discard),
    /// `fork.reprovision`
    Reprovision(Discard),
}

impl Ask {
    /// The method that asks for it.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Create(_) => "fork.create",
            Self::List(_) => "fork.list",
            Self::Status(_) => "fork.status",
            Self::Access(_) => "fork.access",
            Self::Exec(_) => "fork.exec",
            Self::Merge(_) => "fork.merge",
            Self::Discard(_) => "fork.discard",
            Self::Reprovision(_) => "fork.reprovision",
        }
    }

    /// The session that it names, as the client spelled it; a fork's id is its session's.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Create(ask) => Some(&ask.session),
            Self::List(ask) => ask.session.as_deref(),
            Self::Status(ask) => Some(&ask.fork),
            Self::Access(ask) => Some(&ask.fork),
            Self::Exec(ask) => Some(&ask.fork),
            Self::Merge(ask) => Some(&ask.fork),
            Self::Discard(ask) | Self::Reprovision(ask) => Some(&ask.fork),
        }
    }
}

/// Parameters of `fork.create`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The session to branch off.
    pub session: String,
    /// One branch for each; those of the session's goal when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypotheses: Option<Vec<String>>,
    /// `git` or `copy`; what fits the place when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The id of the commit to begin at instead of HEAD. Nothing uncommitted is carried over then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Ignored files that are copied too, relative to the session's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<WirePath>,
}

/// Parameters of `fork.list`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only forks of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Names one fork, by its id or its branch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfFork {
    /// The fork.
    pub fork: String,
}

/// Parameters of `fork.access`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Who is about to do it.
    pub fork: String,
    /// Where; relative to the fork's root.
    pub path: WirePath,
    /// `read`, `write` or `list`.
    pub mode: AccessMode,
}

/// What somebody is about to do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// Read it.
    Read,
    /// Write it, or below it.
    Write,
    /// List it.
    List,
}

/// Parameters of `fork.exec`: a command begins in the fork, or the one that was given this number has ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The fork.
    pub fork: String,
    /// The command that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
}

/// Parameters of `fork.merge`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The fork.
    pub fork: String,
    /// How long to wait for verification, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// Parameters of `fork.discard` and `fork.reprovision`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discard {
    /// The fork.
    pub fork: String,
    /// Even if it holds work that is not committed or not merged. It is kept, and the answer says where.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

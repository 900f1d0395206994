//! Hands: what makes, keeps and ends the trees of forks.
//!
//! A fork's tree is a repository of its own in the state folder, never a linked work tree: refs, stash, index and hooks are
//! its own, and the parent's repository is only read. What is in it is copied from the parent's tree byte by byte, so that
//! it begins as the same world whatever git would have converted on a checkout.

pub mod confine;
pub mod git;
pub mod merge;
pub mod shared;

use std::io;
use std::path::{Path, PathBuf};

/// A fork cannot be made, judged or ended.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// Git could not do it.
    #[error(transparent)]
    Git(#[from] git::GitError),
    /// A file or folder is in the way.
    #[error("cannot {verb} {}: {source}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It may not be, as a code for programs and a sentence for people.
    #[error("{why}")]
    Refused {
        /// `fork_…`
        code: &'static str,
        /// Why, and what to do about it.
        why: String,
    },
}

impl ForkError {
    /// The code that a client is told.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Git(error) => error.code(),
            Self::Io { .. } => "fork_failed",
            Self::Refused { code, .. } => code,
        }
    }

    /// It may not be.
    pub fn refused(code: &'static str, why: impl Into<String>) -> Self {
        Self::Refused { code, why: why.into() }
    }

    /// A file or folder was in the way of this.
    pub fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}

// STUB-BEGIN
use crate::protocol::fork::record::{LeftOut, Mode};
use git::{Git, GitError};

#[derive(Debug)]
pub struct Hands;
#[derive(Debug, Clone)]
pub struct Parent {
    pub root: PathBuf,
    pub tree: PathBuf,
    pub mode: Mode,
    pub head: Option<String>,
    pub branch: Option<String>,
    pub repository: Option<PathBuf>,
    pub within: PathBuf,
}
#[derive(Debug)]
pub struct Load {
    pub left_out: Vec<LeftOut>,
    pub missing: Vec<PathBuf>,
}
#[derive(Debug, Clone)]
pub struct Place {
    pub home: PathBuf,
    pub workspace: PathBuf,
    pub scratchpad: PathBuf,
    pub branch: String,
}
#[derive(Debug)]
pub struct Made {
    pub root: PathBuf,
    pub base: Option<String>,
    pub left_out: Vec<LeftOut>,
    pub shared_by_symlink: Vec<PathBuf>,
}
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub files: u64,
    pub files_all: u64,
    pub bytes: u64,
}
#[derive(Debug)]
pub struct Work {
    pub tip: Option<String>,
    pub commits: u64,
    pub merged: bool,
    pub dirty: Vec<PathBuf>,
    pub stash: bool,
}
#[derive(Debug)]
pub struct KeptWork {
    pub commit: Option<String>,
    pub uncommitted: Option<String>,
}
impl Hands {
    pub fn new(_git: Result<Git, GitError>, _forks: PathBuf, _max: u64) -> Self {
        Self
    }
    pub fn parent(
        &self,
        _root: &Path,
        _mode: Option<Mode>,
        _from: Option<&str>,
    ) -> Result<Parent, ForkError> {
        todo!()
    }
    pub fn survey(&self, _parent: &Parent, _copy: &[PathBuf]) -> Result<Load, ForkError> {
        todo!()
    }
    pub fn make(
        &self,
        _p: &Parent,
        _l: &Load,
        _at: &Place,
        _t: &(dyn Fn(Progress) + Sync),
    ) -> Result<Made, ForkError> {
        todo!()
    }
    pub fn make_independent(&self, _w: &Path) -> Result<(), ForkError> {
        todo!()
    }
    pub fn work(&self, _w: &Path, _m: Mode, _b: Option<&str>, _r: Option<&Path>) -> Result<Work, ForkError> {
        todo!()
    }
    pub fn keep(&self, _w: &Path, _m: Mode, _to: &Path) -> Result<KeptWork, ForkError> {
        todo!()
    }
    pub fn remove(&self, _home: &Path) -> Result<(), ForkError> {
        todo!()
    }
}
pub mod access {
    use super::*;
    use crate::protocol::fork::ask::AccessMode;
    pub struct Verdict {
        pub allow: bool,
        pub reason: String,
    }
    pub fn judge(
        _path: &Path,
        _mode: AccessMode,
        _own: &Place,
        _forks: &[Place],
        _parents: &[PathBuf],
        _folder: &Path,
    ) -> Verdict {
        todo!()
    }
}

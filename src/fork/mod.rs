//! Hands: what makes, keeps and ends the trees of forks.
//!
//! A fork's tree is a repository of its own in the state folder, never a linked work tree: refs, stash, index and hooks are
//! its own, and the parent's repository is only read. What is in it is copied from the parent's tree byte by byte, so that
//! it begins as the same world whatever git would have converted on a checkout.

pub mod access;
pub mod confine;
pub mod git;
mod settings;
pub mod merge;
pub mod parent;
pub mod shared;
pub mod load;
pub mod make;
mod repository;
mod carried;
mod copy;
mod bytes;
mod staged;
mod objects;
mod own;
mod refs;
mod look;
pub mod work;
pub mod keep;
mod remove;
mod places;

pub use load::Load;
pub use make::{Made, Place, Progress};
pub use parent::Parent;

use git::{Git, GitError};
use std::io;
use std::path::{Path, PathBuf};

/// What makes, judges, keeps and ends forks. It blocks; whoever must not wait calls it elsewhere.
#[derive(Debug)]
pub struct Hands {
    /// Kept as it was found, so that copies can be made without it.
    git: Result<Git, GitError>,
    forks: PathBuf,
    file_bytes_max: u64,
}

impl Hands {
    /// Hands that keep forks in this folder, and copy files up to this long byte by byte.
    #[must_use]
    pub fn new(git: Result<Git, GitError>, forks: PathBuf, file_bytes_max: u64) -> Self {
        // What symlinks lead to is compared with it.
        let forks = std::fs::canonicalize(&forks).unwrap_or(forks);
        Self { git, forks, file_bytes_max }
    }

    fn git(&self) -> Result<&Git, ForkError> {
        self.git.as_ref().map_err(|error| ForkError::refused(error.code(), error.to_string()))
    }
}

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

//! Hands: what makes, keeps and ends the trees of forks.
//!
//! A fork's tree is a repository of its own in the state folder, never a linked work tree: refs, stash, index and hooks are
//! its own, and the parent's repository is only read. What is in it is copied from the parent's tree byte by byte, so that
//! it begins as the same world whatever git would have converted on a checkout.

pub mod confine;
pub mod git;
pub mod merge;

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

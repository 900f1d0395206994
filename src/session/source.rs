//! What a belief rests on, and how the client spelled it.

use std::path::{Component, Path, PathBuf};

/// A thing that can be looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// The bytes of a file.
    File {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// The absence of anything at a path: a failed read, a negative lookup.
    Absent {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// The commit that HEAD resolves to.
    GitHead {
        /// Any folder of the repository.
        path: PathBuf,
        /// Whether another commit makes it stale.
        policy: HeadPolicy,
    },
    /// The bytes of a dependency lockfile.
    Lockfile {
        /// As spelled by the client; relative to the session's root.
        path: PathBuf,
    },
    /// Something that nobody can watch: the network, the clock, chance.
    Volatile {
        /// `network`, `clock`, `random` or the client's own word.
        what: String,
    },
}

/// What a moved HEAD means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HeadPolicy {
    /// Any other commit is stale.
    #[default]
    Strict,
    /// HEAD never makes anything stale by itself: the digests of the sources decide, and the row says from where to
    /// where it moved. (Measured: one commit later, 40 % of real sessions have no stale file at all.)
    Relevant,
}

impl Source {
    /// The wire's word for this kind of source.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Absent { .. } => "absent",
            Self::GitHead { .. } => "git_head",
            Self::Lockfile { .. } => "lockfile",
            Self::Volatile { .. } => "volatile",
        }
    }

    /// The path it names, as spelled; a volatile source has none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path }
            | Self::Absent { path }
            | Self::GitHead { path, .. }
            | Self::Lockfile { path } => Some(path),
            Self::Volatile { .. } => None,
        }
    }

    /// Whether a mistake about it should block a resume when the client did not say.
    #[must_use]
    pub fn critical_by_default(&self) -> bool {
        !matches!(self, Self::Volatile { .. })
    }
}

/// `path` below `root`, absolute, without `.` and doubled slashes. `..` stays: across a symlink it does not mean the
/// lexical parent, so only a real lookup may resolve it.
#[must_use]
pub fn absolute(root: &Path, path: &Path) -> PathBuf {
    root.join(path).components().filter(|part| *part != Component::CurDir).collect()
}

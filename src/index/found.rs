//! What a look at a source found: the vocabulary between the world and the index.

use super::freshness::Doubt;
use crate::session::digest::{Algorithm, CommitId, Digest};
use std::path::PathBuf;

/// Weak validator of a file. Equal stats are evidence only under the rules of `racy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// File type and permissions.
    pub mode: u32,
    /// Modification time, nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Status change time, nanoseconds since the epoch. No tool can set it, which is why it is here.
    pub ctime_ns: i64,
    /// Mount that it was reached through; a bind mount keeps dev and ino but not this.
    pub mount: u64,
}

/// Which inode of which device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

/// What is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File(FileFound),
    /// Nothing: the path, or a folder on the way to it, does not exist.
    Missing,
    /// Nothing, and an event told where it went.
    Renamed {
        /// Where to.
        to: PathBuf,
        /// What stands there.
        file: FileFound,
    },
    /// Something that is not a regular file.
    Other {
        /// `folder`, `fifo`, `socket`, `device`.
        kind: String,
    },
    /// HEAD of a repository.
    Head {
        /// `None` on a branch without a commit.
        commit: Option<CommitId>,
        /// `None` when detached.
        branch: Option<String>,
    },
    /// Lines of a regular file.
    Lines(LinesFound),
    /// The schema of a database.
    Schema(Digest),
    /// All that is below a folder.
    Tree(TreeFound),
    /// One folder of a tree; its entries are kept one by one.
    Folder(Inode),
    /// It cannot be told.
    Unknown(Doubt),
}

/// Lines of a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinesFound {
    /// BLAKE3 of the lines, joined by line feeds, without one after the last; `None` when the file ends before them.
    pub digest: Option<Digest>,
    /// Where texts that readers saw stand instead: their digests, with the first line of each.
    pub elsewhere: Vec<(Digest, u64)>,
    /// The texts that were looked for elsewhere, found or not.
    pub sought: Vec<Digest>,
    /// Where the path led, symlinks resolved.
    pub canonical: PathBuf,
}

/// All that is below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeFound {
    /// Digest of the members: their paths, kinds and bytes.
    pub digest: Digest,
    /// How many members there are.
    pub members: u64,
    /// Counts the states that the tree was in.
    pub version: u64,
}

/// A regular file that was read whole while nobody was seen changing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFound {
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Its digest in every other algorithm that a reader speaks.
    pub also: Vec<Digest>,
    /// BLAKE3 of its bytes with every CR LF read as LF; `None` when it has no CR LF.
    pub lf: Option<Digest>,
    /// Its stat, the same before and after the reading.
    pub stat: Stat,
    /// The stat may not be trusted later: the file may have changed again within the clock's granularity.
    pub racy: bool,
    /// Where the path led, symlinks resolved.
    pub canonical: PathBuf,
}

impl Found {
    /// Whether something stands there that can be read again.
    #[must_use]
    pub fn is_something(&self) -> bool {
        !matches!(self, Self::Missing | Self::Renamed { .. } | Self::Unknown(_) | Self::Head { .. })
    }
}

impl FileFound {
    /// BLAKE3 of its bytes with every CR LF read as LF.
    #[must_use]
    pub fn lf_digest(&self) -> Digest {
        self.lf.unwrap_or(self.digest)
    }

    /// The file's digest in the given algorithm, if it was computed.
    #[must_use]
    pub fn digest_in(&self, algorithm: Algorithm) -> Option<Digest> {
        std::iter::once(self.digest)
            .chain(self.also.iter().copied())
            .find(|digest| digest.algorithm() == algorithm)
    }
}

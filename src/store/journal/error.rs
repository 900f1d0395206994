//! What can go wrong with the journal, with the file in it.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why the journal could not be opened or appended to.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused; nothing was appended, and the journal stands as before.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The verb of what was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Records that were written cannot be read back. Opening heals this; after a failed sync it is final.
    #[error("the journal is damaged: {} at byte {at_byte}: {why}", segment.display())]
    Damaged {
        /// The segment file.
        segment: PathBuf,
        /// Where its first damaged record, or its header, starts.
        at_byte: u64,
        /// What is wrong there.
        why: String,
    },
    /// The segment was written by another version of this program.
    #[error("{} has journal format {format}, which this version does not know", segment.display())]
    OtherFormat {
        /// The segment file.
        segment: PathBuf,
        /// Its format number.
        format: u32,
    },
    /// A payload over [`PAYLOAD_MAX`](super::PAYLOAD_MAX).
    #[error("a journal record of {len} bytes is longer than the bound of {max}", max = super::PAYLOAD_MAX)]
    TooLarge {
        /// The payload's length.
        len: usize,
    },
    /// An earlier failure left the segment in doubt; nothing is appended until [`start_over`](super::Journal::start_over).
    #[error("{} takes no more records: {why}", segment.display())]
    Poisoned {
        /// The segment file.
        segment: PathBuf,
        /// The failure that poisoned it.
        why: String,
    },
    /// The reader of a replay refused a record that is whole: for the caller's own reasons.
    #[error("journal record {seq}, in {} at byte {at_byte}, cannot be applied: {source}", segment.display())]
    Refused {
        /// The segment file.
        segment: PathBuf,
        /// Where the record starts.
        at_byte: u64,
        /// The record.
        seq: u64,
        /// The caller's reason.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl JournalError {
    /// Whether what was written cannot be read back.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    pub(super) fn damaged(segment: &Path, at_byte: u64, why: impl Into<String>) -> Self {
        Self::Damaged { segment: segment.to_owned(), at_byte, why: why.into() }
    }
}

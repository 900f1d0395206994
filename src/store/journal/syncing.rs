//! Syncs of a segment, of which a failed one is final beyond the end of the process.
//!
//! Promise: after a failed sync a mark stands in the folder. The kernel reports the failure once, so the next opening would
//! sync with success over bytes that are in memory only; it sees the mark, and writes what it has read into a new file.

use super::{Journal, JournalError, folder};
use std::fs::File;
use std::path::{Path, PathBuf};

const MARK: &str = "sync-failed";

/// Syncs this segment.
pub(super) fn sync_or_mark(segment: &Path, file: &File) -> Result<(), JournalError> {
    file.sync_data().map_err(|source| {
        // If it cannot be said, the disk has failed altogether.
        let _ = std::fs::write(segment.with_file_name(MARK), "");
        JournalError::io("sync", segment, source)
    })
}

impl Journal {
    /// The file whose presence says that a sync failed, and that nothing was begun anew since.
    #[must_use]
    pub(crate) fn failed_sync_mark(&self) -> PathBuf {
        self.dir.join(MARK)
    }

    /// It was begun anew: the next opening need not do it.
    pub(crate) fn forget_failed_sync(&self) -> Result<(), JournalError> {
        folder::remove(&self.failed_sync_mark())
    }
}

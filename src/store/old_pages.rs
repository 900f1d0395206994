//! What is forgotten leaves the journal by a compaction, and words leave their files at once; but sled keeps what it removed
//! in old pages: the paths and commands that an observation rested on. Only another index is without them, so once the
//! journal has nothing of it any more the next opening makes one.
//!
//! A note beside the index says so. It is made before the journal is compacted, for after it no record tells any more.

use super::asides;
use super::whole::sync_folder_of;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Why such an index is set aside; it does not stay there.
pub(super) const REASON: &str = "something was forgotten, and its old pages may hold what that rested on";

fn note_of(index: &Path) -> PathBuf {
    index.with_extension("old-pages")
}

/// From now on the index is one to be made again.
pub(super) fn note(index: &Path) -> io::Result<()> {
    let note = note_of(index);
    File::create(&note)?.sync_all()?;
    sync_folder_of(&note)
}

/// Whether it is.
pub(super) fn are_there(index: &Path) -> bool {
    note_of(index).exists()
}

/// The index is a new one, made from a journal that has nothing of what was forgotten. What was set aside may have it; what
/// cannot be removed now is tried again with the next opening.
pub(super) fn are_gone(index: &Path) {
    if !are_there(index) {
        return;
    }
    if let Err(error) = asides::prune(index, 0).and_then(|()| fs::remove_file(note_of(index))) {
        tracing::warn!(%error, "an index with what was forgotten could not be removed; tried again at the next start");
    }
}

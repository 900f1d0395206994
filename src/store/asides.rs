//! What is in doubt is moved aside under a name that says when, and not kept for ever.

use crate::index::storage::Trouble;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many folders that were set aside are kept: enough to see what happened, and not enough to fill a disk.
const KEPT: usize = 2;

/// Moves an index folder aside under a name that says when. Returns the new name. Older ones that cannot be removed are in
/// nobody's way: it is tried again with the next.
pub(super) fn set_aside(folder: &Path, stamp: &str) -> io::Result<PathBuf> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = folder.with_file_name(format!("{name}.aside-{stamp}"));
    let mut next = 2;
    while aside.exists() {
        aside = folder.with_file_name(format!("{name}.aside-{stamp}-{next}"));
        next += 1;
    }
    fs::rename(folder, &aside)?;
    if let Err(error) = prune(folder, KEPT) {
        tracing::warn!(%error, "an index that was set aside earlier could not be removed");
    }
    Ok(aside)
}

/// A disk without room for a new index gets some: what was set aside is needed by nobody but whoever wants to look. Any other
/// disk would not be better for it.
pub(super) fn make_room(folder: &Path, trouble: Trouble) -> io::Result<()> {
    if trouble == Trouble::Full { prune(folder, 0) } else { Ok(()) }
}

/// Removes what was set aside, but for the newest `kept`.
fn prune(folder: &Path, kept: usize) -> io::Result<()> {
    let prefix = format!("{}.aside-", folder.file_name().unwrap_or_default().to_string_lossy());
    let mut asides = Vec::new();
    for entry in fs::read_dir(folder.parent().unwrap_or(Path::new(".")))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            asides.push(entry.path());
        }
    }
    // The stamp in the name sorts by time.
    asides.sort();
    let gone = asides.len().saturating_sub(kept);
    asides[..gone].iter().try_for_each(|aside| remove(aside))
}

/// Removes a folder, or whatever stood in the place of one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::{Trouble, make_room};

    #[test]
    fn only_a_full_disk_costs_what_was_set_aside() {
        let state = tempfile::tempdir().unwrap();
        let (folder, aside) = (state.path().join("index"), state.path().join("index.aside-1"));
        std::fs::create_dir(&aside).unwrap();
        for trouble in [Trouble::Disk, Trouble::Contents] {
            make_room(&folder, trouble).unwrap();
            assert!(aside.exists(), "{trouble:?}");
        }
        make_room(&folder, Trouble::Full).unwrap();
        assert!(!aside.exists());
    }
}

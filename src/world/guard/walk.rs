//! Looking at a tree without being led out of it.

use super::clock::FileTime;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What a folder is, by device and inode. `None` for what is no folder, or is led to by a symlink.
pub(super) fn folder_at(path: &Path) -> Option<(u64, u64)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let found = File::from(opened).metadata().ok()?;
    Some((found.dev(), found.ino()))
}

/// One entry of a folder, as it was looked at.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) found: Metadata,
}

impl Entry {
    pub(super) fn changed(&self) -> FileTime {
        FileTime::changed(&self.found)
    }

    /// A folder that was there before.
    pub(super) fn is_older_folder(&self, since: FileTime) -> bool {
        let made = self.found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        self.found.is_dir() && made.is_some_and(|made| (made.as_nanos() as i128) < since.0)
    }
}

/// What is in a folder; what goes away meanwhile is not.
pub(super) fn list(folder: &Path) -> std::io::Result<Vec<Entry>> {
    let entry = |path: PathBuf| Some(Entry { found: std::fs::symlink_metadata(&path).ok()?, path });
    Ok(std::fs::read_dir(folder)?.filter_map(|found| entry(found.ok()?.path())).collect())
}

/// Whether what is below this folder is left out: the objects of the tree's own repository, which say nothing that is not
/// said where they are named, and are many.
pub(super) fn is_left_out(root: &Path, folder: &Path) -> bool {
    folder.strip_prefix(root).is_ok_and(|below| below.starts_with(".git/objects"))
}

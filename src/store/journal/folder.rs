//! The journal's folder: which names in it are ours, and how they come and go for good.
//!
//! Promise: listing changes nothing, so that it may be done while somebody else appends or compacts. Whatever is not
//! named as the journal names its files is left alone.
//!
//! ```text
//! 00000000000000000042.seg    a segment, by the first record in it
//! 00000000000000000041.snap   a snapshot, by the last record that it stands for
//! *.seg.new, *.snap.new       one that is not whole yet; what a crash left of it is swept away by the next opening
//! ```

use super::JournalError;
use crate::store::whole;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What stands in the folder, each sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// First records of segments.
    pub(super) segments: Vec<u64>,
    /// Last records of snapshots.
    pub(super) snapshots: Vec<u64>,
}

impl Found {
    /// Everything that a snapshot of the records up to `last_seq` makes superfluous, oldest first. A segment counts
    /// when the one behind it begins no later than the snapshot ends.
    pub(super) fn covered(&self, dir: &Path, last_seq: u64) -> Vec<PathBuf> {
        let older = self.snapshots.iter().filter(|&&snapshot| snapshot < last_seq);
        let ends = self.segments.iter().skip(1).map(|next| next - 1);
        let segments = self.segments.iter().zip(ends).filter(|&(_, end)| end <= last_seq);
        let older = older.map(|&snapshot| snapshot_path(dir, snapshot));
        older.chain(segments.map(|(&first_seq, _)| segment_path(dir, first_seq))).collect()
    }
}

/// The name of the segment that starts with this record.
pub(super) fn segment_path(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("{first_seq:020}.seg"))
}

/// The name of the snapshot that stands for everything up to this record.
pub(super) fn snapshot_path(dir: &Path, last_seq: u64) -> PathBuf {
    dir.join(format!("{last_seq:020}.snap"))
}

/// The name that a file has until it is whole.
pub(super) fn half_made(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Lists what is the journal's.
pub(super) fn list(dir: &Path) -> Result<Found, JournalError> {
    let mut found = Found::default();
    for name in names(dir)? {
        found.segments.extend(seq_of(&name, ".seg"));
        found.snapshots.extend(seq_of(&name, ".snap"));
    }
    found.segments.sort_unstable();
    found.snapshots.sort_unstable();
    Ok(found)
}

/// Removes what a crash left half-made. Only for an opening, when nobody else can be making one.
pub(super) fn sweep(dir: &Path) -> Result<(), JournalError> {
    for name in names(dir)? {
        if seq_of(&name, ".seg.new").or_else(|| seq_of(&name, ".snap.new")).is_some() {
            remove(&dir.join(name))?;
        }
    }
    Ok(())
}

/// Removes a file that holds nothing of its own.
pub(super) fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Removes what a snapshot stands for, in this order. A process that was killed may have given the snapshot its name
/// without a sync, so that has to be on disk first: no filesystem promises to keep the two in order.
pub(super) fn remove_all(dir: &Path, covered: &[PathBuf]) -> Result<(), JournalError> {
    if covered.is_empty() {
        return Ok(());
    }
    sync(dir)?;
    covered.iter().try_for_each(|path| remove(path))?;
    sync(dir)
}

/// Makes names that were created, moved or removed in this folder survive a power cut.
pub(super) fn sync(dir: &Path) -> Result<(), JournalError> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| JournalError::io("sync", dir, source))
}

/// Gives a file that was made aside its name, for good.
pub(super) fn put_in_place(aside: &Path, path: &Path) -> Result<(), JournalError> {
    fs::rename(aside, path)
        .and_then(|()| whole::sync_folder_of(path))
        .map_err(|source| JournalError::io("put in place", path, source))
}

/// Makes the folder when it is missing.
pub(super) fn create(dir: &Path) -> Result<(), JournalError> {
    if dir.is_dir() {
        return Ok(());
    }
    let failed = |source| JournalError::io("create", dir, source);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    whole::sync_folder_of(dir).map_err(failed)
}

fn names(dir: &Path) -> Result<Vec<String>, JournalError> {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|source| JournalError::io("list", dir, source))?;
    // A name that is no text is none of ours.
    Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn seq_of(name: &str, ending: &str) -> Option<u64> {
    let stem = name.strip_suffix(ending)?;
    let is_seq = stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit());
    // No record has the last number that there is, so that every one has a next.
    stem.parse().ok().filter(|&seq| is_seq && seq < u64::MAX)
}

//! What is done about a journal that is not what was written: what stands before the damage is kept, all else set aside.
//!
//! Promise: no byte is destroyed. What is cut, and every segment behind it, stands beside the journal under a name of
//! its own. Before the first of them moves, the journal is marked as in doubt, on disk: an end that comes between
//! leaves a journal that looks whole and is not, and only the mark still says so. The mark stays until
//! [`Journal::settle_doubt`](super::Journal::settle_doubt), when the journal itself says it.

use super::JournalError;
use super::folder::{self, put_in_place, segment_path};
use super::replay::Replayed;
use super::segment::{self, HEADER_LEN, Header, Kind, Reader};
use super::syncing::sync_or_mark;
use crate::store::whole;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Damage that was found, and healed by giving up what stood behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment that is not what was written.
    pub segment: PathBuf,
    /// Where in it the damage begins.
    pub at_byte: u64,
    /// What is wrong there.
    pub why: String,
    /// Where the bytes are now: the rest of the segment and the segments behind it.
    pub aside: Vec<PathBuf>,
}

impl Damage {
    /// Both in one, when another was found before this one.
    pub(super) fn behind(self, earlier: Option<Self>) -> Self {
        let Some(mut both) = earlier else { return self };
        let Self { segment, at_byte, why, aside } = self;
        both.why = format!("{}, and {} at byte {at_byte}: {why}", both.why, segment.display());
        both.aside.extend(aside);
        both
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, at_byte, why, aside } = self;
        write!(f, "the journal was damaged: {} at byte {at_byte}: {why}; ", segment.display())?;
        match &aside[..] {
            [] => f.write_str("nothing stood behind it"),
            [one] => write!(f, "what stood there was set aside as {}", one.display()),
            [first, rest @ ..] => {
                write!(f, "what stood there was set aside as {} and {} more", first.display(), rest.len())
            }
        }
    }
}

/// Ends the journal at the end of `state`: the first of `segments` is damaged there, the others follow it.
pub(super) fn heal(
    dir: &Path,
    segments: &[u64],
    state: &mut Replayed,
    (damaged, at_byte, why): (PathBuf, u64, String),
) -> Result<Damage, JournalError> {
    refuse_other_formats(dir, segments, &[])?;
    put_in_doubt(dir)?;
    let kept = segment_path(dir, state.first_seq);
    let given_up = segments.iter().map(|&first_seq| segment_path(dir, first_seq));
    let given_up: Vec<_> = given_up.filter(|path| !state.entered || *path != kept).collect();
    let mut aside = move_all_aside(&given_up)?;
    if kept.exists() {
        let cut = cut(&kept, state.end, "damaged")?;
        aside.splice(0..0, cut);
    } else {
        let made = segment::make_aside(&kept, Header::segment(state.id, state.first_seq), |_| Ok(()))?;
        put_in_place(&made, &kept)?;
        state.end = HEADER_LEN;
    }
    Ok(Damage { segment: damaged, at_byte, why, aside })
}

/// Files of a later version are no damage: going back to an older program throws nothing away.
pub(super) fn refuse_other_formats(
    dir: &Path,
    segments: &[u64],
    snapshots: &[u64],
) -> Result<(), JournalError> {
    let segments = segments.iter().map(|&first_seq| (segment_path(dir, first_seq), Kind::Segment));
    let snapshots = snapshots.iter().map(|&last_seq| (folder::snapshot_path(dir, last_seq), Kind::Snapshot));
    for (path, kind) in segments.chain(snapshots) {
        if let Err(error @ JournalError::OtherFormat { .. }) = Reader::open(&path, kind) {
            return Err(error);
        }
    }
    Ok(())
}

/// Nothing stands behind the snapshot of the records up to `last_seq`, where a compaction always leaves a segment. What
/// it stands for is set aside if it is still there: more than that may be in it.
pub(super) fn nothing_behind(dir: &Path, segments: &[u64], last_seq: u64) -> Result<Damage, JournalError> {
    refuse_other_formats(dir, segments, &[])?;
    put_in_doubt(dir)?;
    let segments = segments.iter().map(|&first_seq| segment_path(dir, first_seq));
    let aside = move_all_aside(&segments.collect::<Vec<_>>())?;
    let (segment, why) = (segment_path(dir, last_seq + 1), "it is missing".to_owned());
    Ok(Damage { segment, at_byte: 0, why, aside })
}

const MARK: &str = "in-doubt";

/// Marks the journal: records that it held are lost.
pub(super) fn put_in_doubt(dir: &Path) -> Result<(), JournalError> {
    let path = dir.join(MARK);
    let failed = |source| JournalError::io("create", &path, source);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    folder::sync(dir)
}

/// Whether the journal is marked.
pub(super) fn is_in_doubt(dir: &Path) -> Result<bool, JournalError> {
    let path = dir.join(MARK);
    path.try_exists().map_err(|source| JournalError::io("look for", &path, source))
}

/// Takes the mark away.
pub(super) fn end_doubt(dir: &Path) -> Result<(), JournalError> {
    folder::remove(&dir.join(MARK))?;
    folder::sync(dir)
}

/// Copies what stands behind `at_byte` to `<segment>.<what>-<len>` and cuts it off; `None` when nothing does.
pub(super) fn cut(segment: &Path, at_byte: u64, what: &str) -> Result<Option<PathBuf>, JournalError> {
    let Some(aside) = keep_end(segment, at_byte, what)? else { return Ok(None) };
    let cut = OpenOptions::new().write(true).open(segment).and_then(|file| {
        file.set_len(at_byte)?;
        Ok(file)
    });
    let file = cut.map_err(|source| JournalError::io("cut the end of", segment, source))?;
    // The new length is what a record that is appended behind it rests on, so this is a data sync.
    sync_or_mark(segment, &file)?;
    Ok(Some(aside))
}

/// Copies what stands behind `at_byte` of a file to `<file>.<what>-<len>`; `None` when nothing does.
pub(super) fn keep_end(of: &Path, at_byte: u64, what: &str) -> Result<Option<PathBuf>, JournalError> {
    let failed = |doing, source| JournalError::io(doing, of, source);
    let mut file = File::open(of).map_err(|source| failed("open", source))?;
    let len = file.metadata().map_err(|source| failed("read", source))?.len().saturating_sub(at_byte);
    if len == 0 {
        return Ok(None);
    }
    let (path, mut aside) =
        new_beside(of, &format!("{what}-{len}")).map_err(|source| failed("keep aside the end of", source))?;
    file.seek(SeekFrom::Start(at_byte))
        .and_then(|_| io::copy(&mut file, &mut aside))
        .and_then(|_| aside.sync_all())
        .and_then(|()| whole::sync_folder_of(of))
        .map_err(|source| {
            // The bytes still stand where they stood. Part of them here would only fill the disk, once for every try.
            let _ = fs::remove_file(&path);
            JournalError::io("keep the end of a file in", &path, source)
        })?;
    Ok(Some(path))
}

/// A new file beside the segment, with a number behind its name when that is taken.
fn new_beside(segment: &Path, ending: &str) -> io::Result<(PathBuf, File)> {
    let base = format!("{}.{ending}", segment.display());
    let mut path = PathBuf::from(&base);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut times = 1;
    loop {
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => times += 1,
            opened => return Ok((path, opened?)),
        }
        path = PathBuf::from(format!("{base}-{times}"));
    }
}

/// Moves these aside, the last one first: what an end in between leaves is a journal that only ends earlier.
pub(super) fn move_all_aside(files: &[PathBuf]) -> Result<Vec<PathBuf>, JournalError> {
    let mut aside = Vec::new();
    for file in files.iter().rev() {
        aside.insert(0, move_aside(file)?);
    }
    Ok(aside)
}

pub(super) fn move_aside(segment: &Path) -> Result<PathBuf, JournalError> {
    let failed = |source| JournalError::io("set aside", segment, source);
    // The empty file holds the name, so that what was set aside earlier is never written over.
    let (path, _) = new_beside(segment, "damaged").map_err(failed)?;
    fs::rename(segment, &path)
        .inspect_err(|_| drop(fs::remove_file(&path)))
        .and_then(|()| whole::sync_folder_of(segment))
        .map_err(failed)?;
    Ok(path)
}

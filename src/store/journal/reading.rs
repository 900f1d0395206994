//! Reading a journal that somebody else may be appending to: everything that is in it, and nothing is changed.
//!
//! Promise: what is told was written, in order and without a gap, up to the last whole record at that moment. Damage is an
//! error, for only an opening may heal it. A compaction in between may take away a file that is about to be read: that is an
//! error of the system, and reading again from the beginning finds the snapshot.

use super::folder::{self, segment_path, snapshot_path};
use super::replay::{Replayed, tell_one};
use super::segment::Header;
use super::{Each, JournalError, base, damage, snapshot};
use std::path::Path;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The last record; 0 when there is none.
    pub last_seq: u64,
    /// Records are lost, and the journal itself does not say so yet: every session is in doubt.
    pub in_doubt: bool,
}

/// Tells everything that the journal in this folder holds.
pub fn read(dir: &Path, each: Each<'_>) -> Result<Read, JournalError> {
    let found = folder::list(dir)?;
    let mut header = None;
    if let Some(&newest) = found.snapshots.last() {
        let (opened, _) = snapshot::Reader::open(&snapshot_path(dir, newest), newest)?;
        base::tell(dir, *header.insert(opened), each)?;
    }
    let mut state = Replayed::behind(header, [0; 16]);
    let in_doubt = damage::is_in_doubt(dir)?;
    let segments = behind(dir, found.segments, header, in_doubt)?;
    for (place, &first_seq) in segments.iter().enumerate() {
        tell_one(dir, first_seq, segments.get(place + 1).copied(), &mut state, each)?;
    }
    Ok(Read { last_seq: state.last_seq, in_doubt: in_doubt || damage::is_in_doubt(dir)? })
}

/// The segments behind the snapshot. A compaction always leaves one, and where there is none records are missing, unless
/// that is said already. A listing may miss a name that came while it was made, and show a later one: the next has it.
fn behind(
    dir: &Path,
    segments: Vec<u64>,
    snapshot: Option<Header>,
    in_doubt: bool,
) -> Result<Vec<u64>, JournalError> {
    let covered = snapshot.map_or(0, |snapshot| snapshot.seq);
    let behind =
        |segments: Vec<u64>| -> Vec<u64> { segments.into_iter().filter(|&seq| seq > covered).collect() };
    let found = behind(segments);
    if !found.is_empty() || snapshot.is_none() || in_doubt {
        return Ok(found);
    }
    let found = behind(folder::list(dir)?.segments);
    if found.is_empty() {
        return Err(JournalError::damaged(&segment_path(dir, covered + 1), 0, "it is missing"));
    }
    Ok(found)
}

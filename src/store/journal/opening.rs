//! Opening: what a crash left is finished, what is damaged is healed, and everything that stands is told.
//!
//! Promise: whatever is removed here is stood for by a whole snapshot, or was never whole. It goes last, when the journal
//! is open and the snapshot's name is on disk.

use super::damage::{self, Damage};
use super::replay::{self, Each, Replayed};
use super::segment::{self, Header, Kind, Reader};
use super::syncing::sync_or_mark;
use super::{Journal, JournalError, SEGMENT_BYTES_MAX, base, folder};
use std::path::{Path, PathBuf};

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The journal's own id: a new one only when there was no journal yet.
    pub id: [u8; 16],
    /// The last record, replayed or in the snapshot; 0 when there is none.
    pub last_seq: u64,
    /// The end that was cut off, if it was torn.
    pub torn: Option<Torn>,
    /// Damage that was found, and what was given up for it.
    pub damage: Option<Damage>,
    /// Records may be lost, now or since an earlier opening: to be said in the journal itself, and then
    /// [settled](Journal::settle_doubt).
    pub in_doubt: bool,
}

/// A torn end: it is now in a file beside the segment, and no longer in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The last segment.
    pub segment: PathBuf,
    /// Where it ends now.
    pub at_byte: u64,
    /// How much was cut.
    pub bytes_cut: u64,
}

impl Journal {
    /// Opens the journal in this folder, creating both when missing, and tells everything to `each` in order.
    ///
    /// What was replayed is synced before this returns: the records of a killed daemon may not have been. What a
    /// compaction left half done is finished only then.
    pub fn open(dir: &Path, new_id: [u8; 16], each: Each<'_>) -> Result<(Self, Opened), JournalError> {
        folder::create(dir)?;
        folder::sweep(dir)?;
        let (snapshot, mut damage) = base::settle(dir)?;
        let mut state = Replayed::behind(snapshot, new_id);
        let segments = segments_behind(dir, snapshot, &state, &mut damage)?;
        if let Some(header) = snapshot {
            base::tell(dir, header, each)?;
        }
        replay::replay(dir, &segments, &mut state, each)?;
        let path = folder::segment_path(dir, state.first_seq);
        let file = segment::open_to_append(&path)?;
        sync_or_mark(&path, &file)?;
        let in_doubt = damage::is_in_doubt(dir)?;
        let Replayed { id, first_seq, last_seq, end, torn, .. } = state;
        let damage = state.damage.map(|found| found.behind(damage.take())).or(damage);
        let opened = Opened { id, last_seq, torn, damage, in_doubt };
        let mut journal = Self {
            dir: dir.to_owned(),
            id,
            file,
            path,
            first_seq,
            last_seq,
            end,
            buffer: Vec::new(),
            poisoned: None,
            snapshot_seq: snapshot.map_or(0, |snapshot| snapshot.seq),
            snapshot_bytes: 0,
            closed_bytes: 0,
            segment_bytes_max: SEGMENT_BYTES_MAX,
        };
        if journal.failed_sync_mark().exists() {
            // The sync above may have succeeded over bytes that the kernel has given up.
            journal.start_over(journal.first_seq - 1)?;
            journal.forget_failed_sync()?;
        } else if !segment::begins_as(&journal.path, Header::segment(journal.id, journal.first_seq))? {
            // One of an older program, which a compaction may leave behind its snapshot. That program looks at all formats
            // before it gives anything up, so one segment that it does not know is enough.
            journal.begin_segment(journal.last_seq + 1)?;
        }
        journal.tidy()?;
        Ok((journal, opened))
    }

    /// Removes what the snapshot stands for, and measures the rest.
    fn tidy(&mut self) -> Result<(), JournalError> {
        let found = folder::list(&self.dir)?;
        let covered =
            if self.snapshot_seq == 0 { Vec::new() } else { found.covered(&self.dir, self.snapshot_seq) };
        if let Err(error) = folder::remove_all(&self.dir, &covered) {
            // It is in nobody's way: no opening reads it while the snapshot is there.
            tracing::warn!(%error, "what a snapshot stands for could not be removed");
        }
        let len = |path: PathBuf| path.metadata().map_or(0, |found| found.len());
        self.snapshot_bytes = match self.snapshot_seq {
            0 => 0,
            seq => len(folder::snapshot_path(&self.dir, seq)),
        };
        let closed = found.segments.iter().filter(|&&seq| seq > self.snapshot_seq && seq < self.first_seq);
        self.closed_bytes = closed.map(|&seq| len(folder::segment_path(&self.dir, seq))).sum();
        Ok(())
    }
}

/// The segments behind the snapshot, at least one: a new journal gets its first here.
fn segments_behind(
    dir: &Path,
    snapshot: Option<Header>,
    state: &Replayed,
    damage: &mut Option<Damage>,
) -> Result<Vec<u64>, JournalError> {
    let found = folder::list(dir)?.segments;
    let behind: Vec<u64> = found.iter().copied().filter(|&seq| seq > state.last_seq).collect();
    if !behind.is_empty() {
        return Ok(behind);
    }
    if snapshot.is_some() && !damage::is_in_doubt(dir)? {
        *damage = Some(damage::nothing_behind(dir, &found, state.last_seq)?.behind(damage.take()));
    }
    let path = folder::segment_path(dir, state.first_seq);
    let made = segment::make_aside(&path, Header::segment(state.id, state.first_seq), |_| Ok(()))?;
    folder::put_in_place(&made, &path)?;
    Ok(vec![state.first_seq])
}

/// The id of the journal in this folder, if there is one: the first file whose header is sound says so.
pub fn peek_id(dir: &Path) -> Result<Option<[u8; 16]>, JournalError> {
    if !dir.exists() {
        return Ok(None);
    }
    let found = folder::list(dir)?;
    let snapshots =
        found.snapshots.iter().rev().map(|&seq| (folder::snapshot_path(dir, seq), Kind::Snapshot));
    let segments = found.segments.iter().map(|&seq| (folder::segment_path(dir, seq), Kind::Segment));
    for (path, kind) in snapshots.chain(segments) {
        match Reader::open(&path, kind) {
            Ok(Some((header, _))) => return Ok(Some(header.id)),
            Ok(None) | Err(JournalError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

//! Compaction: what closed segments hold becomes a snapshot of what is left of it, and they are removed.
//!
//! Promise: at every moment, and after an end at any of them, an opening finds either everything as it was or the whole
//! snapshot. Nothing is removed before the snapshot is on disk under its name, and then oldest first, so that what is
//! still there never looks like a journal with a beginning. A failure leaves every segment where it was; the snapshot may
//! stand beside them already when only its name could not be synced, and then the next try reads that one and writes it
//! anew.
//!
//! The segment that is appended to is never touched, so all of this may be done on another thread. What is left of the
//! records is the caller's to say: payloads are opaque here.

use super::folder;
use super::replay::{Replayed, tell_one};
use super::segment::{Header, Kind};
use super::{Each, JournalError, base, snapshot};
use std::path::PathBuf;

/// Everything up to a certain record: in segments that are synced and take nothing more, and in the snapshot before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The journal's folder.
    pub(super) dir: PathBuf,
    /// The journal's own id.
    pub(super) id: [u8; 16],
    /// The last record of it.
    pub(super) last_seq: u64,
    /// How long its segments are.
    pub(super) segment_bytes: u64,
    /// How long the snapshot before them is.
    pub(super) snapshot_bytes: u64,
}

/// A snapshot that was put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The last record that it stands for.
    pub last_seq: u64,
    /// How long the segments are that it stands for.
    pub covered_bytes: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Closed {
    /// The last record of it.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Whether compacting is worth its writing: its segments are `bytes_min` long, and as long as the snapshot before
    /// them. So everything that is journaled is written at most twice more, however large the snapshot grows, and the
    /// journal takes at most about twice what is left of it.
    #[must_use]
    pub fn is_due(&self, bytes_min: u64) -> bool {
        self.segment_bytes >= bytes_min.max(self.snapshot_bytes)
    }

    /// Tells everything, in order. Damage is an error here, and is healed by the next opening.
    pub fn read(&self, each: Each<'_>) -> Result<(), JournalError> {
        let found = folder::list(&self.dir)?;
        let older = found.snapshots.iter().rev().find(|&&snapshot| snapshot <= self.last_seq);
        let older = older.map(|&seq| Header { kind: Kind::Snapshot, id: self.id, seq });
        if let Some(header) = older {
            base::tell(&self.dir, header, each)?;
        }
        let mut state = Replayed::behind(older, self.id);
        let ours = state.first_seq..=self.last_seq;
        let segments: Vec<u64> = found.segments.into_iter().filter(|seq| ours.contains(seq)).collect();
        for (place, &first_seq) in segments.iter().enumerate() {
            let next = segments.get(place + 1).copied().unwrap_or(self.last_seq + 1);
            tell_one(&self.dir, first_seq, Some(next), &mut state, each)?;
        }
        if state.last_seq != self.last_seq {
            let missing = folder::segment_path(&self.dir, state.last_seq + 1);
            return Err(JournalError::damaged(&missing, 0, "it is missing"));
        }
        Ok(())
    }

    /// Makes the snapshot of these payloads: aside, synced, read back whole, and only then in place. After an error it may
    /// be in place all the same, but not for good; nothing may be removed for it before another try has succeeded.
    pub fn write<Payload: AsRef<[u8]>>(
        &self,
        payloads: impl IntoIterator<Item = Payload>,
    ) -> Result<Written, JournalError> {
        let header = Header { kind: Kind::Snapshot, id: self.id, seq: self.last_seq };
        let mut payloads = payloads.into_iter();
        let bytes = snapshot::write(&self.dir, header, |draft| {
            payloads.try_for_each(|payload| draft.keep(payload.as_ref()))
        })?;
        Ok(Written { last_seq: self.last_seq, covered_bytes: self.segment_bytes, bytes })
    }

    /// What is superfluous once the snapshot is in place, oldest first; nothing before that.
    pub fn covered(&self) -> Result<Vec<PathBuf>, JournalError> {
        let found = folder::list(&self.dir)?;
        let in_place = found.snapshots.contains(&self.last_seq);
        Ok(if in_place { found.covered(&self.dir, self.last_seq) } else { Vec::new() })
    }

    /// Removes what is superfluous. What fails may be tried again, and the next opening does.
    pub fn remove_covered(&self) -> Result<(), JournalError> {
        folder::remove_all(&self.dir, &self.covered()?)
    }
}

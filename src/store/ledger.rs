//! The journal with its syncer: what is told to it is on disk when the syncer says so.
//!
//! A sync error is final for its segment: the kernel reports it once, and would then report success over lost bytes.
//! So nothing is taken after one until [`Ledger::begin_anew`] has written every record that was not yet synced into a new
//! segment, read back and compared, and has that one on disk.

use super::StoreError;
use super::compactor::{Compacted, Compactor, Help};
use super::journal::{Journal, JournalError, SEGMENT_BYTES_MAX};
use super::record::Record;
use super::syncer::{Done, Syncer, Watched, is_one_too_many};
use super::tail::Tail;
use crate::world::dart::Died;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The journal and what keeps it on disk.
pub struct Ledger {
    journal: Journal,
    watched: Watched,
    segment: u64,
    /// The last record that is known to be on disk.
    synced: Arc<AtomicU64>,
    /// Why nothing of the current segment can be synced, if so.
    unwatched: Option<String>,
    tail: Arc<Tail>,
    syncer: Syncer,
    compactor: Compactor,
}

/// Compaction takes whole segments: with so many of them it begins soon after it is due. Each costs the engine the syncs
/// of a new file.
const SEGMENTS: u64 = 8;
const SEGMENT_BYTES_MIN: u64 = 4_096;

impl Ledger {
    pub(super) fn new(
        mut journal: Journal,
        tail: Tail,
        compact_bytes: u64,
        died: &Died,
    ) -> Result<Self, StoreError> {
        journal.set_segment_bytes_max((compact_bytes / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX));
        let syncer = Syncer::start("journal-sync", died).map_err(StoreError::Thread)?;
        let watched = syncer.watch(journal.file()?);
        let segment = journal.first_seq();
        // Opening has synced what it replayed.
        let synced = Arc::new(AtomicU64::new(journal.last_seq()));
        tail.note(journal.last_seq());
        let compactor = Compactor::new(compact_bytes, died);
        let tail = Arc::new(tail);
        Ok(Self { journal, watched, segment, synced, unwatched: None, tail, syncer, compactor })
    }

    /// Writes a record. It is not on disk before [`Ledger::sync`] says so.
    pub fn append(&mut self, record: &Record) -> Result<u64, JournalError> {
        let seq = self.journal.append(&record.to_bytes())?;
        if self.journal.first_seq() != self.segment
            && let Err(error) = self.watch_segment()
        {
            // The record is written, and its reader must not be told otherwise: that it is not on disk is told by `sync`.
            self.unwatched = Some(error.to_string());
        }
        Ok(seq)
    }

    fn watch_segment(&mut self) -> Result<(), JournalError> {
        self.watched = self.syncer.watch(self.journal.file()?);
        self.segment = self.journal.first_seq();
        self.unwatched = None;
        Ok(())
    }

    /// Begins a compaction if one is due, and says how the last one ended, once. `help` is asked for when one begins.
    pub fn tend(&mut self, help: impl FnOnce() -> Help) -> Option<Compacted> {
        self.compactor.tend(&mut self.journal, help)
    }

    /// Why the journal was not compacted when that was due, until it is.
    #[must_use]
    pub fn not_compacted(&self) -> Option<&str> {
        self.compactor.failed()
    }

    /// When compaction is tried again after a failure.
    #[must_use]
    pub fn compaction_due(&self) -> Option<Instant> {
        self.compactor.next_try()
    }

    /// Whether it is being compacted.
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.compactor.is_running()
    }

    /// How long the snapshot is that the journal begins with; 0 when there is none.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.journal.snapshot_bytes()
    }

    /// How long the journal is: its snapshot, and the segments behind it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.journal.bytes()
    }

    /// The last record that was written.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.journal.last_seq()
    }

    /// Why nothing more is taken, if so.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        let unsynced = || self.watched.failed().map(|error| format!("it could not be synced: {error}"));
        self.journal.poisoned().map(ToOwned::to_owned).or_else(|| self.unwatched.clone()).or_else(unsynced)
    }

    /// Goes on in a new segment after a failure, with everything that is not known to be on disk. An error leaves
    /// everything as it is, and it may be tried again.
    pub fn begin_anew(&mut self) -> Result<(), JournalError> {
        self.journal.start_over(self.synced.load(Ordering::Acquire))?;
        self.watch_segment()?;
        self.journal.forget_failed_sync()?;
        self.synced.fetch_max(self.journal.last_seq(), Ordering::AcqRel);
        self.tail.note(self.journal.last_seq());
        Ok(())
    }

    /// Calls `done` when everything written so far is on disk, or never will be.
    pub fn sync(&self, done: Done) {
        if let Some(why) = &self.unwatched {
            return done(Err(Arc::new(std::io::Error::other(why.clone()))));
        }
        let (synced, seq) = (Arc::clone(&self.synced), self.journal.last_seq());
        let (mark, tail) = (self.journal.failed_sync_mark(), Arc::clone(&self.tail));
        self.watched.sync_soon(Box::new(move |outcome| {
            match &outcome {
                Ok(()) if synced.fetch_max(seq, Ordering::AcqRel) < seq => tail.note(seq),
                Ok(()) => {}
                Err(error) if is_one_too_many(error) => {}
                // A process that ends before it could go on elsewhere must not leave this to the next one unsaid. If it
                // cannot be said, the disk has failed altogether.
                Err(_) => drop(std::fs::write(mark, "")),
            }
            done(outcome);
        }));
    }
}

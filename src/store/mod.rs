//! The disk that is ours: the journal, which is the truth; the index in sled, which follows from it; the decision log.
//!
//! Opening heals what a crash left with the ordinary means: the journal's torn end is cut, records that the index has
//! not applied are applied, and an index in any doubt is set aside and made again from the journal.

pub mod decision_log;
pub mod journal;
pub mod record;
pub mod sled_index;
pub mod syncer;
mod replay;
mod whole;

use crate::index::storage::StorageError;
use crate::index::{Check, Index};
use crate::world::dart::Died;
use journal::{Journal, JournalError};
use record::Record;
use replay::{ReplayError, apply};
use sled_index::{Doubt, SledIndex};
use std::io;
use std::path::{Path, PathBuf};
use syncer::{Done, Syncer, Watched};

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The index failed, freshly made.
    #[error(transparent)]
    Index(#[from] StorageError),
    /// A folder cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A fresh index cannot be opened.
    #[error("cannot open a new index in {}: {reason}", path.display())]
    NewIndex {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The syncing thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What the store needs from outside to open.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'name> {
    /// State folder.
    pub state: &'name Path,
    /// Id of the journal, if there is none yet.
    pub new_id: [u8; 16],
    /// The epoch that begins.
    pub epoch: &'name str,
    /// Goes into the name of what is set aside.
    pub stamp: &'name str,
}

/// What opening gave.
pub struct Opened {
    /// The index, awake.
    pub index: Index<SledIndex>,
    /// The looks that it wants first: at everything.
    pub checks: Vec<Check>,
    /// Where truth is kept.
    pub ledger: Ledger,
    /// What was healed, one sentence each.
    pub healed: Vec<String>,
}

/// Opens journal and index and brings the index to where the journal stands. When `died` is told nothing new can be
/// kept any more.
pub fn open(opening: &Opening<'_>, died: &Died) -> Result<Opened, StoreError> {
    let folder = opening.state.join("index");
    let mut healed = Vec::new();
    let doubt = match bring_up(opening, &folder) {
        Ok(brought_up) => return opened(brought_up, healed, died),
        Err(Hurdle::Store(error)) => return Err(error),
        Err(Hurdle::Index(doubt)) => doubt,
    };
    let aside = sled_index::set_aside(&folder, opening.stamp)
        .map_err(|source| StoreError::Folder { path: folder.clone(), source })?;
    healed.push(format!(
        "the index was set aside as {} and is made again from the journal: {}",
        aside.display(),
        doubt.0
    ));
    match bring_up(opening, &folder) {
        Ok(brought_up) => opened(brought_up, healed, died),
        Err(Hurdle::Store(error)) => Err(error),
        Err(Hurdle::Index(Doubt(reason))) => Err(StoreError::NewIndex { path: folder, reason }),
    }
}

fn opened(brought_up: BroughtUp, mut healed: Vec<String>, died: &Died) -> Result<Opened, StoreError> {
    let BroughtUp { index, checks, journal, torn } = brought_up;
    healed.extend(torn.map(|torn| {
        let journal::Torn { segment, at_byte, bytes_cut } = torn;
        format!("{bytes_cut} bytes of a torn record were cut from {} at byte {at_byte}", segment.display())
    }));
    Ok(Opened { index, checks, ledger: Ledger::new(journal, died)?, healed })
}

enum Hurdle {
    Store(StoreError),
    Index(Doubt),
}

impl From<StorageError> for Hurdle {
    fn from(error: StorageError) -> Self {
        Self::Index(Doubt(error.to_string()))
    }
}

struct BroughtUp {
    index: Index<SledIndex>,
    checks: Vec<Check>,
    journal: Journal,
    torn: Option<journal::Torn>,
}

fn bring_up(opening: &Opening<'_>, folder: &Path) -> Result<BroughtUp, Hurdle> {
    let journal_folder = opening.state.join("journal");
    let known = journal::peek_id(&journal_folder).map_err(|error| Hurdle::Store(error.into()))?;
    let id = known.unwrap_or(opening.new_id);
    let (tables, applied) = SledIndex::open(folder, id).map_err(Hurdle::Index)?;
    let mut index = Index::open(tables, opening.epoch)?;
    let mut failed = None;
    let opened = Journal::open(&journal_folder, id, &mut |seq, payload| {
        if seq > applied && failed.is_none() {
            failed = replay_one(&mut index, seq, payload).err();
        }
        Ok(())
    });
    let (journal, opened) = opened.map_err(|error| Hurdle::Store(error.into()))?;
    if let Some(error) = failed {
        return Err(Hurdle::Index(Doubt(error.to_string())));
    }
    if opened.last_seq < applied {
        let reason = format!("it has applied record {applied}, and the journal ends at {}", opened.last_seq);
        return Err(Hurdle::Index(Doubt(reason)));
    }
    for session in index.sessions()? {
        index.give_up_awaiting(session)?;
    }
    // Waking reads and counts everything: an index that lost keys shows it here, and is made again like any other.
    let checks = index.wake()?;
    index.storage_mut().flush()?;
    Ok(BroughtUp { index, checks, journal, torn: opened.torn })
}

fn replay_one(index: &mut Index<SledIndex>, seq: u64, payload: &[u8]) -> Result<(), ReplayError> {
    let record = Record::from_bytes(payload).map_err(|source| ReplayError::Record { seq, source })?;
    index.storage_mut().begin(seq)?;
    apply(index, record)?;
    index.storage_mut().commit(seq)?;
    Ok(())
}

/// The journal with its syncer: what is told to it is on disk when `done` says so.
pub struct Ledger {
    journal: Journal,
    watched: Watched,
    segment: u64,
    syncer: Syncer,
}

impl Ledger {
    fn new(journal: Journal, died: &Died) -> Result<Self, StoreError> {
        let syncer = Syncer::start("journal-sync", died).map_err(StoreError::Thread)?;
        let watched = syncer.watch(journal.file()?);
        let segment = journal.first_seq();
        Ok(Self { journal, watched, segment, syncer })
    }

    /// Writes a record. It is not on disk before [`Ledger::sync`] says so.
    pub fn append(&mut self, record: &Record) -> Result<u64, JournalError> {
        let seq = self.journal.append(&record.to_bytes())?;
        if self.journal.first_seq() != self.segment {
            self.watched = self.syncer.watch(self.journal.file()?);
            self.segment = self.journal.first_seq();
        }
        Ok(seq)
    }

    /// The sync error that is final for the current segment, if there was one.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        self.watched.failed().map(|error| error.to_string())
    }

    /// Calls `done` when everything written so far is on disk, or never will be.
    pub fn sync(&self, done: Done) {
        self.watched.sync_soon(done);
    }
}

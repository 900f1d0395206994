//! The disk that is ours: the journal, which is the truth; the index in sled, which follows from it; the decision log.
//!
//! Opening heals what a crash left with the ordinary means: the journal's torn end is cut, what
//! is damaged in it is set aside and every session put in doubt, records that the index has
//! not applied are applied, and an index in any doubt is set aside and made again from the journal. A disk that is full or
//! closed to us is no doubt: opening fails, changes nothing, and may be tried again.

pub mod decision_log;
pub mod journal;
mod kept;
pub mod record;
pub mod sled_index;
pub mod syncer;
mod asides;
mod catching_up;
mod compacting;
mod compactor;
pub mod export;
mod ledger;
mod old_pages;
mod passing;
pub mod remembered;
mod replay;
mod seal;
mod size;
mod sled_open;
mod swap;
mod tail;
pub mod told;
mod whole;
mod words;

use crate::index::storage::{StorageError, Trouble};
use crate::index::{Check, Index, RegisterError};
use crate::memory;
use crate::world::dart::Died;
pub use compactor::{Compacted, Help};
pub use ledger::Ledger;
pub use size::{bytes_below, bytes_of_log};

use catching_up::{CatchingUp, apply_record};
use journal::{Journal, JournalError, Piece};
use kept::PutBackError;
use record::Record;
use replay::ReplayError;
use sled_index::{Doubt, SledIndex};
use std::io;
use std::path::{Path, PathBuf};
use tail::{Noted, Tail};

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A folder cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The index cannot be opened for want of a disk, or one that was just made cannot be.
    #[error("cannot open the index in {}: {reason}", path.display())]
    Index {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: String,
        /// Whether only the disk is in the way.
        trouble: Trouble,
    },
    /// A thread hangs in the index. A new one under its name is safe from it in a new process only.
    #[error(
        "the index {} is given up, for {reason}; what hangs in it ends with this process, so start again",
        path.display()
    )]
    Hangs {
        /// Where it was.
        path: PathBuf,
        /// How it hangs.
        reason: String,
    },
    /// The syncing thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl StoreError {
    /// Whether it may pass by itself: there is no room, or the disk is closed to us.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Self::Journal(JournalError::Io { source, .. }) | Self::Folder { source, .. } => {
                passing::passes(source)
            }
            Self::Journal(_) => false,
            Self::Index { trouble, .. } => trouble.passes(),
            Self::Hangs { .. } => false,
            Self::Thread(_) => true,
        }
    }

    /// Whether only another process gets past it.
    #[must_use]
    pub fn ends_the_process(&self) -> bool {
        self.is_final() || matches!(self, Self::Hangs { .. })
    }

    /// Whether nothing but another version of the program, or a person, gets past it: the same would be met every time.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Refused { .. } | JournalError::OtherFormat { .. }))
    }
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
    /// Why the index is in doubt before it is even opened, when it is.
    pub distrust: Option<&'name str>,
    /// How long the closed segments of the journal are when they are compacted, at least.
    pub compact_bytes: u64,
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
    let folder = index_of(opening.state);
    let mut healed = Vec::new();
    let doubt = match opening.distrust {
        Some(reason) => Doubt::contents(reason),
        None => match bring_up(opening, &folder, &mut healed) {
            Ok(brought_up) => return opened(opening, brought_up, healed, died),
            Err(Hurdle::Store(error)) => return Err(error),
            Err(Hurdle::Index(Doubt { reason, trouble, .. })) if trouble.passes() => {
                return Err(StoreError::Index { path: folder, reason, trouble });
            }
            Err(Hurdle::Index(doubt)) => doubt,
        },
    };
    healed.extend(give_up(&folder, opening.stamp, &doubt)?);
    match bring_up(opening, &folder, &mut healed) {
        Ok(brought_up) => opened(opening, brought_up, healed, died),
        Err(Hurdle::Store(error)) => Err(error),
        Err(Hurdle::Index(Doubt { reason, hangs: true, .. })) => {
            Err(StoreError::Hangs { path: folder, reason })
        }
        Err(Hurdle::Index(Doubt { reason, trouble, .. })) => {
            asides::make_room(&folder, trouble)
                .map_err(|source| StoreError::Folder { path: folder.clone(), source })?;
            Err(StoreError::Index { path: folder, reason, trouble })
        }
    }
}

/// Sets an index in doubt aside. Says so, if there was one. One in which a thread hangs is an error, whatever became of its
/// folder: where that could not be moved, the next process meets it again.
fn give_up(folder: &Path, stamp: &str, doubt: &Doubt) -> Result<Option<String>, StoreError> {
    let aside = set_aside(folder, stamp, doubt);
    if !doubt.hangs {
        return aside;
    }
    if let Err(error) = aside {
        tracing::warn!(%error, "an index in which a thread hangs could not be set aside");
    }
    Err(StoreError::Hangs { path: folder.to_owned(), reason: doubt.reason.clone() })
}

fn set_aside(folder: &Path, stamp: &str, doubt: &Doubt) -> Result<Option<String>, StoreError> {
    let aside = match asides::set_aside(folder, stamp) {
        Ok(aside) => aside,
        // Not there any more, and so in nobody's way.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::Folder { path: folder.to_owned(), source }),
    };
    let reason = &doubt.reason;
    Ok(Some(format!(
        "the index was set aside as {} and is made again from the journal: {reason}",
        aside.display()
    )))
}

fn opened(
    opening: &Opening<'_>,
    brought_up: BroughtUp,
    healed: Vec<String>,
    died: &Died,
) -> Result<Opened, StoreError> {
    let BroughtUp { index, checks, journal, forgotten } = brought_up;
    if forgotten.is_none() {
        old_pages::are_gone(&index_of(opening.state));
    }
    let tail = Tail::open(&tail_of(opening.state), journal.id());
    let mut ledger = Ledger::new(journal, tail, opening.compact_bytes, index_of(opening.state), died)?;
    // A record is only told while no snapshot stands for it, and what was forgotten behind it is still there.
    forgotten.into_iter().for_each(|seq| ledger.compact_behind(seq));
    Ok(Opened { index, checks, ledger, healed })
}

fn index_of(state: &Path) -> PathBuf {
    state.join("index")
}

/// Not in the journal's folder: one that is put back from a copy is to be found out too.
fn tail_of(state: &Path) -> PathBuf {
    state.join("journal.tail")
}

enum Hurdle {
    Store(StoreError),
    Index(Doubt),
}

impl From<StorageError> for Hurdle {
    fn from(error: StorageError) -> Self {
        Self::Index(error.into())
    }
}

impl From<ReplayError> for Hurdle {
    fn from(error: ReplayError) -> Self {
        Self::Index(match error {
            ReplayError::Storage(error)
            | ReplayError::Register(RegisterError::Storage(error))
            | ReplayError::PutBack(PutBackError::Storage(error)) => error.into(),
            other => Doubt::contents(other.to_string()),
        })
    }
}

struct BroughtUp {
    index: Index<SledIndex>,
    checks: Vec<Check>,
    journal: Journal,
    /// The last record that forgets something.
    forgotten: Option<u64>,
}

fn bring_up(opening: &Opening<'_>, folder: &Path, healed: &mut Vec<String>) -> Result<BroughtUp, Hurdle> {
    let journal_folder = opening.state.join("journal");
    let known = journal::peek_id(&journal_folder).map_err(|error| Hurdle::Store(error.into()))?;
    let id = known.unwrap_or(opening.new_id);
    let (tables, applied) = SledIndex::open(folder, id).map_err(Hurdle::Index)?;
    let mut index = Index::open(tables, opening.epoch)?;
    let mut catching_up = CatchingUp::new(&mut index, applied);
    let mut forgotten = None;
    let opened = Journal::open(&journal_folder, id, &mut |piece| {
        if let Piece::Record(seq, payload) = piece
            && record::forgets(payload)
        {
            forgotten = Some(seq);
        }
        catching_up.take(piece)?;
        Ok(())
    });
    let caught_up = catching_up.end();
    let (mut journal, opened) = opened.map_err(|error| Hurdle::Store(error.into()))?;
    healed.extend(opened.torn.as_ref().map(torn_text));
    healed.extend(opened.damage.as_ref().map(ToString::to_string));
    if let Some(damage) = &opened.damage {
        // Said at once too, for what follows may fail and be tried again, and then it is healed already.
        tracing::error!("{damage}");
    }
    caught_up?;
    if opened.last_seq < applied {
        // The records that the index knows were acknowledged, and the journal has lost them.
        journal.put_in_doubt().map_err(|error| Hurdle::Store(error.into()))?;
        let reason = format!("it has applied record {applied}, and the journal ends at {}", opened.last_seq);
        return Err(Hurdle::Index(Doubt::contents(reason)));
    }
    if opened.in_doubt && applied > 0 {
        // It may know what a damaged snapshot has lost, and what is told later would stand on that in it alone.
        return Err(Hurdle::Index(Doubt::contents("records of the journal are lost")));
    }
    let lost = lost(opening.state, &journal)?;
    healed.extend(lost.iter().map(|lost| lost.what.clone()));
    if opened.in_doubt || lost.is_some_and(|lost| lost.in_doubt) {
        doubt_all(&mut journal, &mut index)?;
        healed.push("every session told before is in doubt, for records of the journal are lost".to_owned());
    }
    for session in index.sessions()? {
        index.give_up_awaiting(session)?;
    }
    // Waking reads and counts everything: an index that lost keys shows it here, and is made again like any other.
    let checks = index.wake()?;
    memory::audit::audit(index.storage())?;
    if forgotten.is_none() && applied > 0 && old_pages::are_there(folder) {
        return Err(Hurdle::Index(Doubt::contents(old_pages::REASON)));
    }
    index.storage_mut().flush()?;
    Ok(BroughtUp { index, checks, journal, forgotten })
}

/// Records that were on disk, and are not there.
struct Lost {
    /// As a sentence.
    what: String,
    /// Whether there is anything left that rests on them.
    in_doubt: bool,
}

/// Whether the journal ends before what was on disk, or is another one that holds nothing yet. If anything is left of it
/// it is in doubt then, on disk too.
fn lost(state: &Path, journal: &Journal) -> Result<Option<Lost>, Hurdle> {
    let path = tail_of(state);
    let noted = tail::noted(&path)
        .map_err(|source| Hurdle::Store(StoreError::Folder { path: path.clone(), source }))?;
    let Some(Noted { id, seq }) = noted else { return Ok(None) };
    let (ours, ends) = (id == journal.id(), journal.last_seq());
    let what = if ours && seq > ends {
        journal.put_in_doubt().map_err(|error| Hurdle::Store(error.into()))?;
        format!("the journal was damaged: it ends at record {ends}, and record {seq} was on disk")
    } else if !ours && ends == 0 && seq > 0 {
        format!(
            "the journal is lost: record {seq} of it was on disk, and none is there, so every session is gone"
        )
    } else {
        return Ok(None);
    };
    tracing::error!("{what}");
    Ok(Some(Lost { what, in_doubt: ours }))
}

fn torn_text(torn: &journal::Torn) -> String {
    let journal::Torn { segment, at_byte, bytes_cut } = torn;
    format!("{bytes_cut} bytes of a torn record were cut from {} at byte {at_byte}", segment.display())
}

/// Says in the journal, for good, that records before are lost.
fn doubt_all(journal: &mut Journal, index: &mut Index<SledIndex>) -> Result<(), Hurdle> {
    let failed = |error: JournalError| Hurdle::Store(error.into());
    let payload = Record::Doubted.to_bytes();
    let seq = journal.append(&payload).map_err(failed)?;
    apply_record(index, seq, &payload)?;
    journal.settle_doubt().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::sled_index::Doubt;
    use super::{StoreError, give_up};

    #[test]
    fn a_hang_is_said_though_the_folder_cannot_be_set_aside() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = file.path().join("index");
        let sound = give_up(&folder, "stamp", &Doubt::contents("test")).unwrap_err();
        assert!(matches!(sound, StoreError::Folder { .. }), "{sound}");
        let hangs = give_up(&folder, "stamp", &Doubt { hangs: true, ..Doubt::contents("test") }).unwrap_err();
        assert!(hangs.ends_the_process() && matches!(hangs, StoreError::Hangs { .. }), "{hangs}");
    }
}

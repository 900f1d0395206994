//! What the journal of a state tells, in memory, for an export.
//!
//! Promise: reading needs no daemon, and disturbs none: what is told was written at some moment in between. A journal that has
//! lost records is told with every session in doubt.

use super::compacting::tell;
use super::export::ExportError;
use super::journal::{self, JournalError, Piece};
use super::record::Record;
use super::replay::ReplayError;
use super::tail;
use crate::index::Index;
use crate::index::row::{Baseline, Row};
use crate::index::storage::{Memory, StorageError};
use crate::session::moment::Moment;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How often a journal is read again of which a compaction took something away, or a failed append.
const READ_TRIES: usize = 5;

/// How long a registration is waited for that is being answered, from when it was told: one that is older than that was
/// most likely left by a daemon that was killed.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks for its answer, doubled every time.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What a journal told, in memory.
pub struct Told {
    pub(super) index: Index<Memory>,
    /// When each session was told last; not of those that only the snapshot knows.
    at: HashMap<String, Moment>,
}

/// What it tells when no registration is being answered. That is waited for no longer than [`ANSWERED_WITHIN`]; before every
/// second of it `waiting` is told for how many rows.
pub fn settled(state: &Path, waiting: &mut dyn FnMut(u64)) -> Result<Told, ExportError> {
    let (begun, mut pause) = (Instant::now(), PAUSE);
    loop {
        let told = now(state)?;
        let rows = if begun.elapsed() < ANSWERED_WITHIN { told.being_answered()? } else { 0 };
        if rows == 0 {
            return Ok(told);
        }
        if pause >= PAUSE_MAX {
            waiting(rows);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

impl Told {
    /// How many rows wait for the answer of a registration that may still be on its way.
    fn being_answered(&self) -> Result<u64, StorageError> {
        let mut rows = 0;
        for session in self.index.sessions()? {
            let head = self.index.head(session)?;
            if self.at.get(head.session.as_str()).is_some_and(|&at| is_recent(at)) {
                rows += unanswered(&self.index.rows(session)?);
            }
        }
        Ok(rows)
    }

    fn tell(&mut self, piece: Piece<'_>) -> Result<(), ReplayError> {
        if let Piece::Record(_, payload) = piece
            && let Record::Told { at, context } = Record::from_bytes(payload)?
        {
            self.at.insert(context.session.unwrap_or_default(), Moment::from_micros(at));
        }
        tell(&mut self.index, piece)
    }
}

/// What is told from the future, on a clock that was set back since, may be from any time.
fn is_recent(at: Moment) -> bool {
    let told = u64::try_from(at.micros).map(|micros| UNIX_EPOCH + Duration::from_micros(micros));
    told.is_ok_and(|told| told.elapsed().is_ok_and(|age| age < ANSWERED_WITHIN))
}

pub(super) fn unanswered(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| row.baseline == Baseline::Awaited).count() as u64
}

/// What it tells at some moment in between, whoever appends to it.
pub(super) fn now(state: &Path) -> Result<Told, ExportError> {
    let passes = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::UnexpectedEof);
    for _ in 1..READ_TRIES {
        match read(state) {
            Err(ExportError::Journal(JournalError::Io { source, .. })) if passes(source.kind()) => {}
            told => return told,
        }
    }
    read(state)
}

fn read(state: &Path) -> Result<Told, ExportError> {
    let folder = &state.join("journal");
    // Before the journal is read: what was on disk then is in it.
    let id = journal::peek_id(folder)?;
    let noted = tail::noted(&super::tail_of(state)).map_err(ExportError::Tail)?;
    let noted = noted.filter(|noted| Some(noted.id) == id).map_or(0, |noted| noted.seq);
    let mut told = Told { index: Index::open(Memory::default(), "")?, at: HashMap::new() };
    let read = journal::read(folder, &mut |piece| Ok(told.tell(piece)?))?;
    if read.in_doubt || noted > read.last_seq {
        told.index.doubt_all()?;
    }
    Ok(told)
}

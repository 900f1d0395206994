//! Bringing an index to where the journal stands.
//!
//! Promise: every record is applied once, whole, in its order. A snapshot fills an index that has applied nothing, and is
//! passed over by one that has applied everything it stands for. One in between cannot be told from one that has lost
//! something, and is in doubt; so is one whose filling was cut short.

use super::journal::Piece;
use super::record::Record;
use super::replay::{ReplayError, apply, unforeseen};
use super::sled_index::SledIndex;
use crate::index::Index;

/// An index that is told the journal.
pub(super) struct CatchingUp<'index> {
    index: &'index mut Index<SledIndex>,
    /// The last record that it has applied.
    applied: u64,
    /// The last record that the snapshot stands for which it is being filled from.
    filling: Option<u64>,
    failed: Option<ReplayError>,
    /// It had applied nothing, so nothing in it can be wrong.
    new: bool,
}

impl<'index> CatchingUp<'index> {
    pub(super) fn new(index: &'index mut Index<SledIndex>, applied: u64) -> Self {
        Self { index, applied, filling: None, failed: None, new: applied == 0 }
    }

    /// The next piece. After a failure the rest is passed over, for the journal is opened to its end whatever this index
    /// makes of it. What no index could take is an error at once.
    pub(super) fn take(&mut self, piece: Piece<'_>) -> Result<(), ReplayError> {
        if self.failed.is_some() {
            return Ok(());
        }
        match unforeseen(|| self.try_take(piece)) {
            Err(error) if error.is_final(self.new) => Err(error),
            taken => {
                self.failed = taken.err();
                Ok(())
            }
        }
    }

    fn try_take(&mut self, piece: Piece<'_>) -> Result<(), ReplayError> {
        match piece {
            Piece::Snapshot { last_seq } if self.applied == 0 => {
                self.index.storage_mut().begin(last_seq)?;
                self.filling = Some(last_seq);
                Ok(())
            }
            Piece::Snapshot { last_seq } if self.applied < last_seq => {
                Err(ReplayError::Behind { applied: self.applied, snapshot: last_seq })
            }
            Piece::Snapshot { .. } => Ok(()),
            Piece::Kept(payload) => {
                if self.filling.is_some() {
                    apply(self.index, Record::from_bytes(payload)?)
                } else {
                    Ok(())
                }
            }
            Piece::Record(seq, payload) => {
                self.filled()?;
                if seq > self.applied { apply_record(self.index, seq, payload) } else { Ok(()) }
            }
        }
    }

    fn filled(&mut self) -> Result<(), ReplayError> {
        if let Some(last_seq) = self.filling.take() {
            self.index.storage_mut().commit(last_seq)?;
            self.applied = last_seq;
        }
        Ok(())
    }

    /// The journal has ended.
    pub(super) fn end(mut self) -> Result<(), ReplayError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.filled(),
        }
    }
}

/// Applies one record, and notes that it was. An index that is found between the two is not used.
pub(super) fn apply_record(
    index: &mut Index<SledIndex>,
    seq: u64,
    payload: &[u8],
) -> Result<(), ReplayError> {
    let record = Record::from_bytes(payload)?;
    index.storage_mut().begin(seq)?;
    apply(index, record)?;
    Ok(index.storage_mut().commit(seq)?)
}

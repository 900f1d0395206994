//! Bringing an index to where the journal stands.
//!
//! Promise: every record is applied once, whole, in its order. A snapshot fills an index that has applied nothing, and is
//! passed over by one that has applied everything it stands for. One in between cannot be told from one that has lost
//! something, and is in doubt; so is one whose filling was cut short.

use super::journal::Piece;
use super::record::Record;
use super::replay::{ReplayError, apply};
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
}

impl<'index> CatchingUp<'index> {
    pub(super) fn new(index: &'index mut Index<SledIndex>, applied: u64) -> Self {
        Self { index, applied, filling: None, failed: None }
    }

    /// The next piece. After a failure the rest is passed over, for the journal is opened to its end whatever the index
    /// makes of it.
    pub(super) fn take(&mut self, piece: Piece<'_>) {
        if self.failed.is_none() {
            self.failed = self.try_take(piece).err();
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
                self.filling.map_or(Ok(()), |last_seq| apply(self.index, Record::read(last_seq, payload)?))
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
    let record = Record::read(seq, payload)?;
    index.storage_mut().begin(seq)?;
    apply(index, record)?;
    Ok(index.storage_mut().commit(seq)?)
}

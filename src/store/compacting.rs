//! What is left of the records in closed segments: every session that was not dropped, told whole.
//!
//! The records are replayed in memory, never read from the index in sled: that one may lose keys without a word, and what
//! it lost would then be lost for good. It takes as much memory as what is left, and only as long as it takes.

use super::journal::{Closed, JournalError, Piece, Written};
use super::kept;
use super::record::Record;
use super::replay::{ReplayError, apply};
use crate::index::Index;
use crate::index::storage::{Memory, StorageError};
use std::sync::atomic::{AtomicBool, Ordering};

/// Closed segments cannot be compacted. They are as they were.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// They cannot be read, or the snapshot cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is left of them cannot be told.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Puts a snapshot in place of what closed segments hold; they are still to be removed. Blocks, and belongs on a thread
/// that nobody waits for. Gives up soon after `stop` is set.
pub(super) fn compact(closed: &Closed, stop: &AtomicBool) -> Result<Written, CompactError> {
    let payloads = left_of(closed, stop)?;
    Ok(closed.write(payloads)?)
}

fn left_of(closed: &Closed, stop: &AtomicBool) -> Result<Vec<Vec<u8>>, CompactError> {
    let mut index = Index::open(Memory::default(), "")?;
    closed.read(&mut |piece| {
        let (seq, payload) = match piece {
            Piece::Snapshot { .. } => return Ok(()),
            Piece::Kept(payload) => (closed.last_seq(), payload),
            Piece::Record(seq, payload) => (seq, payload),
        };
        if stop.load(Ordering::Relaxed) {
            return Err(JournalError::Refused { seq, source: "the store is being closed".into() });
        }
        replay(&mut index, seq, payload)
            .map_err(|source| JournalError::Refused { seq, source: Box::new(source) })
    })?;
    let mut payloads = Vec::new();
    kept::of(&index, &mut |record| {
        payloads.push(record.to_bytes());
        Ok(())
    })?;
    Ok(payloads)
}

fn replay(index: &mut Index<Memory>, seq: u64, payload: &[u8]) -> Result<(), ReplayError> {
    apply(index, Record::read(seq, payload)?)
}

//! What is left of the records in closed segments: every session that was not dropped, told whole.
//!
//! The records are replayed in memory, never read from the index in sled: that one may lose keys without a word, and what
//! it lost would then be lost for good. It takes as much memory as what is left, and only as long as it takes.

use super::compactor::CompactionError;
use super::journal::{Closed, Piece, Written};
use super::kept;
use super::record::Record;
use super::replay::{ReplayError, apply};
use crate::index::Index;
use crate::index::storage::Memory;
use std::sync::atomic::{AtomicBool, Ordering};

/// Puts a snapshot in place of what closed segments hold; they are still to be removed. Blocks, and belongs on a thread
/// that nobody waits for. Gives up soon after `stop` is set.
pub(super) fn compact(closed: &Closed, stop: &AtomicBool) -> Result<Written, CompactionError> {
    let payloads = left_of(closed, stop)?;
    Ok(closed.write(payloads)?)
}

fn left_of(closed: &Closed, stop: &AtomicBool) -> Result<Vec<Vec<u8>>, CompactionError> {
    let mut index = Index::open(Memory::default(), "")?;
    closed.read(&mut |piece| {
        if stop.load(Ordering::Relaxed) {
            return Err(Box::new(CompactionError::Stopped));
        }
        Ok(tell(&mut index, piece)?)
    })?;
    let mut payloads = Vec::new();
    kept::of(&index, &mut |record| {
        payloads.push(record.to_bytes());
        if stop.load(Ordering::Relaxed) { Err(CompactionError::Stopped) } else { Ok(()) }
    })?;
    Ok(payloads)
}

/// What a piece of the journal says, told to an index in memory.
pub(super) fn tell(index: &mut Index<Memory>, piece: Piece<'_>) -> Result<(), ReplayError> {
    match piece {
        Piece::Snapshot { .. } => Ok(()),
        Piece::Kept(payload) | Piece::Record(_, payload) => apply(index, Record::from_bytes(payload)?),
    }
}

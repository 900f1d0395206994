//! The engine and its journal: what is told is written first, then applied; and a journal that failed is begun anew.

use super::Engine;
use crate::index::storage::{StorageError, Table, Trouble};
use crate::protocol::refusal::Refusal;
use crate::store::journal::Written;
use crate::store::record::Record;
use crate::store::syncer::Synced;
use crate::store::{Compacted, Help};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two tries to begin the journal anew.
const ANEW_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Journals a record and applies it. An index that fails between the two is not read again: it says of itself that a
    /// change was cut short, and is made anew from the journal.
    pub(in crate::daemon) fn journaled<T, E: Into<Refusal>>(
        &mut self,
        record: &Record,
        apply: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, Refusal> {
        // Behind a record that was applied in part, the mark of another one would hide that.
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        self.trust_journal()?;
        let seq = self.ledger.append(record)?;
        // Synced soon, whoever waits for it: an index that a power cut finds further than the journal puts all in doubt.
        self.ledger.sync(Box::new(drop));
        let applied = self.index.storage_mut().begin(seq).map_err(Refusal::from).and_then(|()| {
            let applied = apply(self).map_err(Into::into)?;
            self.index.storage_mut().commit(seq)?;
            Ok(applied)
        });
        if let Err(refusal) = &applied {
            let failure = self.index.storage().failure().cloned();
            self.failed = Some(failure.unwrap_or_else(|| half_applied(&refusal.message)));
        }
        applied
    }

    /// Told when everything journaled so far is on disk.
    pub(in crate::daemon) fn synced(&self) -> oneshot::Receiver<Synced> {
        let (sender, receiver) = oneshot::channel();
        // Whoever waited may have gone away.
        self.ledger.sync(Box::new(move |synced| drop(sender.send(synced))));
        receiver
    }

    /// Has the journal compacted when that is due. The engine goes on meanwhile.
    pub(super) fn tend_journal(&mut self) {
        let known = self.ledger.not_compacted().is_some();
        let (storage, wake) = (self.index.storage(), &self.wake);
        let help = || {
            let wake = Arc::clone(wake);
            Help { flush: storage.flusher(), ended: Box::new(move || wake.notify_one()) }
        };
        let Some(Compacted { written, error }) = self.ledger.tend(help) else { return };
        if let Some(Written { last_seq, covered_bytes, bytes }) = written {
            self.health.compactions += 1;
            tracing::info!(last_seq, covered_bytes, bytes, "the journal was compacted");
        }
        match error {
            // A disk that stays full would say the same for hours.
            Some(error) if known => tracing::debug!(%error, "the journal could not be compacted"),
            Some(error) => tracing::warn!(%error, "the journal could not be compacted; tried again"),
            None => {}
        }
    }

    /// Whether the store may still be believed.
    pub(super) fn check_store(&mut self) -> Result<(), StorageError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.index.storage().failure().cloned().map_or(Ok(()), Err)
    }

    /// A journal that failed is begun anew before anything is taken or decided. What it holds and was never synced goes
    /// over into the new segment; the world is looked at again, for nobody knows what else that disk forgot.
    pub(in crate::daemon) fn trust_journal(&mut self) -> Result<(), StorageError> {
        let Some(why) = self.ledger.failed() else { return Ok(()) };
        let now = Instant::now();
        if self.anew_at.is_some_and(|at| now < at) {
            return Err(closed(&why));
        }
        let begun = self.ledger.begin_anew();
        // Counted from its end, for a disk that fails may be slow at it.
        self.anew_at = Some(Instant::now() + ANEW_PAUSE);
        if let Err(error) = begun {
            tracing::error!(%error, why, "the journal could not be begun anew");
            if error.is_damage() {
                // What was never acknowledged is gone from the disk. The index knows it, so it is made again.
                self.failed =
                    Some(StorageError::contents("follow the journal", Table::Meta, error.to_string()));
            }
            return Err(closed(&why));
        }
        self.anew_at = None;
        let what = format!("the journal goes on in a new segment, for {why}");
        tracing::warn!("{what}");
        if let Err(error) = self.log.event("healed", &[("what", &what)]) {
            tracing::error!(%error, "that the journal was begun anew could not be logged");
        }
        self.begin_epoch(&what).inspect_err(|error| self.failed = Some(error.clone()))
    }
}

fn closed(why: &str) -> StorageError {
    let reason = format!("the journal takes nothing: {why}");
    StorageError { verb: "follow the journal", table: Table::Meta, reason, trouble: Trouble::Disk }
}

/// Not for want of a disk, or sled would have said so.
fn half_applied(reason: &str) -> StorageError {
    StorageError::contents("apply a record", Table::Meta, reason)
}

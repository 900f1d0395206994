//! The owner of the decision log: one line a decision, written before the answer, synced as configured.

use super::clock;
use crate::config::Sync;
use crate::protocol::time;
use crate::store::decision_log::{DecisionLog, LogError, Receipt};
use crate::store::syncer::{Syncer, Watched};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The decision log, shared by those who append to it.
#[derive(Clone)]
pub(super) struct Log {
    inner: Arc<Mutex<Inner>>,
    path: PathBuf,
}

struct Inner {
    log: DecisionLog,
    watched: Watched,
    syncer: Syncer,
    sync: Sync,
    interval: Duration,
}

/// A line could not be logged, so nothing may be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unlogged {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the decision log could not be synced: {0}")]
    Sync(Arc<std::io::Error>),
    #[error("the decision log is no longer synced")]
    Gone,
}

impl Log {
    pub(super) fn open(state: &Path, sync: Sync, interval: Duration) -> Result<Self, LogError> {
        let path = state.join("decisions.jsonl");
        let (log, opened) = DecisionLog::open(&path)?;
        let io = |source| LogError::Io { doing: "start the syncer of", path: path.clone(), source };
        let syncer = Syncer::start("log-sync").map_err(io)?;
        let watched = syncer.watch(log.file()?);
        let inner = Inner { log, watched, syncer, sync, interval };
        inner.apply_mode();
        let log = Self { inner: Arc::new(Mutex::new(inner)), path };
        if opened.torn_bytes > 0 {
            tracing::warn!(bytes = opened.torn_bytes, "a torn line was cut from the decision log");
            log.event(
                "healed",
                &[("what", &format!("{} bytes of a torn line were cut", opened.torn_bytes))],
            )?;
        }
        Ok(log)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.lock().log.last().map_or(0, |receipt| receipt.seq)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn configure(&self, sync: Sync, interval: Duration) {
        let mut inner = self.lock();
        (inner.sync, inner.interval) = (sync, interval);
        inner.apply_mode();
    }

    pub(super) fn mode(&self) -> Sync {
        self.lock().sync
    }

    /// The sync error that is final for the current file, if there was one.
    pub(super) fn failed(&self) -> Option<String> {
        self.lock().watched.failed().map(|error| format!("the decision log could not be synced: {error}"))
    }

    pub(super) fn reopen(&self) -> Result<(), LogError> {
        let mut inner = self.lock();
        inner.log.reopen()?;
        inner.watched = inner.syncer.watch(inner.log.file()?);
        inner.apply_mode();
        Ok(())
    }

    /// Writes one line. When this returns the line is where the configured mode wants it.
    pub(super) async fn append(&self, object: &str) -> Result<Receipt, Unlogged> {
        let (receipt, synced) = {
            let mut inner = self.lock();
            if let Some(error) = inner.watched.failed() {
                return Err(Unlogged::Sync(error));
            }
            let receipt = inner.log.append(object)?;
            (receipt, inner.sync_after_append())
        };
        match synced {
            None => Ok(receipt),
            Some(synced) => match synced.await {
                Ok(Ok(())) => Ok(receipt),
                Ok(Err(error)) => Err(Unlogged::Sync(error)),
                Err(_) => Err(Unlogged::Gone),
            },
        }
    }

    /// Writes one line that is no decision.
    pub(super) fn event(&self, event: &str, fields: &[(&str, &str)]) -> Result<Receipt, LogError> {
        let mut object = serde_json::Map::new();
        object.insert("event".to_owned(), event.into());
        object.insert("at".to_owned(), time::to_text(clock::now()).into());
        for (name, value) in fields {
            object.insert((*name).to_owned(), (*value).into());
        }
        let mut inner = self.lock();
        let receipt = inner.log.append(&serde_json::Value::Object(object).to_string())?;
        inner.watched.written();
        Ok(receipt)
    }
}

impl Inner {
    fn apply_mode(&self) {
        self.watched.sync_every((self.sync == Sync::Interval).then_some(self.interval));
    }

    fn sync_after_append(&self) -> Option<oneshot::Receiver<crate::store::syncer::Synced>> {
        if self.sync != Sync::Always {
            self.watched.written();
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        // Whoever waited may have gone away.
        self.watched.sync_soon(Box::new(move |synced| drop(sender.send(synced))));
        Some(receiver)
    }
}

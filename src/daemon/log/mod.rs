//! The owner of the decision log: one line a decision, written before the answer, synced as configured.
//!
//! Promise: after a failure nothing is answered until a line has been written and, where the old file cannot be trusted
//! any more, been synced in a new one. A sync error is final for its file. That it failed is told while it lasts, and a
//! `healed` line in the new file says it. After a panic nothing is appended, and the process ends. A file that is long enough is rotated away. Its head is anchored in the journal.

mod inner;
#[cfg(test)]
mod tests;
mod trouble;

use super::anchor::Anchors;
use super::clock;
use super::synced::{Unsynced, synced};
use crate::config::{self, Sync};
use crate::store::decision_log::{DecisionLog, LogError, Receipt};
use crate::store::syncer::Syncer;
use crate::world::dart::{Dart, Died};
use inner::{Inner, event_line};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trouble::Trouble;

/// The decision log, shared by those who append to it.
#[derive(Clone)]
pub(super) struct Log {
    inner: Arc<Mutex<Inner>>,
    path: PathBuf,
    died: Died,
}

/// The log in one hand. Who panics with it in his hand may leave it half changed; he is no thread of its own, but it is
/// told as the end of one.
struct Held<'log> {
    // Let go, and so poisoned, before the end is told.
    inner: MutexGuard<'log, Inner>,
    _dart: Dart,
}

impl Deref for Held<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

/// A line could not be logged, so nothing may be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unlogged {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the decision log {0}")]
    Unsynced(#[from] Unsynced),
}

impl Log {
    pub(super) fn open(state: &Path, options: &config::Log, died: &Died) -> Result<Self, LogError> {
        let path = state.join("decisions.jsonl");
        let (log, opened) = DecisionLog::open_or_set_aside(&path, &aside(&path))?;
        let io = |source| LogError::Io { doing: "start the syncer of", path: path.clone(), source };
        let syncer = Syncer::start("log-sync", died).map_err(io)?;
        let watched = syncer.watch(log.file()?);
        let options = options.clone();
        let anchors = Anchors::new(options.anchor_lines);
        let inner = Inner {
            log,
            watched,
            syncer,
            options,
            anchors,
            path: path.clone(),
            trouble: Trouble::default(),
            broken: None,
            late: Arc::default(),
            rotate_after: None,
        };
        inner.apply_mode();
        let log = Self { inner: Arc::new(Mutex::new(inner)), path, died: died.clone() };
        if opened.torn_bytes > 0 {
            tracing::warn!(bytes = opened.torn_bytes, "a torn line was cut from the decision log");
            log.say_healed(&format!("{} bytes of a torn line were cut", opened.torn_bytes));
        }
        if let Some(why) = opened.set_aside {
            tracing::error!(why, "the decision log goes on in a new file");
            log.say_healed(&format!("the decision log goes on in a new file, for {why}"));
        }
        Ok(log)
    }

    /// On a full disk it is not said, and nothing is decided either until a line can be written.
    fn say_healed(&self, what: &str) {
        if let Err(error) = self.event("healed", &[("what", what)]) {
            tracing::error!(%error, what, "what was healed could not be logged");
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.lock().log.last().map_or(0, |receipt| receipt.seq)
    }

    /// Lines so far, from the first file on, and syncs since the start.
    pub(super) fn counts(&self) -> (u64, u64) {
        let inner = self.lock();
        let lines = inner.log.last().map_or(0, |receipt| receipt.seq);
        (lines, inner.syncer.syncs())
    }

    fn lock(&self) -> Held<'_> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Held { inner, _dart: self.died.dart("appender") }
    }

    /// To write to. Until the process has ended, nothing may follow what a panic broke off.
    fn whole(&self) -> Result<Held<'_>, LogError> {
        let held = self.lock();
        if self.inner.is_poisoned() {
            let why = "a panic came while it was written to".to_owned();
            return Err(LogError::Poisoned { path: self.path.clone(), why });
        }
        Ok(held)
    }

    pub(super) fn configure(&self, options: &config::Log) {
        let mut inner = self.lock();
        inner.options = options.clone();
        inner.anchors.configure(options.anchor_lines);
        inner.apply_mode();
    }

    pub(super) fn mode(&self) -> Sync {
        self.lock().options.sync
    }

    /// Who keeps the anchors, `journald` or `nothing`, and how many were lost.
    pub(super) fn anchored(&self) -> (&'static str, u64) {
        self.lock().anchors.reach()
    }

    /// Anchors the log's end. When this returns the anchor is sent, if it can be.
    pub(super) async fn anchor(&self) {
        let sent = self.lock().anchor();
        // Nothing is told here but that it is over.
        let _ = sent.await;
    }

    /// Why nothing can be logged at the moment. Whoever asks has it tried again first.
    pub(super) fn failed(&self) -> Option<String> {
        match self.whole() {
            Ok(mut inner) => inner.tried_again(),
            Err(error) => Some(format!("nothing is decided: {error}")),
        }
    }

    /// What a sync failed of, once for each failure: the disk that forgot it may have forgotten more.
    pub(super) fn sync_lost(&self) -> Option<String> {
        let mut inner = self.lock();
        inner.notice();
        inner.trouble.take_untold()
    }

    /// After somebody renamed the file away. Another file under its name is none of ours, and is set aside.
    pub(super) fn reopen(&self) -> Result<(), LogError> {
        let mut inner = self.whole()?;
        inner.notice();
        if inner.broken.is_some() {
            // The same file under a new handle would look as if it could be synced.
            inner.mend()?;
            return inner.say_healed();
        }
        match inner.log.reopen() {
            Ok(_) => {
                inner.let_go(None);
                inner.watch_anew()
            }
            Err(error) if error.ends_the_file() => {
                inner.begin_new_file(&error.to_string())?;
                inner.say_healed()
            }
            Err(error) => Err(error),
        }
    }

    /// Writes one line. When this returns the line is where the configured mode wants it.
    pub(super) async fn append(&self, object: &str) -> Result<Receipt, Unlogged> {
        let (receipt, word) = {
            let mut inner = self.whole()?;
            let receipt = inner.append(object)?;
            let word = inner.sync_after_append();
            inner.rotate_if_long();
            (receipt, word)
        };
        if let Some(word) = word {
            synced(word).await?;
        }
        Ok(receipt)
    }

    /// Writes one line that is no decision, for somebody who is answered because of it. When this returns the line is
    /// where the configured mode wants it.
    pub(super) async fn event_answered(
        &self,
        event: &str,
        fields: &[(&str, &str)],
    ) -> Result<Receipt, Unlogged> {
        self.append(&event_line(event, fields)).await
    }

    /// Writes one line that is no decision, for nobody. It is synced as configured, and not waited for.
    pub(super) fn event(&self, event: &str, fields: &[(&str, &str)]) -> Result<Receipt, LogError> {
        let mut inner = self.whole()?;
        let receipt = inner.append(&event_line(event, fields))?;
        drop(inner.sync_after_append());
        Ok(receipt)
    }
}

/// A name for the file that is rotated away, which nothing has yet.
fn aside(path: &Path) -> PathBuf {
    loop {
        let aside = path.with_file_name(format!("decisions-{}.jsonl", clock::fine_stamp()));
        if aside.symlink_metadata().is_err() {
            return aside;
        }
    }
}

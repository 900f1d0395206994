//! The files of the decision log: which one is written to, when it is left, and what the syncer says of it.
//!
//! Promise: a sync that failed is never forgotten, be it of the file that is written to or of one that was left before.

use super::super::anchor::{Anchor, Anchors};
use super::super::clock;
use super::aside;
use super::trouble::{Trouble, unsynced};
use crate::config::{self, Sync};
use crate::protocol::time;
use crate::store::decision_log::{DecisionLog, LogError, Receipt};
use crate::store::syncer::{Synced, Syncer, Watched};
use crate::world::dart::fault;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a file that is too long, and cannot be rotated away, goes on growing before that is tried again.
const ROTATE_PAUSE: Duration = Duration::from_secs(5);

/// A file that was never relied on, and is no longer than this, is replaced by a copy of itself when it fails. A disk
/// that fails for days would leave a file for every try.
const RENEWED_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Inner {
    pub(super) log: DecisionLog,
    pub(super) watched: Watched,
    pub(super) syncer: Syncer,
    pub(super) options: config::Log,
    pub(super) anchors: Anchors,
    pub(super) path: PathBuf,
    pub(super) trouble: Trouble,
    /// Why the file may not be gone on with.
    pub(super) broken: Option<String>,
    /// Why the end of a file that was left may not be on disk, told by the syncer after the log had gone on.
    pub(super) late: Arc<Mutex<Option<String>>>,
    /// When a file that is too long, and could not be rotated away, may be tried again.
    pub(super) rotate_after: Option<Instant>,
}

pub(super) fn event_line(event: &str, fields: &[(&str, &str)]) -> String {
    let mut object = serde_json::Map::new();
    object.insert("event".to_owned(), event.into());
    object.insert("at".to_owned(), time::to_text(clock::now()).into());
    for (name, value) in fields {
        object.insert((*name).to_owned(), (*value).into());
    }
    serde_json::Value::Object(object).to_string()
}

impl Inner {
    pub(super) fn append(&mut self, object: &str) -> Result<Receipt, LogError> {
        fault("appender");
        let appended = self.mend().and_then(|()| self.log.append(object));
        let appended = match appended {
            Err(error) if error.ends_the_file() => {
                self.begin_new_file(&error.to_string()).and_then(|()| self.log.append(object))
            }
            appended => appended,
        };
        match appended {
            Ok(receipt) => {
                // If it cannot be said now, the next line tries again.
                drop(self.say_healed());
                if self.anchors.is_due(receipt.seq) {
                    drop(self.anchor());
                }
                Ok(receipt)
            }
            // The object's fault, and not the log's.
            Err(LogError::NotAnObject) => Err(LogError::NotAnObject),
            Err(error) => {
                self.trouble.begin(&error.to_string());
                Err(error)
            }
        }
    }

    /// Sends the head to the journal once it is on disk; the receiver is let go then.
    pub(super) fn anchor(&mut self) -> oneshot::Receiver<()> {
        let (over, sent) = oneshot::channel();
        if let Some(anchor) = self.anchors.take(&self.log) {
            self.watched.sync_soon(Box::new(move |synced| {
                if synced.is_ok() {
                    anchor.send();
                }
                drop(over);
            }));
        }
        sent
    }

    /// Takes note of what the syncer has told since.
    pub(super) fn notice(&mut self) {
        // A sync that is counted, and then found without an error, has passed; after an error nothing is synced.
        let synced = self.trouble.is_unproven() && self.watched.syncs() > 0;
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).take();
        let failed = self.watched.failed().map(|error| error.to_string());
        let passed = if failed.is_some() { self.watched.syncs() > 1 } else { synced };
        if passed && self.broken.is_none() && self.trouble.is_unproven() {
            self.trouble.proven();
        }
        if let Some(error) = failed.or(late) {
            self.lose(&error);
        }
    }

    fn lose(&mut self, error: &str) {
        self.trouble.sync_failed(error);
        self.broken.get_or_insert_with(|| unsynced(error));
    }

    /// A file whose sync failed takes nothing more: the kernel has forgotten what it lost, and would call the next sync
    /// a success.
    pub(super) fn mend(&mut self) -> Result<(), LogError> {
        self.notice();
        self.broken.clone().map_or(Ok(()), |why| self.begin_new_file(&why))
    }

    /// The new file is synced before it has its name. That proves little of the disk yet: until a sync has passed in it,
    /// whoever is answered is answered after a sync.
    pub(super) fn begin_new_file(&mut self, why: &str) -> Result<(), LogError> {
        self.trouble.begin(why);
        if !self.trouble.may_try(Instant::now()) {
            let (path, why) = (self.path.clone(), why.to_owned());
            return Err(LogError::Poisoned { path, why });
        }
        let rotated = self.rotate(Some(why));
        self.trouble.tried(Instant::now());
        rotated?;
        tracing::warn!(why, "the decision log goes on in a new file");
        Ok(())
    }

    /// Says why the file was begun, or the line before is late, and has that synced where the file has yet to prove
    /// itself.
    pub(super) fn say_healed(&mut self) -> Result<(), LogError> {
        if let Some(what) = self.trouble.unsaid() {
            self.log.append(&event_line("healed", &[("what", what)]))?;
            self.trouble.healed_said();
            self.watched.written();
        }
        if self.trouble.is_unproven() {
            self.watched.sync_soon(Box::new(drop));
        }
        Ok(())
    }

    pub(super) fn tried_again(&mut self) -> Option<String> {
        self.notice();
        if self.trouble.why().is_some()
            && let Err(error) = self.mend().and_then(|()| self.say_healed())
            && error.ends_the_file()
        {
            drop(self.begin_new_file(&error.to_string()));
        }
        self.trouble.why().map(|why| format!("nothing is decided, for the decision log failed: {why}"))
    }

    pub(super) fn rotate_if_long(&mut self) {
        let paused = self.rotate_after.is_some_and(|after| Instant::now() < after);
        // One that has yet to prove itself is not left for its length.
        if self.log.bytes() < self.options.file_bytes_max || self.trouble.why().is_some() || paused {
            return;
        }
        let rotated = self.rotate(None);
        // Every try writes and syncs a file, and who waits for a decision waits for it.
        self.rotate_after = rotated.is_err().then(|| Instant::now() + ROTATE_PAUSE);
        if let Err(error) = rotated {
            // The line is logged; one that comes later tries again.
            tracing::warn!(%error, "the decision log was not rotated");
            return;
        }
        if self.options.files_max > 0 {
            match self.log.forget_oldest(self.options.files_max) {
                Ok(gone) => gone.iter().for_each(|file| tracing::info!(file = %file.display(), "removed")),
                Err(error) => tracing::warn!(%error, "old files of the decision log stay"),
            }
        }
    }

    /// The old file is synced before anything in the new one: the syncer serves files in the order they came to it.
    pub(super) fn rotate(&mut self, why: Option<&str>) -> Result<(), LogError> {
        let before = self.log.last().cloned();
        let rotated = self.go_on(why);
        // Where it failed before the new file had its name, the old one stays, and so does what is known of it. Where
        // only the last step failed the log is in the new file.
        if self.log.last() != before.as_ref() {
            // The new file's head is on disk already; what it follows is after this sync. Where that may fail the next
            // line is anchored, which does not wait for it.
            let anchor = if why.is_none() { self.anchors.take(&self.log) } else { None };
            if why.is_some() {
                self.anchors.make_due();
                self.trouble.left_the_file();
            }
            self.let_go(anchor);
            self.watch_anew()?;
            if let Err(error) = &rotated {
                // A power cut would bring the old file back under the log's name.
                self.lose(&error.to_string());
            }
        }
        rotated.map(drop)
    }

    fn go_on(&mut self, why: Option<&str>) -> Result<Receipt, LogError> {
        let renewable = self.trouble.is_unproven() && self.log.bytes() <= RENEWED_BYTES_MAX;
        if let Some(why) = why.filter(|_| renewable) {
            match self.log.renew(&event_line("log_renewed", &[("why", why)])) {
                Err(error) if error.ends_the_file() => {}
                renewed => return renewed,
            }
        }
        self.log.rotate(&aside(&self.path), why)
    }

    /// Has the file synced that is left, and the anchor sent after that.
    pub(super) fn let_go(&mut self, anchor: Option<Anchor>) {
        if let Some(error) = self.watched.failed() {
            // Known by now, and so not late.
            return self.trouble.sync_failed(&error.to_string());
        }
        let late = Arc::clone(&self.late);
        self.watched.sync_soon(Box::new(move |synced| match synced {
            Ok(()) => anchor.iter().for_each(Anchor::send),
            Err(error) => {
                tracing::error!(%error, "the end of a decision log that was left may not be on disk");
                *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        }));
    }

    /// Without a handle for the syncer its syncs would be those of the file before, so nothing is logged then.
    pub(super) fn watch_anew(&mut self) -> Result<(), LogError> {
        let file = self.log.file().inspect_err(|error| {
            self.trouble.begin(&error.to_string());
            self.broken = Some(error.to_string());
        })?;
        self.broken = None;
        self.watched = self.syncer.watch(file);
        self.apply_mode();
        Ok(())
    }

    pub(super) fn apply_mode(&self) {
        let interval = Duration::from_millis(self.options.sync_interval_ms);
        self.watched.sync_every((self.options.sync == Sync::Interval).then_some(interval));
    }

    pub(super) fn sync_after_append(&self) -> Option<oneshot::Receiver<Synced>> {
        if self.options.sync != Sync::Always && !self.trouble.is_unproven() {
            self.watched.written();
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        // Whoever waited may have gone away.
        self.watched.sync_soon(Box::new(move |synced| drop(sender.send(synced))));
        Some(receiver)
    }
}

//! The owner of the decision log: one line a decision, written before the answer, synced as configured.
//!
//! Promise: after a failure nothing is answered until a line has been written, in a new file that was synced where the
//! old one cannot be trusted any more. A sync error is final for its file. That it failed is told while it lasts, and a
//! `healed` line says it afterwards. A file that is long enough is rotated away. Its head is anchored in the journal.

use super::anchor::{Anchor, Anchors};
use super::clock;
use crate::config::{self, Sync};
use crate::protocol::time;
use crate::store::decision_log::{DecisionLog, LogError, Receipt};
use crate::store::syncer::{Syncer, Watched};
use crate::world::dart::Died;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a file that cannot be written is left alone before a new one is tried again.
const MEND_PAUSE: Duration = Duration::from_millis(100);

/// How long a file that is too long, and cannot be rotated away, goes on growing before that is tried again.
const ROTATE_PAUSE: Duration = Duration::from_secs(5);

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
    options: config::Log,
    anchors: Anchors,
    path: PathBuf,
    /// Why the last line could not be logged; none when it could.
    trouble: Option<String>,
    mend_after: Option<Instant>,
    rotate_after: Option<Instant>,
    /// Why the end of a file that was left may not be on disk, told by the syncer after the log had gone on.
    late: Arc<Mutex<Option<String>>>,
    /// A sync that failed since the engine last asked, once the log has gone on elsewhere.
    lost: Option<String>,
    /// Whether the engine has been told of the failure that stands.
    lost_told: bool,
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
    pub(super) fn open(state: &Path, options: &config::Log, died: &Died) -> Result<Self, LogError> {
        let path = state.join("decisions.jsonl");
        let (log, opened) = DecisionLog::open_or_set_aside(&path, &aside(&path))?;
        let io = |source| LogError::Io { doing: "start the syncer of", path: path.clone(), source };
        let syncer = Syncer::start("log-sync", died).map_err(io)?;
        let watched = syncer.watch(log.file()?);
        let options = options.clone();
        let anchors = Anchors::new(options.anchor_lines);
        let (trouble, mend_after) = (None, None);
        let inner = Inner {
            log,
            watched,
            syncer,
            options,
            anchors,
            path: path.clone(),
            trouble,
            mend_after,
            rotate_after: None,
            late: Arc::default(),
            lost: None,
            lost_told: false,
        };
        inner.apply_mode();
        let log = Self { inner: Arc::new(Mutex::new(inner)), path };
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.lock().tried_again()
    }

    /// What a sync failed of, once for each failure: the disk that forgot it may have forgotten more.
    pub(super) fn sync_lost(&self) -> Option<String> {
        self.lock().sync_lost()
    }

    /// After somebody renamed the file away. Another file under its name is none of ours, and is set aside.
    pub(super) fn reopen(&self) -> Result<(), LogError> {
        let mut inner = self.lock();
        if let Some(error) = inner.watched.failed() {
            // The same file under a new handle would look as if it could be synced.
            inner.rotate(Some(&format!("it could not be synced: {error}")))?;
            inner.left_unsynced(error.to_string());
            return Ok(());
        }
        match inner.log.reopen() {
            Ok(_) => inner.watch_anew(),
            Err(error) if error.ends_the_file() => inner.rotate(Some(&error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Writes one line. When this returns the line is where the configured mode wants it.
    pub(super) async fn append(&self, object: &str) -> Result<Receipt, Unlogged> {
        let (receipt, synced) = {
            let mut inner = self.lock();
            let receipt = inner.append(object)?;
            let synced = inner.sync_after_append();
            inner.rotate_if_long();
            (receipt, synced)
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
        let mut inner = self.lock();
        let receipt = inner.append(&event_line(event, fields))?;
        inner.watched.written();
        Ok(receipt)
    }
}

fn event_line(event: &str, fields: &[(&str, &str)]) -> String {
    let mut object = serde_json::Map::new();
    object.insert("event".to_owned(), event.into());
    object.insert("at".to_owned(), time::to_text(clock::now()).into());
    for (name, value) in fields {
        object.insert((*name).to_owned(), (*value).into());
    }
    serde_json::Value::Object(object).to_string()
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

impl Inner {
    fn append(&mut self, object: &str) -> Result<Receipt, LogError> {
        let appended = self.mend().and_then(|()| self.log.append(object));
        let appended = match appended {
            Err(error) if error.ends_the_file() => {
                self.begin_new_file(&error.to_string()).and_then(|()| self.log.append(object))
            }
            appended => appended,
        };
        match appended {
            Ok(receipt) => {
                self.say_healed();
                if self.anchors.is_due(receipt.seq) {
                    drop(self.anchor());
                }
                Ok(receipt)
            }
            // The object's fault, and not the log's.
            Err(LogError::NotAnObject) => Err(LogError::NotAnObject),
            Err(error) => {
                self.trouble.get_or_insert_with(|| error.to_string());
                Err(error)
            }
        }
    }

    /// Sends the head to the journal once it is on disk; the receiver is let go then.
    fn anchor(&mut self) -> oneshot::Receiver<()> {
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

    fn unsynced(&self) -> Option<String> {
        let late = || self.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.watched.failed().map(|error| error.to_string()).or_else(late)
    }

    fn sync_lost(&mut self) -> Option<String> {
        let stands = self.unsynced().filter(|_| !std::mem::replace(&mut self.lost_told, true));
        self.lost.take().or(stands)
    }

    /// A file whose sync failed takes nothing more: the kernel has forgotten what it lost, and would call the next sync
    /// a success.
    fn mend(&mut self) -> Result<(), LogError> {
        let Some(error) = self.unsynced() else { return Ok(()) };
        self.begin_new_file(&format!("the file before could not be synced: {error}"))?;
        // Only now has a write been synced again.
        *self.late.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.left_unsynced(error);
        Ok(())
    }

    /// The log has gone on elsewhere, perhaps before the engine asked.
    fn left_unsynced(&mut self, error: String) {
        if !std::mem::take(&mut self.lost_told) {
            self.lost = Some(error);
        }
    }

    /// The new file is synced before it has its name, so whoever is answered from it is answered after a sync.
    fn begin_new_file(&mut self, why: &str) -> Result<(), LogError> {
        self.trouble.get_or_insert_with(|| why.to_owned());
        if self.mend_after.is_some_and(|after| Instant::now() < after) {
            let (path, why) = (self.path.clone(), why.to_owned());
            return Err(LogError::Poisoned { path, why });
        }
        self.mend_after = Some(Instant::now() + MEND_PAUSE);
        self.rotate(Some(why))?;
        self.mend_after = None;
        tracing::warn!(why, "the decision log goes on in a new file");
        Ok(())
    }

    fn say_healed(&mut self) {
        if let Some(what) = self.trouble.take()
            && self.log.append(&event_line("healed", &[("what", &what)])).is_err()
        {
            self.trouble = Some(what);
        }
    }

    fn tried_again(&mut self) -> Option<String> {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if late || self.trouble.is_some() || self.watched.failed().is_some() {
            let healed = self.mend().and_then(|()| {
                let what = self.trouble.clone().unwrap_or_default();
                self.log.append(&event_line("healed", &[("what", &what)]))
            });
            match healed {
                Ok(_) => {
                    self.trouble = None;
                    self.watched.written();
                }
                Err(error) if error.ends_the_file() => drop(self.begin_new_file(&error.to_string())),
                Err(_) => {}
            }
        }
        self.trouble.as_ref().map(|why| format!("nothing is decided, for the decision log failed: {why}"))
    }

    fn rotate_if_long(&mut self) {
        let now = Instant::now();
        if self.log.bytes() < self.options.file_bytes_max
            || self.rotate_after.is_some_and(|after| now < after)
        {
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
    fn rotate(&mut self, why: Option<&str>) -> Result<(), LogError> {
        let before = self.log.last().cloned();
        let rotated = self.log.rotate(&aside(&self.path), why);
        // Where it failed before the new file had its name, the old one stays, and so does what is known of it. Where
        // only the last step failed the log is in the new file.
        if self.log.last() != before.as_ref() {
            // The new file's head is on disk already; what it follows is after this sync. Where that may fail the next
            // line is anchored, which does not wait for it.
            let anchor = if why.is_none() { self.anchors.take(&self.log) } else { None };
            if why.is_some() {
                self.anchors.make_due();
            }
            let late = Arc::clone(&self.late);
            self.watched.sync_soon(Box::new(move |synced| match synced {
                Ok(()) => anchor.iter().for_each(Anchor::send),
                Err(error) => {
                    tracing::error!(%error, "the end of a rotated decision log may not be on disk");
                    *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                }
            }));
            self.watch_anew()?;
        }
        rotated.map(drop)
    }

    fn watch_anew(&mut self) -> Result<(), LogError> {
        self.watched = self.syncer.watch(self.log.file()?);
        self.apply_mode();
        Ok(())
    }

    fn apply_mode(&self) {
        let interval = Duration::from_millis(self.options.sync_interval_ms);
        self.watched.sync_every((self.options.sync == Sync::Interval).then_some(interval));
    }

    fn sync_after_append(&self) -> Option<oneshot::Receiver<crate::store::syncer::Synced>> {
        if self.options.sync != Sync::Always {
            self.watched.written();
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        // Whoever waited may have gone away.
        self.watched.sync_soon(Box::new(move |synced| drop(sender.send(synced))));
        Some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchors, Died, Log, config};
    use std::fs::File;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    #[test]
    fn a_rotated_file_that_cannot_be_synced_any_more_is_told_and_the_log_goes_on_in_another() {
        let state = tempfile::tempdir().unwrap();
        let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
        log.event("first", &[]).unwrap();
        {
            let mut inner = log.lock();
            // No kernel syncs a device.
            inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
            inner.rotate(None).unwrap();
        }
        let begun = std::time::Instant::now();
        while log.lock().late.lock().unwrap().is_none() {
            assert!(begun.elapsed().as_secs() < 60, "the syncer never told");
            std::thread::yield_now();
        }
        log.event("second", &[]).unwrap();
        let files = std::fs::read_dir(state.path()).unwrap().count();
        assert_eq!(files, 3, "the first, the one that followed it, and the one that follows that");
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert!(text.contains("\"healed\"") && text.contains("could not be synced"), "{text}");
        assert_eq!(log.failed(), None);
    }

    /// It is the file that somebody may have cut.
    #[test]
    fn a_file_that_follows_one_that_failed_is_anchored_at_once() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("socket");
        let journald = UnixDatagram::bind(&path).unwrap();
        journald.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let anchor = || {
            let mut bytes = [0; 1024];
            let len = journald.recv(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
            text.lines()
                .find_map(|line| line.strip_prefix("STALED_ANCHOR_SEQ=")?.parse::<u64>().ok())
                .unwrap()
        };
        let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
        log.lock().anchors = Anchors::at(path.clone(), 1_000);
        assert_eq!((log.event("first", &[]).unwrap().seq, anchor()), (1, 1));
        {
            let mut inner = log.lock();
            inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
            let (told, outcome) = std::sync::mpsc::channel();
            inner.watched.sync_soon(Box::new(move |synced| told.send(synced).unwrap()));
            outcome.recv().unwrap().unwrap_err();
        }
        let seq = log.event("second", &[]).unwrap().seq;
        assert_eq!((seq, log.last_seq(), anchor()), (3, 4, 4), "continued, second, healed");
    }

    /// It would hold up every decision for as long as the folder is full.
    #[tokio::test]
    async fn a_rotation_that_failed_is_not_tried_again_with_the_next_line() {
        let state = tempfile::tempdir().unwrap();
        let options = config::Log { file_bytes_max: 1, ..config::Log::default() };
        let log = Log::open(state.path(), &options, &Died::default()).unwrap();
        let in_the_way = state.path().join("decisions.jsonl.new");
        std::fs::create_dir(&in_the_way).unwrap();
        log.append("{}").await.unwrap();
        std::fs::remove_dir(&in_the_way).unwrap();
        let files = || std::fs::read_dir(state.path()).unwrap().count();
        let begun = log.lock().rotate_after.take().expect("it could not be rotated");
        log.lock().rotate_after = Some(begun + Duration::from_secs(3_600));
        log.append("{}").await.unwrap();
        assert_eq!(files(), 1, "not yet");
        log.lock().rotate_after = Some(begun.checked_sub(Duration::from_secs(60)).unwrap());
        log.append("{}").await.unwrap();
        assert_eq!((files(), log.lock().rotate_after), (2, None));
    }
}

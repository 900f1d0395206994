//! Compaction in the background: a thread for each, beside the engine that goes on journaling.
//!
//! Promise: the engine waits for no disk because of it, but for the new segment that a demand begins. The index hands over what it knows before the snapshot gets its
//! name, so that a kill finds an index no older than what the journal begins with; nothing is removed before the snapshot is
//! on disk. A failure, and a panic too, leaves the segments as they were: it is told, and all of it is done again after a
//! pause, from the snapshot if that is in place already.
//!
//! It is due when closed segments are long enough, or when a record among them is to be forgotten behind: then whatever their
//! length, and until it has succeeded.
//!
//! Absent: what is left of the records, which [`compact`] says.

use super::asides;
use super::compacting::compact;
use super::journal::{Closed, Journal, JournalError, Written};
use super::old_pages;
use crate::index::storage::StorageError;
use crate::world::dart::{Died, fault};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between a failure and the next try, doubled every time.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// What a compaction needs of its engine.
pub struct Help {
    /// Hands over what the index knows, or says why it cannot.
    pub flush: Box<dyn FnOnce() -> Result<(), String> + Send>,
    /// Told on the compaction's thread that it has ended. It should only pass that on.
    pub ended: Box<dyn FnOnce() + Send>,
}

/// Why the journal is not compacted, or not to the end. Whatever a snapshot that is in place does not stand for is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CompactionError {
    /// The segments cannot be read, the snapshot cannot be written, or what it stands for cannot be removed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is left of the segments cannot be told.
    #[error(transparent)]
    Told(#[from] StorageError),
    /// There is no need any more.
    #[error("the store is being closed")]
    Stopped,
    /// The segment that holds what is to be compacted cannot be closed.
    #[error("the journal could not go on in a new segment: {0}")]
    Close(JournalError),
    /// What was set aside of the index cannot be removed.
    #[error("what was set aside of the index could not be removed: {0}")]
    Asides(io::Error),
    /// The index did not take over.
    #[error("the index could not be flushed: {0}")]
    Flush(String),
    /// A defect of ours.
    #[error("the compaction panicked")]
    Panicked,
    /// There is no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// How a compaction ended. A snapshot that was written stands even when what it stands for could not be removed.
#[derive(Debug)]
pub struct Compacted {
    /// What is in place now.
    pub written: Option<Written>,
    /// Why it was not done, or not to its end.
    pub error: Option<CompactionError>,
}

/// Begins compactions when they are due, one at a time.
pub(super) struct Compactor {
    died: Died,
    bytes_min: u64,
    /// The folder of the index.
    index: PathBuf,
    /// What is told up to this record is to be compacted, whatever its length: it may be what was forgotten there.
    demanded: Option<u64>,
    running: Option<Running>,
    setback: Option<Setback>,
}

struct Setback {
    why: String,
    pause: Duration,
    /// When to try again; none once that time has come.
    until: Option<Instant>,
    /// What a snapshot stands for, and is still there.
    left: Option<Closed>,
}

impl Compactor {
    /// One that waits for `bytes_min` bytes of closed segments. What was set aside of the `index` goes with what is
    /// forgotten, for it may hold that too.
    pub(super) fn new(bytes_min: u64, index: PathBuf, died: &Died) -> Self {
        Self { died: died.clone(), bytes_min, index, demanded: None, running: None, setback: None }
    }

    /// What is told up to this record is compacted as soon as it can be. One that is running with less does not count.
    pub(super) fn demand(&mut self, seq: u64) {
        self.demanded = self.demanded.max(Some(seq));
    }

    /// Begins one if it is due, and says how the last one ended, once. For what is demanded the journal may go on in a new
    /// segment, if it `is_sound`.
    pub(super) fn tend(
        &mut self,
        journal: &mut Journal,
        is_sound: bool,
        help: impl FnOnce() -> Help,
    ) -> Option<Compacted> {
        if let Some(running) = &self.running {
            let compacted = running.outcome()?;
            let in_place = compacted.written.is_some() || running.only_remove;
            let left = in_place.then(|| running.closed.clone());
            let covered = running.asides.is_some().then(|| running.closed.last_seq());
            self.running = None;
            compacted.written.into_iter().for_each(|written| journal.compacted(written));
            self.note(compacted.error.as_ref(), left);
            if compacted.error.is_none() && self.demanded <= covered {
                self.demanded = None;
            }
            if self.demanded.is_some() {
                // Nobody may come by again for long. A failure stands in the setback.
                let _ = self.begin(journal, is_sound, help);
            }
            return Some(compacted);
        }
        self.begin(journal, is_sound, help)
    }

    fn begin(
        &mut self,
        journal: &mut Journal,
        is_sound: bool,
        help: impl FnOnce() -> Help,
    ) -> Option<Compacted> {
        let work = match self.due(journal, is_sound) {
            Ok(work) => work?,
            Err(error) => {
                let error = CompactionError::Close(error);
                self.note(Some(&error), None);
                return Some(Compacted { written: None, error: Some(error) });
            }
        };
        let left = work.only_remove.then(|| work.closed.clone());
        match Running::start(work, help(), &self.died) {
            Ok(running) => {
                self.running = Some(running);
                None
            }
            Err(error) => {
                let error = CompactionError::Thread(error);
                self.note(Some(&error), left);
                Some(Compacted { written: None, error: Some(error) })
            }
        }
    }

    /// What is to be done now, if anything.
    fn due(&mut self, journal: &mut Journal, is_sound: bool) -> Result<Option<Work>, JournalError> {
        let asides = self.demanded.map(|_| self.index.clone());
        if let Some(setback) = &mut self.setback {
            if setback.until.is_some_and(|until| until > Instant::now()) {
                return Ok(None);
            }
            setback.until = None;
            if let Some(closed) = setback.left.take() {
                return Ok(Some(Work { closed, only_remove: true, asides }));
            }
        }
        if is_sound && self.demanded.is_some_and(|seq| seq >= journal.first_seq()) {
            journal.roll()?;
        }
        let is_demanded = |closed: &Closed| self.demanded.is_some_and(|seq| seq <= closed.last_seq());
        let closed = journal.closed().filter(|closed| closed.is_due(self.bytes_min) || is_demanded(closed));
        Ok(closed.map(|closed| Work { closed, only_remove: false, asides }))
    }

    fn note(&mut self, error: Option<&CompactionError>, left: Option<Closed>) {
        let before = self.setback.take();
        self.setback = error.map(|error| {
            let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(PAUSE_MAX));
            Setback { why: error.to_string(), pause, until: Some(Instant::now() + pause), left }
        });
    }

    /// Why the last one failed, as long as none has succeeded since.
    pub(super) fn failed(&self) -> Option<&str> {
        self.setback.as_ref().map(|setback| setback.why.as_str())
    }

    /// When to try again after a failure.
    pub(super) fn next_try(&self) -> Option<Instant> {
        self.setback.as_ref().and_then(|setback| setback.until)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }
}

/// A compaction, or only the end of one.
#[derive(Clone)]
struct Work {
    closed: Closed,
    only_remove: bool,
    /// The index of which everything that was set aside goes first.
    asides: Option<PathBuf>,
}

struct Running {
    closed: Closed,
    only_remove: bool,
    asides: Option<PathBuf>,
    stop: Arc<AtomicBool>,
    outcome: Receiver<Compacted>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(work: Work, help: Help, died: &Died) -> io::Result<Self> {
        let Work { closed, only_remove, asides } = work.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, dart) = (Arc::clone(&stop), died.dart("journal-compact"));
        let (sender, outcome) = channel();
        let run = move || {
            fault(dart.thread());
            let Help { flush, ended } = help;
            // Nobody is left to be told when it was dropped meanwhile.
            let _ = sender.send(compacted(&work, flush, &theirs));
            ended();
        };
        let thread = thread::Builder::new().name("journal-compact".to_owned()).spawn(run)?;
        Ok(Self { closed, only_remove, asides, stop, outcome, thread: Some(thread) })
    }

    fn outcome(&self) -> Option<Compacted> {
        match self.outcome.try_recv() {
            Ok(compacted) => Some(compacted),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Compacted { written: None, error: Some(CompactionError::Panicked) })
            }
        }
    }
}

impl Drop for Running {
    /// Nobody else may open the journal while it is compacted.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by its hook.
            let _ = thread.join();
        }
    }
}

/// The whole of it. A panic is caught, or a record that makes us panic would end the process again with every start;
/// nobody else rests on what is half done here.
fn compacted(
    Work { closed, only_remove, asides }: &Work,
    flush: Box<dyn FnOnce() -> Result<(), String> + Send>,
    stop: &AtomicBool,
) -> Compacted {
    let mut written = None;
    let done = catch_unwind(AssertUnwindSafe(|| {
        // Before the snapshot: after it the next opening has no record any more that would demand it.
        if let Some(index) = asides {
            asides::prune(index, 0).and_then(|()| old_pages::note(index)).map_err(CompactionError::Asides)?;
        }
        if !only_remove {
            // What closed segments hold was applied before this was begun. An index that a kill leaves behind the snapshot
            // would be in doubt, and sound.
            flush().map_err(CompactionError::Flush)?;
            written = Some(compact(closed, stop)?);
        }
        // The next opening removes what an engine that ends does not wait for.
        if !stop.load(Ordering::Relaxed) {
            closed.remove_covered()?;
        }
        Ok(())
    }));
    Compacted { written, error: done.unwrap_or(Err(CompactionError::Panicked)).err() }
}

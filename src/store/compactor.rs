//! Compaction in the background: a thread for each, beside the engine that goes on journaling.
//!
//! Promise: the engine waits for no disk because of it. The index hands over what it knows before the snapshot gets its
//! name, so that a kill finds an index no older than what the journal begins with; nothing is removed before the snapshot is
//! on disk. A failure, and a panic too, leaves the segments as they were: it is told, and all of it is done again after a
//! pause, from the snapshot if that is in place already.
//!
//! Absent: what is left of the records, which [`compact`] says.

use super::compacting::compact;
use super::journal::{Closed, Journal, JournalError, Written};
use crate::index::storage::StorageError;
use crate::world::dart::{Died, fault};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// One that waits for `bytes_min` bytes of closed segments.
    pub(super) fn new(bytes_min: u64, died: &Died) -> Self {
        Self { died: died.clone(), bytes_min, running: None, setback: None }
    }

    /// Begins one if it is due, and says how the last one ended, once.
    pub(super) fn tend(&mut self, journal: &mut Journal, help: impl FnOnce() -> Help) -> Option<Compacted> {
        if let Some(running) = &self.running {
            let compacted = running.outcome()?;
            let in_place = compacted.written.is_some() || running.only_remove;
            let left = in_place.then(|| running.closed.clone());
            self.running = None;
            compacted.written.into_iter().for_each(|written| journal.compacted(written));
            self.note(compacted.error.as_ref(), left);
            return Some(compacted);
        }
        let work = self.due(journal)?;
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
    fn due(&mut self, journal: &Journal) -> Option<Work> {
        if let Some(setback) = &mut self.setback {
            if setback.until.is_some_and(|until| until > Instant::now()) {
                return None;
            }
            setback.until = None;
            if let Some(left) = setback.left.take() {
                return Some(Work { closed: left, only_remove: true });
            }
        }
        let closed = journal.closed().filter(|closed| closed.is_due(self.bytes_min))?;
        Some(Work { closed, only_remove: false })
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
struct Work {
    closed: Closed,
    only_remove: bool,
}

struct Running {
    closed: Closed,
    only_remove: bool,
    stop: Arc<AtomicBool>,
    outcome: Receiver<Compacted>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(work: Work, help: Help, died: &Died) -> io::Result<Self> {
        let (closed, only_remove) = (work.closed.clone(), work.only_remove);
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
        Ok(Self { closed, only_remove, stop, outcome, thread: Some(thread) })
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
    Work { closed, only_remove }: &Work,
    flush: Box<dyn FnOnce() -> Result<(), String> + Send>,
    stop: &AtomicBool,
) -> Compacted {
    let mut written = None;
    let done = catch_unwind(AssertUnwindSafe(|| {
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

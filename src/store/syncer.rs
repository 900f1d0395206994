//! Group commit: many requests to have a file on the platter, few `fdatasync`s.
//!
//! Promise: a request is answered `Ok` only by a sync that began after the request was queued. All requests that wait
//! at that moment share the sync. A sync error is final for its file: the kernel reports it once and then forgets
//! (later syncs would return success over lost bytes), so every later request gets the same error; the owner starts
//! another file and watches that one instead.
//!
//! Absent: writing. The owner writes, then asks; this thread holds nothing but the queue. There is no order between
//! files either, and an idle syncer never wakes up.

use crate::world::dart::{Dart, Died, fault};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Requests that may wait for one file; one more is answered with [`io::ErrorKind::ResourceBusy`] at once. More than
/// every connection can have pending together, so that the daemon meets its own bounds first.
pub const WAITING_MAX: usize = 32_768;

/// Whether this is the answer to one request too many, and no sync has failed. What the system says has a number.
pub(super) fn is_one_too_many(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy && error.raw_os_error().is_none()
}

/// How a sync ended; the error is shared by everybody who waited for it.
pub type Synced = Result<(), Arc<io::Error>>;

/// Told once, on the syncer's thread (on the caller's when the answer is known at once). It should only pass the news on.
pub type Done = Box<dyn FnOnce(Synced) + Send>;

/// The thread that syncs. Dropping it serves what is queued, then joins.
#[derive(Debug)]
pub struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread under this name. `died` is told when a panic ends it.
    pub fn start(name: &str, died: &Died) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let dart = died.dart(name);
        let run = move || theirs.run(&dart);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes a file into care. One handle, one file: a file that replaces another gets a handle of its own, and what
    /// waits on the old one is still served by the old file.
    #[must_use]
    pub fn watch(&self, file: File) -> Watched {
        let mut queue = self.shared.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        queue.slots.insert(id, Slot::new(file));
        Watched { shared: Arc::clone(&self.shared), id }
    }

    /// How many syncs it has made, of files too that nobody watches any more.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.shared.lock().syncs
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by its hook, and everything waiting was answered by its last word.
            let _ = thread.join();
        }
    }
}

/// One file in the syncer's care. Dropping it syncs what `written` still owes, and forgets the file afterwards; an
/// owner who must know how that ended asks with `sync_soon` first.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Shared>,
    id: u64,
}

impl Watched {
    /// Has everything written so far synced, and says how that went.
    pub fn sync_soon(&self, done: Done) {
        let refused = {
            let mut queue = self.shared.lock();
            match queue.refusal(self.id) {
                Some(error) => error,
                None => return self.enqueue(&mut queue, done),
            }
        };
        done(Err(refused));
    }

    fn enqueue(&self, queue: &mut Queue, done: Done) {
        if let Some(slot) = queue.slots.get_mut(&self.id) {
            slot.waiting.push(done);
        }
        self.shared.wake.notify_one();
    }

    /// Interval mode: from now on [`written`](Self::written) has the file synced at most this much later. `None` ends it.
    pub fn sync_every(&self, interval: Option<Duration>) {
        self.shared.with_slot(self.id, |slot| slot.interval = interval);
    }

    /// Something was written. Arms one sync in interval mode, and does nothing otherwise.
    pub fn written(&self) {
        let armed = self.shared.with_slot(self.id, |slot| match slot.interval {
            Some(interval) if slot.due.is_none() && slot.failed.is_none() => {
                slot.due = Some(Instant::now() + interval);
                true
            }
            _ => false,
        });
        if armed == Some(true) {
            self.shared.wake.notify_one();
        }
    }

    /// The error that was final for this file, if there was one, or that the syncer has stopped. In interval mode this is how the owner learns of it.
    #[must_use]
    pub fn failed(&self) -> Option<Arc<io::Error>> {
        let queue = self.shared.lock();
        if queue.closed { Some(stopped()) } else { queue.slots.get(&self.id)?.failed.clone() }
    }

    /// How many syncs this file has seen.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.shared.with_slot(self.id, |slot| slot.syncs).unwrap_or(0)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shared.with_slot(self.id, |slot| {
            slot.forgotten = true;
            slot.due = slot.due.map(|_| Instant::now());
        });
        self.shared.wake.notify_one();
    }
}

struct Slot {
    file: Arc<File>,
    waiting: Vec<Done>,
    interval: Option<Duration>,
    /// When the interval's sync is owed; `None` while nothing was written since the last one began.
    due: Option<Instant>,
    failed: Option<Arc<io::Error>>,
    syncs: u64,
    forgotten: bool,
}

impl Slot {
    fn new(file: File) -> Self {
        let file = Arc::new(file);
        Self {
            file,
            waiting: Vec::new(),
            interval: None,
            due: None,
            failed: None,
            syncs: 0,
            forgotten: false,
        }
    }

    fn has_work(&self, now: Instant, stopping: bool) -> bool {
        !self.waiting.is_empty() || self.due.is_some_and(|due| stopping || due <= now)
    }

    fn is_over(&self) -> bool {
        self.forgotten && self.waiting.is_empty() && self.due.is_none()
    }
}

#[derive(Default)]
struct Queue {
    slots: BTreeMap<u64, Slot>,
    next_id: u64,
    syncs: u64,
    stopping: bool,
    closed: bool,
}

impl Queue {
    fn refusal(&self, id: u64) -> Option<Arc<io::Error>> {
        let Some(slot) = self.slots.get(&id).filter(|_| !self.closed) else {
            return Some(stopped());
        };
        if slot.failed.is_some() {
            return slot.failed.clone();
        }
        let full = slot.waiting.len() >= WAITING_MAX;
        full.then(|| {
            Arc::new(io::Error::new(io::ErrorKind::ResourceBusy, "too many requests wait for one sync"))
        })
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn run(&self, dart: &Dart) {
        let _last = LastWord(self);
        while let Some(ready) = self.wait_for_work() {
            for id in ready {
                fault(dart.thread());
                self.serve(id);
            }
        }
    }

    /// The files that have work, or `None` when stopping and nothing is owed any more.
    fn wait_for_work(&self) -> Option<Vec<u64>> {
        let mut queue = self.lock();
        loop {
            queue.slots.retain(|_, slot| !slot.is_over());
            let (now, stopping) = (Instant::now(), queue.stopping);
            let ready: Vec<u64> = queue
                .slots
                .iter()
                .filter(|(_, slot)| slot.has_work(now, stopping))
                .map(|(&id, _)| id)
                .collect();
            if !ready.is_empty() {
                return Some(ready);
            }
            if stopping {
                return None;
            }
            queue = match queue.slots.values().filter_map(|slot| slot.due).min() {
                Some(due) => self.wait_until(queue, due - now),
                None => self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn wait_until<'a>(&self, queue: MutexGuard<'a, Queue>, time: Duration) -> MutexGuard<'a, Queue> {
        self.wake.wait_timeout(queue, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes what waits, then begins the sync: in that order, so that every request taken is covered by it.
    fn serve(&self, id: u64) {
        let taken = self.with_slot(id, |slot| {
            slot.due = None;
            (std::mem::take(&mut slot.waiting), Arc::clone(&slot.file), slot.failed.clone())
        });
        let Some((waiting, file, failed)) = taken else { return };
        let synced = match failed {
            // Queued while the failing sync ran: asking the kernel again would get a false success.
            Some(error) => Err(error),
            None => self.sync(id, &file),
        };
        for done in waiting {
            // One caller's panic costs nobody else the answer.
            let _ = catch_unwind(AssertUnwindSafe(|| done(synced.clone())));
        }
    }

    fn sync(&self, id: u64, file: &File) -> Synced {
        let synced = file.sync_data().map_err(Arc::new);
        self.lock().syncs += 1;
        self.with_slot(id, |slot| {
            slot.syncs += 1;
            slot.failed = synced.as_ref().err().cloned();
        });
        synced
    }

    fn with_slot<T>(&self, id: u64, ask: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.lock().slots.get_mut(&id).map(ask)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Callbacks run outside the lock, so a poisoned one still guards a whole queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the thread ends, for whatever reason, nobody is left waiting for it: who slipped in behind its last look is
/// answered here, who comes later is refused.
struct LastWord<'a>(&'a Shared);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        let left: Vec<Done> = {
            let mut queue = self.0.lock();
            queue.closed = true;
            queue.slots.values_mut().flat_map(|slot| std::mem::take(&mut slot.waiting)).collect()
        };
        for done in left {
            done(Err(stopped()));
        }
    }
}

fn stopped() -> Arc<io::Error> {
    Arc::new(io::Error::other("the syncer has stopped"))
}

//! The verifiers: threads that answer checks, several at once where that saves anything.

use super::dart::fault;
use super::eyes::Eyes;
use super::queue::{Queue, is_quick};
use super::way::Placed;
use crate::index::found::Found;
use crate::index::freshness::Doubt;
use crate::index::{Check, Looked, Settled, SourceId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A file above this size is not digested while others wait behind it.
const QUICK_BYTES_MAX: u64 = 1024 * 1024;

/// By what name a verifier is mourned.
const VERIFIER: &str = "verifier";

/// How many checks one verifier takes beside the first.
const TOGETHER_MAX: usize = 63;

pub(super) struct Verifiers {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    eyes: Eyes,
    threads: usize,
}

impl Verifiers {
    pub(super) fn start(threads: usize, eyes: Eyes) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let shared = Arc::new(Shared { queue: Mutex::default(), ready: Condvar::new(), eyes, threads });
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("verify-{number}")).spawn(move || shared.run())?;
        }
        Ok(Self { shared })
    }

    pub(super) fn submit(&self, checks: Vec<Check>, urgent: bool) {
        let mut queue = self.shared.lock();
        for check in checks {
            queue.add(check, urgent);
        }
        drop(queue);
        self.shared.ready.notify_all();
    }

    pub(super) fn hurry(&self, sources: &[SourceId]) {
        let mut queue = self.shared.lock();
        sources.iter().for_each(|&source| queue.hurry(source));
    }
}

impl Drop for Verifiers {
    fn drop(&mut self) {
        // Not joined: one that is in the middle of a large file would hold up the end of the process.
        self.shared.lock().closed = true;
        self.shared.ready.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let _dart = self.eyes.board.died.dart(VERIFIER);
        while let Some(checks) = self.next() {
            self.answer_all(checks);
        }
    }

    /// Several together, because arming takes one lock that all verifiers want; small files first. One that stumbles is
    /// answered by itself.
    fn answer_all(&self, checks: Vec<Check>) {
        if let [check] = checks.as_slice() {
            return self.conclude(check, || self.eyes.answer(check));
        }
        let mut placed: Vec<(u64, Check, Option<Placed>)> =
            checks.into_iter().filter_map(|check| self.place(check)).collect();
        self.eyes.arms.arm_ahead(placed.iter().filter_map(|(_, _, placed)| Some(&placed.as_ref()?.bound)));
        placed.sort_by_key(|(bytes, ..)| *bytes);
        let mut placed = placed.into_iter();
        while let Some((bytes, check, place)) = placed.next() {
            if bytes > QUICK_BYTES_MAX {
                self.give_back(placed.by_ref().map(|(_, check, _)| check));
            }
            self.conclude(&check, || self.eyes.answer_ahead(&check, place));
        }
    }

    /// What goes together with others, and how much of it may have to be digested. `None` when placing it panicked: it is
    /// answered by now, for another look would panic once more.
    fn place(&self, check: Check) -> Option<(u64, Check, Option<Placed>)> {
        let place = || if self.is_left_alone(&check) { None } else { self.eyes.place_ahead(&check) };
        let Ok(placed) = catch_unwind(AssertUnwindSafe(place)) else {
            let found = self.stumbled(&check);
            self.end(&check, found);
            return None;
        };
        Some((bytes_at(&check, placed.as_ref()), check, placed))
    }

    /// Answers one check, in whichever way, and is done with it.
    fn conclude(&self, check: &Check, answer: impl FnOnce() -> Looked) {
        let found = if self.is_left_alone(check) {
            Found::Unknown(Doubt::Unreadable).into()
        } else {
            let answered = catch_unwind(AssertUnwindSafe(|| {
                fault(VERIFIER);
                answer()
            }));
            answered.unwrap_or_else(|_| self.stumbled(check))
        };
        self.end(check, found);
    }

    fn end(&self, check: &Check, found: Looked) {
        let answer = Settled { source: check.source, stamp: check.stamp, found };
        self.eyes.board.note(|marks| marks.answer(answer));
        self.lock().end(check.source);
    }

    fn is_left_alone(&self, check: &Check) -> bool {
        self.eyes.stumbles.holds(&check.key.path)
    }

    /// Nobody knows what else it left half done, so it counts as dead; who waits for its answer gets one.
    fn stumbled(&self, check: &Check) -> Looked {
        tracing::error!(path = %check.key.path.display(), "a verifier failed on this source");
        self.eyes.stumbles.note(&check.key.path);
        self.eyes.board.died.tell(VERIFIER);
        Found::Unknown(Doubt::Unsettled).into()
    }

    /// Others may answer these.
    fn give_back(&self, checks: impl Iterator<Item = Check>) {
        let mut queue = self.lock();
        checks.for_each(|check| queue.give_back(check));
        drop(queue);
        self.ready.notify_all();
    }

    fn next(&self) -> Option<Vec<Check>> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            let urgent = !queue.urgent.is_empty();
            if let Some(check) = queue.begin() {
                // A fair share: the others are not to stand idle while one of them has all the work.
                let share = (queue.latest.len() / self.threads).min(TOGETHER_MAX);
                let share = if is_quick(&check) { share } else { 0 };
                let mut checks = vec![check];
                checks.extend(std::iter::from_fn(|| queue.begin_beside(urgent)).take(share));
                return Some(checks);
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// How much may have to be digested.
fn bytes_at(check: &Check, placed: Option<&Placed>) -> u64 {
    placed.map_or_else(
        || std::fs::metadata(&check.key.path).map_or(0, |found| found.len()),
        |placed| placed.bytes,
    )
}

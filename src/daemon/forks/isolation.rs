//! The isolation of forks: every change in a fork has a reason that was known before it, or is a finding.
//!
//! The reasons are: somebody asked by `fork.access` and may write there; something runs in the fork under `fork exec`; the
//! daemon itself writes there. Each counts from a barrier on, so what happened before it is not excused by it, and what
//! runs counts up to a barrier after its end, so all that it did is.

use super::accounts::{Account, Ms};
use super::ledger::{Kept, Ledger, is_locked, stamped};
use crate::daemon::blocking::{Undone, blocking};
use crate::daemon::clock;
use crate::protocol::fork::Fork;
use crate::world::dart::Died;
use crate::world::guard::{FileTime, Guard, GuardError, Guarded};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub(in crate::daemon) use super::ledger::{AllKept, Finding, Told};

/// How often it is asked whether something ended without a word.
const TICK: Duration = Duration::from_secs(1);

/// The same while something lingers that a command left: until its end is noticed whatever is written counts as its work.
const LINGERING_TICK: Duration = Duration::from_millis(10);

/// Between two notes of until when all was watched.
const STAMP_PAUSE: Duration = Duration::from_secs(5);

/// A fork cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(in crate::daemon) enum IsolationError {
    /// The world does not let us.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// No thread can be started.
    #[error("no thread can be started that keeps the accounts of forks: {0}")]
    Threads(std::io::Error),
    /// It was begun, and is not done.
    #[error(transparent)]
    Undone(#[from] Undone),
}

/// Whether a fork was watched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) enum Before {
    /// It has just been made.
    New,
    /// By an earlier daemon: what changed since is doubt.
    Watched,
}

/// The watch over all forks, with their accounts.
pub(in crate::daemon) struct Isolation {
    guard: Arc<Guard>,
    ledger: Arc<Ledger>,
    exec: AtomicU64,
    // Its end ends the thread.
    ticking: Sender<()>,
}

impl Isolation {
    /// Starts with no fork. The cookie folder is its own, best in the runtime folder.
    pub(in crate::daemon) fn start(
        cookie_folder: &Path,
        died: &Died,
        told: Told,
        all_kept: AllKept,
    ) -> Result<Self, IsolationError> {
        let ledger = Arc::new(Ledger::new(told, all_kept));
        let theirs = Arc::clone(&ledger);
        let told = Box::new(move |seen| theirs.take(seen));
        let guard = Arc::new(Guard::start(cookie_folder, told, died)?);
        let ticking = tick_along(&guard, &ledger, died).map_err(IsolationError::Threads)?;
        // Numbers of an earlier daemon are not given again.
        let exec = AtomicU64::new(clock::now().micros.unsigned_abs());
        Ok(Self { guard, ledger, exec, ticking })
    }

    /// Watches a fork, and comes back when all of it is watched, or it is found that it is not.
    pub(in crate::daemon) async fn guard(&self, fork: &Fork, before: Before) -> Result<(), IsolationError> {
        let (guard, ledger, fork) = (Arc::clone(&self.guard), Arc::clone(&self.ledger), fork.clone());
        blocking("the watch over a fork", move || watch(&guard, &ledger, &fork, before)).await??;
        self.settled().await;
        Ok(())
    }

    /// Ends the watch over a fork.
    pub(in crate::daemon) fn forget(&self, no: u64) {
        self.guard.forget(no);
        self.ledger.kept().remove(&no);
    }

    /// From now on, and for so long, a change at this path has a reason. It is the path that leads through no symlink.
    pub(in crate::daemon) async fn allow(&self, no: u64, path: &Path, valid: Duration) {
        let path = path.to_owned();
        let tree = |kept: &mut Kept| kept.trees.iter().find(|tree| path.starts_with(tree)).cloned();
        let Some(tree) = self.ledger.with(no, tree).flatten() else { return };
        let below = path.clone();
        let looked = blocking("a look at the way to a path", move || missing_above(&tree, &below)).await;
        // Of what was not looked at, nothing is allowed but the path.
        let missing = looked.unwrap_or_default();
        self.at_barrier(no, move |kept, now| {
            kept.account.allow(&path, missing, now + valid.as_millis() as Ms, now);
        })
        .await;
    }

    /// How often somebody was told no.
    pub(in crate::daemon) fn denied(&self, no: u64) -> u64 {
        self.ledger.with(no, |kept| kept.account.denied()).unwrap_or_default()
    }

    /// Somebody was told no.
    pub(in crate::daemon) fn deny(&self, no: u64) {
        self.ledger.with(no, |kept| kept.account.deny());
    }

    /// A command begins, and is given a number. It takes the fork's lock when it is told where that is, first of all; until
    /// then it counts for a while without.
    pub(in crate::daemon) async fn begin(&self, no: u64) -> u64 {
        let exec = self.exec.fetch_add(1, Ordering::SeqCst);
        self.at_barrier(no, move |kept, now| {
            let locked = is_locked(&kept.home);
            kept.account.begin(exec, locked, now);
        })
        .await;
        exec
    }

    /// A command has ended. As long as the fork's lock is held, something of it still counts as running.
    pub(in crate::daemon) async fn end(&self, no: u64, exec: u64) {
        self.at_barrier(no, move |kept, _| {
            let locked = is_locked(&kept.home);
            kept.account.end(exec, locked);
        })
        .await;
        // A thread that is gone ends the process.
        let _ = self.ticking.send(());
    }

    /// How many commands run in a fork.
    pub(in crate::daemon) fn running(&self, no: u64) -> usize {
        self.ledger.with(no, |kept| kept.account.running()).unwrap_or_default()
    }

    /// Comes back when everything has been found that had happened by now; a hard link a little later.
    pub(in crate::daemon) async fn settled(&self) {
        let (done, told) = oneshot::channel();
        self.guard.barrier(Box::new(move |_| {
            // Whoever asked may have gone.
            let _ = done.send(());
        }));
        // A guard that is gone ends the process.
        let _ = told.await;
    }

    /// The daemon itself writes below this path until the answer is dropped.
    pub(in crate::daemon) async fn excuse(&self, no: u64, below: &Path) -> Excused {
        let path = below.to_owned();
        self.at_barrier(no, move |kept, _| kept.account.excuse(&path)).await;
        let (guard, ledger) = (Arc::clone(&self.guard), Arc::clone(&self.ledger));
        Excused { guard, ledger, no, below: below.to_owned() }
    }

    /// Notes until when everything was watched, so that the next daemon knows what it missed; not while a finding waits to be
    /// kept.
    pub(in crate::daemon) async fn stop(&self) {
        let (done, told) = oneshot::channel();
        let ledger = Arc::clone(&self.ledger);
        self.guard.barrier(Box::new(move |until| {
            ledger.mark();
            let _ = done.send(until);
        }));
        if let Ok(until) = told.await {
            let ledger = Arc::clone(&self.ledger);
            // An older note says less, and nothing wrong.
            drop(blocking("the note until when forks were watched", move || ledger.stamp(until)).await);
        }
    }

    /// Does it to a fork's account at a barrier: after everything that had happened by now, before all that comes later.
    async fn at_barrier(&self, no: u64, with: impl FnOnce(&mut Kept, Ms) + Send + 'static) {
        let (done, told) = oneshot::channel();
        let ledger = Arc::clone(&self.ledger);
        self.guard.barrier(Box::new(move |_| {
            let now = ledger.now();
            ledger.with(no, |kept| with(kept, now));
            let _ = done.send(());
        }));
        let _ = told.await;
    }
}

/// As long as it lives, what the daemon writes there has a reason.
pub(in crate::daemon) struct Excused {
    guard: Arc<Guard>,
    ledger: Arc<Ledger>,
    no: u64,
    below: PathBuf,
}

impl Drop for Excused {
    fn drop(&mut self) {
        let (ledger, no, below) = (Arc::clone(&self.ledger), self.no, std::mem::take(&mut self.below));
        self.guard.barrier(Box::new(move |_| {
            ledger.with(no, |kept| kept.account.end_excuse(&below));
        }));
    }
}

fn watch(guard: &Guard, ledger: &Ledger, fork: &Fork, before: Before) -> Result<(), GuardError> {
    let (no, home) = (fork.no, fork.home.0.clone());
    let folders = vec![fork.workspace.0.clone(), fork.scratchpad.0.clone()];
    let trees =
        folders.iter().map(|tree| std::fs::canonicalize(tree).unwrap_or_else(|_| tree.clone())).collect();
    let told = fork.isolation.seen.iter().map(|seen| (seen.kind.clone(), seen.path.0.clone()));
    let mut account = Account::new(told);
    if is_locked(&home) {
        account.found_locked();
    }
    let noted = if before == Before::Watched { stamped(&home) } else { None };
    ledger.kept().insert(no, Kept { account, home, trees, stirred: true, due: false });
    let place = Guarded { no, folders, apart_from: vec![fork.parent.tree.0.clone()] };
    let watched = guard.guard(place, noted);
    if watched.is_err() {
        guard.forget(no);
        ledger.kept().remove(&no);
    } else if before == Before::Watched && noted.is_none() {
        ledger.doubt(no);
    }
    watched
}

/// The folders of a tree above a path that are not there yet.
fn missing_above(tree: &Path, path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(tree));
    above.take_while(|above| std::fs::symlink_metadata(above).is_err()).map(Path::to_owned).collect()
}

/// A thread that now and then asks what has ended without a word, and notes until when all was watched.
fn tick_along(guard: &Arc<Guard>, ledger: &Arc<Ledger>, died: &Died) -> std::io::Result<Sender<()>> {
    let (ticking, ended) = std_mpsc::channel();
    let (guard, ledger, died) = (Arc::downgrade(guard), Arc::clone(ledger), died.clone());
    let until = Arc::new(Mutex::new(None::<FileTime>));
    let run = move || {
        let _dart = died.dart("isolation");
        let mut stamped = Instant::now();
        let mut tick = TICK;
        while ended.recv_timeout(tick) != Err(RecvTimeoutError::Disconnected) {
            let Some(guard) = guard.upgrade() else { return };
            for (no, ended) in ledger.ended() {
                let ledger = Arc::clone(&ledger);
                guard.barrier(Box::new(move |_| {
                    ledger.with(no, |kept| kept.account.settle(&ended));
                }));
            }
            tick = if ledger.lingers() { LINGERING_TICK } else { TICK };
            if stamped.elapsed() >= STAMP_PAUSE && !ledger.kept().is_empty() {
                stamped = Instant::now();
                stamp_late(&guard, &ledger, &until);
            }
        }
    };
    std::thread::Builder::new().name("isolation".to_owned()).spawn(run)?;
    Ok(ticking)
}

/// Notes the barrier of the round before: what was found until then has had time to be kept.
fn stamp_late(guard: &Guard, ledger: &Arc<Ledger>, until: &Arc<Mutex<Option<FileTime>>>) {
    let last = until.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(last) = last {
        ledger.stamp(last);
    }
    let (ledger, until) = (Arc::clone(ledger), Arc::clone(until));
    guard.barrier(Box::new(move |time| {
        ledger.mark();
        *until.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
    }));
}

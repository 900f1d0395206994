//! The accounts of all forks, and what follows from what the watch tells: findings, each told once.

use super::accounts::{Account, Ended, Fault, Ms};
use crate::daemon::clock;
use crate::protocol::fork::record::{Isolated, Violation};
use crate::protocol::path::WirePath;
use crate::protocol::time::to_text;
use crate::world::guard::{FileTime, Seen};
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Something that breaks a fork's isolation, or puts it in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::daemon) struct Finding {
    /// The fork's number.
    pub(in crate::daemon) no: u64,
    /// What it is to be held for.
    pub(in crate::daemon) state: Isolated,
    /// What was seen.
    pub(in crate::daemon) violation: Violation,
}

/// Is told each finding, on the thread of the watch, before any barrier that comes after what it is about.
pub(in crate::daemon) type Told = Box<dyn Fn(Finding) + Send + Sync>;

/// Says whether every finding that was told by now is where the next daemon finds it.
pub(in crate::daemon) type AllKept = Box<dyn Fn() -> bool + Send + Sync>;

/// What is known of one fork.
pub(super) struct Kept {
    pub(super) account: Account,
    pub(super) home: PathBuf,
    /// Its trees, under their canonical paths; its workspace is the first.
    pub(super) trees: Vec<PathBuf>,
    /// Something was told of it since the last barrier whose time is to be noted.
    pub(super) stirred: bool,
    /// Something was told of it before that.
    pub(super) due: bool,
}

pub(super) struct Ledger {
    kept: Mutex<BTreeMap<u64, Kept>>,
    told: Told,
    all_kept: AllKept,
    /// One after the other, so that no older note replaces a newer one.
    stamping: Mutex<()>,
    begun: Instant,
}

impl Ledger {
    pub(super) fn new(told: Told, all_kept: AllKept) -> Self {
        Self { kept: Mutex::default(), told, all_kept, stamping: Mutex::default(), begun: Instant::now() }
    }

    pub(super) fn now(&self) -> Ms {
        self.begun.elapsed().as_millis() as Ms
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, BTreeMap<u64, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does it with the account of a fork, if there is one.
    pub(super) fn with<T>(&self, no: u64, with: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        self.kept().get_mut(&no).map(with)
    }

    /// Takes what the watch tells.
    pub(super) fn take(&self, seen: Seen) {
        match seen {
            Seen::Changed { no, path } => self.changed(no, path, Fault::UndeclaredWrite),
            Seen::Unwatched { no, path } => self.changed(no, path, Fault::Unwatched),
            Seen::Moved { from, to } => {
                self.find(from.0, Fault::MovedAcross, from.1.clone(), Some(to.1.clone()));
                self.find(to.0, Fault::MovedAcross, to.1, Some(from.1));
            }
            Seen::Linked { no, path, other } => {
                if let Some(owner) = self.owner(&other) {
                    self.find(owner, Fault::SharedByHardlink, other.clone(), Some(path.clone()));
                }
                self.find(no, Fault::SharedByHardlink, path, Some(other));
            }
            Seen::Gap { why } => {
                tracing::warn!(
                    why,
                    "events of forks were lost; what changed meanwhile is found by its times"
                );
            }
            Seen::Limit { no, why } => {
                tracing::warn!(no, why, "a fork is not watched whole");
                self.doubt(no);
            }
        }
    }

    /// It was not watched, and what changed in it cannot be told.
    pub(super) fn doubt(&self, no: u64) {
        if let Some(tree) = self.with(no, |kept| kept.trees.first().cloned()).flatten() {
            self.find(no, Fault::Unwatched, tree, None);
        }
    }

    fn changed(&self, no: u64, path: PathBuf, fault: Fault) {
        let now = self.now();
        // The lock is not asked here: whoever holds it by now may have come after the change.
        let known = self.with(no, |kept| {
            kept.stirred = true;
            kept.account.accounts_for(&path, now)
        });
        if known == Some(false) {
            self.find(no, fault, path, None);
        }
    }

    fn find(&self, no: u64, fault: Fault, path: PathBuf, other: Option<PathBuf>) {
        if self.with(no, |kept| kept.account.is_news(fault, &path)) != Some(true) {
            return;
        }
        let violation = Violation {
            kind: fault.word().to_owned(),
            path: WirePath(path),
            other: other.map(WirePath),
            at: to_text(clock::now()),
        };
        (self.told)(Finding { no, state: fault.state(), violation });
    }

    fn owner(&self, path: &Path) -> Option<u64> {
        let kept = self.kept();
        kept.iter().find(|(_, kept)| kept.trees.iter().any(|tree| path.starts_with(tree))).map(|(no, _)| *no)
    }

    /// Those in which something may have ended without a word, and has.
    pub(super) fn ended(&self) -> Vec<(u64, Ended)> {
        let now = self.now();
        let mut ended = Vec::new();
        for (no, kept) in &mut *self.kept() {
            kept.account.expire(now);
            if !kept.account.may_have_ended() {
                continue;
            }
            if is_locked(&kept.home) {
                kept.account.found_locked();
                continue;
            }
            ended.extend(Some((*no, kept.account.found_free(now))).filter(|(_, ended)| !ended.is_empty()));
        }
        ended
    }

    /// Whether something that a command left may still run, in any fork.
    pub(super) fn lingers(&self) -> bool {
        self.kept().values().any(|kept| kept.account.lingers())
    }

    /// What was told until now is what the next stamp is about. Called at the barrier whose time that notes.
    pub(super) fn mark(&self) {
        self.kept().values_mut().for_each(|kept| kept.due |= std::mem::take(&mut kept.stirred));
    }

    /// Notes at each fork of which something was told before the mark that everything until then has been. A finding that is
    /// not kept yet would be lost behind that: then nothing is noted, which is doubt for the next daemon. Waits for the disk,
    /// and keeps nobody else from the accounts meanwhile.
    pub(super) fn stamp(&self, until: FileTime) {
        let _alone = self.stamping.lock().unwrap_or_else(PoisonError::into_inner);
        if !(self.all_kept)() {
            return;
        }
        for (no, home) in self.due() {
            // One that is forgotten meanwhile is about to be removed, and nothing is to be made in it.
            if self.with(no, |_| ()).is_none() {
                continue;
            }
            if let Err(error) = stamp(&home, until) {
                // What is older than it is says less, and nothing wrong.
                tracing::warn!(home = %home.display(), %error, "until when a fork was watched cannot be noted");
            }
        }
    }

    /// Those that are due, which they are then no more.
    fn due(&self) -> Vec<(u64, PathBuf)> {
        let mut kept = self.kept();
        let due = kept.iter_mut().filter(|(_, kept)| kept.due);
        due.map(|(no, kept)| {
            kept.due = false;
            (*no, kept.home.clone())
        })
        .collect()
    }
}

/// The file that says until when a fork was watched.
fn stamp_file(home: &Path) -> PathBuf {
    home.join("watched")
}

fn stamp(home: &Path, until: FileTime) -> io::Result<()> {
    let file = File::options().write(true).create(true).truncate(false).open(stamp_file(home))?;
    let nanos = until.0;
    let until = Timespec {
        tv_sec: nanos.div_euclid(1_000_000_000) as i64,
        tv_nsec: nanos.rem_euclid(1_000_000_000) as _,
    };
    let keep = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    rustix::fs::futimens(&file, &Timestamps { last_access: keep, last_modification: until })?;
    Ok(())
}

/// Until when a fork was watched, if that was noted.
pub(super) fn stamped(home: &Path) -> Option<FileTime> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(stamp_file(home)).ok()?;
    Some(FileTime(i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())))
}

/// Whether something runs in a fork: whoever does holds its lock, and so does whatever it starts.
pub(super) fn is_locked(home: &Path) -> bool {
    // Without a file there never was anybody.
    let Ok(file) = File::open(home.join("exec.lock")) else { return false };
    match file.try_lock() {
        Ok(()) => {
            // By name, for a process that is just being started may have a copy of it.
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}

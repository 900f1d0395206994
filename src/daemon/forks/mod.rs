//! Forks in the daemon: who makes and ends them, one at a time, and what is seen of them meanwhile.
//!
//! Promise: a fork is made whole or not at all, and ends with nothing lost. What is about to be done is journaled before it
//! is done; what a crash cut short is undone or finished by the next start, which says so.

mod accounts;
#[cfg(test)]
mod accounts_tests;
mod copying;
pub(in crate::daemon) mod ending;
mod ground;
mod isolation;
#[cfg(test)]
mod isolation_soak;
#[cfg(test)]
mod isolation_tests;
mod ledger;
mod making;
mod mending;
mod telling;

pub(in crate::daemon) use ending::end;
pub(in crate::daemon) use making::make;
pub(in crate::daemon) use mending::tend;

use super::Daemon;
use super::blocking::{Undone, blocking};
use super::engine::Engine;
use super::handle::{EngineHandle, Need};
use super::synced::synced;
use crate::config::Config;
use crate::decision::plan::id_of;
use crate::fork::git::{Git, GitError};
use crate::fork::{ForkError, Hands, Place};
use crate::protocol::fork::Fork;
use crate::protocol::fork::record::{Isolated, Stage, Violation};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::protocol::time;
use crate::world::dart::Died;
use isolation::{Before, Finding, Isolation};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OnceCell, watch};
use tokio::task::JoinHandle;

/// Forks, apart from their records, which the engine keeps.
pub(super) struct Forks {
    pub(super) hands: Arc<Hands>,
    /// The folder of all of them.
    pub(super) folder: PathBuf,
    /// Forks are made and ended one call after the other.
    turn: tokio::sync::Mutex<()>,
    /// Held while objects of a fork's parent are copied into it, and while a fork ends.
    objects: tokio::sync::Mutex<()>,
    /// Whoever ends a fork does not wait for gigabytes to be copied: set while somebody waits for `objects` to end one.
    stop: Arc<AtomicBool>,
    enders: AtomicUsize,
    /// How often somebody was let in to work in a fork, by its number.
    begun: Mutex<HashMap<u64, u64>>,
    isolation: OnceCell<Isolation>,
    pub(super) findings: Findings,
    died: Died,
    /// Whether what the last daemon left half done is mended.
    mended: watch::Sender<bool>,
    /// Forks whose trees are not registered yet, by their numbers; who waits is told by the end of the sender.
    unmeasured: Mutex<HashMap<u64, watch::Receiver<()>>>,
    /// Something is to be done that nobody waits for.
    pub(super) work: Notify,
}

impl Forks {
    pub(super) fn new(state: &Path, config: &Config, died: Died) -> Self {
        // Paths are compared with it after they were followed.
        let folder = std::fs::canonicalize(state).unwrap_or_else(|_| state.to_owned()).join("forks");
        let git = Git::find().map(|git| git.with_timeout(Duration::from_secs(config.fork.git_timeout_s)));
        if let Err(error) = &git {
            tracing::warn!(%error, "forks of repositories cannot be made");
        }
        Self {
            hands: Arc::new(Hands::new(git, folder.clone(), config.fork.file_bytes_max)),
            folder,
            turn: tokio::sync::Mutex::default(),
            objects: tokio::sync::Mutex::default(),
            stop: Arc::default(),
            enders: AtomicUsize::new(0),
            begun: Mutex::default(),
            isolation: OnceCell::new(),
            findings: Findings::default(),
            died,
            mended: watch::Sender::new(false),
            unmeasured: Mutex::default(),
            work: Notify::new(),
        }
    }

    /// Whether there may be a fork: their watch has begun, with the first of them, or it is not known yet.
    pub(super) fn any(&self) -> bool {
        self.isolation.initialized() || !*self.mended.borrow()
    }

    /// Whoever copies objects stops, and nobody does for as long as this is held.
    async fn stop_copying(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.enders.fetch_add(1, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
        let objects = self.objects.lock().await;
        if self.enders.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.store(false, Ordering::SeqCst);
        }
        objects
    }

    /// Somebody is let in to work in a fork. Counted after the watch knows him, and before it is asked whether the fork is
    /// still there: whoever ends it meanwhile sees him by one or the other, or he finds that it ends.
    pub(super) fn note_begun(&self, no: u64) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner).entry(no).or_default() += 1;
    }

    fn begun(&self, no: u64) -> u64 {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).get(&no).copied().unwrap_or_default()
    }

    fn note_unmeasured(&self, no: u64) -> watch::Sender<()> {
        let (done, measured) = watch::channel(());
        self.unmeasured.lock().unwrap_or_else(PoisonError::into_inner).insert(no, measured);
        done
    }

    fn note_measured(&self, no: u64) {
        self.unmeasured.lock().unwrap_or_else(PoisonError::into_inner).remove(&no);
    }

    /// Done when the tree is registered from which a fork's work is measured.
    pub(super) async fn measured(&self, no: u64) {
        let waiting = self.unmeasured.lock().unwrap_or_else(PoisonError::into_inner).get(&no).cloned();
        if let Some(mut measured) = waiting {
            // Nothing is ever sent: the end of the sender is the word.
            drop(measured.changed().await);
        }
    }

    /// Keeps what was seen until now, and notes for the next daemon until when that is. The engine must be there still.
    pub(super) async fn stop(&self, engine: &EngineHandle) {
        let Some(isolation) = self.isolation.get() else { return };
        isolation.settled().await;
        let findings = self.findings.clone();
        let keeping = engine.when(Need::Nothing, Instant::now(), move |engine, _| findings.keep(engine));
        // What is not kept is not noted as told either.
        drop(keeping.await);
        isolation.stop().await;
    }

    /// Done when what the last daemon left half done is mended.
    async fn mended(&self) {
        // The sender lives as long as this does.
        drop(self.mended.subscribe().wait_for(|mended| *mended).await);
    }
}

/// The isolation watch; it is begun with the first fork, so that who has none pays for none.
pub(super) async fn isolation(daemon: &Daemon) -> Result<&Isolation, Refusal> {
    let start = || async {
        let (findings, engine) = (daemon.forks.findings.clone(), daemon.engine.clone());
        let waiting = findings.clone();
        let told = Box::new(move |finding| {
            findings.lock().push(finding);
            let findings = findings.clone();
            // Kept soon, and before anybody is told of a fork.
            engine.post(move |engine| drop(findings.keep(engine)));
        });
        let (cookies, all_kept) = (daemon.folders.fork_cookies(), Box::new(move || waiting.are_kept()));
        Isolation::start(&cookies, &daemon.forks.died, told, all_kept).map_err(|error| {
            Refusal::application("fork_unwatched", format!("forks cannot be watched: {error}"))
        })
    };
    daemon.forks.isolation.get_or_try_init(start).await
}

/// What was seen of forks and is not kept yet. What a store that failed did not take waits for the next.
#[derive(Clone, Default)]
pub(super) struct Findings(Arc<Mutex<Vec<Finding>>>);

impl Findings {
    fn lock(&self) -> MutexGuard<'_, Vec<Finding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was seen, says so in the log, and tells who wants to know.
    fn keep(&self, engine: &mut Engine) -> Result<(), Refusal> {
        let mut waiting = self.lock();
        while let Some(Finding { no, state, violation }) = waiting.first().cloned() {
            if let Err(refusal) = note(engine, no, state, violation) {
                tracing::error!(why = %refusal, fork = no, "what was seen of a fork could not be kept yet");
                return Err(refusal);
            }
            waiting.remove(0);
        }
        Ok(())
    }

    /// Whether none waits. Whoever keeps them now may fail, so what is being kept is not kept yet.
    fn are_kept(&self) -> bool {
        self.0.try_lock().is_ok_and(|waiting| waiting.is_empty())
    }

    /// Every fork, with all that was seen of it.
    pub(super) fn forks(&self, engine: &mut Engine) -> Result<Vec<Fork>, Refusal> {
        self.keep(engine)?;
        Ok(engine.forks()?)
    }
}

/// Marks a fork.
pub(super) async fn violated(
    engine: &EngineHandle,
    no: u64,
    state: Isolated,
    violation: Violation,
) -> Result<(), Refusal> {
    let kept =
        engine.when(Need::Nothing, Instant::now(), move |engine, _| note(engine, no, state, violation));
    kept.await?
}

/// The same, for whoever has the engine.
pub(super) fn note(
    engine: &mut Engine,
    no: u64,
    state: Isolated,
    violation: Violation,
) -> Result<(), Refusal> {
    let Some(mut fork) = engine.forks()?.into_iter().find(|fork| fork.no == no) else { return Ok(()) };
    let path = violation.path.0.to_string_lossy().into_owned();
    let (kind, known) = (violation.kind.clone(), fork.isolation.clone());
    fork.isolation.note(state, violation);
    engine.keep_fork(&fork)?;
    if known.state != fork.isolation.state || known.seen.len() != fork.isolation.seen.len() {
        let event = if state == Isolated::Broken { "isolation_broken" } else { "isolation_unknown" };
        let more = [("fork", fork.fork.as_str()), ("kind", kind.as_str()), ("path", path.as_str())];
        tracing::warn!(fork = fork.fork, kind, path, event, "a fork is not isolated");
        engine.tell_fork(event, &fork.session, &more);
    }
    Ok(())
}

/// The fork of this id, or of this branch.
pub(super) async fn find(daemon: &Daemon, named: &str) -> Result<Fork, Refusal> {
    find_at(daemon, named, &[Stage::Ready]).await
}

/// The same, also where its end was begun and could not be finished.
pub(super) async fn find_to_end(daemon: &Daemon, named: &str) -> Result<Fork, Refusal> {
    find_at(daemon, named, &[Stage::Ready, Stage::Ending]).await
}

async fn find_at(daemon: &Daemon, named: &str, stages: &'static [Stage]) -> Result<Fork, Refusal> {
    daemon.forks.mended().await;
    let (id, findings) = (id_of(named).to_owned(), daemon.forks.findings.clone());
    let found = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let found = findings.forks(engine)?.into_iter().find(|fork| fork.fork == id);
        match found {
            Some(fork) if stages.contains(&fork.stage) => Ok(fork),
            Some(_) => Err(Refusal::application(
                "fork_in_use",
                format!("{id} is being made or ended; where that failed, fork.discard ends it"),
            )),
            None => Err(no_such_fork(&id)),
        }
    });
    found.await?
}

fn no_such_fork(id: &str) -> Refusal {
    Refusal::application("not_found", format!("there is no fork {id}; fork.list says which there are"))
}

/// Every fork.
pub(super) async fn all(daemon: &Daemon) -> Result<Vec<Fork>, Refusal> {
    daemon.forks.mended().await;
    let findings = daemon.forks.findings.clone();
    daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| findings.forks(engine)).await?
}

/// Names that a new fork cannot have: of sessions and forks, and of folders that stand where one would be. What a last daemon
/// left half done is taken too, so nobody waits for it to be mended.
pub(super) async fn taken(daemon: &Daemon) -> Result<BTreeSet<String>, Refusal> {
    let named = daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| {
        let mut named: BTreeSet<String> = engine.forks()?.into_iter().map(|fork| fork.fork).collect();
        named.extend(engine.index.names().map(|name| name.as_str().to_owned()));
        Ok::<_, Refusal>(named)
    });
    let mut taken = named.await??;
    let folder = daemon.forks.folder.clone();
    let standing = blocking("a look at where forks are", move || standing(&folder)).await;
    taken.extend(standing.map_err(|undone| Refusal::application("fork_failed", undone))?);
    Ok(taken)
}

/// Ids whose folder is there. One that no record tells of, for the journal is a new one or a restored one, may hold work.
fn standing(folder: &Path) -> Vec<String> {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let homes = below(folder).flat_map(|session| below(&session.path()));
    let ids = homes.filter_map(|home| Some(home.path().strip_prefix(folder).ok()?.to_str()?.to_owned()));
    ids.collect()
}

/// Watches a fork.
async fn guard(daemon: &Daemon, fork: &Fork, before: Before) -> Result<(), Refusal> {
    let watched = isolation(daemon).await?.guard(fork, before).await;
    watched.map_err(|error| Refusal::application("fork_unwatched", format!("{}: {error}", fork.fork)))
}

/// Where a fork is.
pub(super) fn place(fork: &Fork) -> Place {
    Place {
        home: fork.home.0.clone(),
        workspace: fork.workspace.0.clone(),
        scratchpad: fork.scratchpad.0.clone(),
        branch: fork.branch.clone(),
    }
}

/// Journals what forks have become, on disk when this returns.
async fn keep(daemon: &Daemon, forks: Vec<Fork>) -> Result<(), Refusal> {
    let kept = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        forks.iter().try_for_each(|fork| engine.keep_fork(fork))?;
        Ok::<_, Refusal>(engine.synced())
    });
    on_disk(kept.await??).await
}

/// Nothing is to be known any more of what only these forks rested on. Before their trees go: who follows ten thousand files
/// while they are removed has nothing else to do.
async fn drop_sides(daemon: &Daemon, forks: Vec<Fork>) -> Result<(), Refusal> {
    let dropped = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        forks.iter().try_for_each(|fork| engine.drop_sides(fork))
    });
    dropped.await?
}

/// Journals that forks are no more, on disk when this returns.
async fn forget(daemon: &Daemon, forks: Vec<Fork>) -> Result<(), Refusal> {
    let gone = daemon.engine.when(Need::Barrier, Instant::now() + PATIENCE, move |engine, _| {
        forks.iter().try_for_each(|fork| engine.forget_fork(fork))?;
        engine.index.storage_mut().flush()?;
        Ok::<_, Refusal>(engine.synced())
    });
    on_disk(gone.await??).await
}

const PATIENCE: Duration = Duration::from_secs(10);

async fn on_disk(word: tokio::sync::oneshot::Receiver<crate::store::syncer::Synced>) -> Result<(), Refusal> {
    let synced = synced(word).await;
    synced.map_err(|error| Refusal::application("store_failed", format!("the journal {error}")))
}

/// Work of the hands, on a thread that may wait for the disk.
pub(super) async fn by_hand<T: Send + 'static>(
    daemon: &Daemon,
    what: &'static str,
    work: impl FnOnce(&Hands) -> Result<T, ForkError> + Send + 'static,
) -> Result<T, Refusal> {
    let hands = Arc::clone(&daemon.forks.hands);
    let done = blocking(what, move || work(&hands)).await;
    let done = done.map_err(|undone| Refusal::application("fork_failed", undone))?;
    done.map_err(|error| match error {
        ForkError::Git(GitError::TimedOut { .. }) => {
            Refusal::application(error.code(), format!("{error}; fork.git_timeout_s is the limit"))
        }
        error => Refusal::application(error.code(), error),
    })
}

/// A violation that was seen now.
pub(super) fn violation(kind: &str, path: PathBuf, other: Option<PathBuf>) -> Violation {
    let (path, other) = (WirePath(path), other.map(WirePath));
    Violation { kind: kind.to_owned(), path, other, at: time::to_text(super::clock::now()) }
}

/// What must not stop half way, whoever stops waiting for it.
async fn to_the_end<T>(work: JoinHandle<Result<T, Refusal>>) -> Result<T, Refusal> {
    work.await.unwrap_or_else(|error| {
        Err(Refusal::application("fork_failed", Undone::of("the making or ending of a fork", &error)))
    })
}

/// Which boot of the machine this is. Before it is known of what was made that it is on disk, another one puts it in doubt.
fn boot() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.ok().map(|boot| boot.trim().to_owned())
}

//! `fork.access`, and what a fork's session says of itself: who is about to touch what, and who says that he did.

use super::super::{Answer, Daemon};
use super::is_ready;
use crate::daemon::blocking::blocking;
use crate::daemon::engine::Engine;
use crate::daemon::forks::{self, isolation, note, violation};
use crate::daemon::handle::Need;
use crate::fork::access::{Apart, Place, Verdict, judge};
use crate::protocol::answer::to_json;
use crate::protocol::fork::Fork;
use crate::protocol::fork::answer;
use crate::protocol::fork::ask::{Access, AccessMode};
use crate::protocol::fork::record::Isolated;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::source::absolute;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) async fn access(daemon: &Daemon, ask: Access) -> Answer {
    let fork = forks::find(daemon, &ask.fork).await?;
    let path = absolute(&fork.root.0, &ask.path.0);
    let verdict = judged(daemon, &fork, path.clone(), ask.mode).await?;
    let watch = isolation(daemon).await?;
    match (verdict.allow, ask.mode) {
        (true, AccessMode::Write) => {
            daemon.forks.measured(fork.no).await;
            let valid = Duration::from_secs(daemon.config().fork.access_s);
            watch.allow(fork.no, &verdict.path, valid).await;
            // What is written over a symlink takes the place of the symlink.
            if verdict.entry != verdict.path {
                watch.allow(fork.no, &verdict.entry, valid).await;
            }
            daemon.forks.note_begun(fork.no);
        }
        (true, AccessMode::Read | AccessMode::List) => watch.settled().await,
        (false, _) => {
            watch.deny(fork.no);
            watch.settled().await;
        }
    }
    let isolation_broken = broken(&forks::find(daemon, &fork.fork).await?);
    let access = if verdict.allow { "allow" } else { "deny" };
    Ok(to_json(&answer::Access { access, reason: verdict.why, isolation_broken }))
}

pub(super) fn broken(fork: &Fork) -> bool {
    fork.isolation.state == Isolated::Broken
}

async fn judged(daemon: &Daemon, fork: &Fork, path: PathBuf, mode: AccessMode) -> Result<Verdict, Refusal> {
    let mut verdicts = judged_all(daemon, fork, vec![path], mode).await?;
    verdicts.pop().ok_or_else(|| Refusal::application("fork_failed", "no path was judged"))
}

/// Follows paths, which may take long, and says of each whether the fork may go there.
async fn judged_all(
    daemon: &Daemon,
    fork: &Fork,
    paths: Vec<PathBuf>,
    mode: AccessMode,
) -> Result<Vec<Verdict>, Refusal> {
    let forks = forks::all(daemon).await?;
    let place = |fork: &Fork| Place {
        fork: fork.fork.clone(),
        workspace: fork.workspace.0.clone(),
        scratchpad: fork.scratchpad.0.clone(),
    };
    let others: Vec<Place> = forks.iter().filter(|other| other.no != fork.no).map(place).collect();
    let parents = vec![fork.parent.tree.0.clone()];
    let (own, forks_folder) = (place(fork), daemon.forks.folder.clone());
    let look = move || {
        let apart = Apart { own: &own, forks: &others, parents: &parents, forks_folder: &forks_folder };
        paths.iter().map(|path| judge(path, mode, &apart)).collect()
    };
    let judged = blocking("a look at a path", look).await;
    judged.map_err(|undone| Refusal::application("fork_failed", undone))
}

/// Where a fork's session says that it was, and has no business.
#[derive(Debug, Default)]
pub(in crate::daemon::request) struct Crossing {
    no: u64,
    kind: &'static str,
    paths: Vec<PathBuf>,
}

impl Crossing {
    /// Marks the fork. Done by whoever takes the session's word, when it is taken: what is refused was never said.
    pub(in crate::daemon::request) fn mark(self, engine: &mut Engine) -> Result<(), Refusal> {
        let Self { no, kind, paths } = self;
        let mut seen = paths.into_iter().map(|path| violation(kind, path, None));
        seen.try_for_each(|seen| note(engine, no, Isolated::Broken, seen))
    }
}

/// What a session says that it saw or wrote.
#[derive(Debug, Default)]
pub(in crate::daemon::request) struct Word {
    /// `foreign_source` or `foreign_write`, should it be of another.
    pub(in crate::daemon::request) kind: &'static str,
    /// Paths.
    pub(in crate::daemon::request) paths: Vec<PathBuf>,
    /// What facts name: paths, or ids of rows, which may look like paths.
    pub(in crate::daemon::request) named: Vec<PathBuf>,
    /// Ids of rows that are told with it.
    pub(in crate::daemon::request) ids: HashSet<String>,
}

/// A session that says it rests on something of another fork, or of the parent, or that it wrote there, has crossed over:
/// its own word is all the proof that is needed.
pub(in crate::daemon::request) async fn crossing(
    daemon: &Daemon,
    name: &SessionId,
    root: Option<&Path>,
    word: Word,
) -> Result<Crossing, Refusal> {
    let Word { kind, mut paths, named, mut ids } = word;
    if !daemon.forks.any() {
        return Ok(Crossing::default());
    }
    let name = name.clone();
    let known = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let Some(bytes) = engine.index.fork(name.as_str())? else { return Ok(None) };
        let held = engine.index.session(&name);
        let rows = held.map_or(Ok(Vec::new()), |held| engine.index.rows(held))?;
        let fork = Fork::from_bytes(&bytes).ok().filter(is_ready);
        Ok::<_, Refusal>(fork.map(|fork| (fork, rows.into_iter().map(|row| row.id).collect::<Vec<_>>())))
    });
    let Some((fork, held)) = known.await?? else { return Ok(Crossing::default()) };
    ids.extend(held);
    paths.extend(named.into_iter().filter(|named| named.to_str().is_none_or(|id| !ids.contains(id))));
    let root = root.unwrap_or(&fork.root.0).to_owned();
    let paths: Vec<PathBuf> = paths.iter().map(|path| absolute(&root, path)).collect();
    let verdicts = judged_all(daemon, &fork, paths.clone(), AccessMode::Read).await?;
    let crossed = paths.into_iter().zip(verdicts).filter(|(_, verdict)| !verdict.allow);
    Ok(Crossing { no: fork.no, kind, paths: crossed.map(|(path, _)| path).collect() })
}

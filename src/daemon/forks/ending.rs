//! Ending a fork: nothing that is nowhere else is lost, whoever insists.
//!
//! What must not be lost is kept in a repository of its own (a rename of the fork's), and the answer names it and the
//! commits in it. That it ends is journaled first, so that a crash on the way is finished by the next start.

use super::{by_hand, drop_sides, forget, isolation, keep, place, to_the_end};
use crate::daemon::blocking::blocking;
use crate::daemon::handle::Need;
use crate::daemon::{Daemon, clock};
use crate::fork::keep::KeptWork;
use crate::fork::work::Work;
use crate::protocol::fork::Fork;
use crate::protocol::fork::answer::{Kept, Moved};
use crate::protocol::fork::record::{Mode, Stage};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::{SessionId, Side};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long something that runs in a fork may take to end by itself.
const LINGERING: Duration = Duration::from_secs(2);
const LINGERING_PAUSE: Duration = Duration::from_millis(20);

/// Ends a fork, and says where what is nowhere else is kept. Without `force` one with such work is refused.
pub(in crate::daemon) async fn end(
    daemon: &Arc<Daemon>,
    fork: Fork,
    force: bool,
) -> Result<Option<Kept>, Refusal> {
    let own = Arc::clone(daemon);
    to_the_end(tokio::spawn(async move { end_one(&own, fork, force).await })).await
}

async fn end_one(daemon: &Daemon, fork: Fork, force: bool) -> Result<Option<Kept>, Refusal> {
    let _turn = daemon.forks.turn.lock().await;
    let _objects = daemon.forks.stop_copying().await;
    let fork = super::find_to_end(daemon, &fork.fork).await?;
    daemon.forks.measured(fork.no).await;
    let watch = isolation(daemon).await?;
    // What a command left behind itself ends a moment later.
    let patient = Instant::now() + LINGERING;
    while watch.running(fork.no) > 0 && Instant::now() < patient {
        tokio::time::sleep(LINGERING_PAUSE).await;
    }
    if watch.running(fork.no) > 0 {
        let why = format!("something runs under `fork exec` in {}; end it first", fork.fork);
        return Err(Refusal::application("fork_in_use", why));
    }
    if fork.stage == Stage::Ending {
        return finish(daemon, fork).await;
    }
    let begun = daemon.forks.begun(fork.no);
    let moved = moved(daemon, &fork).await?;
    let unsaved = match work(daemon, &fork).await {
        Ok(found) => unsaved(&fork, found, moved).await?,
        Err(refusal) => Some(format!("what it holds cannot be told ({refusal})")),
    };
    if let (false, Some(why)) = (force, &unsaved) {
        return Err(refused(&fork, why));
    }
    let kept = unsaved.map(|_| WirePath(daemon.forks.folder.join(".kept").join(kept_name(&fork))));
    let ending = Fork { stage: Stage::Ending, kept, ..fork.clone() };
    keep(daemon, vec![ending.clone()]).await?;
    if daemon.forks.begun(fork.no) != begun {
        let now = super::find_to_end(daemon, &fork.fork).await?;
        keep(daemon, vec![Fork { stage: Stage::Ready, kept: None, ..now }]).await?;
        let why = format!("somebody began to work in {} while it was looked at; ask again", fork.fork);
        return Err(Refusal::application("fork_in_use", why));
    }
    watch.forget(fork.no);
    finish(daemon, ending).await
}

fn kept_name(fork: &Fork) -> String {
    format!("{}-{}", fork.fork.replace('/', "-"), clock::fine_stamp())
}

/// Does what was journaled: as often as it takes.
pub(super) async fn finish(daemon: &Daemon, fork: Fork) -> Result<Option<Kept>, Refusal> {
    drop_sides(daemon, vec![fork.clone()]).await?;
    let (at, to) = (place(&fork), fork.kept.clone().map(|kept| kept.0));
    let (mode, home) = (fork.mode, fork.home.0.clone());
    let kept = by_hand(daemon, "the end of a fork", move |hands| {
        let kept = to.as_deref().map(|to| hands.keep(&at.workspace, mode, to)).transpose()?;
        if kept.is_some() {
            // Before the answer names it, and before what it was made of goes.
            hands.sync()?;
        }
        hands.remove(&home)?;
        Ok(kept)
    });
    let kept = kept.await?;
    let told = kept.map(|kept| told(&fork, kept));
    forget(daemon, vec![fork.clone()]).await?;
    let commit = told.as_ref().and_then(|kept| kept.commit.clone()).unwrap_or_default();
    let said = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let at = fork.kept.as_ref().map(|at| at.0.to_string_lossy().into_owned()).unwrap_or_default();
        let more = [("fork", fork.fork.as_str()), ("kept", at.as_str()), ("commit", commit.as_str())];
        engine.tell_fork("discarded", &fork.session, &more);
    });
    said.await?;
    Ok(told)
}

fn told(fork: &Fork, kept: KeptWork) -> Kept {
    let path = fork.kept.clone().unwrap_or_else(|| fork.home.clone());
    let KeptWork { commit, uncommitted } = kept;
    let newest = uncommitted.as_ref().or(commit.as_ref());
    let fetch = newest.map(|id| format!("git fetch {} {id}", quoted(&path.0)));
    Kept { path, commit, uncommitted, fetch: fetch.filter(|_| fork.mode == Mode::Git) }
}

/// For a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-".contains(symbol);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What of a fork's work is in its repository.
pub(in crate::daemon) async fn work(daemon: &Daemon, fork: &Fork) -> Result<Work, Refusal> {
    let (workspace, mode, base) = (fork.workspace.0.clone(), fork.mode, fork.base.clone());
    let repository = fork.parent.repository.clone().map(|path| path.0);
    let found = by_hand(daemon, "a look at the work of a fork", move |hands| {
        hands.work(&workspace, mode, base.as_deref(), repository.as_deref())
    });
    found.await
}

/// What moved since a fork was made, when everything was seen that happened before the question.
pub(in crate::daemon) async fn moved(daemon: &Daemon, fork: &Fork) -> Result<Moved, Refusal> {
    let deadline = Instant::now() + super::PATIENCE;
    let sides = vec![SessionId::of_fork(fork.no, Side::Work), SessionId::of_fork(fork.baseline, Side::Base)];
    let fork = fork.clone();
    let moved = daemon
        .engine
        .when(Need::AllSettled(sides), deadline, move |engine, sight| engine.moved(&fork, sight));
    Ok(moved.await??)
}

/// What an agent did in a fork and did not commit.
pub(in crate::daemon) fn uncommitted(fork: &Fork, work: &Work, moved: &Moved) -> Vec<WirePath> {
    match fork.mode {
        Mode::Copy => moved.changed.clone().unwrap_or_default(),
        Mode::Git => work.dirty.iter().map(|path| WirePath(path.clone())).collect(),
    }
}

/// Why a fork's end would lose something; none when it would not. Its parent may be on a disk that hangs.
async fn unsaved(fork: &Fork, work: Work, moved: Moved) -> Result<Option<String>, Refusal> {
    let fork = fork.clone();
    let told = blocking("a look at what a fork would lose", move || unsaved_of(&fork, &work, &moved)).await;
    told.map_err(|undone| Refusal::application("fork_failed", undone))
}

fn unsaved_of(fork: &Fork, work: &Work, moved: &Moved) -> Option<String> {
    let uncommitted = uncommitted(fork, work, moved);
    if fork.mode == Mode::Copy && moved.changed.is_none() {
        return Some("what changed in it cannot be told".to_owned());
    }
    if fork.mode == Mode::Copy && has_repository(&fork.workspace.0) {
        return Some("it is a copy with a repository in it, whose commits are not looked at".to_owned());
    }
    if let Some(first) = uncommitted.first() {
        let (more, first) = (uncommitted.len() - 1, first.0.display());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Some(format!("{first}{more} is not committed"));
    }
    if work.stash {
        return Some("it has a stash".to_owned());
    }
    if has_notes(&fork.scratchpad.0) {
        return Some("there are notes in its scratchpad".to_owned());
    }
    let parent = fork.parent.repository.as_ref().unwrap_or(&fork.parent.tree);
    if !parent.0.is_dir() {
        return Some(format!("{} is gone, so what it began with may be nowhere else", parent.0.display()));
    }
    match (work.merged, work.commits) {
        _ if fork.mode == Mode::Copy => None,
        (true, _) => None,
        (false, 0) => Some("a tag or another name in it has commits that are not merged".to_owned()),
        (false, commits) => Some(format!("{commits} commits are not merged")),
    }
}

/// Whether there is a repository somewhere in a tree, for nothing else says what is in it; what cannot be listed may hold one.
fn has_repository(tree: &Path) -> bool {
    let mut ahead = vec![tree.to_owned()];
    while let Some(folder) = ahead.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { return true };
        for entry in entries {
            let Ok(entry) = entry else { return true };
            if entry.file_name() == ".git" {
                return true;
            }
            if entry.file_type().map_or(true, |kind| kind.is_dir()) {
                ahead.push(entry.path());
            }
        }
    }
    false
}

/// Whether somebody left something in a scratchpad; what commands put into their folder for passing files is nothing. One that
/// cannot be listed may hold something.
fn has_notes(scratchpad: &Path) -> bool {
    match std::fs::read_dir(scratchpad) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| entry.file_name() != "tmp")),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn refused(fork: &Fork, why: &str) -> Refusal {
    let why = format!(
        "{} is not discarded, for {why}; commit and merge it, or discard it with force: then it is kept, and the answer says where",
        fork.fork
    );
    Refusal::application("fork_unsaved", why)
}

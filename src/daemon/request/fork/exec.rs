//! `fork.exec`: a command begins in a fork, and ends. What changed in the workspace meanwhile is the fork's own work, so
//! its session rests on that afterwards; what changed at other times is not.

use super::super::{Answer, Daemon, blind, tell_own};
use super::access::broken;
use crate::daemon::forks::{self, isolation};
use crate::daemon::handle::{Need, Sight};
use crate::fork::shared::objects_of;
use crate::index::freshness::Freshness;
use crate::index::row::{Role, Row};
use crate::index::view::{Line, Listed};
use crate::protocol::answer::to_json;
use crate::protocol::fork::Fork;
use crate::protocol::fork::answer::Confinement;
use crate::protocol::fork::ask::Exec;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::{Belief, Seen, Update};
use crate::session::source::{Source, absolute, normal};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) async fn exec(daemon: &Daemon, ask: Exec) -> Answer {
    let fork = forks::find(daemon, &ask.fork).await?;
    match ask.ended {
        None => begin(daemon, fork).await,
        Some(exec) => end(daemon, fork, exec).await,
    }
}

async fn begin(daemon: &Daemon, fork: Fork) -> Answer {
    let watch = isolation(daemon).await?;
    let doubtful = doubtful(daemon, &fork).await?;
    let exec = watch.begin(fork.no).await;
    daemon.forks.note_begun(exec, doubtful);
    let fork = forks::find(daemon, &fork.fork).await?;
    let all = forks::all(daemon).await?;
    // Every other fork and what is kept of those that were, and every tree that forks came from.
    let mut hidden: BTreeSet<PathBuf> = all.iter().map(|fork| fork.parent.tree.0.clone()).collect();
    hidden.insert(daemon.forks.folder.clone());
    let readable: Vec<WirePath> = objects_of(&fork.workspace.0).into_iter().map(WirePath).collect();
    Ok(to_json(&Confinement {
        exec,
        lock: WirePath(fork.home.0.join("exec.lock")),
        hidden: hidden.into_iter().map(WirePath).collect(),
        readable,
        isolation_broken: broken(&fork),
        fork: fork.fork,
        workspace: fork.workspace,
        scratchpad: fork.scratchpad,
        root: fork.root,
    }))
}

fn deadline(daemon: &Daemon) -> Instant {
    Instant::now() + Duration::from_millis(daemon.config().context.register_deadline_ms)
}

/// Rows of a fork's session that are not fresh.
async fn doubtful(daemon: &Daemon, fork: &Fork) -> Result<HashSet<String>, Refusal> {
    let name = session(fork);
    let need = Need::Settled(name.clone());
    let doubtful = daemon.engine.when(need, deadline(daemon), move |engine, sight| {
        let view = engine.view(&name, Listed::Doubtful, sight)?;
        let lines = view.map(|view| view.lines).unwrap_or_default();
        Ok::<_, Refusal>(lines.into_iter().filter(Line::is_doubtful).map(|line| line.id).collect())
    });
    doubtful.await?
}

fn session(fork: &Fork) -> SessionId {
    SessionId::new(&fork.fork).expect("because slugs are short and plain")
}

async fn end(daemon: &Daemon, fork: Fork, exec: u64) -> Answer {
    // Without it somebody else began it, or an earlier daemon: what was doubtful then is not known, so nothing is taken over.
    if let Some(before) = daemon.forks.take_begun(exec) {
        adopt(daemon, &fork, before).await?;
    }
    isolation(daemon).await?.end(fork.no, exec).await;
    let isolation_broken = broken(&forks::find(daemon, &fork.fork).await?);
    let answer =
        serde_json::json!({ "fork": fork.fork, "ended": exec, "isolation_broken": isolation_broken });
    Ok(answer.to_string())
}

/// What the command changed in its own workspace is what the fork's session now knows.
async fn adopt(daemon: &Daemon, fork: &Fork, before: HashSet<String>) -> Result<(), Refusal> {
    let (name, held) = (session(fork), fork.clone());
    let need = Need::Settled(name.clone());
    let update = daemon.engine.when(need, deadline(daemon), move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind());
        }
        let Some(session) = engine.index.session(&name) else { return Ok(None) };
        let rows = engine.index.rows(session)?;
        let lines = engine.index.lines_of(session, &rows)?;
        let root = engine.index.head(session)?.root;
        let changed =
            |line: &Line| matches!(line.freshness, Freshness::Stale(_)) && !before.contains(&line.id);
        let own: Vec<(&Row, &Line)> = rows
            .iter()
            .zip(&lines)
            .filter(|(row, line)| !row.refuted && changed(line) && is_within(&held, &root, &row.source))
            .collect();
        Ok(update(&name, &own))
    });
    match update.await?? {
        Some(update) => tell_own(daemon, update).await,
        None => Ok(()),
    }
}

/// Whether all that a source means stands in the fork's workspace.
fn is_within(fork: &Fork, root: &std::path::Path, source: &Source) -> bool {
    match source {
        Source::Command { inputs, .. } => inputs.iter().all(|input| is_within(fork, root, input)),
        source => {
            source.path().is_some_and(|path| normal(&absolute(root, path)).starts_with(&fork.workspace.0))
        }
    }
}

fn update(name: &SessionId, own: &[(&Row, &Line)]) -> Option<Update> {
    let told = |role: Role| {
        let of = own.iter().filter(move |(row, line)| row.role == role && line.exists || is_made(row));
        of.filter(move |(row, _)| row.role == role).map(|(row, _)| belief(row)).collect::<Vec<_>>()
    };
    let gone = |(row, line): &&(&Row, &Line)| !line.exists && !is_made(row);
    let update = Update {
        results: told(Role::Result),
        invariants: told(Role::Invariant),
        remove: own.iter().filter(gone).map(|(row, _)| row.id.clone()).collect(),
        ..Update::of(name.clone())
    };
    let nothing = update.results.is_empty() && update.invariants.is_empty() && update.remove.is_empty();
    (!nothing).then_some(update)
}

/// What is no file, and may be told again whatever stands there.
fn is_made(row: &Row) -> bool {
    matches!(row.source, Source::GitHead { .. } | Source::Tree { .. } | Source::Command { .. })
}

fn belief(row: &Row) -> Belief {
    Belief {
        id: row.id.clone(),
        tool: row.tool.clone(),
        critical: row.critical,
        captured_at: row.captured_at,
        source: row.source.clone(),
        seen: Seen::Unsaid,
        lf: None,
    }
}

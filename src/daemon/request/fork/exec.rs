//! `fork.exec`: a command begins in a fork, and ends. The daemon runs nothing: it says what confines the command, and counts
//! what is written meanwhile as the fork's own work. What the fork's agent has read before and a command has changed since
//! is stale for it all the same.

use super::super::{Answer, Daemon};
use super::access::broken;
use crate::daemon::forks::{self, isolation};
use crate::fork::shared::objects_of;
use crate::protocol::answer::to_json;
use crate::protocol::fork::Fork;
use crate::protocol::fork::answer::Confinement;
use crate::protocol::fork::ask::Exec;
use crate::protocol::path::WirePath;

pub(super) async fn exec(daemon: &Daemon, ask: Exec) -> Answer {
    let fork = forks::find(daemon, &ask.fork).await?;
    match ask.ended {
        None => begin(daemon, fork).await,
        Some(exec) => end(daemon, fork, exec).await,
    }
}

async fn begin(daemon: &Daemon, fork: Fork) -> Answer {
    daemon.forks.measured(fork.no).await;
    let exec = isolation(daemon).await?.begin(fork.no).await;
    daemon.forks.note_begun(fork.no);
    let fork = forks::find(daemon, &fork.fork).await?;
    // The tree that it came from, every other fork, and what is kept of those that were. Journal and logs stand beside the
    // forks: what other sessions believe is in them.
    let folder = &daemon.forks.folder;
    let state = folder.parent().unwrap_or(folder).to_owned();
    let hidden = [fork.parent.tree.0.clone(), state];
    let shared = if fork.independent { Vec::new() } else { objects_of(&fork.workspace.0) };
    let readable: Vec<WirePath> = shared.into_iter().map(WirePath).collect();
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

async fn end(daemon: &Daemon, fork: Fork, exec: u64) -> Answer {
    isolation(daemon).await?.end(fork.no, exec).await;
    let isolation_broken = broken(&forks::find(daemon, &fork.fork).await?);
    let answer =
        serde_json::json!({ "fork": fork.fork, "ended": exec, "isolation_broken": isolation_broken });
    Ok(answer.to_string())
}

//! `fork.*`: one file for what makes and ends forks, one for what is asked of them while they live.

mod access;
mod exec;
mod merge;

use super::{Answer, Daemon};
use crate::daemon::forks;
use crate::daemon::handle::Need;
use crate::protocol::answer::to_json;
use crate::protocol::fork::answer::{Created, Discarded, Listed, Status, Told};
use crate::protocol::fork::ask::{Create, Discard, List, OfFork};
use crate::protocol::fork::record::Stage;
use crate::protocol::fork::{Ask, Fork};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::Side;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

pub(super) use access::{Crossing, Word, crossing};

pub(super) async fn fork(daemon: &Arc<Daemon>, ask: Ask) -> Answer {
    match ask {
        Ask::Create(ask) => create(daemon, ask).await,
        Ask::List(ask) => list(daemon, ask).await,
        Ask::Status(ask) => status(daemon, ask).await,
        Ask::Access(ask) => access::access(daemon, ask).await,
        Ask::Exec(ask) => exec::exec(daemon, ask).await,
        Ask::Merge(ask) => merge::merge(daemon, ask).await,
        Ask::Discard(ask) => discard(daemon, ask).await,
        Ask::Reprovision(ask) => reprovision(daemon, ask).await,
    }
}

async fn create(daemon: &Arc<Daemon>, ask: Create) -> Answer {
    Ok(to_json(&created(forks::make(daemon, ask).await?)))
}

fn created(forks: Vec<Fork>) -> Created {
    let missing: BTreeSet<WirePath> = forks.iter().flat_map(|fork| fork.missing.clone()).collect();
    Created { forks: forks.into_iter().map(Told::from).collect(), missing: missing.into_iter().collect() }
}

async fn list(daemon: &Daemon, ask: List) -> Answer {
    let mut forks = forks::all(daemon).await?;
    forks.retain(|fork| ask.session.as_ref().is_none_or(|session| *session == fork.session));
    Ok(to_json(&Listed { forks: statuses(daemon, forks).await? }))
}

async fn status(daemon: &Daemon, ask: OfFork) -> Answer {
    let fork = forks::find(daemon, &ask.fork).await?;
    let status = statuses(daemon, vec![fork]).await?.pop();
    status.map(|status| to_json(&status)).ok_or_else(|| gone(&ask.fork))
}

fn gone(fork: &str) -> Refusal {
    Refusal::application("not_found", format!("{fork} has just been discarded"))
}

/// Forks as they stand when everything was seen that happened before the question.
async fn statuses(daemon: &Daemon, forks: Vec<Fork>) -> Result<Vec<Status>, Refusal> {
    if forks.is_empty() {
        return Ok(Vec::new());
    }
    let measured = async {
        for fork in &forks {
            daemon.forks.measured(fork.no).await;
        }
    };
    // What is not measured by then cannot be told.
    drop(tokio::time::timeout(daemon.config().deadline(None), measured).await);
    let watch = forks::isolation(daemon).await?;
    // What it found is on its way to the engine before this is.
    watch.settled().await;
    let counted: Vec<(u64, usize, u64)> =
        forks.iter().map(|fork| (fork.no, watch.running(fork.no), watch.denied(fork.no))).collect();
    let sides = forks.iter().flat_map(|fork| {
        [SessionId::of_fork(fork.no, Side::Work), SessionId::of_fork(fork.baseline, Side::Base)]
    });
    let need = Need::AllSettled(sides.collect());
    let deadline = Instant::now() + daemon.config().deadline(None);
    let findings = daemon.forks.findings.clone();
    let told = daemon.engine.when(need, deadline, move |engine, sight| {
        let mut told = Vec::new();
        for fork in findings.forks(engine)? {
            let Some((_, running, denied)) = counted.iter().find(|(no, ..)| *no == fork.no) else { continue };
            let moved = engine.moved(&fork, sight)?;
            told.push(Status { moved, running: *running, denied: *denied, fork: Told::from(fork) });
        }
        Ok::<_, Refusal>(told)
    });
    told.await?
}

async fn discard(daemon: &Arc<Daemon>, ask: Discard) -> Answer {
    let fork = forks::find_to_end(daemon, &ask.fork).await?;
    let id = fork.fork.clone();
    let kept = forks::end(daemon, fork, ask.force).await?;
    Ok(to_json(&Discarded { fork: id, discarded: true, kept }))
}

/// The same hypothesis again, from where the session stands now. What the fork did is kept as when it is discarded.
async fn reprovision(daemon: &Arc<Daemon>, ask: Discard) -> Answer {
    let fork = forks::find(daemon, &ask.fork).await?;
    let again = Create {
        session: fork.session.clone(),
        hypotheses: Some(vec![fork.hypothesis.clone()]),
        mode: Some(fork.mode),
        copy: fork.copy.clone(),
        from: None,
    };
    let id = fork.fork.clone();
    let kept = forks::end(daemon, fork, ask.force).await?;
    let made = forks::make(daemon, again).await.map_err(|refusal| match &kept {
        Some(kept) => {
            let why = format!("{refusal}; {} is ended, and kept in {}", id, kept.path.0.display());
            Refusal::application("fork_failed", why)
        }
        None => refusal,
    })?;
    let mut answer =
        serde_json::to_value(created(made)).expect("because it is made of strings, numbers and paths");
    answer["kept"] = serde_json::to_value(kept).expect("because it is made of strings and paths");
    Ok(answer.to_string())
}

/// Whether it is there to be worked in; what is being made or ended is not.
pub(super) fn is_ready(fork: &Fork) -> bool {
    fork.stage == Stage::Ready
}

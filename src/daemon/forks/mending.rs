//! What nobody asks for: mending what the last daemon left half done, watching what it left, and making forks independent.

use super::isolation::Before;
use super::making::measure;
use super::{boot, by_hand, drop_sides, ending, guard, isolation, on_disk, violated, violation};
use crate::daemon::Daemon;
use crate::daemon::handle::Need;
use crate::protocol::fork::Fork;
use crate::protocol::fork::record::{Isolated, Stage};
use crate::protocol::refusal::Refusal;
use crate::session::{SessionId, Side};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two tries at what failed.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_LONG: Duration = Duration::from_secs(600);

/// Mends, and then does what comes up, until the daemon ends.
pub(in crate::daemon) async fn tend(daemon: Arc<Daemon>) {
    let mut left = loop {
        match mend(&daemon).await {
            Ok(left) => break left,
            Err(refusal) => {
                tracing::error!(why = %refusal, "forks could not be mended; tried again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    };
    match unmeasured(&daemon).await {
        Ok(forks) => measure(&daemon, &forks),
        Err(refusal) => tracing::warn!(why = %refusal, "what was done in forks may not be told"),
    }
    daemon.forks.mended.send_replace(true);
    loop {
        let again = match free(&daemon).await {
            Ok(()) => (!left.is_empty()).then_some(PAUSE_LONG),
            Err(refusal) => {
                tracing::warn!(why = %refusal, "a fork still needs objects of its parent; tried again");
                Some(PAUSE_LONG)
            }
        };
        match again {
            None => daemon.forks.work.notified().await,
            Some(pause) => drop(tokio::time::timeout(pause, daemon.forks.work.notified()).await),
        }
        left = mend_each(&daemon, left).await;
    }
}

/// What was being made goes, what was ending ends, and what is there is watched. One that withstands keeps nobody from the
/// others: those are given.
async fn mend(daemon: &Daemon) -> Result<Vec<Fork>, Refusal> {
    let forks = daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| engine.forks()).await??;
    // Where there never was a fork no thread is begun for it.
    if daemon.forks.folder.is_dir() {
        by_hand(daemon, "a sweep of what surveys left", |hands| {
            hands.sweep();
            Ok(())
        })
        .await?;
    }
    let (there, cut_short): (Vec<_>, Vec<_>) = forks.into_iter().partition(|fork| fork.stage == Stage::Ready);
    let mut left = mend_each(daemon, cut_short).await;
    drop_strays(daemon).await?;
    left.extend(mend_each(daemon, there).await);
    Ok(left)
}

async fn mend_each(daemon: &Daemon, forks: Vec<Fork>) -> Vec<Fork> {
    let mut left = Vec::new();
    for fork in forks {
        if let Err(refusal) = mend_one(daemon, &fork).await {
            tracing::error!(why = %refusal, fork = fork.fork, "a fork could not be mended; tried again");
            if fork.stage == Stage::Ready {
                let unwatched = violation("unwatched", fork.workspace.0.clone(), None);
                // Nobody saw what happens there.
                if let Err(refusal) = violated(&daemon.engine, fork.no, Isolated::Unknown, unwatched).await {
                    tracing::error!(why = %refusal, fork = fork.fork, "that a fork is not watched could not be kept");
                }
            }
            left.push(fork);
        }
    }
    left
}

async fn mend_one(daemon: &Daemon, fork: &Fork) -> Result<(), Refusal> {
    let _turn = daemon.forks.turn.lock().await;
    let no = fork.no;
    let is_there = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        Ok::<_, Refusal>(engine.forks()?.iter().any(|fork| fork.no == no))
    });
    if !is_there.await?? {
        return Ok(());
    }
    match fork.stage {
        Stage::Making => {
            drop_sides(daemon, vec![fork.clone()]).await?;
            let home = fork.home.0.clone();
            by_hand(daemon, "the undoing of a fork", move |hands| hands.remove(&home)).await?;
            super::forget(daemon, vec![fork.clone()]).await?;
            tell(daemon, "undone", fork).await
        }
        Stage::Ending => {
            ending::finish(daemon, fork.clone()).await?;
            tell(daemon, "finished", fork).await
        }
        Stage::Ready => {
            if fork.unsynced_boot.is_some() && fork.unsynced_boot != boot() {
                let torn = violation("not_on_disk", fork.workspace.0.clone(), None);
                violated(&daemon.engine, fork.no, Isolated::Unknown, torn).await?;
            }
            guard(daemon, fork, Before::Watched).await
        }
    }
}

/// Forks whose trees were not measured before their daemon ended, and in which nothing has happened since: nobody who asks may
/// write before that, and whoever does not ask is found.
async fn unmeasured(daemon: &Daemon) -> Result<Vec<Fork>, Refusal> {
    if let Some(watch) = daemon.forks.isolation.get() {
        watch.settled().await;
    }
    let findings = daemon.forks.findings.clone();
    let found = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let mut forks = findings.forks(engine)?;
        forks.retain(|fork| fork.stage == Stage::Ready && fork.isolation.state == Isolated::Intact);
        // Where it was tried and failed, work may have been done since.
        forks.retain(|fork| !fork.unmeasurable);
        let mut unmeasured = Vec::new();
        for fork in forks {
            // A journal that lost records may have lost the measure, with the work that was done since.
            let own = SessionId::new(&fork.fork).and_then(|name| engine.index.session(&name));
            if own.is_none_or(|own| engine.index.is_doubted(own)) {
                continue;
            }
            let work = engine.index.session(&SessionId::of_fork(fork.no, Side::Work));
            let rows = work.map_or(Ok(Vec::new()), |session| engine.index.rows(session))?;
            if !rows.iter().any(|row| row.baseline.seen().is_some()) {
                unmeasured.push(fork);
            }
        }
        Ok::<_, Refusal>(unmeasured)
    });
    found.await?
}

async fn tell(daemon: &Daemon, event: &'static str, fork: &Fork) -> Result<(), Refusal> {
    tracing::warn!(fork = fork.fork, event, "a fork that a crash had cut short");
    let (session, fork) = (fork.session.clone(), fork.fork.clone());
    let told = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        engine.tell_fork(event, &session, &[("fork", &fork)]);
    });
    told.await
}

/// A crash may leave what was registered for forks of which nothing was journaled yet.
async fn drop_strays(daemon: &Daemon) -> Result<(), Refusal> {
    let dropped = daemon.engine.when(Need::Nothing, Instant::now(), |engine, _| {
        let forks = engine.forks()?;
        let sides = |fork: &Fork| {
            [SessionId::of_fork(fork.no, Side::Work), SessionId::of_fork(fork.baseline, Side::Base)]
        };
        let known: HashSet<SessionId> = forks.iter().flat_map(sides).collect();
        for session in engine.index.sessions()? {
            let name = engine.index.head(session)?.session;
            if name.is_of_fork() && !known.contains(&name) {
                engine.drop_named(&name)?;
            }
        }
        Ok::<_, Refusal>(engine.synced())
    });
    on_disk(dropped.await??).await
}

/// Has what was made written to the disk. Nobody waited for it: a disk that others keep busy takes its time.
async fn sync(daemon: &Daemon) -> Result<(), Refusal> {
    let unsynced = |fork: &Fork| fork.stage == Stage::Ready && fork.unsynced_boot.is_some();
    let numbers: Vec<u64> =
        super::all(daemon).await?.iter().filter(|fork| unsynced(fork)).map(|fork| fork.no).collect();
    if numbers.is_empty() {
        return Ok(());
    }
    by_hand(daemon, "the sync of forks", crate::fork::Hands::sync).await?;
    let kept = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        for fork in engine.forks()?.into_iter().filter(|fork| numbers.contains(&fork.no)) {
            engine.keep_fork(&Fork { unsynced_boot: None, ..fork })?;
        }
        Ok::<_, Refusal>(engine.synced())
    });
    on_disk(kept.await??).await
}

/// Makes every fork independent of its parent's objects that is not. One that cannot be keeps nobody from the others.
async fn free(daemon: &Daemon) -> Result<(), Refusal> {
    sync(daemon).await?;
    let mut freed = Ok(());
    let bound = |fork: &Fork| fork.stage == Stage::Ready && !fork.independent;
    for fork in super::all(daemon).await?.into_iter().filter(bound) {
        freed = freed.and(free_one(daemon, fork).await);
    }
    freed
}

async fn free_one(daemon: &Daemon, fork: Fork) -> Result<(), Refusal> {
    loop {
        // Nobody ends it meanwhile; others may be made and ended, for this may take long.
        let _objects = daemon.forks.objects.lock().await;
        // Ended by whoever had the lock before.
        let Ok(fork) = super::find(daemon, &fork.fork).await else { return Ok(()) };
        let _excused = isolation(daemon).await?.excuse(fork.no, &fork.workspace.0.join(".git/objects")).await;
        let workspace = fork.workspace.0.clone();
        let stop = Arc::clone(&daemon.forks.stop);
        let freed = by_hand(daemon, "the making of a fork independent", move |hands| {
            hands.make_independent_unless(&stop, &workspace)
        });
        match freed.await {
            Ok(()) => return keep_independent(daemon, fork).await,
            // Whoever ends a fork has stopped it; it goes on when that fork is gone.
            Err(_) if daemon.forks.stop.load(Ordering::SeqCst) => {}
            Err(refusal) => return Err(refusal),
        }
    }
}

/// What was seen of it meanwhile stays: only this one field is set.
async fn keep_independent(daemon: &Daemon, fork: Fork) -> Result<(), Refusal> {
    let kept = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let now = engine.forks()?.into_iter().find(|now| now.no == fork.no);
        if let Some(now) = now {
            engine.keep_fork(&Fork { independent: true, ..now })?;
            engine.tell_fork("independent", &fork.session, &[("fork", &fork.fork)]);
        }
        Ok::<_, Refusal>(engine.synced())
    });
    on_disk(kept.await??).await
}

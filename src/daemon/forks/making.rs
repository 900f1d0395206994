//! Making forks: all that were asked for, or none.
//!
//! The world that they start from is registered first, so that whatever moves while they are copied has moved since. What
//! is about to be made is journaled before there is anything of it.

use super::copying::copies;
use super::ground::{Ground, ground, hypotheses, refuse_nested};
use super::isolation::Before;
use super::telling::{refute_base, tell_base, tell_fork, tell_work};
use super::{boot, by_hand, drop_sides, forget, guard, keep, taken, to_the_end};
use crate::daemon::handle::Need;
use crate::daemon::{Daemon, clock};
use crate::decision::plan::{Branch, branches};
use crate::fork::Parent;
use crate::protocol::convert;
use crate::protocol::fork::ask::Create;
use crate::protocol::fork::record::{self, Fork, Isolation, Mode, Stage};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::{SessionId, Side};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Makes a fork for each hypothesis, also when whoever asked goes away meanwhile.
pub(in crate::daemon) async fn make(daemon: &Arc<Daemon>, ask: Create) -> Result<Vec<Fork>, Refusal> {
    let own = Arc::clone(daemon);
    to_the_end(tokio::spawn(async move { make_all(&own, ask).await })).await
}

async fn make_all(daemon: &Arc<Daemon>, ask: Create) -> Result<Vec<Fork>, Refusal> {
    daemon.forks.mended().await;
    let _turn = daemon.forks.turn.lock().await;
    let session = convert::session(&ask.session)?;
    let ground = ground(daemon, &session).await?;
    let hypotheses = hypotheses(daemon, &ask, &ground)?;
    let (root, folder) = (ground.root.clone(), daemon.forks.folder.clone());
    by_hand(daemon, "a look at where forks are", move |_| refuse_nested(&root, &folder)).await?;
    let taken = taken(daemon).await?;
    let planned = branches(session.as_str(), &hypotheses, &daemon.forks.folder, taken);
    let no = unused(&ground.forks);
    let Create { mode, from, copy, .. } = ask;
    let root = ground.root.clone();
    let parent =
        by_hand(daemon, "a look at what is forked", move |hands| hands.parent(&root, mode, from.as_deref()));
    let parent = Arc::new(parent.await?);
    let forks: Vec<Fork> = planned
        .iter()
        .zip(&hypotheses)
        .zip(no..)
        .map(|((branch, hypothesis), at)| intended(at, no, &session, branch, hypothesis, (&parent, &copy)))
        .collect();
    let copy = copy.into_iter().map(|path| path.0).collect();
    match fill(daemon, &forks, &ground, &parent, copy).await {
        Ok(made) => Ok(made),
        Err(refusal) => {
            undo(daemon, forks, no).await;
            Err(refusal)
        }
    }
}

/// Behind every number of a fork that is there, and by the clock behind those of forks that were: what still comes of an
/// old one is taken for none that came later.
fn unused(forks: &[Fork]) -> u64 {
    let taken = forks.iter().map(|fork| fork.no + 1).max().unwrap_or(1);
    taken.max(u64::try_from(clock::now().micros).unwrap_or_default())
}

fn intended(
    no: u64,
    baseline: u64,
    session: &SessionId,
    branch: &Branch,
    hypothesis: &str,
    (parent, copy): (&Parent, &[WirePath]),
) -> Fork {
    let home = branch.workspace.parent().unwrap_or(&branch.workspace);
    Fork {
        fork: branch.id().to_owned(),
        no,
        session: session.as_str().to_owned(),
        hypothesis: hypothesis.to_owned(),
        stage: Stage::Making,
        mode: parent.mode,
        branch: branch.branch.clone(),
        home: home.into(),
        workspace: branch.workspace.as_path().into(),
        scratchpad: branch.scratchpad.as_path().into(),
        root: branch.workspace.as_path().into(),
        parent: record::Parent {
            tree: parent.tree.as_path().into(),
            root: parent.root.as_path().into(),
            repository: parent.repository.as_deref().map(Into::into),
            branch: parent.branch.clone(),
            head: parent.head.clone(),
        },
        base: None,
        baseline,
        made_at: clock::now().micros,
        unsynced_boot: boot(),
        unmeasurable: false,
        independent: parent.mode == Mode::Copy,
        left_out: Vec::new(),
        copy: copy.to_vec(),
        differs: Vec::new(),
        missing: Vec::new(),
        shared_by_symlink: Vec::new(),
        isolation: Isolation::default(),
        kept: None,
    }
}

/// Makes what was intended, and says that it is there only when all of it is.
async fn fill(
    daemon: &Arc<Daemon>,
    intended: &[Fork],
    ground: &Ground,
    parent: &Arc<Parent>,
    copy: Vec<PathBuf>,
) -> Result<Vec<Fork>, Refusal> {
    let baseline = intended.first().map(|fork| fork.baseline).unwrap_or_default();
    tell_base(daemon, baseline, ground, parent).await?;
    keep(daemon, intended.to_vec()).await?;
    let refuted = refute_base(daemon, intended[0].session.clone(), baseline).await?;
    let forked = Arc::clone(parent);
    let load =
        by_hand(daemon, "a survey of what is forked", move |hands| hands.survey(&forked, &copy)).await?;
    let made = copies(daemon, intended, parent, load).await?;
    let mut told = Vec::with_capacity(made.len());
    for fork in made {
        let differs = tell_fork(daemon, &fork, (ground, &refuted), parent).await?;
        if fork.mode == Mode::Copy {
            // Nothing else says what was done in a copy.
            tell_work(daemon, &fork).await?;
        }
        told.push(Fork { differs, ..fork });
    }
    for fork in &told {
        guard(daemon, fork, Before::New).await?;
    }
    let ready: Vec<Fork> = told.into_iter().map(|fork| Fork { stage: Stage::Ready, ..fork }).collect();
    keep(daemon, ready.clone()).await?;
    let told = ready.clone();
    let said = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        for fork in &told {
            let base = fork.base.clone().unwrap_or_default();
            engine.tell_fork("created", &fork.session, &[("fork", &fork.fork), ("base", &base)]);
        }
    });
    said.await?;
    measure(daemon, &ready);
    daemon.forks.work.notify_one();
    Ok(ready)
}

/// Registers the trees of forks from which their work is measured. Whoever asks first what may be done in one, or what was,
/// waits for that; whoever made it does not.
pub(super) fn measure(daemon: &Arc<Daemon>, forks: &[Fork]) {
    let unmeasured = forks.iter().filter(|fork| fork.mode == Mode::Git).cloned();
    let noted: Vec<_> = unmeasured.map(|fork| (daemon.forks.note_unmeasured(fork.no), fork)).collect();
    let daemon = Arc::clone(daemon);
    tokio::spawn(async move {
        for (done, fork) in noted {
            if let Err(refusal) = tell_work(&daemon, &fork).await {
                tracing::warn!(why = %refusal, fork = fork.fork, "what is done in a fork cannot be told");
                if let Err(refusal) = note_unmeasurable(&daemon, fork.no).await {
                    tracing::error!(why = %refusal, fork = fork.fork, "that could not be kept");
                }
            }
            daemon.forks.note_measured(fork.no);
            drop(done);
        }
    });
}

/// Whoever comes later must not measure from a tree in which work may have been done.
async fn note_unmeasurable(daemon: &Daemon, no: u64) -> Result<(), Refusal> {
    let kept = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        match engine.forks()?.into_iter().find(|fork| fork.no == no) {
            Some(fork) => engine.keep_fork(&Fork { unmeasurable: true, ..fork }),
            None => Ok(()),
        }
    });
    kept.await?
}

/// Leaves nothing of forks that could not be made whole.
async fn undo(daemon: &Daemon, forks: Vec<Fork>, baseline: u64) {
    if let Err(refusal) = drop_sides(daemon, forks.clone()).await {
        tracing::warn!(why = %refusal, "forks that could not be made whole are still followed");
    }
    let homes: Vec<PathBuf> = forks.iter().map(|fork| fork.home.0.clone()).collect();
    if let Some(watch) = daemon.forks.isolation.get() {
        forks.iter().for_each(|fork| watch.forget(fork.no));
    }
    let removed = by_hand(daemon, "the undoing of forks", move |hands| {
        homes.iter().try_for_each(|home| hands.remove(home))
    });
    if let Err(refusal) = removed.await {
        // They stay noted as being made, and the next start tries again.
        tracing::error!(why = %refusal, "forks that could not be made whole could not be removed");
        return;
    }
    if let Err(refusal) = forget(daemon, forks).await {
        tracing::error!(why = %refusal, "forks that could not be made whole could not be forgotten");
    }
    let base = SessionId::of_fork(baseline, Side::Base);
    let dropped =
        daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| engine.drop_named(&base));
    drop(dropped.await);
}

//! What forks are registered as: the world that they start from, what each of them believes, and what measures its work.

use super::ground::Ground;
use crate::daemon::engine::Engine;
use crate::daemon::engine::forking::{HEAD, TREE};
use crate::daemon::handle::Need;
use crate::daemon::request::tell_own;
use crate::daemon::{Daemon, clock};
use crate::fork::Parent;
use crate::protocol::fork::Fork;
use crate::protocol::fork::record::Mode;
use crate::protocol::path::Reference;
use crate::protocol::refusal::Refusal;
use crate::session::context::{Belief, Goal, Seen, Update};
use crate::session::reroot::{Move, in_full};
use crate::session::source::{Filter, HeadPolicy, Source};
use crate::session::{SessionId, Side};
use crate::store::record::Record;
use crate::world::login_name;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Registers the world that forks start from: what their session rests on, the whole tree, and HEAD.
pub(super) async fn tell_base(
    daemon: &Daemon,
    no: u64,
    ground: &Ground,
    parent: &Parent,
) -> Result<(), Refusal> {
    let full = in_full(ground.told.clone(), &ground.root, "base/");
    let tree = whole(&parent.tree, parent.mode);
    let head = Source::GitHead { path: parent.tree.clone(), policy: HeadPolicy::Strict };
    let mut results = full.results;
    results.push(belief(TREE, tree, Seen::Unsaid));
    results.extend((parent.mode == Mode::Git).then(|| belief(HEAD, head, Seen::Unsaid)));
    let name = SessionId::of_fork(no, Side::Base);
    let base = Update {
        user: ground.told.user.clone(),
        root: Some(parent.tree.clone()),
        goal: Some(Goal::default()),
        results,
        invariants: full.invariants,
        ..Update::of(name.clone())
    };
    tell_own(daemon, base).await.map(drop)
}

/// What has failed in use by now in the session that is forked has failed in its base; gives the ids. From the moment when the
/// forks are noted on, whoever refutes something there refutes it in the base himself.
pub(super) async fn refute_base(
    daemon: &Daemon,
    session: String,
    baseline: u64,
) -> Result<Vec<String>, Refusal> {
    let base = SessionId::of_fork(baseline, Side::Base);
    let refuted = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let held = SessionId::new(&session).and_then(|name| engine.index.session(&name));
        let rows = held.map_or(Ok(Vec::new()), |held| engine.index.rows(held))?;
        let ids: Vec<String> = rows.into_iter().filter(|row| row.refuted).map(|row| row.id).collect();
        refute(engine, &base, ids.iter().map(|id| format!("base/{id}")))?;
        Ok::<_, Refusal>(ids)
    });
    refuted.await?
}

/// What failed in use has failed for whoever takes it over.
fn refute(engine: &mut Engine, name: &SessionId, ids: impl Iterator<Item = String>) -> Result<(), Refusal> {
    let Some(session) = engine.index.session(name) else { return Ok(()) };
    for id in ids {
        let at = clock::now();
        let target = PathBuf::from(id);
        let record = Record::Refuted {
            session: name.as_str().to_owned(),
            target: Reference(target.clone()),
            at: at.micros,
        };
        engine.journaled(&record, |engine| engine.index.refute(session, &target, at))?;
    }
    Ok(())
}

/// All that is anybody's work in a tree: what git ignores is none, and where there is no git all is.
fn whole(tree: &Path, mode: Mode) -> Source {
    Source::Tree {
        path: tree.to_owned(),
        filter: Filter { gitignore: mode == Mode::Git, ..Filter::default() },
    }
}

fn belief(id: &str, source: Source, seen: Seen) -> Belief {
    Belief { id: id.to_owned(), tool: None, critical: false, captured_at: None, source, seen, lf: None }
}

/// Registers what a fork's agent believes when it begins.
/// Says what of it does not match that tree.
pub(super) async fn tell_fork(
    daemon: &Daemon,
    fork: &Fork,
    (ground, refuted): (&Ground, &[String]),
    parent: &Parent,
) -> Result<Vec<String>, Refusal> {
    let name = SessionId::new(&fork.fork).expect("because slugs are short and plain");
    // The root may be spelled through a symlink, and what is told below it too.
    let spelled = ground.root.ancestors().nth(parent.within.components().count()).map(Path::to_owned);
    let there = Move {
        root: ground.root.clone(),
        trees: [parent.tree.clone()].into_iter().chain(spelled).collect(),
        to: fork.workspace.0.clone(),
    };
    let told = there.apply(ground.told.clone());
    let goal = told.goal.clone().unwrap_or_default();
    let own = Update {
        session: name.clone(),
        root: Some(fork.root.0.clone()),
        goal: Some(Goal {
            hypotheses: vec![fork.hypothesis.clone()],
            branchable: false,
            shares_mutable_state: false,
            ..goal
        }),
        scratchpad_bytes: Some(0),
        ..told
    };
    let differs = tell_own(daemon, own).await?;
    let refuted = refuted.to_vec();
    let taken_over = daemon
        .engine
        .when(Need::Nothing, Instant::now(), move |engine, _| refute(engine, &name, refuted.into_iter()));
    taken_over.await??;
    Ok(differs)
}

/// Registers a fork's tree as it is when it begins: what is done in it is measured from there.
pub(super) async fn tell_work(daemon: &Daemon, fork: &Fork) -> Result<(), Refusal> {
    let tree = whole(&fork.workspace.0, fork.mode);
    let work = Update {
        user: Some(login_name()),
        root: Some(fork.workspace.0.clone()),
        results: vec![belief(TREE, tree, Seen::Unsaid)],
        ..Update::of(SessionId::of_fork(fork.no, Side::Work))
    };
    tell_own(daemon, work).await.map(drop)
}

//! Making forks: all that were asked for, or none.
//!
//! The world that they start from is registered first, so that whatever moves while they are copied has moved since. What
//! is about to be made is journaled before there is anything of it.

use super::isolation::Before;
use super::{boot, by_hand, forget, guard, keep, place, to_the_end};
use crate::daemon::engine::forking::{HEAD, TREE};
use crate::daemon::handle::{Need, Sight};
use crate::daemon::request::{blind, no_session, tell_own, told_again};
use crate::daemon::{Daemon, clock};
use crate::decision::plan::{Branch, branches};
use crate::fork::{Load, Made, Parent};
use crate::index::row::{Baseline, Row};
use crate::protocol::convert;
use crate::protocol::fork::ask::Create;
use crate::protocol::fork::record::{self, Fork, Isolation, Mode, Stage};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::context::{Belief, Goal, Seen, Update};
use crate::session::reroot::{Move, in_full};
use crate::session::source::{Filter, HeadPolicy, Source};
use crate::session::{SessionId, Side};
use crate::store::record::Record;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many forks are copied at a time.
const AT_ONCE: usize = 2;
/// Between two words about how far a fork is.
const PROGRESS_FILES: u64 = 1_000;

/// What a session believes that is about to be forked.
struct Ground {
    told: Update,
    root: PathBuf,
    /// Rows that failed in use.
    refuted: Vec<String>,
    /// Every fork that there is.
    forks: Vec<Fork>,
    /// Names that are taken, of sessions and forks.
    taken: BTreeSet<String>,
}

/// Makes a fork for each hypothesis, also when whoever asked goes away meanwhile.
pub(in crate::daemon) async fn make(daemon: &Arc<Daemon>, ask: Create) -> Result<Vec<Fork>, Refusal> {
    let own = Arc::clone(daemon);
    to_the_end(tokio::spawn(async move { make_all(&own, ask).await })).await
}

async fn make_all(daemon: &Daemon, ask: Create) -> Result<Vec<Fork>, Refusal> {
    daemon.forks.mended().await;
    let _turn = daemon.forks.turn.lock().await;
    let session = convert::session(&ask.session)?;
    let ground = ground(daemon, &session).await?;
    let hypotheses = hypotheses(daemon, &ask, &ground)?;
    refuse_nested(&ground, &daemon.forks.folder)?;
    let mut taken = ground.taken.clone();
    taken.extend(standing(&daemon.forks.folder));
    let planned = branches(session.as_str(), &hypotheses, &daemon.forks.folder, taken);
    let no = unused(&ground.forks);
    let Create { mode, from, copy, .. } = ask;
    let root = ground.root.clone();
    let parent =
        by_hand(daemon, "a look at what is forked", move |hands| hands.parent(&root, mode, from.as_deref()));
    let parent = Arc::new(parent.await?);
    tell_base(daemon, no, &ground, &parent).await?;
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

/// Ids whose folder is there. One that no record tells of, for the journal is a new one or a restored one, may hold work.
fn standing(folder: &Path) -> Vec<String> {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let homes = below(folder).flat_map(|session| below(&session.path()));
    let ids = homes.filter_map(|home| Some(home.path().strip_prefix(folder).ok()?.to_str()?.to_owned()));
    ids.collect()
}

/// Behind every number of a fork that is there, and by the clock behind those of forks that were: what still comes of an
/// old one is taken for none that came later.
fn unused(forks: &[Fork]) -> u64 {
    let taken = forks.iter().map(|fork| fork.no + 1).max().unwrap_or(1);
    taken.max(u64::try_from(clock::now().micros).unwrap_or_default())
}

/// What there is to be forked, with everything seen that happened before the question.
async fn ground(daemon: &Daemon, session: &SessionId) -> Result<Ground, Refusal> {
    let deadline = Instant::now() + register_deadline(daemon);
    let name = session.clone();
    let ground = daemon.engine.when(Need::Settled(session.clone()), deadline, move |engine, sight| {
        if sight == Sight::Blind {
            return Err(blind());
        }
        let held = engine.index.session(&name).ok_or_else(|| no_session(&name))?;
        if !engine.index.believes(held)? {
            return Err(no_session(&name));
        }
        let (head, rows) = (engine.index.head(held)?, engine.index.rows(held)?);
        refuse_unlooked(&name, &rows)?;
        let forks = engine.forks()?;
        let mut taken: BTreeSet<String> = forks.iter().map(|fork| fork.fork.clone()).collect();
        for session in engine.index.sessions()? {
            taken.insert(engine.index.head(session)?.session.as_str().to_owned());
        }
        let refuted = rows.iter().filter(|row| row.refuted).map(|row| row.id.clone()).collect();
        Ok(Ground { root: head.root.clone(), told: told_again(head, rows), refuted, forks, taken })
    });
    ground.await?
}

/// What was never looked at after it was told would be taken for true in a fork.
fn refuse_unlooked(name: &SessionId, rows: &[Row]) -> Result<(), Refusal> {
    let looks = |row: &&Row| !matches!(row.source, Source::Command { .. } | Source::Volatile { .. });
    let missed = rows.iter().filter(looks).filter(|row| row.baseline == Baseline::Missed).count();
    if missed == 0 {
        return Ok(());
    }
    let why = format!(
        "{missed} results of {name} were never looked at, for their registration was cut short; register them again"
    );
    Err(Refusal::application("fork_unsettled", why))
}

fn hypotheses(daemon: &Daemon, ask: &Create, ground: &Ground) -> Result<Vec<String>, Refusal> {
    let goal = ground.told.goal.clone().unwrap_or_default();
    let hypotheses = match &ask.hypotheses {
        Some(told) => convert::hypotheses(told)?,
        None if goal.shares_mutable_state => {
            let why = "the hypotheses of the goal share mutable state, so they cannot be tried apart; name those that can";
            return Err(Refusal::application("fork_blocked_shared_state", why));
        }
        None => goal.hypotheses,
    };
    if hypotheses.is_empty() {
        let why = "there is no hypothesis to be tried: name some, or register a goal that has some";
        return Err(Refusal::application("fork_no_hypotheses", why));
    }
    let max = daemon.config().fork.branches_max;
    let there = ground.forks.iter().filter(|fork| fork.session == ask.session).count();
    if there + hypotheses.len() > max {
        let why = format!(
            "{} forks of {} would be {}; fork.branches_max is {max}: discard some",
            hypotheses.len(),
            ask.session,
            there + hypotheses.len()
        );
        return Err(Refusal::application("too_large", why));
    }
    Ok(hypotheses)
}

/// A fork of what is itself in a fork would not survive its end.
fn refuse_nested(ground: &Ground, folder: &Path) -> Result<(), Refusal> {
    let root = std::fs::canonicalize(&ground.root).unwrap_or_else(|_| ground.root.clone());
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if !root.starts_with(&folder) {
        return Ok(());
    }
    let why = format!(
        "{} lies in the folder of forks, {}, and forks do not nest: fork the session that it came from",
        root.display(),
        folder.display()
    );
    Err(Refusal::application("fork_nested", why))
}

/// Registers the world that forks start from: what their session rests on, the whole tree, and HEAD.
async fn tell_base(daemon: &Daemon, no: u64, ground: &Ground, parent: &Parent) -> Result<(), Refusal> {
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
    tell_own(daemon, base).await?;
    refute(daemon, &name, ground.refuted.iter().map(|id| format!("base/{id}")).collect()).await
}

/// What failed in use has failed for whoever takes it over.
async fn refute(daemon: &Daemon, name: &SessionId, ids: Vec<String>) -> Result<(), Refusal> {
    let name = name.clone();
    let refuted = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let Some(session) = engine.index.session(&name) else { return Ok(()) };
        for id in ids {
            let at = clock::now();
            let target = PathBuf::from(id);
            let record = Record::Refuted {
                session: name.as_str().to_owned(),
                target: crate::protocol::path::Reference(target.clone()),
                at: at.micros,
            };
            engine.journaled(&record, |engine| engine.index.refute(session, &target, at))?;
        }
        Ok::<_, Refusal>(())
    });
    refuted.await?
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
    daemon: &Daemon,
    intended: &[Fork],
    ground: &Ground,
    parent: &Arc<Parent>,
    copy: Vec<PathBuf>,
) -> Result<Vec<Fork>, Refusal> {
    keep(daemon, intended.to_vec()).await?;
    let forked = Arc::clone(parent);
    let load =
        by_hand(daemon, "a survey of what is forked", move |hands| hands.survey(&forked, &copy)).await?;
    let made = copies(daemon, intended, parent, load).await?;
    let mut told = Vec::with_capacity(made.len());
    for fork in made {
        let differs = tell_fork(daemon, &fork, ground, parent).await?;
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
    daemon.forks.work.notify_one();
    Ok(ready)
}

/// Copies the trees, a few at a time.
async fn copies(
    daemon: &Daemon,
    intended: &[Fork],
    parent: &Arc<Parent>,
    load: Load,
) -> Result<Vec<Fork>, Refusal> {
    let (parent, intended) = (Arc::clone(parent), intended.to_vec());
    let engine = daemon.engine.clone();
    let made = by_hand(daemon, "the making of forks", move |hands| {
        let next = AtomicU64::new(0);
        let one = |fork: &Fork| {
            let (told, session) = (AtomicU64::new(0), fork.session.clone());
            let progress = |at: crate::fork::Progress| {
                let step = at.files / PROGRESS_FILES;
                if told.swap(step, Ordering::Relaxed) != step {
                    say_progress(&engine, fork.fork.clone(), session.clone(), at);
                }
            };
            hands.make(&parent, &load, &place(fork), &progress).map(|made| finished(fork, made, &load))
        };
        // Each takes the next that nobody has taken; what one could not do ends all.
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                let Some(fork) = intended.get(at) else { return Ok(done) };
                match one(fork) {
                    Ok(made) => done.push((at, made)),
                    Err(error) => {
                        next.store(intended.len() as u64, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        };
        let parts: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE.min(intended.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("because a panic is told by its thread"))
                .collect()
        });
        let mut made = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        made.sort_by_key(|(at, _)| *at);
        Ok(made.into_iter().map(|(_, fork)| fork).collect())
    });
    made.await
}

fn say_progress(
    engine: &crate::daemon::handle::EngineHandle,
    fork: String,
    session: String,
    at: crate::fork::Progress,
) {
    let files = at.files.to_string();
    let (all, bytes) = (at.files_all.to_string(), at.bytes.to_string());
    // Nobody waits for it, and an engine that has ended tells nobody.
    engine.post(move |engine| {
        let more = [("fork", fork.as_str()), ("files", &files), ("files_all", &all), ("bytes", &bytes)];
        engine.push_fork("progress", &session, &more);
    });
}

fn finished(fork: &Fork, made: Made, load: &Load) -> Fork {
    let wire = |paths: &[PathBuf]| paths.iter().map(|path| path.as_path().into()).collect::<Vec<WirePath>>();
    Fork {
        // Without a slash at its end.
        root: WirePath(made.root.components().collect()),
        base: made.base,
        independent: made.independent,
        left_out: made.left_out,
        missing: wire(&load.missing),
        shared_by_symlink: wire(&made.shared_by_symlink),
        ..fork.clone()
    }
}

/// Registers what a fork's agent believes when it begins, and its tree as it is then.
/// Says what of it does not match that tree.
async fn tell_fork(
    daemon: &Daemon,
    fork: &Fork,
    ground: &Ground,
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
    refute(daemon, &name, ground.refuted.clone()).await?;
    let tree = whole(&fork.workspace.0, fork.mode);
    let work = Update {
        user: ground.told.user.clone(),
        root: Some(fork.workspace.0.clone()),
        results: vec![belief(TREE, tree, Seen::Unsaid)],
        ..Update::of(SessionId::of_fork(fork.no, Side::Work))
    };
    tell_own(daemon, work).await?;
    Ok(differs)
}

/// Leaves nothing of forks that could not be made whole.
async fn undo(daemon: &Daemon, forks: Vec<Fork>, baseline: u64) {
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

fn register_deadline(daemon: &Daemon) -> Duration {
    Duration::from_millis(daemon.config().context.register_deadline_ms)
}

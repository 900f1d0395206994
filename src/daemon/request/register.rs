//! `context.register` and `context.record`: take in what a client tells, look at it, keep it, and only then answer.

use super::fork::{Crossing, Word, crossing};
use super::{Answer, Daemon, blind, no_session};
use crate::daemon::clock;
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::daemon::synced::synced;
use crate::index::Change;
use crate::index::freshness::{Doubt, Freshness};
use crate::index::row::{Baseline, Role, Row, RowNo, SessionNo};
use crate::index::view::{Line, Listed};
use crate::protocol::answer::{Registered, Told, to_json};
use crate::protocol::context::Context;
use crate::protocol::convert;
use crate::protocol::refusal::Refusal;
use crate::protocol::report::ClockOut;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::session::source::Source;
use crate::store::record::{Record, settled};
use crate::store::syncer::Synced;
use crate::world::{digest, login_name};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a registration waits.
pub(in crate::daemon) const DEADLINE: &str = "context.register_deadline_ms";

pub(super) async fn register(daemon: &Daemon, context: Context) -> Answer {
    let session = match &context.session {
        Some(name) => convert::session(name)?,
        None => convert::session(&clock::new_uuid().to_string())?,
    };
    let mut update = convert::update(context, digest::blake3, session)?;
    if update.root.is_none() {
        return Err(Refusal::invalid_params("a context has a root, an absolute path"));
    }
    update.user.get_or_insert_with(login_name);
    let crossing = crossing_of(daemon, &update).await?;
    tell(daemon, update, crossing).await
}

pub(super) async fn record(daemon: &Daemon, context: Context) -> Answer {
    let Some(name) = &context.session else { return Err(Refusal::invalid_params("name the session")) };
    let session = convert::session(name)?;
    let update = convert::update(context, digest::blake3, session)?;
    let crossing = crossing_of(daemon, &update).await?;
    tell(daemon, update, crossing).await
}

/// What a fork's session says that it has seen may lie where a fork has no business.
async fn crossing_of(daemon: &Daemon, update: &Update) -> Result<Crossing, Refusal> {
    if !daemon.forks.any() {
        return Ok(Crossing::default());
    }
    let told = update.results.iter().chain(&update.invariants).map(|belief| &belief.source);
    let inputs = |source: &Source| match source {
        Source::Command { inputs, cwd, .. } => {
            let paths = inputs.iter().filter_map(Source::path).map(Path::to_owned);
            paths.chain(cwd.clone()).collect()
        }
        source => source.path().map(Path::to_owned).into_iter().collect::<Vec<_>>(),
    };
    let word = Word {
        kind: "foreign_source",
        paths: told.clone().flat_map(inputs).collect(),
        named: update.facts.iter().flat_map(|fact| fact.sources.clone()).collect(),
        ids: update.results.iter().chain(&update.invariants).map(|belief| belief.id.clone()).collect(),
    };
    crossing(daemon, &update.session, update.root.as_deref(), word).await
}

/// Takes in what the daemon tells itself, and is done when all of it has been looked at and is on disk; says which rows are
/// not fresh. What could not be looked at in time is told as an error, for it would say nothing.
pub(in crate::daemon) async fn tell_own(daemon: &Daemon, update: Update) -> Result<Vec<String>, Refusal> {
    let name = update.session.clone();
    tell(daemon, update, Crossing::default()).await?;
    let missed = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
        let Some(session) = engine.index.session(&name) else { return Err(no_session(&name)) };
        let rows = engine.index.rows(session)?;
        let looks = |row: &&Row| row.role == Role::Result && row.source_id.is_some();
        let missed = |row: &Row| row.baseline == Baseline::Missed && row.inputs.is_empty();
        let lines = engine.index.lines_of(session, &rows)?;
        let doubtful = lines.into_iter().filter(|line| line.role != Role::Input && line.is_doubtful());
        Ok((rows.iter().filter(looks).any(missed), doubtful.map(|line| line.id).collect()))
    });
    let (missed, doubtful) = missed.await??;
    if missed {
        let why = "what it rests on could not be looked at in time (context.register_deadline_ms); ask again";
        return Err(Refusal::application("fork_unsettled", why));
    }
    Ok(doubtful)
}

async fn tell(daemon: &Daemon, update: Update, crossing: Crossing) -> Answer {
    let config = daemon.config();
    let deadline = Instant::now() + Duration::from_millis(config.context.register_deadline_ms);
    let name = update.session.clone();
    let rows_max = config.context.results_max;
    let begun = daemon.engine.when(Need::Barrier, deadline, move |engine, sight| {
        let begun = begin(engine, &update, rows_max, sight)?;
        crossing.mark(engine)?;
        Ok::<_, Refusal>(begun)
    });
    let begun = begun.await??;
    let settled = Need::Settled(name.clone());
    let finished =
        daemon.engine.when(settled, deadline, move |engine, sight| finish(engine, &name, &begun, sight));
    let (answer, synced) = finished.await??;
    on_disk(synced).await?;
    Ok(answer)
}

/// A registration whose sources are being looked at.
pub(super) struct Begun {
    pub(super) session: SessionNo,
    pub(super) told: Vec<RowNo>,
    /// What was not fresh before it.
    pub(super) doubtful: HashMap<String, Freshness>,
}

/// Journal first: what the index has taken can then always be told again.
fn begin(engine: &mut Engine, update: &Update, rows_max: usize, sight: Sight) -> Result<Begun, Refusal> {
    if sight == Sight::Blind {
        return Err(blind(engine, DEADLINE));
    }
    let doubtful = doubtful(engine, &update.session)?;
    engine.index.admits(update, rows_max)?;
    refuse_long_lists(engine, update)?;
    let at = clock::now();
    let context = Box::new(convert::context(update));
    let registered = engine.journaled(&Record::Told { at: at.micros, context }, |engine| {
        engine.index.register(update, rows_max, at)
    })?;
    engine.follow(registered.checks, &registered.released);
    engine.push_changes(&registered.changed, at)?;
    Ok(Begun { session: registered.session, told: registered.told, doubtful })
}

/// The rows of a session that are not fresh, if anybody wants to be told when they are.
pub(super) fn doubtful(engine: &mut Engine, name: &SessionId) -> Result<HashMap<String, Freshness>, Refusal> {
    if !engine.wants_changes(name) {
        return Ok(HashMap::new());
    }
    let lines = engine.view(name, Listed::Doubtful, Sight::Clear)?.map(|view| view.lines).unwrap_or_default();
    Ok(lines.into_iter().map(|line| (line.id, line.freshness)).collect())
}

/// A row that was told anew has started over, and nobody looks at it as a change when it is fresh at once. For whoever
/// was told that it was not, it is one.
fn restored(begun: &Begun, lines: &[Line]) -> Vec<Change> {
    let fresh = lines.iter().filter(|line| line.freshness == Freshness::Fresh);
    let of = |line: &Line| {
        let from = *begun.doubtful.get(&line.id).filter(|from| **from != Freshness::Fresh)?;
        Some(Change { session: begun.session, id: line.id.clone(), from, to: Freshness::Fresh })
    };
    fresh.filter_map(of).collect()
}

/// Lists are bounded as they stand, however many updates they came in.
fn refuse_long_lists(engine: &Engine, update: &Update) -> Result<(), Refusal> {
    let head = match engine.index.session(&update.session) {
        Some(session) if !update.replace => engine.index.head(session)?,
        _ => return Ok(()),
    };
    let grown = |held: &[String], told: &[String]| held.iter().chain(told).collect::<HashSet<_>>().len();
    let removed: HashSet<&String> = update.remove.iter().collect();
    let kept = head.facts.iter().map(|fact| &fact.id).filter(|id| !removed.contains(id));
    let facts: HashSet<&String> = kept.chain(update.facts.iter().map(|fact| &fact.id)).collect();
    convert::bounded("decisions", grown(&head.decisions, &update.decisions))?;
    convert::bounded("open_questions", grown(&head.open_questions, &update.open_questions))?;
    convert::bounded("facts", facts.len())
}

fn finish(
    engine: &mut Engine,
    name: &SessionId,
    begun: &Begun,
    sight: Sight,
) -> Result<(String, oneshot::Receiver<Synced>), Refusal> {
    let session = begun.session;
    // Dropped while it was looked at, and perhaps begun again by somebody else.
    if engine.index.session(name) != Some(session) {
        return Err(no_session(name));
    }
    if sight != Sight::Clear {
        engine.index.give_up_awaiting(session)?;
    }
    // Nobody knows what became of the sources since they were looked at. What was told stays, and may be told again.
    if sight == Sight::Blind {
        return Err(blind(engine, DEADLINE));
    }
    let lines = settle(engine, name, begun)?;
    engine.index.storage_mut().flush()?;
    let head = engine.index.head(session)?;
    let of = |role: Role| lines.iter().filter(move |line| line.role == role).map(told_line).collect();
    let answer = Registered {
        session: head.session.as_str(),
        clock: ClockOut::from(engine.index.clock()),
        results: of(Role::Result),
        invariants: of(Role::Invariant),
        warnings: warnings(&lines, head.doubted),
    };
    Ok((to_json(&answer), engine.synced()))
}

/// Journals what the looks of a registration settled, and tells whoever wants to know what is fresh again.
pub(super) fn settle(engine: &mut Engine, name: &SessionId, begun: &Begun) -> Result<Vec<Line>, Refusal> {
    let rows = engine.index.rows_of(begun.session, &begun.told)?;
    for record in settled(name.as_str(), &rows) {
        engine.journaled(&record, |_| Ok::<_, Refusal>(()))?;
    }
    let lines = engine.index.lines_of(begun.session, &rows)?;
    engine.push_changes(&restored(begun, &lines), clock::now())?;
    Ok(lines)
}

fn told_line(line: &Line) -> Told<'_> {
    let result = line.role != Role::Invariant;
    Told {
        id: result.then_some(line.id.as_str()),
        name: (!result).then_some(line.id.as_str()),
        status: line.freshness.word(),
        cause: line.freshness.cause(),
        baseline: if line.by_registration { "registration" } else { "client" },
    }
}

fn warnings(lines: &[Line], in_doubt: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if in_doubt {
        warnings.push(format!("all results of the session {}", Doubt::Gap.remedy()));
    }
    let weak = lines
        .iter()
        .filter(|line| line.by_registration && !matches!(line.role, Role::Tracked | Role::Input))
        .count();
    if weak > 0 {
        warnings.push(format!("{weak} came without a digest: what was on disk at registration stands in"));
    }
    let shown = lines.iter().filter(|line| line.role != Role::Input);
    let unknown = shown.filter(|line| matches!(line.freshness, Freshness::Unknown(_))).count();
    if unknown > 0 {
        warnings.push(format!("{unknown} cannot be verified, and count as stale where they are critical"));
    }
    warnings
}

/// Durable before the answer.
pub(super) async fn on_disk(word: oneshot::Receiver<Synced>) -> Result<(), Refusal> {
    let synced = synced(word).await;
    synced.map_err(|error| Refusal::application("store_failed", format!("the journal {error}")))
}

//! `mem_search`, `mem_get_observation`, `mem_timeline` and `mem_stats`. Nothing that is asked changes anything.

use super::super::{Answer, Daemon};
use super::pick::{Candidate, Ranked, picked};
use crate::daemon::clock;
use crate::daemon::engine::{Engine, no_evidence};
use crate::daemon::handle::{Need, Sight};
use crate::index::row::Role;
use crate::index::storage::StorageError;
use crate::memory::observation::{Marks, Observation};
use crate::memory::recall::{Entry, Recall};
use crate::memory::score;
use crate::memory::terms::{self, Needle};
use crate::memory::user::User;
use crate::protocol::answer::to_json;
use crate::protocol::memory::answer::{Compact, Evidence, Grounded, Parts, Past, Results, Stats, Whole};
use crate::protocol::memory::{Around, Get, OfUser, Search, inward};
use crate::protocol::refusal::Refusal;
use crate::protocol::time;
use crate::session::SessionId;
use crate::session::moment::Moment;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Which types are wanted.
#[derive(Debug)]
enum Types {
    All,
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl Types {
    fn new(only: Option<Vec<String>>, all_but: Option<Vec<String>>) -> Result<Self, Refusal> {
        match (only, all_but) {
            (None, None) => Ok(Self::All),
            (Some(only), None) => Ok(Self::Only(only)),
            (None, Some(all_but)) => Ok(Self::AllBut(all_but)),
            (Some(_), Some(_)) => Err(Refusal::invalid_params("give types or types_exclude, not both")),
        }
    }

    fn want(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.iter().any(|wanted| wanted == kind),
            Self::AllBut(kinds) => kinds.iter().all(|unwanted| unwanted != kind),
        }
    }
}

pub(super) async fn search(daemon: &Daemon, ask: Search) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let (query, limit) = (inward::query(&ask.query)?, inward::limit(ask.limit)?);
    let types = Types::new(ask.types, ask.types_exclude)?;
    let stale = ask.stale.unwrap_or_default();
    let results: Vec<Compact> = if terms::is_short(&query) {
        let found = holding(daemon, &user, &query, types).await?;
        picked(daemon, limit, stale, move |engine| Ok(Some(still_there(engine, &user, &found)?))).await?
    } else {
        picked(daemon, limit, stale, move |engine| ranked(engine, &user, &query, &types)).await?
    };
    Ok(to_json(&Results { results }))
}

/// Best first; ties go to the newer one, then to the lower number.
fn sorted(mut found: Vec<(Moment, Candidate)>) -> Vec<Candidate> {
    found.sort_by(|(a_at, a), (b_at, b)| {
        b.score.total_cmp(&a.score).then(b_at.cmp(a_at)).then(a.id.cmp(&b.id))
    });
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn scored(id: u64, has_sources: bool, rank: f64, updated_at: Moment, revision: u32) -> (Moment, Candidate) {
    let (recency, revision) = (score::recency(clock::now(), updated_at), score::revision(revision));
    let parts = Parts { rank: Some(rank), recency, revision, kind: None };
    (updated_at, Candidate { id, has_sources, score: score::search(rank, recency, revision), parts })
}

fn ranked(engine: &mut Engine, user: &str, query: &str, types: &Types) -> Result<Option<Ranked>, Refusal> {
    let Some(held) = engine.book().user(user)? else { return Ok(Some(Ranked::default())) };
    let Some(recall) = engine.recall(user)? else { return Ok(None) };
    let found = recall.rank(query).into_iter().filter_map(|(id, rank)| {
        let entry = recall.entry(id).filter(|entry| types.want(&entry.kind))?;
        Some(scored(id, entry.has_sources, rank, entry.updated_at, entry.revision))
    });
    Ok(Some(Ranked { user: held.no, entries: sorted(found.collect()) }))
}

/// What holds a query of a character or two, looked for in all that the user has, piece by piece.
async fn holding(
    daemon: &Daemon,
    user: &str,
    query: &str,
    types: Types,
) -> Result<Vec<(Moment, Candidate)>, Refusal> {
    let (needle, types) = (Arc::new(Needle::new(query)), Arc::new(types));
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let (user, needle, types) = (user.to_owned(), Arc::clone(&needle), Arc::clone(&types));
        let page = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
            let book = engine.book();
            let page = match book.user(&user)? {
                Some(held) => book.page(held.no, from)?,
                None => Vec::new(),
            };
            let next = page.last().map(|last| last.id + 1);
            let found = page.iter().filter_map(|observation| held_by(&needle, &types, observation));
            Ok::<_, Refusal>((found.collect::<Vec<_>>(), next))
        });
        let (page, next) = page.await??;
        found.extend(page);
        match next {
            Some(next) => from = next,
            None => return Ok(found),
        }
    }
}

fn held_by(needle: &Needle, types: &Types, observation: &Observation) -> Option<(Moment, Candidate)> {
    let Observation { id, marks, words } = observation;
    let rank = needle.rank(&words.title, &words.content).filter(|_| types.want(&marks.kind))?;
    Some(scored(*id, marks.has_sources, rank, marks.updated_at, marks.revision))
}

/// What may have been forgotten while the rest was read is left out.
fn still_there(engine: &Engine, user: &str, found: &[(Moment, Candidate)]) -> Result<Ranked, StorageError> {
    let book = engine.book();
    let Some(held) = book.user(user)? else { return Ok(Ranked::default()) };
    let mut left = Vec::new();
    for (at, candidate) in found {
        if let Some(Marks { has_sources, .. }) = book.marks(held.no, candidate.id)? {
            left.push((*at, Candidate { has_sources, ..*candidate }));
        }
    }
    Ok(Ranked { user: held.no, entries: sorted(left) })
}

pub(super) async fn get(daemon: &Daemon, ask: Get) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let id = inward::observation("observation_id", ask.observation_id)?;
    let deadline = Instant::now() + daemon.config().deadline(None);
    let need = Need::AllSettled(vec![SessionId::of_observation(id)]);
    let got = daemon.engine.when(need, deadline, move |engine, sight| {
        engine.trust_journal()?;
        Ok::<_, Refusal>(to_json(&whole(engine, &user, id, ask.history, sight)?))
    });
    got.await?
}

fn whole(
    engine: &mut Engine,
    user: &str,
    id: u64,
    history: bool,
    sight: Sight,
) -> Result<Option<Whole>, StorageError> {
    let book = engine.book();
    let Some(held) = book.user(user)? else { return Ok(None) };
    let Some(Observation { marks, words, .. }) = book.observation(held.no, id)? else { return Ok(None) };
    let session_id = book.span(held.no, marks.session)?.id;
    let past =
        || Ok::<Vec<Past>, StorageError>(book.history(held.no, id)?.into_iter().map(Past::from).collect());
    let history = history.then(past).transpose()?;
    Ok(Some(Whole {
        id,
        session_id,
        user_id: user.to_owned(),
        kind: marks.kind,
        title: words.title,
        content: words.content,
        topic_key: words.topic_key,
        revision_count: marks.revision,
        created_at: time::to_text(marks.created_at),
        updated_at: time::to_text(marks.updated_at),
        sources: grounds(engine, id)?,
        evidence: evidence(engine, id, marks.has_sources, sight)?,
        history,
    }))
}

fn grounds(engine: &Engine, id: u64) -> Result<Vec<Grounded>, StorageError> {
    let Some(session) = engine.index.session(&SessionId::of_observation(id)) else { return Ok(Vec::new()) };
    let rows = engine.index.rows(session)?;
    let told = rows.iter().filter(|row| row.role == Role::Result);
    Ok(told.map(|row| Grounded::new(&row.source)).collect())
}

fn evidence(engine: &mut Engine, id: u64, has_sources: bool, sight: Sight) -> Result<Evidence, StorageError> {
    if has_sources { engine.evidence(id, sight) } else { Ok(no_evidence()) }
}

/// How many observations a timeline has on either side of its anchor.
const AROUND: usize = 5;

pub(super) async fn timeline(daemon: &Daemon, ask: Around) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let anchor = inward::observation("observation_id", ask.observation_id)?;
    let window = recalled(daemon, &user, move |_, recall| around(recall, anchor)).await?;
    let need = Need::AllSettled(grounded(&window));
    let deadline = Instant::now() + daemon.config().deadline(None);
    let told = daemon.engine.when(need, deadline, move |engine, sight| {
        engine.trust_journal()?;
        Ok::<_, Refusal>(to_json(&Results { results: told(engine, &user, anchor, &window, sight)? }))
    });
    told.await?
}

/// None when the anchor is not there.
fn around(recall: &Recall, anchor: u64) -> Vec<Entry> {
    let order = recall.in_order();
    let Some(at) = order.iter().position(|entry| entry.id == anchor) else { return Vec::new() };
    let window = &order[at.saturating_sub(AROUND)..order.len().min(at + AROUND + 1)];
    window.iter().map(|&entry| entry.clone()).collect()
}

/// Without what has been forgotten meanwhile; nothing when that is the anchor.
fn told(
    engine: &mut Engine,
    user: &str,
    anchor: u64,
    window: &[Entry],
    sight: Sight,
) -> Result<Vec<Compact>, StorageError> {
    let Some(held) = engine.book().user(user)? else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    for &Entry { id, .. } in window {
        let observation = engine.book().observation(held.no, id)?;
        let is_anchor = (id == anchor).then_some(true);
        match (observation, is_anchor) {
            (Some(observation), is_anchor) => {
                let evidence = evidence(engine, id, observation.marks.has_sources, sight)?;
                told.push(Compact { is_anchor, ..Compact::new(observation, evidence) });
            }
            (None, Some(_)) => return Ok(Vec::new()),
            (None, None) => {}
        }
    }
    Ok(told)
}

/// The names under which the index knows what these rest on.
fn grounded<'entry>(entries: impl IntoIterator<Item = &'entry Entry>) -> Vec<SessionId> {
    let with = entries.into_iter().filter(|entry| entry.has_sources);
    with.map(|entry| SessionId::of_observation(entry.id)).collect()
}

/// What is found in everything that searches of a user need, in the turn of the engine in which all of it has been read: in
/// the next one it may have been let go.
pub(super) async fn recalled<T: Send + 'static>(
    daemon: &Daemon,
    user: &str,
    find: impl Fn(User, &Recall) -> T + Clone + Send + 'static,
) -> Result<T, Refusal> {
    loop {
        let (user, find) = (user.to_owned(), find.clone());
        let read = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
            let held = engine.book().user(&user)?.unwrap_or_default();
            Ok::<_, Refusal>(engine.recall(&user)?.map(|recall| find(held, recall)))
        });
        if let Some(found) = read.await?? {
            return Ok(found);
        }
    }
}

pub(super) async fn stats(daemon: &Daemon, ask: OfUser) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let found = |held: User, recall: &Recall| (held.no, counted(held, recall), grounded(recall.entries()));
    let (no, counts, grounded) = recalled(daemon, &user, found).await?;
    let need = Need::AllSettled(grounded.clone());
    let deadline = Instant::now() + daemon.config().deadline(None);
    let counted = daemon.engine.when(need, deadline, move |engine, sight| {
        engine.trust_journal()?;
        Ok::<_, Refusal>(to_json(&judged(engine, no, counts, &grounded, sight)?))
    });
    counted.await?
}

fn counted(held: User, recall: &Recall) -> Stats {
    let mut by_type: BTreeMap<String, u64> = BTreeMap::new();
    for entry in recall.entries() {
        *by_type.entry(entry.kind.to_string()).or_default() += 1;
    }
    let (observations, sessions) = (held.observations, u64::from(held.sessions));
    Stats { observations, sessions, by_type, stale: 0, unknown: 0 }
}

fn judged(
    engine: &Engine,
    user: u32,
    counts: Stats,
    grounded: &[SessionId],
    sight: Sight,
) -> Result<Stats, StorageError> {
    let (mut stale, mut unknown) = (0, 0);
    for id in grounded.iter().filter_map(SessionId::observation) {
        // Forgotten meanwhile, or resting on nothing any more.
        if !engine.book().marks(user, id)?.is_some_and(|marks| marks.has_sources) {
            continue;
        }
        match engine.evidence_word(id, sight)? {
            "stale" => stale += 1,
            "unknown" => unknown += 1,
            _ => {}
        }
    }
    Ok(Stats { stale, unknown, ..counts })
}

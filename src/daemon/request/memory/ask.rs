//! `mem_search`, `mem_get_observation`, `mem_timeline` and `mem_stats`. Nothing that is asked changes anything.

use super::super::{Answer, Daemon};
use super::pick::{Candidate, Ranked, picked};
use crate::daemon::clock;
use crate::daemon::engine::{Engine, no_evidence};
use crate::daemon::handle::{Need, Sight};
use crate::index::row::Role;
use crate::index::storage::StorageError;
use crate::memory::observation::Observation;
use crate::memory::recall::{Entry, Recall};
use crate::memory::score;
use crate::memory::terms::{self, Needle};
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
    // One moment for all of them: what is judged later than another is not older by that.
    let now = clock::now();
    let ranked = if terms::is_short(&query) {
        holding(daemon, &user, &query, types, now).await?
    } else {
        ranked(daemon, user, query, types, now).await?
    };
    let results: Vec<Compact> = picked(daemon, limit, stale, ranked).await?;
    Ok(to_json(&Results { results }))
}

/// Best first; ties go to the newer one, then to the lower number.
fn sorted(mut found: Vec<(Moment, Candidate)>) -> Vec<Candidate> {
    found.sort_by(|(a_at, a), (b_at, b)| {
        b.score.total_cmp(&a.score).then(b_at.cmp(a_at)).then(a.id.cmp(&b.id))
    });
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn scored(
    id: u64,
    has_sources: bool,
    rank: f64,
    (now, updated_at): (Moment, Moment),
    revision: u32,
) -> (Moment, Candidate) {
    let (recency, revision) = (score::recency(now, updated_at), score::revision(revision));
    let parts = Parts { rank: Some(rank), recency, revision, kind: None };
    (updated_at, Candidate { id, has_sources, score: score::search(rank, recency, revision), parts })
}

/// What answers the query, ranked in one turn of the engine once everything is at hand.
async fn ranked(
    daemon: &Daemon,
    user: String,
    query: String,
    types: Types,
    now: Moment,
) -> Result<Ranked, Refusal> {
    at_hand(daemon, &user, move |user, recall| {
        let found = recall.rank(&query).into_iter().filter_map(|(id, rank)| {
            let entry = recall.entry(id).filter(|entry| types.want(&entry.kind))?;
            Some(scored(id, entry.has_sources, rank, (now, entry.updated_at), entry.revision))
        });
        Ranked { user, entries: sorted(found.collect()) }
    })
    .await
}

/// What holds a query of a character or two, looked for in all that the user has, piece by piece.
async fn holding(
    daemon: &Daemon,
    user: &str,
    query: &str,
    types: Types,
    now: Moment,
) -> Result<Ranked, Refusal> {
    let (needle, types) = (Arc::new(Needle::new(query)), Arc::new(types));
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let (user, needle, types) = (user.to_owned(), Arc::clone(&needle), Arc::clone(&types));
        let page = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
            let book = engine.book();
            let held = book.user(&user)?.unwrap_or_default();
            let page = if held.observations > 0 { book.page(held.no, from)? } else { Vec::new() };
            let next = page.last().map(|last| last.id + 1);
            let found = page.iter().filter_map(|observation| held_by(&needle, &types, observation, now));
            Ok::<_, Refusal>((held.no, found.collect::<Vec<_>>(), next))
        });
        let (user, page, next) = page.await??;
        found.extend(page);
        match next {
            Some(next) => from = next,
            None => return Ok(Ranked { user, entries: sorted(found) }),
        }
    }
}

fn held_by(
    needle: &Needle,
    types: &Types,
    observation: &Observation,
    now: Moment,
) -> Option<(Moment, Candidate)> {
    let Observation { id, marks, words } = observation;
    let rank = needle.rank(&words.title, &words.content).filter(|_| types.want(&marks.kind))?;
    Some(scored(*id, marks.has_sources, rank, (now, marks.updated_at), marks.revision))
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
    let history = history.then(|| past(engine, held.no, id)).transpose()?;
    let (history, omitted) = history.map_or((None, 0), |(past, omitted)| (Some(past), omitted));
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
        history_omitted: (omitted > 0).then_some(omitted),
    }))
}

/// How many bytes of earlier contents one answer has, the latest ones first; a later revision more may stand in any case.
const HISTORY_BYTES: usize = 1024 * 1024;

/// What an observation was before, the first revision first, and how many of the first ones are left out.
fn past(engine: &Engine, user: u32, id: u64) -> Result<(Vec<Past>, usize), StorageError> {
    let book = engine.book();
    let (mut told, mut bytes) = (Vec::new(), 0);
    let past = book.past_of(user, id)?;
    for (id, marks) in past.iter().rev() {
        if bytes > HISTORY_BYTES {
            break;
        }
        let words = book.words(user, *id, marks.revision)?;
        bytes += words.content.len();
        told.push(Past::from(Observation { id: *id, marks: marks.clone(), words }));
    }
    told.reverse();
    let omitted = past.len() - told.len();
    Ok((told, omitted))
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
    let (no, window) = at_hand(daemon, &user, move |user, recall| (user, around(recall, anchor))).await?;
    let need = Need::AllSettled(grounded(&window));
    let deadline = Instant::now() + daemon.config().deadline(None);
    let told = daemon.engine.when(need, deadline, move |engine, sight| {
        engine.trust_journal()?;
        let mut results = Vec::new();
        for entry in window {
            let Some(observation) = engine.book().observation(no, entry.id)? else {
                // Forgotten meanwhile. Around an anchor that is gone there is nothing.
                if entry.id == anchor {
                    results.clear();
                    break;
                }
                continue;
            };
            let evidence = evidence(engine, entry.id, observation.marks.has_sources, sight)?;
            let compact = Compact::new(observation, evidence);
            results.push(Compact { is_anchor: (entry.id == anchor).then_some(true), ..compact });
        }
        Ok::<_, Refusal>(to_json(&Results { results }))
    });
    told.await?
}

fn around(recall: &Recall, anchor: u64) -> Vec<Entry> {
    let order = recall.in_order();
    let Some(at) = order.iter().position(|entry| entry.id == anchor) else { return Vec::new() };
    let window = &order[at.saturating_sub(AROUND)..order.len().min(at + AROUND + 1)];
    window.iter().map(|&entry| entry.clone()).collect()
}

/// The names under which the index knows what these rest on.
fn grounded<'entry>(entries: impl IntoIterator<Item = &'entry Entry>) -> Vec<SessionId> {
    let with = entries.into_iter().filter(|entry| entry.has_sources);
    with.map(|entry| SessionId::of_observation(entry.id)).collect()
}

/// Asks what searches of a user need, once all of it is at hand: others are let in between its pieces.
async fn at_hand<T: Send + 'static>(
    daemon: &Daemon,
    user: &str,
    ask: impl FnOnce(u32, &Recall) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let asked = at_hand_until(daemon, user, None, ask).await?;
    Ok(asked.expect("because nothing ends it before"))
}

/// The same; none when it is not at hand by then.
pub(super) async fn at_hand_until<T: Send + 'static>(
    daemon: &Daemon,
    user: &str,
    until: Option<Instant>,
    ask: impl FnOnce(u32, &Recall) -> T + Send + 'static,
) -> Result<Option<T>, Refusal> {
    let mut ask = ask;
    loop {
        let user = user.to_owned();
        let asked = daemon.engine.when(Need::Nothing, Instant::now(), move |engine, _| {
            let no = engine.book().user(&user)?.map_or(0, |held| held.no);
            Ok::<_, Refusal>(match engine.recall(&user)? {
                Some(recall) => Ok(ask(no, recall)),
                None => Err(ask),
            })
        });
        match asked.await?? {
            Ok(answer) => return Ok(Some(answer)),
            Err(_) if until.is_some_and(|until| until <= Instant::now()) => return Ok(None),
            Err(again) => ask = again,
        }
    }
}

/// What is counted of a user's observations.
struct Counted {
    by_type: BTreeMap<String, u64>,
    with_sources: Vec<u64>,
}

impl Counted {
    fn of(recall: &Recall) -> Self {
        let mut by_type: BTreeMap<String, u64> = BTreeMap::new();
        recall.entries().for_each(|entry| *by_type.entry(entry.kind.to_string()).or_default() += 1);
        let with_sources = recall.entries().filter(|entry| entry.has_sources).map(|entry| entry.id).collect();
        Self { by_type, with_sources }
    }
}

pub(super) async fn stats(daemon: &Daemon, ask: OfUser) -> Answer {
    let user = inward::user(&ask.user_id)?;
    let Counted { by_type, with_sources } = at_hand(daemon, &user, |_, recall| Counted::of(recall)).await?;
    let names = with_sources.iter().copied().map(SessionId::of_observation).collect();
    let deadline = Instant::now() + daemon.config().deadline(None);
    let counted = daemon.engine.when(Need::AllSettled(names), deadline, move |engine, sight| {
        engine.trust_journal()?;
        let held = engine.book().user(&user)?.unwrap_or_default();
        let (observations, sessions) = (by_type.values().sum(), u64::from(held.sessions));
        let (mut stale, mut unknown) = (0, 0);
        for id in with_sources {
            // Forgotten meanwhile, or resting on nothing any more.
            if engine.index.session(&SessionId::of_observation(id)).is_none() {
                continue;
            }
            match engine.evidence_word(id, sight)? {
                "stale" => stale += 1,
                "unknown" => unknown += 1,
                _ => {}
            }
        }
        Ok::<_, Refusal>(to_json(&Stats { observations, sessions, by_type, stale, unknown }))
    });
    counted.await?
}

//! Facts that a fresh start may carry on from the memory: observations whose sources are fresh at the very clock of the view.

use super::super::no_session;
use super::ask::at_hand_until;
use crate::daemon::Daemon;
use crate::daemon::clock;
use crate::daemon::engine::Engine;
use crate::daemon::handle::{Need, Sight};
use crate::index::facts::Places;
use crate::index::storage::{StorageError, StoredFact};
use crate::index::view::{FactLine, Listed, View};
use crate::memory::observation::{Observation, SUMMARY};
use crate::memory::recall::{Entry, Recall};
use crate::memory::score;
use crate::protocol::convert::TEXT_BYTES_MAX;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::source::normal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many facts the memory adds at most.
const FACTS: usize = 10;
/// A view of more rows than this gets none: to hold them against each other would hold up everybody else.
const LINES_MAX: usize = 10_000;
/// How many observations are looked at for them, best first by their score at the start of a session.
const LOOKED_AT: usize = 100;

/// The view of a session, with what its user's memory adds to its facts. A memory that takes longer to be read than a part of
/// the deadline adds nothing this time.
pub(in crate::daemon::request) async fn seen_with_memory(
    daemon: &Daemon,
    session: &SessionId,
    listed: Listed,
    deadline: Duration,
) -> Result<View, Refusal> {
    let begun = Instant::now();
    let name = session.clone();
    let user = daemon.engine.when(Need::Nothing, begun, move |engine, _| {
        let session = engine.index.session(&name);
        session.map(|session| engine.index.head(session)).transpose()
    });
    let user = user.await??.ok_or_else(|| no_session(session))?.user;
    let candidates = at_hand_until(daemon, &user, Some(begun + deadline / 4), |_, recall| candidates(recall));
    let candidates = candidates.await?.unwrap_or_default();
    let own = candidates.iter().copied().map(SessionId::of_observation);
    let need = Need::AllSettled(std::iter::once(session.clone()).chain(own).collect());
    let name = session.clone();
    let left = deadline.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
    let viewed = daemon.engine.when(need, Instant::now() + left, move |engine, sight| {
        let Some(mut view) = engine.view(&name, listed, sight)? else { return Ok(None) };
        // A session of that name may have become another user's meanwhile.
        if view.head.user == user {
            let facts = facts(engine, &view, &candidates, sight)?;
            view.facts.extend(facts);
        }
        Ok::<_, Refusal>(Some(view))
    });
    viewed.await??.ok_or_else(|| no_session(session))
}

fn candidates(recall: &Recall) -> Vec<u64> {
    let now = clock::now();
    let score = |entry: &Entry| {
        let recency = score::recency(now, entry.updated_at);
        score::context(recency, score::revision(entry.revision), score::type_weight(&entry.kind))
    };
    let grounded = recall.entries().filter(|entry| entry.has_sources && *entry.kind != *SUMMARY);
    let mut scored: Vec<(f64, &Entry)> = grounded.map(|entry| (score(entry), entry)).collect();
    scored.sort_by(|(a_score, a), (b_score, b)| {
        b_score.total_cmp(a_score).then(b.updated_at.cmp(&a.updated_at)).then(a.id.cmp(&b.id))
    });
    scored.into_iter().take(LOOKED_AT).map(|(_, entry)| entry.id).collect()
}

fn facts(
    engine: &mut Engine,
    view: &View,
    candidates: &[u64],
    sight: Sight,
) -> Result<Vec<FactLine>, StorageError> {
    let mut facts = Vec::new();
    let Some(user) = engine.book().user(&view.head.user)? else { return Ok(facts) };
    if view.lines.len() > LINES_MAX {
        return Ok(facts);
    }
    let places = Places::in_doubt(view);
    for &id in candidates {
        if facts.len() == FACTS {
            break;
        }
        // Forgotten meanwhile, or resting on nothing any more.
        let Some(observation) = engine.book().observation(user.no, id)?.filter(|held| held.marks.has_sources)
        else {
            continue;
        };
        if engine.evidence_word(id, sight)? != "fresh" {
            continue;
        }
        facts.extend(fact(engine, view, &places, observation)?.filter(|fact| fact.fresh));
    }
    Ok(facts)
}

/// The observation as a fact; none when nothing that it rests on is below the session's root.
fn fact(
    engine: &Engine,
    view: &View,
    places: &Places<'_>,
    observation: Observation,
) -> Result<Option<FactLine>, StorageError> {
    let Observation { id, words, .. } = observation;
    let Some(session) = engine.index.session(&SessionId::of_observation(id)) else { return Ok(None) };
    let rows = engine.index.rows(session)?;
    let root = normal(&view.head.root);
    let paths: Vec<&Path> = rows.iter().filter_map(|row| row.source.path()).collect();
    if !paths.iter().any(|path| normal(path).starts_with(&root)) {
        return Ok(None);
    }
    let fact = StoredFact {
        id: id.to_string(),
        statement: if words.content.len() <= TEXT_BYTES_MAX { words.content } else { words.title },
        evidence: format!("observation {id} of the memory"),
        // With what its commands read: they have no path of their own.
        sources: paths.into_iter().map(ToOwned::to_owned).collect(),
        rows: rows.iter().map(|row| row.no).collect(),
    };
    let judged = engine.index.fact_beside(session, &fact, places)?;
    Ok(Some(FactLine { observation: Some(id), ..judged }))
}

//! The best of many observations, with what is known of their evidence.
//!
//! Ranked once; then only those are waited for whose evidence makes a difference, in batches that grow. Whoever leaves out
//! what is not fresh looks past it for more for half as long as a decision may wait, and then tells what it has.

use super::super::Daemon;
use crate::daemon::engine::{Engine, no_evidence};
use crate::daemon::handle::{Need, Sight};
use crate::memory::recent::Memory;
use crate::protocol::memory::Stale;
use crate::protocol::memory::answer::{Compact, Evidence, Parts};
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use std::time::Instant;

/// Observations of one user, best first.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    pub(super) user: u32,
    pub(super) entries: Vec<Candidate>,
}

/// An observation that may be picked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) id: u64,
    pub(super) has_sources: bool,
    pub(super) score: f64,
    pub(super) parts: Parts,
}

impl From<Memory> for Candidate {
    fn from(memory: Memory) -> Self {
        let Memory { id, has_sources, score, recency, revision, weight } = memory;
        let parts = Parts { rank: None, recency, revision, kind: Some(weight) };
        Self { id, has_sources, score, parts }
    }
}

/// The most that is looked at in one turn of the engine.
const BATCH_MAX: usize = 256;
/// The most that is looked at for one question.
const LOOKED_AT_MAX: usize = 2_000;

/// Up to `most` of what was ranked.
pub(super) async fn picked(
    daemon: &Daemon,
    most: usize,
    stale: Stale,
    ranked: Ranked,
) -> Result<Vec<Compact>, Refusal> {
    let Ranked { user, entries } = ranked;
    let chosen = match stale {
        Stale::Include => entries.into_iter().take(most).collect(),
        Stale::Demote | Stale::Exclude => fresh_first(daemon, most, stale, &entries).await?,
    };
    let grounded = chosen.iter().filter(|candidate| candidate.has_sources);
    let names: Vec<SessionId> = grounded.map(|candidate| SessionId::of_observation(candidate.id)).collect();
    let need = if names.is_empty() { Need::Nothing } else { Need::AllSettled(names) };
    let deadline = Instant::now() + daemon.config().deadline(None);
    let told = daemon.engine.when(need, deadline, move |engine, sight| {
        engine.trust_journal()?;
        let mut told = Vec::with_capacity(chosen.len());
        for candidate in &chosen {
            told.extend(compact(engine, user, candidate, sight)?);
        }
        // What changed since it was chosen is told as what it is now.
        let doubtful = |compact: &Compact| compact.evidence.is_doubtful();
        match stale {
            Stale::Include => {}
            Stale::Demote => told.sort_by_key(doubtful),
            Stale::Exclude => told.retain(|compact| !doubtful(compact)),
        }
        Ok::<_, Refusal>(told)
    });
    told.await?
}

/// Those whose evidence does not speak against them, best first, and behind them, where they are wanted, the others.
async fn fresh_first(
    daemon: &Daemon,
    most: usize,
    stale: Stale,
    entries: &[Candidate],
) -> Result<Vec<Candidate>, Refusal> {
    let until = Instant::now() + daemon.config().deadline(None) / 2;
    let (mut fresh, mut others, mut at, mut batch) = (Vec::new(), Vec::new(), 0, most);
    while fresh.len() < most && at < entries.len().min(LOOKED_AT_MAX) && Instant::now() < until {
        let next = &entries[at..entries.len().min(at + batch)];
        let (words, sight) = words(daemon, next, until).await?;
        for (candidate, word) in next.iter().zip(words) {
            let side = if matches!(word, "fresh" | "none") { &mut fresh } else { &mut others };
            side.push(*candidate);
        }
        if sight == Sight::Blind {
            break;
        }
        at += next.len();
        batch = (batch * 2).min(BATCH_MAX);
    }
    if stale == Stale::Demote {
        fresh.append(&mut others);
    }
    fresh.truncate(most);
    Ok(fresh)
}

/// What the evidence of each is, in a word; that of one which is gone meanwhile speaks against it.
async fn words(
    daemon: &Daemon,
    candidates: &[Candidate],
    until: Instant,
) -> Result<(Vec<&'static str>, Sight), Refusal> {
    let grounded = candidates.iter().filter(|candidate| candidate.has_sources);
    let need = Need::AllSettled(grounded.map(|candidate| SessionId::of_observation(candidate.id)).collect());
    let candidates = candidates.to_vec();
    let words = daemon.engine.when(need, until, move |engine, sight| {
        let word = |candidate: &Candidate| {
            let name = SessionId::of_observation(candidate.id);
            match (candidate.has_sources, engine.index.session(&name)) {
                (false, _) => Ok("none"),
                (true, None) => Ok("unknown"),
                (true, Some(_)) => engine.evidence_word(candidate.id, sight),
            }
        };
        let words = candidates.iter().map(word).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Refusal>((words, sight))
    });
    words.await?
}

/// None when it was forgotten meanwhile.
fn compact(
    engine: &mut Engine,
    user: u32,
    candidate: &Candidate,
    sight: Sight,
) -> Result<Option<Compact>, Refusal> {
    let Some(observation) = engine.book().observation(user, candidate.id)? else { return Ok(None) };
    // One that began to rest on something after it was ranked rests on what was there after the question.
    let has_sources = observation.marks.has_sources;
    let evidence: Evidence = if has_sources { engine.evidence(candidate.id, sight)? } else { no_evidence() };
    let (score, score_parts) = (Some(candidate.score), Some(candidate.parts));
    Ok(Some(Compact { score, score_parts, ..Compact::new(observation, evidence) }))
}

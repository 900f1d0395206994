//! The best of many observations, with what is known of their evidence.
//!
//! Who ranks is asked again after every wait: what is told meanwhile counts. Only those observations are waited for whose
//! evidence makes a difference, so a long memory costs no more looks than a short one.

use super::super::Daemon;
use crate::daemon::engine::{Engine, no_evidence};
use crate::daemon::handle::{Need, Sight};
use crate::index::storage::StorageError;
use crate::memory::recent::Memory;
use crate::protocol::memory::Stale;
use crate::protocol::memory::answer::{Compact, Evidence, Parts};
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use std::collections::HashSet;
use std::sync::Arc;
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

/// What may be done now.
enum Step {
    Done(Vec<Compact>),
    /// There is more to be read of the user's memory.
    Read,
    /// The evidence of these is needed.
    Settle(Vec<u64>),
}

/// Up to `most` of what `rank` gives; it gives none while it is still reading.
pub(super) async fn picked(
    daemon: &Daemon,
    most: usize,
    stale: Stale,
    rank: impl Fn(&mut Engine) -> Result<Option<Ranked>, Refusal> + Send + Sync + 'static,
) -> Result<Vec<Compact>, Refusal> {
    let deadline = Instant::now() + daemon.config().deadline(None);
    let rank = Arc::new(rank);
    let (mut need, mut settled, mut worst) = (Need::Nothing, HashSet::new(), Sight::Clear);
    loop {
        let (rank, known) = (Arc::clone(&rank), settled.clone());
        let step = daemon.engine.when(need, deadline, move |engine, sight| {
            let sight = darker(worst, sight);
            engine.trust_journal()?;
            let step = match rank(engine)? {
                Some(ranked) => pick(engine, &ranked, most, stale, &known, sight)?,
                None => Step::Read,
            };
            Ok::<_, Refusal>((step, sight))
        });
        let (step, sight) = step.await??;
        worst = sight;
        need = match step {
            Step::Done(picked) => return Ok(picked),
            Step::Read => Need::Nothing,
            Step::Settle(ids) => {
                settled.extend(ids);
                // Those that were settled before too: what was touched since would be unknown for want of another look.
                Need::AllSettled(settled.iter().copied().map(SessionId::of_observation).collect())
            }
        };
    }
}

/// What was not seen once is not seen by a later wait for something else.
fn darker(one: Sight, other: Sight) -> Sight {
    match (one, other) {
        (Sight::Blind, _) | (_, Sight::Blind) => Sight::Blind,
        (Sight::Unsettled, _) | (_, Sight::Unsettled) => Sight::Unsettled,
        (Sight::Clear, Sight::Clear) => Sight::Clear,
    }
}

fn pick(
    engine: &mut Engine,
    ranked: &Ranked,
    most: usize,
    stale: Stale,
    settled: &HashSet<u64>,
    sight: Sight,
) -> Result<Step, StorageError> {
    let (mut picked, mut demoted, mut unsettled) = (Vec::new(), Vec::new(), Vec::new());
    // Each wait is for at least as many as all before it: however many stale ones are looked past, the waits are few.
    let ahead = if stale == Stale::Include { 0 } else { settled.len() };
    for candidate in &ranked.entries {
        if picked.len() == most || picked.len() + unsettled.len() >= most && unsettled.len() >= ahead {
            break;
        }
        if !candidate.has_sources {
            picked.push((candidate, no_evidence()));
        } else if !settled.contains(&candidate.id) {
            unsettled.push(candidate.id);
        } else {
            let evidence = engine.evidence(candidate.id, sight)?;
            match stale {
                Stale::Demote if evidence.is_doubtful() => demoted.push((candidate, evidence)),
                Stale::Exclude if evidence.is_doubtful() => {}
                _ => picked.push((candidate, evidence)),
            }
        }
    }
    if !unsettled.is_empty() {
        return Ok(Step::Settle(unsettled));
    }
    picked.extend(demoted);
    picked.truncate(most);
    let whole =
        |(candidate, evidence): (&Candidate, Evidence)| compact(engine, ranked.user, candidate, evidence);
    Ok(Step::Done(picked.into_iter().map(whole).collect::<Result<_, _>>()?))
}

fn compact(
    engine: &Engine,
    user: u32,
    candidate: &Candidate,
    evidence: Evidence,
) -> Result<Compact, StorageError> {
    let observation = engine.book().must_have(user, candidate.id)?;
    let (score, score_parts) = (Some(candidate.score), Some(candidate.parts));
    Ok(Compact { score, score_parts, ..Compact::new(observation, evidence) })
}

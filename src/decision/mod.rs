//! What follows from what is known: resume, fork or fresh, and why.
//!
//! A pure function of a view and a policy. The same view and policy always give the same decision, byte for byte.

pub mod plan;
pub mod policy;
pub mod reason;
pub mod summary;

#[cfg(test)]
mod tests;

use crate::index::view::{Line, View};
use plan::{Branch, plan};
use policy::Policy;
use reason::{Code, Reason};
use std::path::PathBuf;
use summary::TypedSummary;

/// The three transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// What the session believes is still true.
    Resume,
    /// Parallel branches, isolated from each other.
    Fork,
    /// The world changed: start over from a summary.
    Fresh,
}

impl Transition {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::Resume, Self::Fork, Self::Fresh];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Fork => "fork",
            Self::Fresh => "fresh",
        }
    }
}

/// What was decided about one view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Resume, fork or fresh.
    pub transition: Transition,
    /// Why.
    pub reason: Reason,
    /// What to start over from; only with `fresh`.
    pub summary: Option<TypedSummary>,
    /// What to provision; only with `fork`.
    pub branches: Vec<Branch>,
    /// Ids of the rows that are stale or unknown.
    pub stale: Vec<String>,
    /// Labels of rows that are not critical but must not be carried on.
    pub drop: Vec<PathBuf>,
}

/// There is nothing to decide about: a context without results and invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Empty;

/// Decides. The order of the rules is the contract: nothing critical in doubt ever gets past the first one.
pub fn decide(view: &View, policy: &Policy) -> Result<Decision, Empty> {
    if view.counts.rows == 0 {
        return Err(Empty);
    }
    let doubtful: Vec<&Line> = view.lines.iter().filter(|line| line.is_doubtful()).collect();
    let goal = &view.head.goal;
    let budget = policy.scratchpad_bytes_max;
    if doubtful.iter().any(|line| line.critical) {
        Ok(fresh(view, &doubtful, reason::world_changed(&doubtful, view.counts)))
    } else if budget > 0 && view.head.scratchpad_bytes > budget {
        Ok(fresh(view, &doubtful, reason::over_budget(view.head.scratchpad_bytes, budget)))
    } else if goal.branchable && !goal.shares_mutable_state && goal.hypotheses.len() >= 2 {
        let branches = plan(&view.head, policy);
        Ok(kept(Transition::Fork, &doubtful, reason::branchable(branches.len()), branches))
    } else {
        let blocked = goal.branchable && goal.shares_mutable_state;
        Ok(kept(Transition::Resume, &doubtful, reason::valid(view, blocked), Vec::new()))
    }
}

fn fresh(view: &View, doubtful: &[&Line], reason: Reason) -> Decision {
    Decision {
        transition: Transition::Fresh,
        reason,
        summary: Some(summary::build(view, doubtful)),
        branches: Vec::new(),
        stale: ids(doubtful),
        drop: Vec::new(),
    }
}

fn kept(transition: Transition, doubtful: &[&Line], reason: Reason, branches: Vec<Branch>) -> Decision {
    let stale = ids(doubtful);
    Decision { transition, reason, summary: None, branches, stale, drop: summary::labels(doubtful) }
}

fn ids(doubtful: &[&Line]) -> Vec<String> {
    doubtful.iter().map(|line| line.id.clone()).collect()
}

/// Decides whether a fork may be merged, of a view of what it rests on and of what its parent rests on: the world that it
/// started from must still be there. Neither budgets nor other forks have a say.
pub fn merge(view: &View) -> Result<Decision, Empty> {
    if view.counts.rows == 0 {
        return Err(Empty);
    }
    let doubtful: Vec<&Line> = view.lines.iter().filter(|line| line.is_doubtful()).collect();
    Ok(if doubtful.iter().any(|line| line.critical) {
        let Reason { text, evidence, .. } = reason::world_changed(&doubtful, view.counts);
        fresh(view, &doubtful, Reason { code: Code::MergeStale, text, evidence })
    } else {
        kept(Transition::Resume, &doubtful, reason::valid(view, false), Vec::new())
    })
}

/// The reason of a decision that replaces a resume because a fact failed in use.
#[must_use]
pub fn refuted(decision: Decision, ids: &[String]) -> Decision {
    if decision.transition != Transition::Fresh {
        return decision;
    }
    let evidence = ids.to_vec();
    let it_was = if ids.len() == 1 { "it was" } else { "they were" };
    let text = format!("{} failed when {it_was} used.", reason::listed(ids));
    Decision { reason: Reason { code: Code::FactRefuted, text, evidence }, ..decision }
}

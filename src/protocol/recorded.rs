//! One line of the decision log read back: the view that was decided about, judged again.
//!
//! Promise: what is judged stands in the line itself, and what was decided is never read to judge it. What a line does
//! not hold is not judged: the sentence of the reason and what a summary carries on (for which the sources and facts
//! would be needed), and where a fork's folders would lie.

use super::path::Reference;
use crate::decision::policy::Policy;
use crate::decision::{self, Decision};
use crate::index::clock::Clock;
use crate::index::freshness::Freshness;
use crate::index::row::{Detail, Role};
use crate::index::storage::StoredHead;
use crate::index::view::{Counts, Coverage, Line, View};
use crate::session::SessionId;
use crate::session::context::Goal;
use crate::session::source::Source;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// What stands in one line of the decision log.
#[derive(Debug)]
pub enum Recorded {
    /// Something that happened between decisions.
    Event,
    /// A decision of a version that did not write down everything that it was made from.
    Partial(Name),
    /// A decision that can be judged again.
    Whole(Box<Judgeable>),
}

/// How a decision is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The line's number in the chain, where it says one.
    pub seq: Option<u64>,
    /// The decision's id.
    pub decision: String,
}

/// A decision that can be judged again.
#[derive(Debug)]
pub struct Judgeable {
    /// How it is called.
    pub name: Name,
    view: View,
    policy: Policy,
    refuted: Option<Vec<String>>,
    merge: bool,
    logged: Verdict,
}

/// One thing that a decision says, as it was logged and as it is judged now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where it stands in the report.
    pub field: &'static str,
    /// As it was logged.
    pub logged: String,
    /// As it is judged.
    pub judged: String,
}

/// What is compared, in the words of the report.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    transition: String,
    code: String,
    evidence: Vec<String>,
    stale: Vec<String>,
    drop: Vec<PathBuf>,
    stale_dropped: Option<Vec<PathBuf>>,
    branches: Vec<String>,
}

/// Reads a line; what is no line of a decision log is told in a sentence.
pub fn read(line: &str) -> Result<Recorded, String> {
    let told = |error: serde_json::Error| format!("it is not a line of a decision log: {error}");
    let head: Head = serde_json::from_str(line).map_err(told)?;
    let Some(decision) = head.decision.filter(|_| head.transition.is_some()) else {
        return match head.event {
            Some(_) => Ok(Recorded::Event),
            None => {
                Err("it is not a line of a decision log: it is neither a decision nor an event".to_owned())
            }
        };
    };
    let name = Name { seq: head.seq, decision };
    // The last field that a decision rests on came into the log together with the others.
    if head.context.scratchpad_bytes.is_none() {
        return Ok(Recorded::Partial(name));
    }
    let report: Report = serde_json::from_str(line).map_err(told)?;
    report.inward(name).map(|judgeable| Recorded::Whole(Box::new(judgeable)))
}

impl Judgeable {
    /// Decides again, and names what comes out otherwise than it was logged.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        let Some(decision) = self.decide() else {
            let judged = "no decision, for there are no rows".to_owned();
            return vec![Difference { field: "transition", logged: self.logged.transition.clone(), judged }];
        };
        let mut found = differences(&self.logged, &Verdict::of(&decision));
        let (said, listed) = (self.view.counts, doubtful(&self.view.lines));
        if listed != (said.stale, said.unknown) {
            let words = |(stale, unknown)| format!("{stale} stale, {unknown} unknown");
            let (logged, judged) = (words((said.stale, said.unknown)), words(listed));
            found.push(Difference { field: "counts", logged, judged });
        }
        found
    }

    fn decide(&self) -> Option<Decision> {
        if self.merge {
            return decision::merge(&self.view).ok();
        }
        let decision = decision::decide(&self.view, &self.policy).ok()?;
        Some(match &self.refuted {
            Some(ids) => decision::refuted(decision, ids),
            None => decision,
        })
    }
}

/// How many rows are stale and unknown; all of them are listed whichever rows were asked for.
fn doubtful(lines: &[Line]) -> (u32, u32) {
    lines.iter().fold((0, 0), |(stale, unknown), line| match line.freshness {
        Freshness::Fresh => (stale, unknown),
        Freshness::Stale(_) => (stale + 1, unknown),
        Freshness::Unknown(_) => (stale, unknown + 1),
    })
}

impl Verdict {
    fn of(decision: &Decision) -> Self {
        Self {
            transition: decision.transition.word().to_owned(),
            code: decision.reason.code.word().to_owned(),
            evidence: decision.reason.evidence.clone(),
            stale: decision.stale.clone(),
            drop: decision.drop.clone(),
            stale_dropped: decision.summary.as_ref().map(|summary| summary.stale_dropped.clone()),
            branches: decision.branches.iter().map(|branch| branch.branch.clone()).collect(),
        }
    }
}

fn differences(logged: &Verdict, judged: &Verdict) -> Vec<Difference> {
    let shown = |verdict: &Verdict| {
        [
            ("transition", verdict.transition.clone()),
            ("reason.code", verdict.code.clone()),
            ("reason.evidence", format!("{:?}", verdict.evidence)),
            ("stale", format!("{:?}", verdict.stale)),
            ("drop", format!("{:?}", verdict.drop)),
            ("typed_summary.stale_dropped", format!("{:?}", verdict.stale_dropped)),
            ("forks", format!("{:?}", verdict.branches)),
        ]
    };
    if logged == judged {
        return Vec::new();
    }
    let pairs = shown(logged).into_iter().zip(shown(judged));
    let differ = pairs.filter(|((_, logged), (_, judged))| logged != judged);
    differ.map(|((field, logged), (_, judged))| Difference { field, logged, judged }).collect()
}

/// What tells lines apart.
#[derive(Deserialize)]
struct Head {
    event: Option<Value>,
    seq: Option<u64>,
    decision: Option<String>,
    transition: Option<Value>,
    #[serde(default)]
    context: HeadContext,
}

#[derive(Default, Deserialize)]
struct HeadContext {
    scratchpad_bytes: Option<Value>,
}

/// The report as it was logged. What is not here was not decided from, and is no decision.
#[derive(Deserialize)]
struct Report {
    session: String,
    clock: ClockIn,
    #[serde(default)]
    refuted: Option<Vec<String>>,
    #[serde(default)]
    merge: Option<String>,
    transition: String,
    reason: ReasonIn,
    context: ContextIn,
    staleness_results: Vec<RowIn>,
    counts: CountsIn,
    stale: Vec<String>,
    drop: Vec<Reference>,
    typed_summary: Option<SummaryIn>,
    forks: Vec<ForkIn>,
    policy: PolicyIn,
}

#[derive(Deserialize)]
struct ClockIn {
    epoch: String,
    tick: u64,
}

#[derive(Deserialize)]
struct ReasonIn {
    code: String,
    evidence: Vec<String>,
}

#[derive(Deserialize)]
struct ContextIn {
    goal: String,
    goal_branchable: bool,
    shares_mutable_state: bool,
    hypotheses: Option<Vec<String>>,
    scratchpad_bytes: u64,
}

#[derive(Deserialize)]
struct RowIn {
    result_id: String,
    source: Reference,
    status: String,
    critical: bool,
    role: Option<String>,
    cause: Option<String>,
    was: Option<String>,
    now: Option<String>,
}

#[derive(Deserialize)]
struct CountsIn {
    results: u32,
    fresh: u32,
    stale: u32,
    unknown: u32,
}

#[derive(Deserialize)]
struct SummaryIn {
    stale_dropped: Vec<Reference>,
}

#[derive(Deserialize)]
struct ForkIn {
    branch: String,
}

#[derive(Deserialize)]
struct PolicyIn {
    scratchpad_bytes_max: u64,
}

impl Report {
    fn inward(self, name: Name) -> Result<Judgeable, String> {
        let lines = self.staleness_results.into_iter().map(RowIn::inward).collect::<Result<_, _>>()?;
        let CountsIn { results, fresh, stale, unknown } = self.counts;
        let view = View {
            clock: Clock { epoch: self.clock.epoch, tick: self.clock.tick },
            head: self.context.inward(&self.session)?,
            counts: Counts { rows: results, fresh, stale, unknown },
            lines,
            facts: Vec::new(),
        };
        let logged = Verdict {
            transition: self.transition,
            code: self.reason.code,
            evidence: self.reason.evidence,
            stale: self.stale,
            drop: paths(self.drop),
            stale_dropped: self.typed_summary.map(|summary| paths(summary.stale_dropped)),
            branches: self.forks.into_iter().map(|fork| fork.branch).collect(),
        };
        let policy = Policy { scratchpad_bytes_max: self.policy.scratchpad_bytes_max, ..Policy::default() };
        Ok(Judgeable { name, view, policy, refuted: self.refuted, merge: self.merge.is_some(), logged })
    }
}

impl ContextIn {
    fn inward(self, session: &str) -> Result<StoredHead, String> {
        if self.goal_branchable && self.hypotheses.is_none() {
            return Err("its goal is branchable, and its hypotheses are missing".to_owned());
        }
        Ok(StoredHead {
            session: SessionId::new(session).ok_or_else(|| format!("{session:?} is no name of a session"))?,
            user: String::new(),
            agent: String::new(),
            root: PathBuf::new(),
            captured_at: None,
            goal: Goal {
                statement: self.goal,
                branchable: self.goal_branchable,
                shares_mutable_state: self.shares_mutable_state,
                hypotheses: self.hypotheses.unwrap_or_default(),
            },
            facts: Vec::new(),
            decisions: Vec::new(),
            open_questions: Vec::new(),
            scratchpad_bytes: self.scratchpad_bytes,
            // Its rows say so themselves.
            doubted: false,
        })
    }
}

impl RowIn {
    fn inward(self) -> Result<Line, String> {
        let id = self.result_id;
        let freshness = match (self.status.as_str(), self.cause.as_deref()) {
            ("fresh", None) => Some(Freshness::Fresh),
            ("stale", Some(cause)) => Freshness::from_cause(cause),
            _ => None,
        };
        let freshness = freshness.ok_or_else(|| {
            format!("row {id:?} is {:?} for the cause {:?}, which nobody writes", self.status, self.cause)
        })?;
        let role = match self.role.as_deref() {
            None => Role::Result,
            Some(word) => Role::of(word)
                .ok_or_else(|| format!("row {id:?} has the role {word:?}, which there is not"))?,
        };
        Ok(Line {
            id,
            role,
            // A decision asks a source for its label alone, and the label is what was logged.
            source: Source::File { path: self.source.0 },
            critical: self.critical,
            by_registration: false,
            freshness,
            was: self.was,
            now: self.now,
            renamed_to: None,
            since: None,
            exists: false,
            identity: None,
            detail: Detail::default(),
            coverage: Coverage::default(),
        })
    }
}

fn paths(paths: Vec<Reference>) -> Vec<PathBuf> {
    paths.into_iter().map(|path| path.0).collect()
}

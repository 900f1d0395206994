//! The report: what `decide` answers, and what one line of the decision log holds.
//!
//! It satisfies the public report contract named in `schema`; fields beyond that contract are ours. It holds everything
//! that the decision was made from, so that [`recorded`](super::recorded) can make it again.

use super::gate::is_blank;
use super::gate::{REQUIRED_CHECKS, SCHEMA, SKILL};
use super::path::WirePath;
use super::time;
use crate::decision::plan::Branch;
use crate::decision::policy::Policy;
use crate::decision::summary::TypedSummary;
use crate::decision::{Decision, Transition};
use crate::index::clock::Clock;
use crate::index::freshness::{Cause, Freshness};
use crate::index::moved::HeadMoved;
use crate::index::row::{Changed, Role};
use crate::index::view::{Line, View};
use crate::session::moment::Moment;
use crate::session::source::Source;
use serde::Serialize;
use std::path::Path;

/// What a report says beside the decision and the view.
#[derive(Debug, Clone)]
pub struct Circumstances<'report> {
    /// The decision's id, `d-<uuid v7>`.
    pub decision: &'report str,
    /// When it was made.
    pub decided_at: Moment,
    /// The decision that this one replaces.
    pub supersedes: Option<&'report str>,
    /// The rows that a client has just said failed in use, where that is why the decision was made.
    pub refuted: Option<&'report [String]>,
    /// The fork that it says may be merged or not.
    pub merge: Option<&'report str>,
    /// The thresholds it was made with.
    pub policy: &'report Policy,
    /// Another live process that holds the session.
    pub held_by: Option<u32>,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// One report, ready to be written.
#[derive(Debug, Serialize)]
pub struct Report<'report> {
    schema: &'static str,
    skill: &'static str,
    decision: &'report str,
    session: &'report str,
    decided_at: String,
    clock: ClockOut<'report>,
    supersedes: Option<&'report str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refuted: Option<&'report [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merge: Option<&'report str>,
    transition: &'static str,
    reason: ReasonOut<'report>,
    context: ContextOut<'report>,
    staleness_results: Vec<Row<'report>>,
    counts: CountsOut,
    stale: &'report [String],
    drop: Vec<WirePath>,
    typed_summary: Option<SummaryOut<'report>>,
    forks: Vec<ForkOut>,
    validation: Validation,
    policy: PolicyOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<HolderOut>,
    took_us: u64,
}

/// What the daemon's own gate looks at.
impl Report<'_> {
    pub(super) fn rows(&self) -> &[Row<'_>] {
        &self.staleness_results
    }

    pub(super) fn evidence(&self) -> &[String] {
        self.reason.evidence
    }

    pub(super) fn reason_text(&self) -> &str {
        self.reason.text
    }

    pub(super) fn transition(&self) -> &'static str {
        self.transition
    }

    pub(super) fn stale_dropped(&self) -> Option<&[WirePath]> {
        self.typed_summary.as_ref().map(|summary| summary.stale_dropped.as_slice())
    }

    pub(super) fn fact_sources(&self) -> impl Iterator<Item = &Path> {
        let facts = self.typed_summary.iter().flat_map(|summary| &summary.verified_facts);
        facts.flat_map(|fact| &fact.sources).map(|path| path.0.as_path())
    }

    pub(super) fn fork_paths(&self) -> Vec<&Path> {
        self.forks.iter().flat_map(|fork| [fork.workspace.0.as_path(), fork.scratchpad.0.as_path()]).collect()
    }
}

impl Row<'_> {
    pub(super) fn id(&self) -> &str {
        self.result_id
    }

    pub(super) fn label(&self) -> &Path {
        &self.source.0
    }

    pub(super) fn is_stale(&self) -> bool {
        self.status == "stale"
    }

    pub(super) fn is_critical(&self) -> bool {
        self.critical
    }
}

/// A clock as it travels.
#[derive(Debug, Serialize)]
pub struct ClockOut<'report> {
    epoch: &'report str,
    tick: u64,
}

impl<'report> From<&'report Clock> for ClockOut<'report> {
    fn from(clock: &'report Clock) -> Self {
        Self { epoch: &clock.epoch, tick: clock.tick }
    }
}

#[derive(Debug, Serialize)]
struct ReasonOut<'report> {
    code: &'static str,
    text: &'report str,
    evidence: &'report [String],
}

#[derive(Debug, Serialize)]
struct ContextOut<'report> {
    goal: &'report str,
    goal_branchable: bool,
    shares_mutable_state: bool,
    /// Only where they count.
    #[serde(skip_serializing_if = "Option::is_none")]
    hypotheses: Option<&'report [String]>,
    scratchpad_bytes: u64,
    evidence_tag: &'static str,
}

/// One row as it travels.
#[derive(Debug, Serialize)]
pub struct Row<'report> {
    result_id: &'report str,
    source: WirePath,
    signal_type: &'static str,
    status: &'static str,
    critical: bool,
    evidence_tag: &'static str,
    /// Left out of results, which most rows are.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'report str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<&'report str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_to: Option<WirePath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<ChangedOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'report str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    eol_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'report str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_changed: Option<PathsChangedOut<'report>>,
}

/// What lies between the commit that was seen and HEAD: how many paths (`null` when a commit is gone), and the rows of this
/// session that are about one of them.
#[derive(Debug, Serialize)]
struct PathsChangedOut<'report> {
    number: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    sources_number: u64,
    sources: &'report [String],
}

/// What changed in a tree: how many paths, and the first of them, below it.
#[derive(Debug, Serialize)]
struct ChangedOut {
    number: u64,
    paths: Vec<WirePath>,
}

#[derive(Debug, Serialize)]
struct CountsOut {
    results: u32,
    fresh: u32,
    stale: u32,
    unknown: u32,
}

#[derive(Debug, Serialize)]
struct SummaryOut<'report> {
    goal: &'report str,
    decisions: &'report [String],
    open_questions: &'report [String],
    verified_facts: Vec<FactOut<'report>>,
    stale_dropped: Vec<WirePath>,
    reload: Vec<WirePath>,
    raw_transcript_allowed: bool,
    as_of: ClockOut<'report>,
}

#[derive(Debug, Serialize)]
struct FactOut<'report> {
    statement: &'report str,
    #[serde(skip_serializing_if = "str::is_empty")]
    evidence: &'report str,
    sources: Vec<WirePath>,
    digest: Option<&'report str>,
    /// `memory` where the session itself did not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    /// The observation of the memory that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ForkOut {
    branch: String,
    workspace: WirePath,
    scratchpad: WirePath,
    isolated_scratchpad: bool,
    isolated_workspace: bool,
    evidence_tag: &'static str,
}

/// The names that the public contract wants listed, all of them, in every report that passed. What is checked before a
/// report of ours leaves stands in [`admission`](super::admission).
#[derive(Debug, Serialize)]
struct Validation {
    status: &'static str,
    checks: [&'static str; 8],
}

#[derive(Debug, Serialize)]
struct HolderOut {
    pid: u32,
}

#[derive(Debug, Serialize)]
struct PolicyOut {
    scratchpad_bytes_max: u64,
}

/// The report of a decision about a view.
#[must_use]
pub fn report<'report>(
    view: &'report View,
    decision: &'report Decision,
    made: &'report Circumstances<'report>,
) -> Report<'report> {
    let goal = &view.head.goal;
    Report {
        schema: SCHEMA,
        skill: SKILL,
        decision: made.decision,
        session: view.head.session.as_str(),
        decided_at: time::to_text(made.decided_at),
        clock: ClockOut::from(&view.clock),
        supersedes: made.supersedes,
        refuted: made.refuted,
        merge: made.merge,
        transition: decision.transition.word(),
        reason: ReasonOut {
            code: decision.reason.code.word(),
            text: &decision.reason.text,
            evidence: &decision.reason.evidence,
        },
        context: ContextOut {
            goal: stated(&goal.statement, "(no goal stated)"),
            goal_branchable: goal.branchable,
            shares_mutable_state: goal.shares_mutable_state,
            hypotheses: goal.branchable.then_some(goal.hypotheses.as_slice()),
            scratchpad_bytes: view.head.scratchpad_bytes,
            evidence_tag: "[CONFIG]",
        },
        staleness_results: view.lines.iter().map(row).collect(),
        counts: CountsOut {
            results: view.counts.rows,
            fresh: view.counts.fresh,
            stale: view.counts.stale,
            unknown: view.counts.unknown,
        },
        stale: &decision.stale,
        drop: decision.drop.iter().map(|path| path.as_path().into()).collect(),
        typed_summary: decision.summary.as_ref().map(summary),
        forks: match decision.transition {
            Transition::Fork => decision.branches.iter().map(fork).collect(),
            Transition::Resume | Transition::Fresh => Vec::new(),
        },
        validation: Validation { status: "pass", checks: REQUIRED_CHECKS },
        policy: PolicyOut { scratchpad_bytes_max: made.policy.scratchpad_bytes_max },
        held_by: made.held_by.map(|pid| HolderOut { pid }),
        took_us: made.took_us,
    }
}

/// A row as it travels. The public contract knows fresh and stale only: unknown is reported stale, with its cause.
#[must_use]
pub fn row(line: &Line) -> Row<'_> {
    let (status, cause) = match line.freshness {
        Freshness::Fresh => ("fresh", None),
        Freshness::Stale(cause) => ("stale", Some(cause.word())),
        Freshness::Unknown(doubt) => ("stale", Some(doubt.word())),
    };
    Row {
        result_id: &line.id,
        source: line.label().as_path().into(),
        signal_type: signal(line),
        status,
        critical: line.critical,
        evidence_tag: tag(&line.source),
        role: (line.role != Role::Result).then(|| line.role.word()),
        cause,
        was: line.was.as_deref(),
        now: line.now.as_deref(),
        renamed_to: line.renamed_to.as_deref().map(Into::into),
        since: line.since.map(time::to_text),
        baseline: line.by_registration.then_some("registration"),
        changed: line.detail.changed.as_ref().map(changed),
        input: line.detail.input.as_deref(),
        start_line: line.detail.start_line,
        eol_only: line.detail.eol_only,
        branch: line.detail.moved.as_ref().and_then(|moved| moved.branch.as_deref()),
        paths_changed: line.detail.moved.as_ref().map(paths_changed),
    }
}

fn paths_changed(moved: &HeadMoved) -> PathsChangedOut<'_> {
    let HeadMoved { number, more, rows, ids, .. } = moved;
    PathsChangedOut { number: *number, more: *more, sources_number: *rows, sources: ids }
}

fn changed(changed: &Changed) -> ChangedOut {
    ChangedOut {
        number: changed.number,
        paths: changed.paths.iter().map(|path| path.as_path().into()).collect(),
    }
}

fn signal(line: &Line) -> &'static str {
    match (&line.source, line.freshness) {
        (Source::GitHead { .. }, _) => "head",
        (Source::Absent { .. }, _)
        | (_, Freshness::Stale(Cause::Deleted | Cause::Renamed | Cause::KindChanged)) => "path",
        (Source::Volatile { .. }, _) => "mtime",
        (Source::SqliteSchema { .. }, _) => "schema",
        _ => "hash",
    }
}

fn tag(source: &Source) -> &'static str {
    match source {
        Source::File { .. }
        | Source::Lines { .. }
        | Source::Absent { .. }
        | Source::Tree { .. }
        | Source::SqliteSchema { .. } => "[CÓDIGO]",
        Source::GitHead { .. } | Source::Lockfile { .. } => "[CONFIG]",
        Source::Command { .. } => "[MÉTRICA]",
        Source::Volatile { .. } => "[INFERENCIA]",
    }
}

fn summary(summary: &TypedSummary) -> SummaryOut<'_> {
    let paths = |paths: &[std::path::PathBuf]| paths.iter().map(|path| Path::new(path).into()).collect();
    SummaryOut {
        goal: stated(&summary.goal, "(no goal stated)"),
        decisions: &summary.decisions,
        open_questions: &summary.open_questions,
        verified_facts: summary
            .verified_facts
            .iter()
            .map(|fact| FactOut {
                statement: &fact.statement,
                evidence: stated(&fact.evidence, "(no evidence stated)"),
                sources: paths(&fact.sources),
                digest: fact.digest.as_deref(),
                from: fact.observation.map(|_| "memory"),
                observation: fact.observation,
            })
            .collect(),
        stale_dropped: paths(&summary.stale_dropped),
        reload: paths(&summary.reload),
        raw_transcript_allowed: false,
        as_of: ClockOut::from(&summary.as_of),
    }
}

/// The contract wants words where a client may have left them out.
fn stated<'text>(text: &'text str, otherwise: &'text str) -> &'text str {
    if is_blank(text) { otherwise } else { text }
}

fn fork(branch: &Branch) -> ForkOut {
    ForkOut {
        branch: branch.branch.clone(),
        workspace: branch.workspace.as_path().into(),
        scratchpad: branch.scratchpad.as_path().into(),
        isolated_scratchpad: true,
        isolated_workspace: true,
        evidence_tag: "[CONFIG]",
    }
}

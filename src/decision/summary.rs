//! `TypedSummary`: what a fresh start may carry on. Never a transcript.

use crate::index::clock::Clock;
use crate::index::view::{FactLine, Line, View};
use crate::session::source::Source;
use std::path::PathBuf;

/// What to start over from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedSummary {
    /// What the session is for.
    pub goal: String,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What is still open.
    pub open_questions: Vec<String>,
    /// Facts of which every source is fresh.
    pub verified_facts: Vec<FactLine>,
    /// Labels of everything stale or unknown, each once, sorted.
    pub stale_dropped: Vec<PathBuf>,
    /// Paths that still exist and should be read again first.
    pub reload: Vec<PathBuf>,
    /// The clock of the view.
    pub as_of: Clock,
}

pub(super) fn build(view: &View, doubtful: &[&Line]) -> TypedSummary {
    TypedSummary {
        goal: view.head.goal.statement.clone(),
        decisions: view.head.decisions.clone(),
        open_questions: view.head.open_questions.clone(),
        verified_facts: view.facts.iter().filter(|fact| fact.fresh).cloned().collect(),
        stale_dropped: labels(doubtful),
        reload: reload(doubtful),
        as_of: view.clock.clone(),
    }
}

/// The labels of these rows, each once, sorted.
pub(super) fn labels(lines: &[&Line]) -> Vec<PathBuf> {
    let mut labels: Vec<PathBuf> = lines.iter().map(|line| line.label()).collect();
    labels.sort();
    labels.dedup();
    labels
}

/// Critical first, then by label.
fn reload(doubtful: &[&Line]) -> Vec<PathBuf> {
    let readable = |line: &&&Line| {
        line.exists
            && !matches!(
                line.source,
                Source::GitHead { .. } | Source::Command { .. } | Source::Volatile { .. }
            )
    };
    let mut lines: Vec<(bool, PathBuf)> =
        doubtful.iter().filter(readable).map(|line| (!line.critical, line.label())).collect();
    lines.sort();
    let mut paths: Vec<PathBuf> = Vec::with_capacity(lines.len());
    for (_, path) in lines {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

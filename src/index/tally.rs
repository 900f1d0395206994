//! How many rows are not fresh and why, and how many are watched, kept as they change: whoever scrapes the daemon every few
//! seconds must not have a million rows read each time.
//!
//! Inputs of commands are counted through their commands, as everywhere. It is made again at every start.

use super::freshness::{Cause, Freshness};
use super::row::{Mark, Role, Row};
use std::collections::HashMap;

/// The counts, over all sessions.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Of sessions that are what their marks say.
    pub(super) marked: Marked,
    /// Of sessions in doubt: only what holds without a look is what its mark says.
    pub(super) doubted: Marked,
    /// Readers of sources that are neither trees nor their folders.
    pub(super) watched: u64,
}

/// How many rows are marked how.
#[derive(Debug, Default)]
pub(super) struct Marked(HashMap<Freshness, u64>);

impl Marked {
    /// Counts a row's mark in or out.
    pub(super) fn count(&mut self, row: &Row, mark: Option<&Mark>, present: bool) {
        let Some(mark) = mark.filter(|_| row.role != Role::Input) else { return };
        let count = self.0.entry(mark.freshness).or_default();
        // Before everything was counted, what goes was never in it.
        *count = if present { *count + 1 } else { count.saturating_sub(1) };
    }
}

impl Tally {
    /// Every session is in doubt.
    pub(super) fn doubt_all(&mut self) {
        for (freshness, rows) in self.marked.0.drain() {
            *self.doubted.0.entry(freshness).or_default() += rows;
        }
    }

    /// How many rows are what their marks say, those left out that are fresh.
    pub(super) fn doubtful(&self) -> HashMap<Freshness, u64> {
        let mut doubtful = self.marked.0.clone();
        for (freshness, rows) in self.certain() {
            *doubtful.entry(freshness).or_default() += rows;
        }
        doubtful.retain(|&freshness, &mut rows| freshness != Freshness::Fresh && rows > 0);
        doubtful
    }

    /// How many rows of sessions in doubt are what their marks say nevertheless.
    pub(super) fn certain(&self) -> impl Iterator<Item = (Freshness, u64)> {
        let marked = self.doubted.0.iter().map(|(&freshness, &rows)| (freshness, rows));
        marked
            .filter(|(freshness, _)| matches!(freshness, Freshness::Stale(Cause::Refuted | Cause::Volatile)))
    }
}

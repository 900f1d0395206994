//! How many rows are not fresh and why, and how many are watched, kept as they change: whoever scrapes the daemon every few
//! seconds must not have a million rows read each time.
//!
//! Inputs of commands are counted through their commands, as everywhere. It is made again at every start.

use super::freshness::Freshness;
use super::row::{Mark, Role, Row};
use std::collections::HashMap;

/// The counts, over all sessions.
#[derive(Debug, Default)]
pub(super) struct Tally {
    marked: HashMap<Freshness, u64>,
    /// Readers of sources that are neither trees nor their folders.
    pub(super) watched: u64,
}

impl Tally {
    /// Counts a row's mark in or out.
    pub(super) fn count(&mut self, row: &Row, mark: Option<&Mark>, present: bool) {
        let Some(mark) = mark.filter(|_| row.role != Role::Input) else { return };
        let count = self.marked.entry(mark.freshness).or_default();
        // Before everything was counted, what goes was never in it.
        *count = if present { *count + 1 } else { count.saturating_sub(1) };
    }

    /// How many rows are marked how, those left out that are fresh.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = (Freshness, u64)> {
        let doubtful = self.marked.iter().map(|(&freshness, &rows)| (freshness, rows));
        doubtful.filter(|&(freshness, rows)| freshness != Freshness::Fresh && rows > 0)
    }
}

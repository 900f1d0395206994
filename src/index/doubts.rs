//! What cannot be told, over all sessions: for whoever looks again, and for whoever asks how the daemon is.
//!
//! A row says by its mark what it is; a session that may have lost records says by its head that all its rows are in doubt.

use super::freshness::{Doubt, Freshness};
use super::row::{Mark, Row, SessionNo};
use super::shelf::mark_of;
use super::storage::{Storage, StorageError, StoredHead, Table};
use super::{Index, SourceId};
use std::collections::{BTreeMap, HashMap};

impl<S: Storage> Index<S> {
    /// Keeps at hand whether a session's head says that it is in doubt; its rows are counted accordingly from then on.
    pub(super) fn note_doubt(&mut self, session: SessionNo, head: &StoredHead) {
        if head.doubted {
            self.doubted.insert(session);
        } else {
            self.doubted.remove(&session);
        }
    }

    /// Whether records of a session may be lost, so that nothing it believes is fresh.
    #[must_use]
    pub fn is_doubted(&self, session: SessionNo) -> bool {
        self.doubted.contains(&session)
    }

    /// Counts a row's mark in or out.
    pub(super) fn tally_row(&mut self, session: SessionNo, row: &Row, mark: Option<&Mark>, present: bool) {
        let in_doubt = self.doubted.contains(&session);
        let marked = if in_doubt { &mut self.tally.doubted } else { &mut self.tally.marked };
        marked.count(row, mark, present);
    }

    /// Sources whose last look could not tell, and that are not being verified: worth another look now and then.
    pub fn undecided(&self) -> Result<Vec<SourceId>, StorageError> {
        let mut undecided = Vec::new();
        for (key, mark) in self.shelf.list::<Mark>(Table::Marks, &[])? {
            let Some((session, no)) =
                mark_of(&key).filter(|_| matches!(mark.freshness, Freshness::Unknown(_)))
            else {
                continue;
            };
            let source = self.shelf.row(session, no)?.and_then(|row| row.source_id);
            undecided.extend(source.filter(|&source| !self.is_pending(source)));
        }
        undecided.sort_unstable();
        undecided.dedup();
        Ok(undecided)
    }

    /// How many rows cannot be told, by why.
    pub fn doubts(&self) -> Result<BTreeMap<Doubt, usize>, StorageError> {
        let doubt = |(freshness, rows)| match freshness {
            Freshness::Unknown(doubt) => Some((doubt, rows as usize)),
            _ => None,
        };
        Ok(self.doubtful()?.into_iter().filter_map(doubt).collect())
    }

    /// How many rows are stale or unknown, by that word and by the cause. What one look has not yet settled counts as it
    /// was before.
    pub fn doubtful_by_cause(&self) -> Result<BTreeMap<(&'static str, &'static str), u64>, StorageError> {
        let named =
            |(freshness, rows): (Freshness, u64)| Some(((freshness.word(), freshness.cause()?), rows));
        Ok(self.doubtful()?.into_iter().filter_map(named).collect())
    }

    fn doubtful(&self) -> Result<HashMap<Freshness, u64>, StorageError> {
        let mut rows = 0;
        for &session in &self.doubted {
            rows += u64::from(self.summary(session)?.rows);
        }
        let mut doubtful = self.tally.doubtful();
        // No mark says it, and every row of theirs is counted once: as in doubt, or as what it is whoever looks.
        let certain: u64 = self.tally.certain().map(|(_, rows)| rows).sum();
        if rows > certain {
            doubtful.insert(Freshness::Unknown(Doubt::Gap), rows - certain);
        }
        Ok(doubtful)
    }
}

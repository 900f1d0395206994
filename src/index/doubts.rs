//! What cannot be told, over all sessions: for whoever looks again, and for whoever asks how the daemon is.
//!
//! A row says by its mark what it is; a session that may have lost records says by its head that all its rows are in doubt.

use super::freshness::{Doubt, Freshness};
use super::row::Mark;
use super::shelf::mark_of;
use super::storage::{Storage, StorageError, Summary, Table};
use super::{Index, SourceId};
use std::collections::BTreeMap;

impl<S: Storage> Index<S> {
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
        let mut doubts: BTreeMap<Doubt, usize> = self.tally.doubtful().filter_map(doubt).collect();
        let doubted = self.doubted_rows()?;
        if doubted > 0 {
            doubts.insert(Doubt::Gap, doubted);
        }
        Ok(doubts)
    }

    /// Rows of sessions of which records of the journal are lost. The head says it, and no mark does.
    fn doubted_rows(&self) -> Result<usize, StorageError> {
        let mut rows = 0;
        for session in self.sessions()? {
            if self.head(session)?.doubted {
                rows += self.shelf.must::<Summary>(Table::Summaries, &session.0.to_be_bytes())?.rows as usize;
            }
        }
        Ok(rows)
    }

    /// How many rows are stale or unknown, by that word and by the cause. What one look has not yet settled counts as it
    /// was before.
    pub fn doubtful_by_cause(&self) -> Result<BTreeMap<(&'static str, &'static str), u64>, StorageError> {
        let named =
            |(freshness, rows): (Freshness, u64)| Some(((freshness.word(), freshness.cause()?), rows));
        let mut doubtful: BTreeMap<_, _> = self.tally.doubtful().filter_map(named).collect();
        let doubted = self.doubted_rows()? as u64;
        if doubted > 0 {
            doubtful.insert(("unknown", Doubt::Gap.word()), doubted);
        }
        Ok(doubtful)
    }
}

//! Commands: what one printed is as fresh as everything that it read.
//!
//! Each input is a row of its own, judged like any other and shown only through its command.

use super::freshness::{Cause, Freshness};
use super::row::{Detail, Mark, Row, RowNo, SessionNo};
use super::shelf::mark_key;
use super::storage::{Storage, StorageError, Table};
use super::{Index, Outcome};
use crate::session::moment::Moment;

impl<S: Storage> Index<S> {
    /// Judges a command by its inputs: stale when one is, unknown when one is and none is stale.
    pub(super) fn judge_command(
        &mut self,
        session: SessionNo,
        command: RowNo,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let Some(row) = self.shelf.held_row(session, command)?.cloned() else { return Ok(()) };
        let judged = if row.refuted {
            (Freshness::Stale(Cause::Refuted), Detail::default())
        } else {
            self.worst_input(session, &row)?
        };
        self.mark(session, command, judged, None, at, outcome)
    }

    /// Whether a command's mark is what the marks of its inputs make of it.
    pub(super) fn says_what_inputs_say(
        &self,
        session: SessionNo,
        command: &Row,
        held: Option<&Mark>,
    ) -> Result<bool, StorageError> {
        let mut worst = Freshness::Fresh;
        for &no in &command.inputs {
            let Some(mark) = self.shelf.get::<Mark>(Table::Marks, &mark_key(session, no))? else { continue };
            match mark.freshness {
                Freshness::Fresh => {}
                Freshness::Unknown(doubt) => worst = Freshness::Unknown(doubt),
                Freshness::Stale(_) => {
                    return Ok(held.is_some_and(|held| {
                        matches!(held.freshness, Freshness::Stale(_))
                            && held.detail.changed == mark.detail.changed
                    }));
                }
            }
        }
        Ok(command.refuted || held.map_or(Freshness::Fresh, |held| held.freshness) == worst)
    }

    fn worst_input(&mut self, session: SessionNo, row: &Row) -> Result<(Freshness, Detail), StorageError> {
        let mut worst = (Freshness::Fresh, Detail::default());
        for &no in &row.inputs {
            let Some(mark) = self.shelf.get::<Mark>(Table::Marks, &mark_key(session, no))? else { continue };
            match mark.freshness {
                Freshness::Fresh => {}
                Freshness::Unknown(doubt) => worst.0 = Freshness::Unknown(doubt),
                Freshness::Stale(_) => {
                    let input = self.shelf.held_row(session, no)?.map(Row::label);
                    let changed = mark.detail.changed;
                    return Ok((
                        Freshness::Stale(Cause::Input),
                        Detail { changed, input, ..Detail::default() },
                    ));
                }
            }
        }
        Ok(worst)
    }
}

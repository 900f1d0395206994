//! A session told whole: what every record about it leaves, taken out of one index and put back into another.
//!
//! Only what clients told and what was settled for them goes along. What the world was found to be stays behind, for it is
//! looked at again; so a session that is put back is where replaying its records would have left it.

use super::row::{Mark, Role, Row, RowNo, SessionNo};
use super::shelf::mark_key;
use super::storage::{Storage, StorageError, StoredHead, Summary, Table};
use super::telling::Step;
use super::{Index, Outcome};
use crate::session::moment::Moment;
use crate::session::source::Source;

/// A row as it is kept. Its sources and versions are numbers of one index alone, and stay behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRow {
    /// The row, on no source yet.
    pub row: Row,
    /// Since when it is not fresh, where no look will ever tell: it was refuted, or nothing can be watched.
    pub since: Option<Moment>,
}

impl<S: Storage> Index<S> {
    /// The rows of a session, by number, to be put back elsewhere.
    pub fn kept_rows(&self, session: SessionNo) -> Result<Vec<KeptRow>, StorageError> {
        let kept = |row: Row| {
            let mark: Option<Mark> = self.shelf.get(Table::Marks, &mark_key(session, row.no))?;
            let since = mark.filter(|_| row.is_marked_for_good()).map(|mark| mark.since);
            Ok(KeptRow { row: Row { source_id: None, as_of: None, ..row }, since })
        };
        self.shelf.rows(session)?.into_iter().map(kept).collect()
    }

    /// The number that the next new row of a session gets.
    pub fn next_row(&self, session: SessionNo) -> Result<RowNo, StorageError> {
        self.summary(session).map(|counts| RowNo(counts.next_row))
    }

    /// Begins a session with this head; its lists and rows are put back after it. One of that name goes.
    pub fn put_back_head(&mut self, head: &StoredHead, next: RowNo) -> Result<SessionNo, StorageError> {
        if let Some(session) = self.session(&head.session) {
            self.drop_session(session)?;
        }
        let session = self.open_session(&head.session, &head.root)?;
        let key = session.0.to_be_bytes();
        self.put_head(session, head)?;
        self.shelf.put(Table::Summaries, &key, &Summary { next_row: next.0, ..Summary::default() })?;
        self.put_totals()?;
        Ok(session)
    }

    /// Puts back more of a session, in any number of steps: its head with longer lists, and rows that it had.
    pub fn put_back_more(
        &mut self,
        session: SessionNo,
        head: &StoredHead,
        rows: Vec<KeptRow>,
    ) -> Result<(), StorageError> {
        self.put_head(session, head)?;
        let mut step = Step {
            index: self,
            session,
            root: head.root.clone(),
            at: Moment::default(),
            told: Vec::new(),
            checks: Vec::new(),
            released: Vec::new(),
            outcome: Outcome::default(),
        };
        for KeptRow { row, since } in rows {
            step.at = since.unwrap_or_default();
            step.put_back(row)?;
        }
        self.shelf.flush()?;
        self.put_totals()
    }
}

impl<S: Storage> Step<'_, S> {
    fn put_back(&mut self, row: Row) -> Result<(), StorageError> {
        let (no, role, refuted) = (row.no, row.role, row.refuted);
        let is_command = matches!(row.source, Source::Command { .. });
        if self.index.shelf.held_row(self.session, no)?.is_some() {
            let reason = format!("there is a row {} already", no.0);
            return Err(StorageError::contents("put back a row", Table::Rows, reason));
        }
        self.index.totals.rows += 1;
        let counts = self.index.shelf.counts(self.session)?;
        counts.rows += u32::from(role != Role::Input);
        counts.tracked += u32::from(role == Role::Tracked);
        let row = self.place(row)?;
        if is_command {
            // Before its inputs, whose own marks would say since when they are what they are.
            self.index.judge_command(self.session, no, self.at, &mut self.outcome)
        } else if refuted {
            self.index.refute_row(self.session, row, self.at, &mut self.outcome)
        } else {
            Ok(())
        }
    }
}

impl Row {
    /// Whether its mark is no look's.
    fn is_marked_for_good(&self) -> bool {
        self.refuted || matches!(self.source, Source::Volatile { .. })
    }
}

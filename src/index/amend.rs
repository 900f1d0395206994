//! What clients amend: an own write acknowledged, a belief refuted, a baseline given up or told again.

use super::found::Found;
use super::freshness::judge;
use super::register::Refutation;
use super::row::{Baseline, Detail, Role, Row, RowNo, SessionNo};
use super::shelf::source_key;
use super::storage::{SourceState, Storage, StorageError, StoredHead, Table};
use super::telling::want;
use super::{Check, Depth, Index, Outcome};
use crate::session::context::Seen;
use crate::session::digest::Digest;
use crate::session::moment::Moment;
use crate::session::source::{Source, absolute};
use std::collections::{HashMap, HashSet};
use std::path::Path;

impl<S: Storage> Index<S> {
    /// Baselines that were still awaited when their registration was answered can no longer be taken: a later look
    /// would say what the file became, not what it was.
    pub fn give_up_awaiting(&mut self, session: SessionNo) -> Result<(), StorageError> {
        for row in self.shelf.rows(session)? {
            if row.baseline == Baseline::Awaited {
                self.shelf.put_row(session, Row { baseline: Baseline::Missed, ..row })?;
            }
        }
        self.shelf.flush()
    }

    /// What a registration settled, told again after a restart: baselines that the daemon took itself, and the rows
    /// that were fresh.
    pub fn restore(
        &mut self,
        session: SessionNo,
        adopted: &HashMap<(Role, String), Seen>,
        fresh: &HashMap<(Role, String), Option<Digest>>,
    ) -> Result<(), StorageError> {
        for mut row in self.shelf.rows(session)? {
            let key = (row.role, row.id.clone());
            let seen = adopted.get(&key);
            if let (Baseline::Awaited | Baseline::Missed, Some(seen)) = (&row.baseline, seen) {
                row.baseline = Baseline::Registration(seen.clone());
                row.lf = None;
            }
            if let Some(lf) = fresh.get(&key) {
                row.ever_fresh = true;
                row.lf = row.lf.or(*lf);
            }
            self.shelf.put_row(session, row)?;
        }
        self.shelf.flush()
    }

    /// Records are lost that may have refuted what these sessions believe, or told them more: every session is in doubt
    /// until it is registered with `replace: true`, or dropped.
    pub fn doubt_all(&mut self) -> Result<(), StorageError> {
        for session in self.sessions()? {
            let head = StoredHead { doubted: true, ..self.head(session)? };
            self.put_head(session, &head)?;
        }
        self.tally.doubt_all();
        self.clock.tick += 1;
        self.shelf.flush()
    }

    /// The agent's own write: what the session saw at `path` is now `digest`. Returns `None` when no row of the
    /// session is about that path, and the looks to be made otherwise.
    pub fn acknowledge(
        &mut self,
        session: SessionNo,
        path: &Path,
        digest: Digest,
        at: Moment,
    ) -> Result<Option<Vec<Check>>, StorageError> {
        let key = absolute(&self.head(session)?.root, path);
        let mut checks = None;
        for row in self.shelf.rows(session)? {
            let Some(source) = row.source_id else { continue };
            // What a command read it read before the agent wrote.
            let of_bytes = matches!(row.source, Source::File { .. } | Source::Lockfile { .. })
                && row.role != Role::Input;
            let mut state: SourceState = self.shelf.must(Table::Sources, &source_key(source))?;
            if !of_bytes || state.key.path != key {
                continue;
            }
            want(&mut state, &Seen::Digest(digest));
            self.shelf.put(Table::Sources, &source_key(source), &state)?;
            let baseline = Baseline::Client(Seen::Digest(digest));
            // The agent wrote it, so it was there: whatever differs later changed since, and was not born so.
            let acknowledged =
                Row { baseline, lf: None, refuted: false, ever_fresh: true, captured_at: Some(at), ..row };
            self.shelf.put_row(session, acknowledged)?;
            let check = self.suspect(source, &state, Depth::Bytes)?;
            checks.get_or_insert_with(Vec::new).push(check);
        }
        self.clock.tick += 1;
        self.shelf.flush()?;
        Ok(checks)
    }

    /// Whether a session rests on the bytes at `path`, so that [`Index::acknowledge`] has something to say.
    pub fn rests_on(&self, session: SessionNo, path: &Path) -> Result<bool, StorageError> {
        let root = self.head(session)?.root;
        let key = absolute(&root, path);
        let rests = |row: &Row| match &row.source {
            Source::File { path } | Source::Lockfile { path } => {
                row.role != Role::Input && absolute(&root, path) == key
            }
            _ => false,
        };
        Ok(self.shelf.rows(session)?.iter().any(rests))
    }

    /// Whether a session has such a fact, row or path, so that [`Index::refute`] has something to hit.
    pub fn knows(&self, session: SessionNo, target: &Path) -> Result<bool, StorageError> {
        let head = self.head(session)?;
        let path = absolute(&head.root, target);
        let known = |row: &Row| {
            let by_path = row.source.path().is_some_and(|spelled| absolute(&head.root, spelled) == path);
            row.role != Role::Input && (by_path || Path::new(&row.id) == target)
        };
        let fact = head.facts.iter().any(|fact| Path::new(&fact.id) == target);
        Ok(fact || self.shelf.rows(session)?.iter().any(known))
    }

    /// A client says that what it believed failed in use. `target` is a fact's id, a row's id, or a path.
    pub fn refute(
        &mut self,
        session: SessionNo,
        target: &Path,
        at: Moment,
    ) -> Result<Option<Refutation>, StorageError> {
        let head = self.head(session)?;
        let facts = head.facts.iter().filter(|fact| Path::new(&fact.id) == target);
        let mut numbers: HashSet<RowNo> = facts.flat_map(|fact| fact.rows.iter().copied()).collect();
        let path = absolute(&head.root, target);
        let rows = self.shelf.rows(session)?;
        for row in &rows {
            let by_path = row.source.path().is_some_and(|spelled| absolute(&head.root, spelled) == path);
            if row.role != Role::Input && (Path::new(&row.id) == target || by_path) {
                numbers.insert(row.no);
            }
        }
        let (mut ids, mut outcome) = (Vec::new(), Outcome::default());
        for row in rows.into_iter().filter(|row| numbers.contains(&row.no)) {
            ids.push(row.id.clone());
            self.refute_row(session, row, at, &mut outcome)?;
        }
        self.clock.tick += 1;
        self.shelf.flush()?;
        Ok((!ids.is_empty()).then_some(Refutation { ids, changed: outcome.changed }))
    }

    pub(super) fn refute_row(
        &mut self,
        session: SessionNo,
        row: Row,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let found = match row.source_id {
            Some(source) => self.shelf.must::<SourceState>(Table::Sources, &source_key(source))?.found,
            None => None,
        };
        let row = Row { refuted: true, ..row };
        let freshness = judge(&row, found.as_ref().unwrap_or(&Found::Missing));
        let no = row.no;
        self.shelf.put_row(session, row)?;
        self.mark(session, no, (freshness, Detail::default()), found.as_ref(), at, outcome)
    }
}

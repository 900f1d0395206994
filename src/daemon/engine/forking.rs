//! Forks in the engine: their records, and what moved since they were made, read from the rows that were told for it.

use super::Engine;
use crate::daemon::handle::Sight;
use crate::index::Change;
use crate::index::freshness::Freshness;
use crate::index::row::SessionNo;
use crate::index::storage::{Storage, StorageError, Table};
use crate::index::view::{Line, Listed};
use crate::protocol::event::{self, Topic};
use crate::protocol::fork::Fork;
use crate::protocol::fork::answer::{BaseMoved, HeadMoved, Moved, Paths};
use crate::protocol::fork::record::Mode;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::{SessionId, Side};
use crate::store::record::Record;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The row for a whole tree, in the sessions that say what moved.
pub(in crate::daemon) const TREE: &str = "tree";
/// The row for the parent's HEAD.
pub(in crate::daemon) const HEAD: &str = "head";

impl Engine {
    /// Every fork, in the order of their ids.
    pub(in crate::daemon) fn forks(&self) -> Result<Vec<Fork>, StorageError> {
        let decode = |bytes: Vec<u8>| {
            Fork::from_bytes(&bytes).map_err(|error| {
                let error = StorageError::contents("decode", Table::Forks, error.to_string());
                self.index.storage().distrust(error)
            })
        };
        self.index.forks()?.into_iter().map(decode).collect()
    }

    /// Journals what a fork has become.
    pub(in crate::daemon) fn keep_fork(&mut self, fork: &Fork) -> Result<(), Refusal> {
        let record = Record::Forked(Box::new(fork.clone()));
        let bytes = fork.to_bytes();
        self.journaled(&record, |engine| engine.index.put_fork(&fork.fork, &bytes))
    }

    /// Nothing is to be known any more of what only this fork rested on: the removal of its tree is then no news.
    pub(in crate::daemon) fn drop_sides(&mut self, fork: &Fork) -> Result<(), Refusal> {
        let others = self.forks()?;
        let last = !others.iter().any(|other| other.no != fork.no && other.baseline == fork.baseline);
        let own = SessionId::new(&fork.fork).into_iter().chain([SessionId::of_fork(fork.no, Side::Work)]);
        let base = last.then(|| SessionId::of_fork(fork.baseline, Side::Base));
        for name in own.chain(base).collect::<Vec<_>>() {
            self.drop_named(&name)?;
        }
        Ok(())
    }

    /// Journals that a fork is no more.
    pub(in crate::daemon) fn forget_fork(&mut self, fork: &Fork) -> Result<(), Refusal> {
        self.drop_sides(fork)?;
        let record = Record::Unforked { fork: fork.fork.clone() };
        self.journaled(&record, |engine| engine.index.remove_fork(&fork.fork))
    }

    /// Ends a session, if there is one of this name.
    pub(in crate::daemon) fn drop_named(&mut self, name: &SessionId) -> Result<(), Refusal> {
        let Some(session) = self.index.session(name) else { return Ok(()) };
        let record = Record::Dropped { session: name.as_str().to_owned() };
        let released = self.journaled(&record, |engine| engine.index.drop_session(session))?;
        self.follow(Vec::new(), &released);
        Ok(())
    }

    /// What moved since a fork was made.
    pub(in crate::daemon) fn moved(&mut self, fork: &Fork, sight: Sight) -> Result<Moved, StorageError> {
        let base = SessionId::of_fork(fork.baseline, Side::Base);
        let parent = self.changed_in(&base, sight)?;
        let changed = self.changed_in(&SessionId::of_fork(fork.no, Side::Work), sight)?;
        let head = if fork.mode == Mode::Git { self.head_moved(&base, sight)? } else { None };
        let both_changed = both(parent.as_ref(), changed.as_ref());
        let stands = head.is_none() && parent.as_ref().is_some_and(Vec::is_empty);
        let base_moved = (!stands).then_some(BaseMoved { head, changed: parent });
        Ok(Moved { base_moved, changed, both_changed })
    }

    fn changed_in(&self, name: &SessionId, sight: Sight) -> Result<Paths, StorageError> {
        let (Some(session), true) = (self.index.session(name), sight != Sight::Blind) else {
            return Ok(None);
        };
        if self.index.is_doubted(session) {
            return Ok(None);
        }
        let tree = self.index.rows(session)?.into_iter().find(|row| row.id == TREE);
        let paths = tree.map(|row| self.index.changed_paths(&row)).transpose()?.flatten();
        Ok(paths.map(|paths| paths.into_iter().map(WirePath).collect()))
    }

    fn head_moved(&mut self, base: &SessionId, sight: Sight) -> Result<Option<HeadMoved>, StorageError> {
        let view = self.view(base, Listed::Doubtful, sight)?;
        let lines = view.map(|view| view.lines).unwrap_or_default();
        let head = lines.into_iter().find(|line| line.id == HEAD && line.is_doubtful());
        Ok(head.map(|line: Line| HeadMoved { was: line.was, now: line.now }))
    }

    /// How many rows of a session only measure what moved, and are nothing that an agent believes.
    pub(in crate::daemon) fn measures(&self, session: SessionNo) -> Result<u32, StorageError> {
        let rows = self.index.rows(session)?;
        Ok(rows.iter().filter(|row| row.id == TREE || row.id == HEAD).count() as u32)
    }

    /// Tells, and writes into the decision log, of which forks the parent has just moved.
    pub(super) fn heed_bases(&self, changes: &[Change]) -> Result<(), StorageError> {
        let moved = |change: &&Change| {
            matches!(change.to, Freshness::Stale(_)) && (change.id == TREE || change.id == HEAD)
        };
        let mut bases = BTreeSet::new();
        for change in changes.iter().filter(moved) {
            bases.extend(self.index.head(change.session)?.session.base_of_fork().map(|no| (no, &change.id)));
        }
        if bases.is_empty() {
            return Ok(());
        }
        for fork in self.forks()? {
            for (_, what) in bases.iter().filter(|(no, _)| *no == fork.baseline) {
                let more = [("fork", fork.fork.as_str()), ("moved", what.as_str())];
                self.tell_fork("base_moved", &fork.session, &more);
            }
        }
        Ok(())
    }

    /// Writes into the decision log what became of a fork, and tells who wants to know. Nobody waits for it.
    pub(in crate::daemon) fn tell_fork(&self, event: &str, session: &str, more: &[(&str, &str)]) {
        let fields: Vec<(&str, &str)> =
            [("what", event), ("session", session)].into_iter().chain(more.iter().copied()).collect();
        if let Err(error) = self.log.event("fork", &fields) {
            tracing::error!(%error, event, "what became of a fork could not be logged");
        }
        self.push_fork(event, session, more);
    }

    /// Tells who wants to know what becomes of a fork.
    pub(in crate::daemon) fn push_fork(&self, event: &str, session: &str, more: &[(&str, &str)]) {
        let about = SessionId::new(session);
        if self.subscribers.want(Topic::Fork, about.as_ref()) {
            self.subscribers.tell(Topic::Fork, about.as_ref(), event::fork(event, session, more));
        }
    }
}

/// What stands in both, which are sorted.
fn both(one: Option<&Vec<WirePath>>, other: Option<&Vec<WirePath>>) -> Paths {
    let other: BTreeSet<&PathBuf> = other?.iter().map(|path| &path.0).collect();
    Some(one?.iter().filter(|path| other.contains(&path.0)).cloned().collect())
}

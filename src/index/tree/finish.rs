//! A tree that waits for nothing has a digest, and its readers are judged by it.

use super::entry::Root;
use super::listed::first_doubt;
use crate::index::found::{Found, TreeFound};
use crate::index::freshness::{Cause, Freshness, judge};
use crate::index::row::{Detail, Row};
use crate::index::shelf::source_key;
use crate::index::storage::{SourceState, Storage, StorageError, Table};
use crate::index::{Index, Looked, Outcome, SourceId};
use crate::session::moment::Moment;
use crate::session::source::Source;

impl<S: Storage> Index<S> {
    /// Applies a look at a tree's own path.
    pub(in crate::index) fn rooted(
        &mut self,
        id: SourceId,
        looked: Looked,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let key = self.shelf.must::<SourceState>(Table::Sources, &source_key(id))?.key;
        let instead = match looked {
            Looked::Root(root) => {
                self.root_at(id, &key, &root)?;
                None
            }
            Looked::Found(found) => {
                self.uproot(id);
                Some(found)
            }
            Looked::Listing(_) | Looked::Head(_) => {
                Some(Found::Unknown(crate::index::freshness::Doubt::Unsettled))
            }
        };
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        tree.instead = instead;
        let waits = tree.waits > 0;
        self.pending.remove(&id);
        if waits { Ok(()) } else { self.finish(id, at, outcome) }
    }

    fn root_at(
        &mut self,
        id: SourceId,
        key: &crate::index::SourceKey,
        root: &Root,
    ) -> Result<(), StorageError> {
        self.root(id, key, root)
    }

    /// Judges the readers of a tree that waits for nothing.
    pub(super) fn finish(
        &mut self,
        id: SourceId,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let mut state: SourceState = self.shelf.must(Table::Sources, &source_key(id))?;
        let found = self.whole(id, state.found.as_ref());
        let moments = self.tell_changes(id, &state, &found)?;
        for &(session, row) in &state.readers {
            self.judge_row(session, row, &found, at, outcome)?;
        }
        self.grove.since.clear();
        self.keep_moments(id, &state, &found, moments)?;
        let version = self.grove.trees.get(&id).map_or(state.version, |tree| tree.version);
        if state.found.as_ref() != Some(&found) || state.version != version {
            (state.found, state.version) = (Some(found), version);
            self.shelf.put(Table::Sources, &source_key(id), &state)?;
        }
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            (tree.unsettled, tree.prove) = (false, false);
        }
        if self.grove.trees.values().all(|tree| !tree.unsettled) {
            self.grove.early.clear();
        }
        for (session, _) in &state.readers {
            self.forget_suspect(*session);
        }
        self.sweep()
    }

    /// What the tree is as a whole, under a new version if it is not what it was.
    fn whole(&mut self, id: SourceId, held: Option<&Found>) -> Found {
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Found::Missing };
        if let Some(instead) = &tree.instead {
            return instead.clone();
        }
        if let Some(doubt) = first_doubt(&tree.doubts) {
            return Found::Unknown(doubt);
        }
        let digest = tree.sum.digest();
        let same =
            matches!(held, Some(Found::Tree(held)) if held.digest == digest && held.version == tree.version);
        if !same {
            tree.version += 1;
        }
        Found::Tree(TreeFound { digest, members: tree.sum.members(), version: tree.version })
    }

    /// Makes ready what stale readers are told: what changed since each of their moments. Returns all moments.
    fn tell_changes(
        &mut self,
        id: SourceId,
        state: &SourceState,
        found: &Found,
    ) -> Result<Vec<u64>, StorageError> {
        let mut stale = Vec::new();
        for &(session, no) in &state.readers {
            let Some(row) = self.shelf.held_row(session, no)? else { continue };
            if matches!(found, Found::Tree(_)) && judge(row, found) != Freshness::Fresh {
                stale.extend(row.as_of);
            }
        }
        stale.sort_unstable();
        stale.dedup();
        if !stale.is_empty() {
            self.grove.since = self.changed_since(id, &stale)?;
        }
        Ok(stale)
    }

    /// Whoever is right now speaks of this version from now on; what nobody speaks of is forgotten.
    fn keep_moments(
        &mut self,
        id: SourceId,
        state: &SourceState,
        found: &Found,
        stale: Vec<u64>,
    ) -> Result<(), StorageError> {
        let Found::Tree(tree) = found else { return Ok(()) };
        let mut moments = stale;
        for &(session, no) in &state.readers {
            let Some(row) = self.shelf.held_row(session, no)? else { continue };
            if judge(row, found) != Freshness::Fresh {
                continue;
            }
            if row.as_of != Some(tree.version) {
                let row = Row { as_of: Some(tree.version), ..row.clone() };
                self.shelf.put_row(session, row)?;
            }
            moments.push(tree.version);
        }
        moments.sort_unstable();
        moments.dedup();
        let held =
            self.grove.trees.get_mut(&id).map(|tree| std::mem::replace(&mut tree.moments, moments.clone()));
        if held.is_some_and(|held| held != moments) { self.forget_changes(id, &moments) } else { Ok(()) }
    }

    /// What else there is to say about a row that was judged, and the cause in its finest words.
    pub(in crate::index) fn detail(
        &self,
        row: &Row,
        freshness: Freshness,
        found: Option<&Found>,
    ) -> (Freshness, Detail) {
        let mut detail = Detail::default();
        if let (Source::Lines { .. }, Freshness::Stale(_), Some(Found::Lines(lines))) =
            (&row.source, freshness, found)
        {
            detail.start_line = crate::index::freshness::lines_start(row, lines);
        }
        if let (Freshness::Stale(Cause::Content | Cause::BornStale), Some(Found::File(file))) =
            (freshness, found)
        {
            detail.eol_only = row.lf == Some(file.lf_digest());
        }
        let since = row.as_of.and_then(|version| self.grove.since.get(&version));
        let since = since.filter(|since| since.changed.number > 0);
        match (freshness, since) {
            (Freshness::Stale(Cause::Content), Some(since)) => {
                detail.changed = Some(since.changed.clone());
                let cause = if since.names { Cause::Names } else { Cause::Content };
                (Freshness::Stale(cause), detail)
            }
            (Freshness::Stale(Cause::Content), None) if counts_names_only(row) => {
                (Freshness::Stale(Cause::Names), detail)
            }
            _ => (freshness, detail),
        }
    }
}

fn counts_names_only(row: &Row) -> bool {
    matches!(&row.source, Source::Tree { filter, .. } if !filter.contents)
}

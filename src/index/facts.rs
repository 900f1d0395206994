//! Which facts may be carried on: judged by the rows that they rest on, and by whatever of a view stands in doubt at the same
//! place, however it is spelled.

use super::Index;
use super::row::SessionNo;
use super::shelf::source_key;
use super::storage::{SourceState, Storage, StorageError, StoredFact, StoredHead, Table};
use super::view::{FactLine, Line, View, found_text, identity};
use crate::session::source::{Source, absolute, normal};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

impl<S: Storage> Index<S> {
    /// A fact is judged by its rows and by every doubtful row that leads to the same place under another spelling.
    pub(super) fn judged_facts(
        &self,
        session: SessionNo,
        head: &StoredHead,
        lines: &[Line],
    ) -> Result<Vec<FactLine>, StorageError> {
        let doubtful = || lines.iter().filter(|line| line.is_doubtful());
        if head.facts.is_empty() || head.scratchpad_bytes == 0 && doubtful().next().is_none() {
            return Ok(Vec::new());
        }
        let ids: HashSet<&str> = doubtful().map(|line| line.id.as_str()).collect();
        let places = Places::of(&head.root, doubtful());
        head.facts.iter().map(|fact| self.judged_fact(session, fact, &ids, &places)).collect()
    }

    /// A fact that rests on rows of another session, judged beside a view: it falls with whatever of the view stands in doubt
    /// at the same place.
    pub fn fact_beside(
        &self,
        session: SessionNo,
        fact: &StoredFact,
        places: &Places<'_>,
    ) -> Result<FactLine, StorageError> {
        self.judged_fact(session, fact, &HashSet::new(), places)
    }

    fn judged_fact(
        &self,
        session: SessionNo,
        fact: &StoredFact,
        ids: &HashSet<&str>,
        places: &Places<'_>,
    ) -> Result<FactLine, StorageError> {
        let mut fresh = !fact.rows.is_empty() && !fact.sources.iter().any(|source| places.are_named(source));
        let mut digest = None;
        for &no in &fact.rows {
            let Some(row) = self.shelf.row(session, no)? else {
                fresh = false;
                continue;
            };
            let state: Option<SourceState> = match row.source_id {
                Some(source) => Some(self.shelf.must(Table::Sources, &source_key(source))?),
                None => None,
            };
            let same_place =
                state.as_ref().and_then(identity).is_some_and(|path| places.identities.contains(&path));
            fresh &= !ids.contains(row.id.as_str()) && !same_place;
            digest = digest.or_else(|| state.and_then(|state| state.found).as_ref().and_then(found_text));
        }
        Ok(FactLine {
            statement: fact.statement.clone(),
            evidence: fact.evidence.clone(),
            sources: fact.sources.clone(),
            digest,
            fresh,
            observation: None,
        })
    }
}

/// Where the rows of a view stand that are in doubt.
#[derive(Debug)]
pub struct Places<'view> {
    root: &'view Path,
    /// Where they lead.
    identities: HashSet<&'view PathBuf>,
    /// What they go by, and where that is below the root. Lines and trees are judged by themselves, and lead nowhere else;
    /// but what a summary drops under a name it cannot carry on under the same name.
    names: HashSet<PathBuf>,
}

impl<'view> Places<'view> {
    /// Of a view.
    #[must_use]
    pub fn in_doubt(view: &'view View) -> Self {
        Self::of(&view.head.root, view.lines.iter().filter(|line| line.is_doubtful()))
    }

    fn of(root: &'view Path, doubtful: impl Iterator<Item = &'view Line>) -> Self {
        let (mut identities, mut names) = (HashSet::new(), HashSet::new());
        for line in doubtful {
            identities.extend(&line.identity);
            names.extend([PathBuf::from(&line.id), normal(&line.label())]);
            let path = line.source.path().filter(|_| !matches!(line.source, Source::GitHead { .. }));
            names.extend(path.map(|path| normal(&absolute(root, path))));
        }
        Self { root, identities, names }
    }

    fn are_named(&self, source: &Path) -> bool {
        [normal(source), normal(&absolute(self.root, source))].iter().any(|name| self.names.contains(name))
    }
}

//! Which folders are to be looked at, in which order, and what the look must know.
//!
//! An order carries what is known of the folder's entries, which is much for a million of them; so it is made only when
//! there is somebody to carry it out, and few are out at once.

use super::entry::Entry;
use super::grow::Stand;
use super::{Folder, Grove};
use crate::index::row::SessionNo;
use crate::index::storage::{Storage, StorageError};
use crate::index::{Check, Depth, Index, KeyKind, SourceId, SourceKey, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

/// Folders that may be looked at at once.
const ORDERS_MAX: usize = 256;

/// Which names of a folder are to be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// All of them; an equal stat may confirm what is known.
    pub all: bool,
    /// The bytes of all that are looked at, whatever their stat says.
    pub bytes: bool,
    /// These, and their bytes, whatever their stat says.
    pub these: BTreeSet<OsString>,
}

impl Names {
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// All names; `bytes` says that no stat may stand in for their bytes.
    #[must_use]
    pub fn all(bytes: bool) -> Self {
        Self { all: true, bytes, these: BTreeSet::new() }
    }

    /// Adds what others want.
    pub fn merge(&mut self, other: Self) {
        self.all |= other.all;
        self.bytes |= other.bytes;
        self.these.extend(other.these);
    }
}

/// What a look at a folder must know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// Which names.
    pub names: Names,
    /// What is known of them.
    pub known: BTreeMap<OsString, Entry>,
    /// How the folder's trees see it.
    pub views: Views,
}

/// How the trees of a folder see it: which of its names any of them counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Views(Vec<Stand>);

impl Views {
    /// Whether some tree counts the bytes of a file of this name.
    #[must_use]
    pub fn want_bytes(&self, name: &OsStr) -> bool {
        self.0.iter().any(|stand| stand.counts_bytes() && stand.takes(name, false))
    }

    /// Whether any tree could count what has this name, or something below it. Whatever else happens there is nobody's
    /// concern, however often it does: a log that is written without end must not keep the tree around it suspect.
    #[must_use]
    pub fn care_for(&self, name: &OsStr) -> bool {
        self.0
            .iter()
            .any(|stand| stand.takes(name, false) || stand.takes(name, true) || stand.goes_below(name))
    }
}

impl Grove {
    /// Marks a folder for a look, under a new stamp.
    pub(super) fn queue(&mut self, id: SourceId, names: Names, stamp: Stamp) {
        let Some(folder) = self.folders.get_mut(&id) else { return };
        self.pending += usize::from(folder.stamp.is_none());
        folder.stamp = Some(stamp);
        folder.names.merge(names);
        if !std::mem::replace(&mut folder.queued, true) {
            self.later.push_back(id);
        }
    }

    /// Somebody waits for these trees: their folders pass all others.
    fn hurry(&mut self, trees: &BTreeSet<SourceId>) {
        let wanted = |folder: &Folder| folder.waiting.iter().any(|waiting| trees.contains(&waiting.tree));
        let hurried = self.folders.iter().filter(|(_, folder)| folder.queued && wanted(folder));
        self.urgent.extend(hurried.map(|(id, _)| *id));
    }

    fn next_queued(&mut self) -> Option<SourceId> {
        loop {
            let id = self.urgent.pop_front().or_else(|| self.later.pop_front())?;
            // One that was hurried stands in both queues, and one that is gone in either.
            if let Some(folder) = self.folders.get_mut(&id)
                && std::mem::take(&mut folder.queued)
            {
                return Some(id);
            }
        }
    }
}

impl<S: Storage> Index<S> {
    /// The looks at folders that are due, as many as may be out at once. To be asked for after every step.
    pub fn orders(&mut self) -> Result<Vec<Check>, StorageError> {
        let mut checks = Vec::new();
        while self.grove.ordered < ORDERS_MAX {
            let Some(id) = self.grove.next_queued() else { break };
            checks.extend(self.order(id)?);
        }
        Ok(checks)
    }

    fn order(&mut self, id: SourceId) -> Result<Option<Check>, StorageError> {
        let Some(folder) = self.grove.folders.get_mut(&id) else { return Ok(None) };
        let Some(stamp) = folder.stamp else { return Ok(None) };
        self.grove.ordered += usize::from(!std::mem::replace(&mut folder.ordered, true));
        let (path, names) = (folder.path.to_path_buf(), folder.names.clone());
        let known = self.known_entries(id, &names)?;
        let order = Order { names, known, views: self.views(id) };
        let key = SourceKey { kind: KeyKind::Folder, path };
        let depth = Depth::Names;
        Ok(Some(Check {
            source: id,
            stamp,
            key,
            depth,
            wanted: Vec::new(),
            sought: Vec::new(),
            known: None,
            moved: None,
            order: Some(Box::new(order)),
        }))
    }

    /// How the trees of a folder see it.
    pub(in crate::index) fn views(&self, id: SourceId) -> Views {
        let trees = self.grove.folders.get(&id).map(|folder| folder.trees.as_slice()).unwrap_or_default();
        Views(trees.iter().filter_map(|&tree| self.stand(tree, id)).collect())
    }

    /// Somebody waits for this session: the folders of its trees pass all others.
    pub fn hurry_trees(&mut self, session: SessionNo) -> Result<(), StorageError> {
        if self.grove.pending_len() == 0 {
            return Ok(());
        }
        let rows = self.shelf.rows(session)?;
        let trees = rows.iter().filter_map(|row| row.source_id).filter(|&source| self.grove.waits(source));
        let trees: BTreeSet<SourceId> = trees.collect();
        if !trees.is_empty() {
            self.grove.hurry(&trees);
        }
        Ok(())
    }
}

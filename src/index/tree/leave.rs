//! How trees lose folders: a folder is left, a root is gone, and what no tree has any more is forgotten.
//!
//! What goes is noted path by path for those who speak of earlier versions. Where that cannot be told (other rules count
//! by now, and the old ones are not kept) they speak of no version any more: what changed is then not told at all, rather
//! than told wrong.

use super::entry::Entry;
use super::grow::Stand;
use super::{New, SourceId};
use crate::index::row::Row;
use crate::index::shelf::source_key;
use crate::index::storage::{SourceState, Storage, StorageError, Table};
use crate::index::{Index, KeyKind, SourceKey, pack};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

impl<S: Storage> Index<S> {
    /// A tree leaves a folder that is no longer below it, and everything below that.
    pub(super) fn leave_folder(&mut self, id: SourceId, folder: SourceId) -> Result<(), StorageError> {
        let Some(held) = self.grove.folders.get(&folder) else { return Ok(()) };
        if !held.trees.contains(&id) {
            return Ok(());
        }
        let (new, children, doubt) = (held.new_to(id), held.children.clone(), held.doubt);
        match (new, self.stand(id, folder)) {
            (None, Some(stand)) => {
                for (name, entry) in self.entries(folder)? {
                    self.count_entry(&stand, &name, (Some(&entry), None))?;
                }
                self.grove.doubt(id, doubt, false);
            }
            (Some(New::Known), Some(stand)) => self.note_vanished(&stand)?,
            _ => {}
        }
        for child in children {
            self.leave_folder(id, child)?;
        }
        let Some(held) = self.grove.folders.get_mut(&folder) else { return Ok(()) };
        held.trees.retain(|&tree| tree != id);
        let waited = held.waiting.len();
        held.waiting.retain(|waiting| waiting.tree != id);
        let waits = waited > held.waiting.len();
        self.grove.orphans |= held.trees.is_empty();
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            tree.waits -= u32::from(waits);
        }
        Ok(())
    }

    /// The folder that a tree was rooted in is not its root any more.
    pub(super) fn leave_root(&mut self, id: SourceId) -> Result<(), StorageError> {
        let root = self.grove.trees.get(&id).and_then(|tree| tree.root.clone());
        let Some(root) = root else { return Ok(()) };
        if let Some(folder) = self.known_folder(&root)? {
            self.leave_folder(id, folder)?;
        }
        Ok(())
    }

    /// No folder stands at a tree's path.
    pub(super) fn unroot(&mut self, id: SourceId) -> Result<(), StorageError> {
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        match tree.past.take() {
            // Which rules counted from above is not known any more.
            Some(past) if past.outer != tree.sieve.outer_digest => self.lose_track(id)?,
            Some(past) => {
                let stand = Stand::at_root(id, &tree.sieve, &past.folder);
                self.note_vanished(&stand)?;
            }
            None => self.leave_root(id)?,
        }
        self.uproot(id);
        Ok(())
    }

    /// A folder went before the tree had come to it again: what is stored of it says what was there.
    pub(super) fn note_vanished(&mut self, stand: &Stand) -> Result<(), StorageError> {
        let Some(id) = self.known_folder(stand.folder())? else { return Ok(()) };
        let entries = self.held_by_latecomers(id, self.entries(id)?);
        let rules = entries.get(OsStr::new(".gitignore")).and_then(Entry::rules);
        if stand.sieve.uses_rules() && rules.is_some() {
            return self.lose_track(stand.tree);
        }
        for (name, entry) in entries {
            self.note_change(stand, &name, (stand.print(&name, Some(&entry)), None))?;
            if stand.enters(&name, Some(&entry)) {
                self.note_vanished(&stand.below(&name))?;
            }
        }
        Ok(())
    }

    /// What was in a folder for those who have yet to come to it.
    pub(super) fn held_by_latecomers(
        &self,
        id: SourceId,
        mut entries: BTreeMap<OsString, Entry>,
    ) -> BTreeMap<OsString, Entry> {
        for (name, early) in self.grove.early.get(&id).into_iter().flatten() {
            match early {
                Some(entry) => entries.insert(name.clone(), entry.clone()),
                None => entries.remove(name),
            };
        }
        entries
    }

    /// What is stored of folders is not what the tree had when it was last whole. It knows what it had, but a process that
    /// ends before it is whole again forgets that.
    pub(super) fn set_adrift(&mut self, id: SourceId) -> Result<(), StorageError> {
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        if tree.moments.is_empty() || std::mem::replace(&mut tree.adrift, true) {
            return Ok(());
        }
        let state: SourceState = self.shelf.must(Table::Sources, &source_key(id))?;
        self.shelf.put(Table::Sources, &source_key(id), &SourceState { rooted: None, ..state })
    }

    /// What changed in a tree since earlier versions cannot be told any more.
    pub(super) fn lose_track(&mut self, id: SourceId) -> Result<(), StorageError> {
        self.set_adrift(id)?;
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        if std::mem::take(&mut tree.moments).is_empty() {
            return Ok(());
        }
        let state: SourceState = self.shelf.must(Table::Sources, &source_key(id))?;
        for (session, no) in state.readers {
            let Some(row) = self.shelf.held_row(session, no)?.filter(|row| row.as_of.is_some()) else {
                continue;
            };
            let row = Row { as_of: None, ..row.clone() };
            self.shelf.put_row(session, row)?;
        }
        self.forget_changes(id, &[])
    }

    /// Forgets folders that are in no tree any more, unless some tree is still growing and may come to them.
    pub(in crate::index) fn sweep(&mut self) -> Result<(), StorageError> {
        if !self.grove.orphans || self.grove.trees.values().any(|tree| tree.unsettled || tree.late) {
            return Ok(());
        }
        self.grove.orphans = false;
        let orphans = self.grove.folders.iter().filter(|(_, folder)| folder.trees.is_empty());
        let orphans: Vec<SourceId> = orphans.map(|(id, _)| *id).collect();
        orphans.into_iter().try_for_each(|id| self.forget_folder(id))
    }

    /// In this order, for the process may end in between: what has no name any more is swept again after the next start.
    fn forget_folder(&mut self, id: SourceId) -> Result<(), StorageError> {
        let Some(folder) = self.grove.folders.remove(&id) else { return Ok(()) };
        self.grove.pending -= usize::from(folder.stamp.is_some());
        self.grove.ordered -= usize::from(folder.ordered);
        if let Some(parent) = folder.parent.and_then(|parent| self.grove.folders.get_mut(&parent)) {
            parent.children.retain(|&child| child != id);
        }
        if self.known_folder(&folder.path)? == Some(id) {
            self.shelf.remove(Table::Keys, &pack::to_bytes(&folder_key(&folder.path)))?;
        }
        self.forget_entries(id)?;
        self.shelf.remove(Table::Sources, &source_key(id))?;
        self.grove.released.push(id);
        Ok(())
    }

    pub(super) fn known_folder(&self, path: &Path) -> Result<Option<SourceId>, StorageError> {
        self.shelf.get(Table::Keys, &pack::to_bytes(&folder_key(path)))
    }
}

fn folder_key(path: &Path) -> SourceKey {
    SourceKey { kind: KeyKind::Folder, path: path.to_owned() }
}

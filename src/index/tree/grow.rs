//! How trees get their folders and lose them: entering, leaving, growing again from the root.

use super::entry::{Entry, EntryKind, Root};
use super::order::Names;
use super::sieve::{Place, Rules, Sieve};
use super::sum::Print;
use super::{Folder, Tree, Waiting};
use crate::index::pack;
use crate::index::shelf::source_key;
use crate::index::storage::{SourceState, Storage, StorageError, Table};
use crate::index::{Index, KeyKind, SourceId, SourceKey, Stamp};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a tree stands in one of its folders: what decides which of the folder's names count.
#[derive(Debug, Clone)]
pub(super) struct Stand {
    tree: SourceId,
    sieve: Arc<Sieve>,
    folder: Arc<Path>,
    below: PathBuf,
    rules: Vec<Arc<Rules>>,
}

/// The same sieve is the same object, and the rules that count are the folder's.
impl PartialEq for Stand {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.sieve, &other.sieve) && self.folder == other.folder
    }
}

impl Eq for Stand {}

impl Stand {
    fn place(&self) -> Place<'_> {
        Place { folder: &self.folder, below: &self.below, rules: &self.rules }
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The same tree in a folder of this folder, of which nothing is known but its name.
    pub(super) fn below(&self, name: &OsStr) -> Self {
        Self {
            tree: self.tree,
            sieve: Arc::clone(&self.sieve),
            folder: self.folder.join(name).into(),
            below: self.below.join(name),
            rules: self.rules.clone(),
        }
    }

    /// The print of an entry, if it counts.
    pub(super) fn print(&self, name: &OsStr, entry: Option<&Entry>) -> Option<Print> {
        let entry = entry?;
        self.takes(name, entry.kind == EntryKind::Folder)
            .then(|| Print::of(&self.below.join(name), entry, self.sieve.contents))
    }

    /// Whether a name counts.
    pub(super) fn takes(&self, name: &OsStr, folder: bool) -> bool {
        self.sieve.takes(&self.place(), Path::new(name), folder)
    }

    /// Whether the bytes of files count.
    pub(super) fn counts_bytes(&self) -> bool {
        self.sieve.contents
    }

    /// Whether the tree would go on below a folder of this name.
    pub(super) fn goes_below(&self, name: &OsStr) -> bool {
        self.sieve.enters(&self.place(), Path::new(name))
    }

    /// Whether the tree goes on below an entry.
    pub(super) fn enters(&self, name: &OsStr, entry: Option<&Entry>) -> bool {
        entry.is_some_and(|entry| entry.kind == EntryKind::Folder) && self.goes_below(name)
    }
}

impl<S: Storage> Index<S> {
    /// A tree that somebody rests on, known so far up to `version`.
    pub(in crate::index) fn plant(&mut self, tree: SourceId, key: &SourceKey, version: u64) {
        let KeyKind::Tree(filter) = &key.kind else { return };
        let new = || Tree::new(Sieve::new(filter, &[]), version);
        self.grove.trees.entry(tree).or_insert_with(new);
    }

    /// A folder from before a restart. Some tree will enter it, or it is forgotten when all have grown.
    pub(in crate::index) fn find_folder(&mut self, id: SourceId, path: &Path) {
        self.grove.folders.insert(id, Folder::new(path));
        self.grove.orphans = true;
    }

    /// Which versions the readers of a tree speak of, after a restart, and whether one of them is critical.
    pub(in crate::index) fn speak_of(
        &mut self,
        id: SourceId,
        state: &SourceState,
        critical: bool,
    ) -> Result<(), StorageError> {
        if !self.grove.trees.contains_key(&id) {
            return Ok(());
        }
        let mut moments = Vec::new();
        for &(session, no) in &state.readers {
            moments.extend(self.shelf.row(session, no)?.and_then(|row| row.as_of));
        }
        moments.sort_unstable();
        moments.dedup();
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            tree.moments = moments;
            tree.prove = critical;
        }
        Ok(())
    }

    /// Nobody rests on a tree any more.
    pub(in crate::index) fn fell(&mut self, tree: SourceId) -> Result<(), StorageError> {
        if self.grove.trees.contains_key(&tree) {
            self.uproot(tree);
            self.grove.trees.remove(&tree);
            self.forget_changes(tree, &[])?;
            self.sweep()?;
        }
        Ok(())
    }

    /// The tree is rooted here now. It grows anew if that is not where it was, or if other rules count.
    pub(in crate::index) fn root(
        &mut self,
        id: SourceId,
        key: &SourceKey,
        root: &Root,
    ) -> Result<(), StorageError> {
        let KeyKind::Tree(filter) = &key.kind else { return Ok(()) };
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        if tree.root.as_ref() == Some(&root.folder) && tree.sieve.has_outer(&root.outer) {
            return Ok(());
        }
        tree.sieve = Sieve::new(filter, &root.outer).into();
        self.uproot(id);
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            tree.root = Some(root.folder.clone());
        }
        self.enter(id, None, &root.folder)
    }

    /// The rules in some folder changed: the tree grows anew where it is.
    pub(in crate::index) fn regrow(&mut self, id: SourceId) -> Result<(), StorageError> {
        let Some(folder) = self.grove.trees.get(&id).and_then(|tree| tree.root.clone()) else {
            return Ok(());
        };
        self.uproot(id);
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            tree.root = Some(folder.clone());
        }
        self.enter(id, None, &folder)
    }

    /// Takes a tree out of all its folders. They stay known until it is whole again, for it may enter them anew.
    pub(in crate::index) fn uproot(&mut self, id: SourceId) {
        for folder in self.grove.folders.values_mut() {
            folder.trees.retain(|&tree| tree != id);
            folder.waiting.retain(|waiting| waiting.tree != id);
            self.grove.orphans |= folder.trees.is_empty();
        }
        let Some(tree) = self.grove.trees.get_mut(&id) else { return };
        tree.root = None;
        (tree.sum, tree.linked, tree.waits) = Default::default();
        tree.doubts.clear();
    }

    /// A tree has this folder from now on, and waits for a look at it.
    pub(super) fn enter(
        &mut self,
        tree: SourceId,
        parent: Option<SourceId>,
        path: &Path,
    ) -> Result<(), StorageError> {
        let id = self.folder_at(path)?;
        let folder = self.grove.folders.entry(id).or_insert_with(|| Folder::new(path));
        folder.parent = parent.or(folder.parent);
        if folder.trees.contains(&tree) {
            return Ok(());
        }
        folder.trees.push(tree);
        if let Some(parent) = parent.and_then(|parent| self.grove.folders.get_mut(&parent))
            && !parent.children.contains(&id)
        {
            parent.children.push(id);
        }
        self.wait(tree, id, true)?;
        let stamp = self.next_stamp();
        let prove = self.grove.trees.get(&tree).is_some_and(|tree| tree.prove);
        self.grove.queue(id, Names::all(prove), stamp);
        Ok(())
    }

    fn folder_at(&mut self, path: &Path) -> Result<SourceId, StorageError> {
        let key = SourceKey { kind: KeyKind::Folder, path: path.to_owned() };
        let packed = pack::to_bytes(&key);
        if let Some(known) = self.shelf.get(Table::Keys, &packed)? {
            return Ok(known);
        }
        let id = self.new_source()?;
        let state = SourceState { key, found: None, readers: Vec::new(), wanted: Vec::new(), version: 0 };
        self.shelf.put(Table::Keys, &packed, &id)?;
        self.shelf.put(Table::Sources, &source_key(id), &state)?;
        Ok(id)
    }

    pub(in crate::index) fn next_stamp(&mut self) -> Stamp {
        self.stamp += 1;
        Stamp(self.stamp)
    }

    /// A tree waits for the next look at a folder.
    pub(super) fn wait(&mut self, id: SourceId, folder: SourceId, new: bool) -> Result<(), StorageError> {
        let Some(held) = self.grove.folders.get_mut(&folder) else { return Ok(()) };
        if held.waiting.iter().any(|waiting| waiting.tree == id) {
            return Ok(());
        }
        held.waiting.push(Waiting { tree: id, new });
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        tree.waits += 1;
        if !self.grove.unsettle(id) {
            return Ok(());
        }
        if let Some(state) = self.shelf.get::<SourceState>(Table::Sources, &source_key(id))? {
            for (session, _) in state.readers {
                *self.suspects.entry(session).or_insert(0) += 1;
            }
        }
        Ok(())
    }

    /// A tree leaves a folder that is no longer below it, and everything below that.
    pub(super) fn leave_folder(&mut self, id: SourceId, folder: SourceId) -> Result<(), StorageError> {
        let Some(held) = self.grove.folders.get_mut(&folder) else { return Ok(()) };
        if !held.trees.contains(&id) {
            return Ok(());
        }
        let (counted, children, doubt) = (held.counts_in(id), held.children.clone(), held.doubt);
        if let (true, Some(stand)) = (counted, self.stand(id, folder)) {
            for (name, entry) in self.entries(folder)? {
                self.count_entry(&stand, &name, (Some(&entry), None))?;
            }
            self.grove.doubt(id, doubt, false);
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

    /// One entry of a folder changed for a tree: its print goes in and out of the sum, and its past is remembered.
    pub(super) fn count_entry(
        &mut self,
        stand: &Stand,
        name: &OsStr,
        (old, new): (Option<&Entry>, Option<&Entry>),
    ) -> Result<(), StorageError> {
        let (old_print, new_print) = (stand.print(name, old), stand.print(name, new));
        if let Some(tree) = self.grove.trees.get_mut(&stand.tree) {
            tree.count(old.zip(old_print), false);
            tree.count(new.zip(new_print), true);
        }
        self.note_change(stand, name, (old_print, new_print))
    }

    pub(super) fn note_change(
        &mut self,
        stand: &Stand,
        name: &OsStr,
        prints: (Option<Print>, Option<Print>),
    ) -> Result<(), StorageError> {
        if prints.0 == prints.1 { Ok(()) } else { self.remember(stand.tree, &stand.below.join(name), prints) }
    }

    /// How a tree stands in one of its folders.
    pub(super) fn stand(&self, id: SourceId, folder: SourceId) -> Option<Stand> {
        let (tree, held) = (self.grove.trees.get(&id)?, self.grove.folders.get(&folder)?);
        let below = held.path.strip_prefix(tree.root.as_ref()?).ok()?.to_owned();
        let rules = self.grove.rules(tree, folder);
        Some(Stand { tree: id, sieve: Arc::clone(&tree.sieve), folder: Arc::clone(&held.path), below, rules })
    }

    /// Forgets folders that are in no tree any more, unless some tree is still growing and may come to them.
    pub(in crate::index) fn sweep(&mut self) -> Result<(), StorageError> {
        if !self.grove.orphans || self.grove.trees.values().any(|tree| tree.unsettled) {
            return Ok(());
        }
        self.grove.orphans = false;
        let orphans = self.grove.folders.iter().filter(|(_, folder)| folder.trees.is_empty());
        let orphans: Vec<SourceId> = orphans.map(|(id, _)| *id).collect();
        for id in orphans {
            let Some(folder) = self.grove.folders.remove(&id) else { continue };
            self.grove.pending -= usize::from(folder.stamp.is_some());
            self.grove.ordered -= usize::from(folder.ordered);
            if let Some(parent) = folder.parent.and_then(|parent| self.grove.folders.get_mut(&parent)) {
                parent.children.retain(|&child| child != id);
            }
            let key = SourceKey { kind: KeyKind::Folder, path: folder.path.to_path_buf() };
            self.shelf.remove(Table::Keys, &pack::to_bytes(&key))?;
            self.shelf.remove(Table::Sources, &source_key(id))?;
            self.forget_entries(id)?;
            self.grove.released.push(id);
        }
        Ok(())
    }
}

//! How trees get their folders and lose them: entering, leaving, growing again from the root.

use super::entry::{Entry, EntryKind, Root};
use super::order::Names;
use super::sieve::{Place, Rules, Sieve};
use super::sum::Print;
use super::{Folder, New, Tree, Waiting};
use crate::index::found::Found;
use crate::index::pack;
use crate::index::row::{RowNo, SessionNo};
use crate::index::shelf::source_key;
use crate::index::storage::{SourceState, Storage, StorageError, Table};
use crate::index::{Index, KeyKind, SourceId, SourceKey, Stamp};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a tree stands in one of its folders: what decides which of the folder's names count.
#[derive(Debug, Clone)]
pub(super) struct Stand {
    pub(super) tree: SourceId,
    pub(super) sieve: Arc<Sieve>,
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

    /// A tree at its root, of which nothing is known but where it is.
    pub(super) fn at_root(tree: SourceId, sieve: &Arc<Sieve>, folder: &Path) -> Self {
        let (sieve, folder) = (Arc::clone(sieve), folder.into());
        Self { tree, sieve, folder, below: PathBuf::new(), rules: Vec::new() }
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
    /// A tree that somebody rests on, and what is known of it.
    pub(in crate::index) fn plant(&mut self, tree: SourceId, state: &SourceState) {
        let KeyKind::Tree(filter) = &state.key.kind else { return };
        let new = || Tree::new(Sieve::new(filter, &[]), state.version, state.rooted.clone());
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
        match &state.found {
            // It was adrift when the process ended.
            Some(Found::Tree(_) | Found::Unknown(_)) if state.rooted.is_none() => {
                self.lose_track(id)?;
                self.shelf.flush()
            }
            _ => Ok(()),
        }
    }

    /// A reader of a tree left or starts over: what only it spoke of is forgotten.
    pub(in crate::index) fn renew_moments(
        &mut self,
        id: SourceId,
        readers: &[(SessionNo, RowNo)],
    ) -> Result<(), StorageError> {
        if self.grove.trees.get(&id).is_none_or(|tree| tree.moments.is_empty()) {
            return Ok(());
        }
        let mut moments = Vec::new();
        for &(session, no) in readers {
            moments.extend(self.shelf.held_row(session, no)?.and_then(|row| row.as_of));
        }
        moments.sort_unstable();
        moments.dedup();
        let Some(tree) = self.grove.trees.get_mut(&id) else { return Ok(()) };
        if std::mem::replace(&mut tree.moments, moments.clone()) == moments {
            return Ok(());
        }
        self.forget_changes(id, &moments)
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
        let other_rules = !tree.sieve.has_outer(&root.outer);
        if tree.root.as_ref() == Some(&root.folder) && !other_rules {
            return Ok(());
        }
        let sieve: Arc<Sieve> = Sieve::new(filter, &root.outer).into();
        let mut how = New::Appeared;
        match tree.past.take() {
            Some(past) if past.outer != sieve.outer_digest => self.lose_track(id)?,
            Some(past) if past.folder == root.folder => how = New::Known,
            Some(past) => self.note_vanished(&Stand::at_root(id, &sieve, &past.folder))?,
            None if tree.root.is_some() && other_rules => self.lose_track(id)?,
            None => self.leave_root(id)?,
        }
        self.uproot(id);
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            (tree.root, tree.sieve) = (Some(root.folder.clone()), sieve);
        }
        self.enter(id, None, &root.folder, how)
    }

    /// The rules in some folder changed: the tree grows anew where it is.
    pub(in crate::index) fn regrow(&mut self, id: SourceId) -> Result<(), StorageError> {
        let Some(folder) = self.grove.trees.get(&id).and_then(|tree| tree.root.clone()) else {
            return Ok(());
        };
        self.lose_track(id)?;
        self.uproot(id);
        if let Some(tree) = self.grove.trees.get_mut(&id) {
            tree.root = Some(folder.clone());
        }
        self.enter(id, None, &folder, New::Appeared)
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
        how: New,
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
        if how == New::Appeared {
            self.set_adrift(tree)?;
        }
        self.wait(tree, id, Some(how))?;
        let stamp = self.next_stamp();
        let prove = self.grove.trees.get(&tree).is_some_and(|tree| tree.prove);
        let unheard = self.grove.folders.get_mut(&id).is_some_and(|held| std::mem::take(&mut held.unheard));
        self.grove.queue(id, Names::all(prove || unheard), stamp);
        Ok(())
    }

    fn folder_at(&mut self, path: &Path) -> Result<SourceId, StorageError> {
        let key = SourceKey { kind: KeyKind::Folder, path: path.to_owned() };
        let packed = pack::to_bytes(&key);
        if let Some(known) = self.shelf.get(Table::Keys, &packed)? {
            return Ok(known);
        }
        let id = self.new_source()?;
        let state = SourceState {
            key,
            found: None,
            readers: Vec::new(),
            wanted: Vec::new(),
            version: 0,
            rooted: None,
        };
        // In this order, for the process may end in between: one without a name is in no tree, and goes with the orphans.
        self.shelf.put(Table::Sources, &source_key(id), &state)?;
        self.shelf.put(Table::Keys, &packed, &id)?;
        Ok(id)
    }

    pub(in crate::index) fn next_stamp(&mut self) -> Stamp {
        self.stamp += 1;
        Stamp(self.stamp)
    }

    /// A tree waits for the next look at a folder.
    pub(super) fn wait(
        &mut self,
        id: SourceId,
        folder: SourceId,
        new: Option<New>,
    ) -> Result<(), StorageError> {
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
}

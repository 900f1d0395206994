//! Applying a look at a folder: entries are kept, trees count what changed, folders are entered and left.

use super::Waiting;
use super::entry::{Entry, EntryKind, Listing};
use super::grow::Stand;
use super::order::Names;
use super::sieve::Rules;
use crate::index::found::{Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::pack;
use crate::index::storage::{Storage, StorageError, Table};
use crate::index::{Index, KeyKind, Looked, Outcome, SourceId, SourceKey};
use crate::session::moment::Moment;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// An entry that changed: its name, what stood there, what stands there.
type Change = (OsString, Option<Entry>, Option<Entry>);

impl<S: Storage> Index<S> {
    /// Something happened in these folders: every tree that has one waits for another look at it.
    pub fn stir(&mut self, stirred: impl IntoIterator<Item = (SourceId, Names)>) -> Result<(), StorageError> {
        self.clock.tick += 1;
        for (folder, names) in stirred {
            self.stir_folder(folder, names)?;
        }
        Ok(())
    }

    pub(in crate::index) fn stir_folder(&mut self, id: SourceId, names: Names) -> Result<(), StorageError> {
        let Some(folder) = self.grove.folders.get(&id) else { return Ok(()) };
        if folder.trees.is_empty() {
            return Ok(());
        }
        let trees = folder.trees.clone();
        let Some(names) = self.of_concern(id, names) else { return Ok(()) };
        let stamp = self.next_stamp();
        self.grove.queue(id, names, stamp);
        trees.into_iter().try_for_each(|tree| self.wait(tree, id, false))
    }

    /// Those of the names that some tree cares for. The rules of a `.gitignore` count whoever counts the file.
    fn of_concern(&self, id: SourceId, mut names: Names) -> Option<Names> {
        if !names.these.is_empty() {
            let views = self.views(id);
            names.these.retain(|name| name == ".gitignore" || views.care_for(name));
        }
        (names.all || !names.these.is_empty()).then_some(names)
    }

    /// Looks again at the folders of a tree that leave it in doubt.
    pub(in crate::index) fn stir_doubtful(&mut self, tree: SourceId) -> Result<(), StorageError> {
        let doubtful = self.grove.folders.iter().filter(|(_, folder)| {
            folder.trees.contains(&tree) && (folder.doubt.is_some() || folder.doubtful)
        });
        let doubtful: Vec<SourceId> = doubtful.map(|(id, _)| *id).collect();
        doubtful.into_iter().try_for_each(|id| self.stir_folder(id, Names::all(false)))
    }

    /// Applies a look at a folder. Returns false when a later touch has overtaken it.
    pub(in crate::index) fn listed(
        &mut self,
        id: SourceId,
        looked: Looked,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        let (listing, doubt) = match looked {
            Looked::Listing(listing) => (Some(listing), None),
            Looked::Found(Found::Unknown(doubt)) => (None, Some(doubt)),
            // Gone, or no folder any more: nothing is in it.
            Looked::Found(_) | Looked::Root(_) | Looked::Head(_) => (Some(nothing(self.entries(id)?)), None),
        };
        let Some(folder) = self.grove.folders.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut folder.doubt, doubt);
        let waiting = std::mem::take(&mut folder.waiting);
        let trees = folder.trees.clone();
        let other_rules = listing.as_ref().is_some_and(|listing| self.take_rules(id, listing));
        // A tree that is new here counts all that is there; nobody else needs more than what changed.
        let anyone_new = waiting.iter().any(|waiting| waiting.new);
        let (changes, now) = match listing {
            Some(listing) => {
                let whole = listing.whole;
                let now = (anyone_new && whole).then(|| present(&listing));
                (self.keep(id, listing)?, now)
            }
            None => (Vec::new(), None),
        };
        let now = match now {
            Some(now) => now,
            None if anyone_new => self.entries(id)?,
            None => BTreeMap::new(),
        };
        self.keep_for_latecomers(id, &trees, &changes);
        let mut regrown = Vec::new();
        for tree in trees {
            let new = waiting.contains(&Waiting { tree, new: true });
            let uses_rules = self.grove.trees.get(&tree).is_some_and(|tree| tree.sieve.uses_rules());
            if other_rules && uses_rules && !new {
                regrown.push(tree);
                continue;
            }
            if !new {
                self.grove.doubt(tree, before, false);
            }
            self.grove.doubt(tree, doubt, true);
            self.count_changes(tree, id, &changes, new.then_some(&now))?;
        }
        self.stir_replaced(id, &changes)?;
        self.answered(id, waiting, at, outcome)?;
        regrown.into_iter().try_for_each(|tree| self.regrow(tree))
    }

    /// Trees grow side by side, and each learns of a folder's changes when it comes to the folder; but the first look has
    /// taken them in by then.
    fn keep_for_latecomers(&mut self, id: SourceId, trees: &[SourceId], changes: &[Change]) {
        let late = |(tree, held): (&SourceId, &super::Tree)| {
            held.unsettled && !held.moments.is_empty() && !trees.contains(tree)
        };
        if !changes.is_empty() && self.grove.trees.iter().any(late) {
            let early = self.grove.early.entry(id).or_default();
            for (name, old, _) in changes {
                early.entry(name.clone()).or_insert_with(|| old.clone());
            }
        }
    }

    /// The folder was looked at; trees that waited for nothing else are whole.
    fn answered(
        &mut self,
        id: SourceId,
        waiting: Vec<Waiting>,
        at: Moment,
        outcome: &mut Outcome,
    ) -> Result<(), StorageError> {
        if let Some(folder) = self.grove.folders.get_mut(&id) {
            folder.stamp = None;
            folder.names = Names::none();
            self.grove.pending -= 1;
            self.grove.ordered -= usize::from(std::mem::take(&mut folder.ordered));
        }
        for Waiting { tree: id, .. } in waiting {
            let Some(tree) = self.grove.trees.get_mut(&id) else { continue };
            tree.waits -= 1;
            if tree.waits == 0 && !self.pending.contains_key(&id) {
                self.finish(id, at, outcome)?;
            }
        }
        Ok(())
    }

    /// Keeps what the look found, entry by entry. Returns what changed.
    fn keep(&mut self, id: SourceId, listing: Listing) -> Result<Vec<Change>, StorageError> {
        let mut old = listing.known;
        let whole =
            listing.whole.then(|| listing.entries.iter().filter(|(_, entry)| entry.is_some()).count());
        let mut changes = Vec::new();
        let mut doubtful =
            !listing.whole && self.grove.folders.get(&id).is_some_and(|folder| folder.doubtful);
        for (name, new) in listing.entries {
            let old = old.remove(&name);
            doubtful |= new.as_ref().is_some_and(|entry| entry.doubt.is_some());
            if old != new {
                changes.push((name, old, new));
            }
        }
        if listing.whole {
            changes.extend(old.into_iter().map(|(name, old)| (name, Some(old), None)));
        }
        self.keep_entries(id, &changes, whole)?;
        if let Some(folder) = self.grove.folders.get_mut(&id) {
            folder.inode = Some(listing.inode);
            folder.doubtful = doubtful;
        }
        Ok(changes)
    }

    /// Takes the folder's own rules. Whether they are others than before.
    fn take_rules(&mut self, id: SourceId, listing: &Listing) -> bool {
        let (Some(text), Some(folder)) = (&listing.gitignore, self.grove.folders.get_mut(&id)) else {
            return false;
        };
        let held = folder.rules.as_ref().map_or("", |rules| rules.text());
        if held == text {
            return false;
        }
        let rules = (!text.is_empty()).then(|| Arc::new(Rules::new(&folder.path, text.clone())));
        folder.rules = rules;
        true
    }

    /// A tree counts what changed in a folder, or all that is there when the folder is new to it, and enters and leaves
    /// the folders in it.
    fn count_changes(
        &mut self,
        tree: SourceId,
        id: SourceId,
        changes: &[Change],
        new: Option<&BTreeMap<OsString, Entry>>,
    ) -> Result<(), StorageError> {
        let Some(stand) = self.stand(tree, id) else { return Ok(()) };
        if let Some(entries) = new {
            let mut then: BTreeMap<OsString, Option<Entry>> =
                changes.iter().map(|(name, old, _)| (name.clone(), old.clone())).collect();
            then.extend(self.grove.early.get(&id).cloned().unwrap_or_default());
            for (name, old) in then {
                let (old, entry) = (old.as_ref(), entries.get(&name));
                self.note_change(&stand, &name, (stand.print(&name, old), stand.print(&name, entry)))?;
                if stand.enters(&name, old) && !stand.enters(&name, entry) {
                    self.note_vanished(&stand.below(&name))?;
                }
            }
            for (name, entry) in entries {
                let print = stand.print(name, Some(entry));
                if let Some(tree) = self.grove.trees.get_mut(&tree) {
                    tree.count(print.map(|print| (entry, print)), true);
                }
                self.step_below(&stand, tree, id, (name, None, Some(entry)))?;
            }
            return Ok(());
        }
        for change in changes {
            let (name, old, entry) = (&change.0, change.1.as_ref(), change.2.as_ref());
            self.count_entry(&stand, name, (old, entry))?;
            self.step_below(&stand, tree, id, (name, old, entry))?;
        }
        Ok(())
    }

    /// A folder went while nobody watched: what is stored of it says what was there.
    fn note_vanished(&mut self, stand: &Stand) -> Result<(), StorageError> {
        let Some(id) = self.known_folder(stand.folder())? else { return Ok(()) };
        for (name, entry) in self.entries(id)? {
            self.note_change(stand, &name, (stand.print(&name, Some(&entry)), None))?;
            if stand.enters(&name, Some(&entry)) {
                self.note_vanished(&stand.below(&name))?;
            }
        }
        Ok(())
    }

    fn step_below(
        &mut self,
        stand: &Stand,
        tree: SourceId,
        id: SourceId,
        (name, old, entry): (&OsString, Option<&Entry>, Option<&Entry>),
    ) -> Result<(), StorageError> {
        let (was, is) = (stand.enters(name, old), stand.enters(name, entry));
        let Some(folder) = self.grove.folders.get(&id) else { return Ok(()) };
        let path = folder.path.join(name);
        match (was, is) {
            (_, true) => self.enter(tree, Some(id), &path),
            (true, false) => match self.known_folder(&path)? {
                Some(child) => self.leave_folder(tree, child),
                None => Ok(()),
            },
            (false, false) => Ok(()),
        }
    }

    /// Another folder stands where one stood: whatever was in the old one says nothing of the new.
    fn stir_replaced(&mut self, id: SourceId, changes: &[Change]) -> Result<(), StorageError> {
        for (name, old, new) in changes {
            let (Some(old), Some(new)) = (old, new) else { continue };
            if new.kind != EntryKind::Folder || old.inode == new.inode {
                continue;
            }
            let path = self.grove.folders.get(&id).map(|folder| folder.path.join(name));
            if let Some(path) = path
                && let Some(child) = self.known_folder(&path)?
            {
                self.stir_folder(child, Names::all(false))?;
            }
        }
        Ok(())
    }

    fn known_folder(&self, path: &Path) -> Result<Option<SourceId>, StorageError> {
        let key = SourceKey { kind: KeyKind::Folder, path: path.to_owned() };
        self.shelf.get(Table::Keys, &pack::to_bytes(&key))
    }
}

fn present(listing: &Listing) -> BTreeMap<OsString, Entry> {
    let there = listing.entries.iter().filter_map(|(name, entry)| Some((name.clone(), entry.clone()?)));
    there.collect()
}

fn nothing(known: BTreeMap<OsString, Entry>) -> Listing {
    let inode = Inode { dev: 0, ino: 0 };
    Listing { inode, entries: Vec::new(), known, whole: true, gitignore: Some(String::new()) }
}

/// What leaves a tree in doubt first.
pub(super) fn first_doubt(doubts: &BTreeMap<Doubt, u64>) -> Option<Doubt> {
    doubts.keys().next().copied()
}

//! Applying a look at a folder: entries are kept, trees count what changed, folders are entered and left.

use super::entry::{Entry, EntryKind, Listing};
use super::grow::Stand;
use super::order::Names;
use super::sieve::Rules;
use super::{New, Waiting};
use crate::index::found::{Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::storage::{Storage, StorageError};
use crate::index::{Index, Looked, Outcome, SourceId};
use crate::session::moment::Moment;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// An entry that changed: its name, what stood there, what stands there.
type Change = (OsString, Option<Entry>, Option<Entry>);

/// What other rules of a folder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// They only leave out more than before.
    LeavesOut,
    /// They may let in what was left out before, by those from above or by the old ones.
    LetsIn,
}

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
        let Some(folder) = self.grove.folders.get_mut(&id) else { return Ok(()) };
        if folder.trees.is_empty() && folder.stamp.is_none() {
            // Nobody waits for it, but some tree may come back to it.
            folder.names.merge(names);
            return Ok(());
        }
        let trees = folder.trees.clone();
        let Some(names) = self.of_concern(id, names) else { return Ok(()) };
        let stamp = self.next_stamp();
        self.grove.queue(id, names, stamp);
        trees.into_iter().try_for_each(|tree| self.wait(tree, id, None))
    }

    /// Those of the names that some tree cares for. The rules of a `.gitignore` count whoever counts the file.
    fn of_concern(&mut self, id: SourceId, mut names: Names) -> Option<Names> {
        let views = self.views(id);
        let folder = self.grove.folders.get_mut(&id)?;
        if !names.these.is_empty() && !folder.trees.is_empty() {
            let told = names.these.len();
            names.these.retain(|name| name == ".gitignore" || views.care_for(name));
            folder.unheard |= names.these.len() < told;
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

    /// Applies a look at a folder.
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
        let other_rules = listing.as_ref().and_then(|listing| self.take_rules(id, listing));
        let Some(folder) = self.grove.folders.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut folder.doubt, doubt);
        let trees = folder.trees.clone();
        // A tree that is new here counts all that is there; nobody else needs more than what changed.
        let anyone_new = folder.waiting.iter().any(|waiting| waiting.new.is_some());
        let ((changes, whole), now) = match listing {
            Some(listing) => {
                let now = if anyone_new { present(&listing) } else { BTreeMap::new() };
                (self.compare(id, listing), now)
            }
            None if anyone_new => ((Vec::new(), None), self.entries(id)?),
            None => ((Vec::new(), None), BTreeMap::new()),
        };
        self.keep_for_latecomers(id, &trees, &changes)?;
        let mut regrown = Vec::new();
        for &tree in &trees {
            let new = self.grove.folders.get(&id).and_then(|folder| folder.new_to(tree));
            let uses_rules = self.grove.trees.get(&tree).is_some_and(|tree| tree.sieve.uses_rules());
            match new {
                None if other_rules.is_some() && uses_rules => regrown.push(tree),
                None => {
                    self.grove.doubt(tree, before, false);
                    self.grove.doubt(tree, doubt, true);
                    self.count_changes(tree, id, &changes)?;
                }
                Some(new) => {
                    self.grove.doubt(tree, doubt, true);
                    self.count_all(tree, id, new, &changes, &now)?;
                }
            }
        }
        self.keep_entries(id, &changes, whole)?;
        self.stir_replaced(id, &changes)?;
        self.land(id);
        if other_rules == Some(Rule::LetsIn) && anyone_new {
            // Which names and which bytes count was decided before these rules were read.
            self.stir_folder(id, Names::all(false))?;
        }
        // Before any tree is judged: one that is to grow anew is not whole, whatever it waited for.
        regrown.into_iter().try_for_each(|tree| self.regrow(tree))?;
        trees.into_iter().try_for_each(|tree| self.finish_if_whole(tree, at, outcome))
    }

    /// Trees grow side by side, and each learns of a folder's changes when it comes to the folder; but the first look has
    /// taken them in by then.
    fn keep_for_latecomers(
        &mut self,
        id: SourceId,
        trees: &[SourceId],
        changes: &[Change],
    ) -> Result<(), StorageError> {
        let late = |(tree, held): &(&SourceId, &super::Tree)| {
            held.late && !held.moments.is_empty() && !trees.contains(tree)
        };
        let late = self.grove.trees.iter().filter(|tree| !changes.is_empty() && late(tree));
        let late: Vec<SourceId> = late.map(|(tree, _)| *tree).collect();
        if !late.is_empty() {
            let early = self.grove.early.entry(id).or_default();
            for (name, old, _) in changes {
                early.entry(name.clone()).or_insert_with(|| old.clone());
            }
        }
        late.into_iter().try_for_each(|tree| self.set_adrift(tree))
    }

    /// The folder was looked at, and nobody waits for that any more. Names that could not be looked at are looked at next.
    fn land(&mut self, id: SourceId) {
        let Some(folder) = self.grove.folders.get_mut(&id) else { return };
        folder.stamp = None;
        if folder.doubt.is_none() {
            folder.names = Names::none();
        }
        self.grove.pending -= 1;
        self.grove.ordered -= usize::from(std::mem::take(&mut folder.ordered));
        for Waiting { tree, .. } in std::mem::take(&mut folder.waiting) {
            if let Some(tree) = self.grove.trees.get_mut(&tree) {
                tree.waits -= 1;
            }
        }
    }

    /// What changed, entry by entry, and how many there are if all were looked at.
    fn compare(&mut self, id: SourceId, listing: Listing) -> (Vec<Change>, Option<usize>) {
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
        if let Some(folder) = self.grove.folders.get_mut(&id) {
            folder.inode = Some(listing.inode);
            folder.doubtful = doubtful;
        }
        (changes, whole)
    }

    /// Takes the folder's own rules, if they are others than before.
    fn take_rules(&mut self, id: SourceId, listing: &Listing) -> Option<Rule> {
        let folder = self.grove.folders.get_mut(&id)?;
        let text = listing.gitignore.as_ref()?;
        let held = folder.rules.as_ref().map_or("", |rules| rules.text());
        if held == text {
            return None;
        }
        let rules = (!text.is_empty()).then(|| Arc::new(Rules::new(&folder.path, text.clone())));
        let lets_in = !held.is_empty() || rules.as_ref().is_some_and(|rules| rules.lets_in());
        folder.rules = rules;
        Some(if lets_in { Rule::LetsIn } else { Rule::LeavesOut })
    }

    /// A tree counts what changed in a folder, and enters and leaves the folders in it.
    fn count_changes(
        &mut self,
        tree: SourceId,
        id: SourceId,
        changes: &[Change],
    ) -> Result<(), StorageError> {
        let Some(stand) = self.stand(tree, id) else { return Ok(()) };
        for change in changes {
            let (name, old, entry) = (&change.0, change.1.as_ref(), change.2.as_ref());
            self.count_entry(&stand, name, (old, entry))?;
            self.step_below(&stand, id, (name, old, entry))?;
        }
        Ok(())
    }

    /// A tree counts all that is in a folder, and enters the folders in it. `changes` are what changed since the folder
    /// was last looked at, `now` is all that is there.
    fn count_all(
        &mut self,
        tree: SourceId,
        id: SourceId,
        new: New,
        changes: &[Change],
        now: &BTreeMap<OsString, Entry>,
    ) -> Result<(), StorageError> {
        let Some(stand) = self.stand(tree, id) else { return Ok(()) };
        let then = match new {
            New::Known => self.changes_for(&stand, id, changes, now)?,
            New::Appeared => now.keys().map(|name| (name.clone(), None)).collect(),
        };
        for (name, old) in &then {
            let (old, entry) = (old.as_ref(), now.get(name));
            self.note_change(&stand, name, (stand.print(name, old), stand.print(name, entry)))?;
            if stand.enters(name, old) && !stand.enters(name, entry) {
                self.note_vanished(&stand.below(name))?;
            }
        }
        for (name, entry) in now {
            let print = stand.print(name, Some(entry));
            if let Some(tree) = self.grove.trees.get_mut(&tree) {
                tree.count(print.map(|print| (entry, print)), true);
            }
            let old = then.get(name).map_or(Some(entry), Option::as_ref);
            self.step_below(&stand, id, (name, old, Some(entry)))?;
        }
        Ok(())
    }

    /// What stood under the names that changed since the tree was last whole.
    fn changes_for(
        &mut self,
        stand: &Stand,
        id: SourceId,
        changes: &[Change],
        now: &BTreeMap<OsString, Entry>,
    ) -> Result<BTreeMap<OsString, Option<Entry>>, StorageError> {
        let mut then: BTreeMap<OsString, Option<Entry>> =
            changes.iter().map(|(name, old, _)| (name.clone(), old.clone())).collect();
        then.extend(self.grove.early.get(&id).cloned().unwrap_or_default());
        let rules = OsStr::new(".gitignore");
        let now = now.get(rules).and_then(Entry::rules);
        if stand.sieve.uses_rules()
            && then.get(rules).is_some_and(|old| old.as_ref().and_then(Entry::rules) != now)
        {
            self.lose_track(stand.tree)?;
        }
        Ok(then)
    }

    fn step_below(
        &mut self,
        stand: &Stand,
        id: SourceId,
        (name, old, entry): (&OsString, Option<&Entry>, Option<&Entry>),
    ) -> Result<(), StorageError> {
        let (was, is) = (stand.enters(name, old), stand.enters(name, entry));
        let path = stand.folder().join(name);
        match (was, is) {
            (true, true) => self.enter(stand.tree, Some(id), &path, New::Known),
            (false, true) => self.enter(stand.tree, Some(id), &path, New::Appeared),
            (true, false) => match self.known_folder(&path)? {
                Some(child) => self.leave_folder(stand.tree, child),
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

//! Trees: what is below a folder, however much that is, judged as exactly as one file.
//!
//! A tree is made of folders, and each folder is a source of its own: touched, checked under a stamp, settled. What its
//! entries add to a tree's digest is added and taken one by one, so a change costs what changed. Which folders a tree has
//! is kept in memory and grown again from its root after every start, for everything is suspect then anyway; what is known
//! of each entry is in the storage, so that a stat can confirm it.
//!
//! The order that truth rests on: a folder is armed before it is listed; a tree waits for every folder that is suspect,
//! and for those that it has just entered; only a tree that waits for nothing has a digest, and only then are its
//! readers judged.

mod changes;
mod entry;
mod finish;
mod grow;
mod leave;
mod listed;
mod order;
mod pages;
pub mod sieve;
mod sum;

pub use entry::{Entry, EntryKind, Listing, Root, Rooted};
pub use order::{Names, Order, Views};
pub use sum::Print;

pub(super) use changes::Past;
use changes::Since;

use super::found::{Found, Inode};
use super::freshness::Doubt;
use super::view::Coverage;
use super::{SourceId, Stamp};
use sieve::{Rules, Sieve};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sum::Sum;

/// Every tree, and every folder that some tree is made of.
#[derive(Default)]
pub(super) struct Grove {
    pub(super) trees: HashMap<SourceId, Tree>,
    pub(super) folders: HashMap<SourceId, Folder>,
    /// Folders that are to be looked at, those first that somebody waits for.
    urgent: VecDeque<SourceId>,
    later: VecDeque<SourceId>,
    /// How many folders are suspect, and how many of them are being looked at.
    pending: usize,
    ordered: usize,
    /// Some folder may be in no tree any more.
    orphans: bool,
    /// Folders that are gone, for whoever ends their watches.
    released: Vec<SourceId>,
    /// What stood under names whose change was found while some tree that speaks of earlier versions had yet to come to
    /// their folder.
    early: HashMap<SourceId, BTreeMap<OsString, Option<Entry>>>,
    /// What changed in the tree that is being finished, since each version that a stale reader speaks of.
    since: BTreeMap<u64, Since>,
}

/// One tree.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and they come in all combinations"
)]
pub(super) struct Tree {
    sieve: Arc<Sieve>,
    /// Canonical path of the folder it is rooted in, once that is known.
    root: Option<PathBuf>,
    sum: Sum,
    /// Entries whose bytes cannot be told, by why.
    doubts: BTreeMap<Doubt, u64>,
    /// Members that are watched by their own inode.
    linked: u64,
    /// What stands at its path instead of a folder.
    instead: Option<Found>,
    /// Where it was rooted before a restart, until it is told where it is now.
    past: Option<Rooted>,
    /// It was whole before a restart, and has yet to come to all folders that it had.
    late: bool,
    /// What is stored of some folder that it has yet to come to is not what it had there.
    adrift: bool,
    /// Something was counted in or out since its readers were judged.
    changed: bool,
    /// Folders that it waits for.
    waits: u32,
    /// It waits for folders, or for a look at its own path; its readers are counted as suspects.
    unsettled: bool,
    /// Until it is whole no stat may stand in for bytes: somebody critical rests on it, and nobody watched.
    pub(super) prove: bool,
    /// Counts the states that it was in as a whole.
    pub(super) version: u64,
    /// Versions at which readers were right, sorted.
    pub(super) moments: Vec<u64>,
}

/// One folder of at least one tree.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and they come in all combinations"
)]
pub(super) struct Folder {
    path: Arc<Path>,
    /// The folder it is in, where some tree has that too.
    parent: Option<SourceId>,
    trees: Vec<SourceId>,
    /// Trees that wait for the next look at it.
    waiting: Vec<Waiting>,
    children: Vec<SourceId>,
    /// What its own `.gitignore` says.
    rules: Option<Arc<Rules>>,
    inode: Option<Inode>,
    /// The touch that no look has answered yet.
    stamp: Option<Stamp>,
    names: Names,
    queued: bool,
    /// It stands among the urgent ones.
    hurried: bool,
    ordered: bool,
    /// Why it cannot be told what is in it.
    doubt: Option<Doubt>,
    /// Some entry's bytes cannot be told.
    doubtful: bool,
    /// Something happened under names that no tree cared for: whoever comes and does may not trust a stat there.
    unheard: bool,
    /// How its entries are laid out, once that is known.
    bits: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    tree: SourceId,
    /// It has not taken in anything of the folder yet.
    new: Option<New>,
}

/// How a tree comes to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum New {
    /// Nothing that is in it was in the tree before.
    Appeared,
    /// It was in the tree when the process ended; what is stored of it says what was there.
    Known,
}

impl Tree {
    pub(super) fn new(sieve: Sieve, version: u64, past: Option<Rooted>) -> Self {
        Self {
            sieve: Arc::new(sieve),
            root: None,
            sum: Sum::default(),
            doubts: BTreeMap::new(),
            linked: 0,
            instead: None,
            late: past.is_some(),
            past,
            adrift: false,
            changed: false,
            waits: 0,
            unsettled: false,
            prove: false,
            version,
            moments: Vec::new(),
        }
    }

    /// Where it is rooted, as far as that is known.
    fn rooted(&self) -> Option<Rooted> {
        let here = || Some(Rooted { folder: self.root.clone()?, outer: self.sieve.outer_digest });
        if self.adrift { None } else { self.past.clone().or_else(here) }
    }

    /// Counts a member in or out.
    fn count(&mut self, member: Option<(&Entry, Print)>, present: bool) {
        let Some((entry, print)) = member else { return };
        self.changed = true;
        if present {
            self.sum.add(print);
        } else {
            self.sum.take(print);
        }
        let linked = u64::from(entry.linked);
        self.linked = if present { self.linked + linked } else { self.linked.saturating_sub(linked) };
        if let (true, Some(doubt)) = (self.sieve.contents, entry.doubt) {
            self.note_doubt(doubt, present);
        }
    }

    fn note_doubt(&mut self, doubt: Doubt, present: bool) {
        self.changed = true;
        let count = self.doubts.entry(doubt).or_insert(0);
        *count = if present { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.doubts.remove(&doubt);
        }
    }
}

impl Folder {
    fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            parent: None,
            trees: Vec::new(),
            waiting: Vec::new(),
            children: Vec::new(),
            rules: None,
            inode: None,
            stamp: None,
            names: Names::none(),
            queued: false,
            hurried: false,
            ordered: false,
            doubt: None,
            doubtful: false,
            unheard: false,
            bits: None,
        }
    }

    /// Whether this is the touch that is to be answered.
    pub(super) fn answers(&self, stamp: Stamp) -> bool {
        self.stamp == Some(stamp)
    }

    /// How a tree comes to it, unless what is in it counts in the tree's sum already.
    fn new_to(&self, tree: SourceId) -> Option<New> {
        self.waiting.iter().find(|waiting| waiting.tree == tree).and_then(|waiting| waiting.new)
    }
}

impl Grove {
    /// Whether a source is a tree that waits for a look at its path or at any of its folders.
    pub(super) fn waits(&self, tree: SourceId) -> bool {
        self.trees.get(&tree).is_some_and(|tree| tree.unsettled)
    }

    /// A source is suspect from now on. Whether its readers are to be counted: those of a tree that was suspect are.
    pub(super) fn unsettle(&mut self, source: SourceId) -> bool {
        self.trees.get_mut(&source).is_none_or(|tree| !std::mem::replace(&mut tree.unsettled, true))
    }

    /// A reader of a tree speaks of this version from now on.
    pub(super) fn speak(&mut self, tree: Option<SourceId>, version: u64) {
        let Some(tree) = tree.and_then(|tree| self.trees.get_mut(&tree)) else { return };
        if let Err(place) = tree.moments.binary_search(&version) {
            tree.moments.insert(place, version);
        }
    }

    fn doubt(&mut self, tree: SourceId, doubt: Option<Doubt>, present: bool) {
        if let (Some(doubt), Some(tree)) = (doubt, self.trees.get_mut(&tree)) {
            tree.note_doubt(doubt, present);
        }
    }

    /// Every folder, in the order in which they were found.
    pub(super) fn all_folders(&self) -> Vec<SourceId> {
        let mut folders: Vec<SourceId> = self.folders.keys().copied().collect();
        folders.sort_unstable();
        folders
    }

    /// How many folders are to be looked at.
    pub(super) fn pending_len(&self) -> usize {
        self.pending
    }

    /// Which inode a folder is, if it was looked at and nothing has happened there since.
    pub(super) fn settled_folder(&self, id: SourceId) -> Option<Inode> {
        let folder = self.folders.get(&id)?;
        folder.inode.filter(|_| folder.stamp.is_none() && folder.doubt.is_none() && !folder.trees.is_empty())
    }

    /// Folders that are in no tree any more, since the last time.
    pub(super) fn take_released(&mut self) -> Vec<SourceId> {
        std::mem::take(&mut self.released)
    }

    /// Members of a tree that are watched by their inode, and those that are watched by their folder alone.
    pub(super) fn coverage(&self, tree: SourceId) -> Coverage {
        let Some(tree) = self.trees.get(&tree) else { return Coverage::default() };
        Coverage { inode: tree.linked, directory: tree.sum.members().saturating_sub(tree.linked) }
    }

    /// The rules that count in a folder of a tree, from the tree's root down to it.
    fn rules(&self, tree: &Tree, folder: SourceId) -> Vec<Arc<Rules>> {
        let mut rules = Vec::new();
        let mut here = tree.sieve.uses_rules().then_some(folder);
        while let Some(folder) = here.and_then(|id| self.folders.get(&id)) {
            rules.extend(folder.rules.clone());
            let at_root = tree.root.as_deref() == Some(&*folder.path);
            here = folder.parent.filter(|_| !at_root);
        }
        rules.reverse();
        rules
    }
}

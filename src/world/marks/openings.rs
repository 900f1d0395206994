//! Who opened what: an open is all that is heard of a writer who maps a file and stores into it.
//!
//! Nothing is looked at because of an open, for two who did so would set each other off for ever: our look opens the
//! file too. The source is noted, and asked about when somebody asks about it. Our own opens must not be noted, or
//! every look would ask for another. The queue does not say who opened, and merges equal events; so each look goes in
//! this order: it says which inodes it is about to open, opens, touches a divider (a file of our own, like a cookie),
//! and only then asks the kernel for writers. What was opened before the divider came back is answered by that question,
//! whoever opened it. What is opened after it was somebody else's doing.

use super::{Marks, Name, name_of};
use crate::index::found::Inode;
use crate::index::{Depth, SourceId};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Dividers. When none is free a look does without, and its own open is noted as if it were somebody else's: one
/// question more, later.
pub(in crate::world) const DIVIDERS: usize = 128;

/// What is known about opens.
#[derive(Debug)]
pub(super) struct Openings {
    /// Sources that somebody opened since they were last asked about.
    noted: HashSet<SourceId>,
    /// Inodes that we are opening, and how many times.
    ours: HashMap<Inode, u32>,
    /// What each divider will end, of those on their way.
    dividers: Vec<Option<Vec<Inode>>>,
    free: Vec<usize>,
    generation: u64,
}

impl Default for Openings {
    fn default() -> Self {
        let dividers = (0..DIVIDERS).map(|_| None).collect();
        let free = (0..DIVIDERS).rev().collect();
        Self { noted: HashSet::new(), ours: HashMap::new(), dividers, free, generation: 0 }
    }
}

impl Openings {
    /// Events may have been lost, dividers among them. Everything is looked at again anyway.
    pub(super) fn lose(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    pub(super) fn unfollow(&mut self, source: SourceId) {
        self.noted.remove(&source);
    }

    fn end(&mut self, inodes: &[Inode]) {
        for inode in inodes {
            if let Some(count) = self.ours.get_mut(inode) {
                *count -= 1;
                if *count == 0 {
                    self.ours.remove(inode);
                }
            }
        }
    }
}

/// An open of ours.
#[derive(Debug)]
pub(in crate::world) struct Opening {
    inodes: Vec<Inode>,
    generation: u64,
    /// The divider that is touched between the open and the question.
    pub(in crate::world) divider: Option<usize>,
}

impl Marks {
    /// A file at which a source ends was opened.
    pub(in crate::world) fn opened(&mut self, path: &Path) {
        let Some(armed) = self.armed.get(name_of(path)).filter(|armed| armed.ends > 0) else {
            return;
        };
        if armed.inodes.iter().any(|inode| self.openings.ours.contains_key(inode)) {
            return;
        }
        for source in self.ending_at(path, &armed.inodes) {
            self.openings.noted.insert(source);
        }
    }

    /// The sources that end at a path or at another name of its inodes.
    fn ending_at(&self, path: &Path, inodes: &[Inode]) -> HashSet<SourceId> {
        let names = inodes.iter().filter_map(|inode| self.names.get(inode)).flatten().map(Name::as_ref);
        let mut sources = HashSet::new();
        for name in names.chain([name_of(path)]) {
            let ends = |source: &&SourceId| {
                self.bound.get(source).and_then(|held| held.end.as_deref()) == Some(name)
            };
            let readers = self.interests.get(name).map(|heard| &heard.sources);
            sources.extend(readers.into_iter().flatten().filter(ends));
        }
        sources
    }

    /// Whether a divider is free.
    pub(in crate::world) fn has_divider(&self) -> bool {
        !self.openings.free.is_empty()
    }

    /// We are about to open what stands at a path. What was noted about it is answered by the question that follows.
    pub(in crate::world) fn begin_opening(&mut self, path: &Path) -> Opening {
        let armed = self.armed.get(name_of(path));
        let inodes = armed.map(|armed| armed.inodes.clone()).unwrap_or_default();
        for source in self.ending_at(path, &inodes) {
            self.openings.noted.remove(&source);
        }
        let openings = &mut self.openings;
        inodes.iter().for_each(|&inode| *openings.ours.entry(inode).or_insert(0) += 1);
        let divider = openings.free.pop();
        if let Some(divider) = divider {
            openings.dividers[divider] = Some(inodes.clone());
        }
        Opening { inodes, generation: openings.generation, divider }
    }

    /// A divider came back: whatever is heard from here on was opened after it was touched.
    pub(in crate::world) fn divided(&mut self, divider: usize) {
        let Some(inodes) = self.openings.dividers.get_mut(divider).and_then(Option::take) else { return };
        self.openings.end(&inodes);
        self.openings.free.push(divider);
    }

    /// An open of ours, on behalf of `source`, is over. Unless nobody can be writing (`clear`), the others who end at the
    /// same file have to ask for themselves: what was heard meanwhile was not noted for them.
    pub(in crate::world) fn end_opening(
        &mut self,
        path: &Path,
        opening: &Opening,
        source: SourceId,
        clear: bool,
    ) {
        if opening.generation == self.openings.generation && opening.divider.is_none() {
            self.openings.end(&opening.inodes);
        }
        if !clear {
            let others = self.ending_at(path, &opening.inodes);
            self.openings.noted.extend(others.into_iter().filter(|&other| other != source));
        }
    }

    /// Whether anything was opened that nobody has asked about, or lies where nothing is reported.
    pub(in crate::world) fn any_doubtful(&self) -> bool {
        !self.openings.noted.is_empty() || !self.silent.is_empty()
    }

    /// Of the sources that are asked about now, those that must be looked at for it.
    pub(in crate::world) fn take_doubtful(&mut self, asked: &HashSet<SourceId>) -> Vec<(SourceId, Depth)> {
        // Whichever are fewer are gone through.
        let noted = &self.openings.noted;
        let in_doubt = noted.len() + self.silent.len();
        let mut sources: Vec<SourceId> = if in_doubt < asked.len() {
            noted.union(&self.silent).filter(|source| asked.contains(source)).copied().collect()
        } else {
            let doubtful = |source: &&SourceId| noted.contains(source) || self.silent.contains(source);
            asked.iter().filter(doubtful).copied().collect()
        };
        sources.sort_unstable();
        let told = |source: SourceId| {
            self.openings.noted.remove(&source);
            let depth = if self.silent.contains(&source) { Depth::Names } else { Depth::Opened };
            (source, depth)
        };
        sources.into_iter().map(told).collect()
    }
}

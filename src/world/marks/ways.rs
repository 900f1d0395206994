//! Ways: a folder as sources spell it, resolved and armed once for all sources in it.
//!
//! The promise: while a way holds, its lookups lead where they led when it was proven, or an event that says otherwise is
//! still to be handled; and that event marks every source bound along the way. So a source bound along a way that holds
//! needs its own name looked up and armed, and nothing above it.
//!
//! A way is proven like everything else: bound, armed, resolved again. It never holds again once anything on it was
//! named anew or lost its watch, whatever was armed there since: sources bound along it have been marked, and find
//! themselves another.

use super::{Marks, Name};
use crate::index::{Depth, SourceId};
use crate::world::filesystem::Kind;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which way; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::world) struct WayId(u64);

/// A folder that sources are looked up in.
#[derive(Debug, Clone)]
pub(in crate::world) struct Lead {
    pub(in crate::world) way: WayId,
    /// The folder, symlinks resolved.
    pub(in crate::world) folder: Arc<PathBuf>,
    /// The least believable filesystem on which what leads there is looked up; one that does not report leads nobody.
    pub(in crate::world) ground: Kind,
}

#[derive(Debug)]
pub(super) struct Way {
    spelled: PathBuf,
    lookups: Vec<Name>,
    /// The folders looked into, top down, the last of them being where it leads; and how often each had lost its watch
    /// when all were armed.
    folders: Vec<(Name, u64)>,
    lead: Lead,
    armed: bool,
    broken: bool,
    /// Of all losses of watches, those that are known to have left this way alone.
    losses_seen: u64,
    building: bool,
    pub(super) readers: HashSet<SourceId>,
}

impl Marks {
    /// The way to a folder, if one is known that holds.
    pub(in crate::world) fn way(&mut self, spelled: &Path) -> Option<Lead> {
        let way = *self.ways_by_name.get(spelled)?;
        self.way_holds(way).then(|| self.ways[&way].lead.clone())
    }

    /// Hears what happens along a way from now on. It leads nobody before [`Marks::prove_way`].
    pub(in crate::world) fn begin_way(
        &mut self,
        spelled: &Path,
        lookups: &[PathBuf],
        folders: &[PathBuf],
    ) -> WayId {
        self.ways_begun += 1;
        let id = WayId(self.ways_begun);
        let lookups: Vec<Name> = lookups.iter().map(|path| self.intern(path)).collect();
        for lookup in &lookups {
            self.interests.entry(Arc::clone(lookup)).or_default().ways.insert(id);
        }
        let folder = folders.last().cloned().unwrap_or_default();
        let folders: Vec<Name> = folders.iter().map(|path| self.engage(path, false)).collect();
        let way = Way {
            spelled: spelled.to_owned(),
            lookups,
            folders: folders.into_iter().map(|folder| (folder, 0)).collect(),
            lead: Lead { way: id, folder: Arc::new(folder), ground: Kind::Unwatchable },
            armed: false,
            broken: false,
            losses_seen: 0,
            building: true,
            readers: HashSet::new(),
        };
        self.ways.insert(id, way);
        id
    }

    /// All folders of a way were armed, and nobody else is arming: what counts as armed is. Later that cannot be told
    /// from a path that somebody is only asking the kernel about.
    pub(in crate::world) fn way_is_armed(&mut self, id: WayId) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        let mut all = true;
        for (folder, losses) in &mut way.folders {
            match self.armed.get(folder).filter(|armed| armed.live) {
                Some(armed) => *losses = armed.losses,
                None => all = false,
            }
        }
        (way.armed, way.losses_seen) = (all, self.losses);
    }

    /// A way was resolved again with the same result after it was armed. From now on it leads others too.
    pub(in crate::world) fn prove_way(&mut self, id: WayId, ground: Kind) -> Option<Lead> {
        if !self.way_holds(id) {
            return None;
        }
        let way = self.ways.get_mut(&id)?;
        way.lead.ground = ground;
        self.ways_by_name.insert(way.spelled.clone(), id);
        Some(way.lead.clone())
    }

    /// Whoever began a way is done with it. Returns the paths that nobody uses any more.
    pub(in crate::world) fn end_building(&mut self, id: WayId) -> Vec<PathBuf> {
        if let Some(way) = self.ways.get_mut(&id) {
            way.building = false;
        }
        self.drop_if_unused(id)
    }

    pub(super) fn way_holds(&mut self, id: WayId) -> bool {
        let Some(way) = self.ways.get_mut(&id) else { return false };
        if !way.armed || way.broken {
            return false;
        }
        if way.losses_seen != self.losses {
            let kept = |(folder, losses): &(Name, u64)| {
                self.armed.get(folder).is_some_and(|armed| armed.live && armed.losses == *losses)
            };
            way.broken = !way.folders.iter().all(kept);
            way.losses_seen = self.losses;
        }
        !way.broken
    }

    /// Something happened to a name on these ways.
    pub(super) fn mark_way(&mut self, id: WayId, depth: Depth) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        way.broken |= depth == Depth::Names;
        for &source in &way.readers {
            let held = self.batch.moved.entry(source).or_insert(depth);
            *held = depth.max(*held);
        }
    }

    pub(super) fn join_way(&mut self, id: WayId, source: SourceId) {
        if let Some(way) = self.ways.get_mut(&id) {
            way.readers.insert(source);
        }
    }

    /// Returns the paths that nobody uses any more.
    pub(super) fn leave_way(&mut self, id: WayId, source: SourceId) -> Vec<PathBuf> {
        if let Some(way) = self.ways.get_mut(&id) {
            way.readers.remove(&source);
        }
        self.drop_if_unused(id)
    }

    fn drop_if_unused(&mut self, id: WayId) -> Vec<PathBuf> {
        if self.ways.get(&id).is_none_or(|way| way.building || !way.readers.is_empty()) {
            return Vec::new();
        }
        let Some(way) = self.ways.remove(&id) else { return Vec::new() };
        if self.ways_by_name.get(&way.spelled) == Some(&id) {
            self.ways_by_name.remove(&way.spelled);
        }
        for lookup in &way.lookups {
            self.lose_interest(lookup, |heard| {
                heard.ways.remove(&id);
            });
        }
        let folders = way.folders.iter().map(|(folder, _)| folder);
        folders.filter_map(|folder| self.release(folder, false)).collect()
    }
}

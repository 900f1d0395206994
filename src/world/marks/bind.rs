//! Which names a source is heard under, from when to when.

use super::{Bound, Heard, Kept, Marks, Name, WayId, name_of, path_of};
use crate::index::SourceId;
use crate::index::found::Inode;
use crate::world::filesystem::Kind;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source was not bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) enum Unbound {
    /// Nobody follows it any more.
    Unfollowed,
    /// The way does not hold any more.
    Moved,
}

impl Marks {
    /// The file that a source leads to, if everything on the way to it is armed: then its bytes alone can be looked at.
    pub(in crate::world) fn armed_end(&mut self, source: SourceId) -> Option<PathBuf> {
        // A path that the kernel is being asked for counts as live meanwhile, and it may refuse.
        if self.lost.is_some() {
            return None;
        }
        let held = self.bound.get(&source)?;
        let live = |name: &Name| self.armed.get(name).is_some_and(|armed| armed.live);
        let end = held.arms.iter().all(live).then(|| held.end.clone())??;
        let way = held.way;
        way.is_none_or(|way| self.way_holds(way)).then(|| path_of(&end).to_owned())
    }

    /// What is armed for a source.
    pub(in crate::world) fn arms_of(&self, source: SourceId) -> Vec<PathBuf> {
        let held = self.bound.get(&source);
        held.map(|held| held.arms.iter().map(|name| path_of(name).to_owned()).collect()).unwrap_or_default()
    }

    /// The one inode that is watched under a path.
    pub(in crate::world) fn watched(&self, path: &Path) -> Option<Inode> {
        match self.armed.get(name_of(path))?.inodes[..] {
            [inode] => Some(inode),
            _ => None,
        }
    }

    /// Hears a source under these names from now on. Returns the paths that nobody uses any more, or `None` when the
    /// source is not followed any more.
    pub(in crate::world) fn bind(&mut self, source: SourceId, new: Bound) -> Option<Vec<PathBuf>> {
        self.bind_along(source, None, &new).ok()
    }

    /// The same along a way, which has armed and hears everything above these names.
    pub(in crate::world) fn bind_along(
        &mut self,
        source: SourceId,
        way: Option<WayId>,
        new: &Bound,
    ) -> Result<Vec<PathBuf>, Unbound> {
        if !self.followed.contains(&source) {
            return Err(Unbound::Unfollowed);
        }
        if way.is_some_and(|way| !self.way_holds(way)) {
            return Err(Unbound::Moved);
        }
        let lookups: Box<[Name]> = new.lookups.iter().map(|path| self.hear(path, source)).collect();
        let ends = |path: &PathBuf| new.end.as_ref() == Some(path);
        let arms: Box<[Name]> = new.arms.iter().map(|path| self.engage(path, ends(path))).collect();
        let end = new.end.as_ref().map(|path| self.intern(path));
        let folder = new.folder.as_ref().map(|path| self.intern(path));
        if let Some(folder) = &folder {
            self.folders.insert(Arc::clone(folder), source);
        }
        if let Some(way) = way {
            self.join_way(way, source);
        }
        let kept: HashSet<Name> = lookups.iter().cloned().collect();
        let is_there = end.is_some();
        let old = self.bound.insert(source, Kept { way, lookups, arms, end, folder });
        match old.as_ref().and_then(|old| old.end.as_ref()) {
            _ if is_there => drop(self.gone.remove(&source)),
            Some(stood) => drop(self.gone.insert(source, path_of(stood).to_owned())),
            None => {}
        }
        Ok(old.map_or_else(Vec::new, |old| self.unbind(source, old, &kept, way)))
    }

    /// Hears nothing of a source any more. Returns the paths that nobody uses any more.
    pub(in crate::world) fn unfollow(&mut self, source: SourceId) -> Vec<PathBuf> {
        self.followed.remove(&source);
        self.batch.moved.remove(&source);
        self.batch.stirred.remove(&source);
        self.openings.unfollow(source);
        self.ground(source, Kind::Local);
        self.renames.remove(&source);
        self.gone.remove(&source);
        let Some(old) = self.bound.remove(&source) else { return Vec::new() };
        self.unbind(source, old, &HashSet::new(), None)
    }

    fn unbind(
        &mut self,
        source: SourceId,
        old: Kept,
        kept: &HashSet<Name>,
        along: Option<WayId>,
    ) -> Vec<PathBuf> {
        for lookup in old.lookups.iter().filter(|lookup| !kept.contains(*lookup)) {
            self.lose_interest(lookup, |heard| heard.sources.retain(|&reader| reader != source));
        }
        if let Some(folder) = &old.folder
            && self.bound.get(&source).is_none_or(|held| held.folder != old.folder)
            && self.folders.get(folder) == Some(&source)
        {
            self.folders.remove(folder);
        }
        let ends = |name: &Name| old.end.as_ref() == Some(name);
        let released = old.arms.iter().filter_map(|name| self.release(name, ends(name)));
        let mut unused: Vec<PathBuf> = released.collect();
        if let Some(left) = old.way.filter(|way| along != Some(*way)) {
            unused.extend(self.leave_way(left, source));
        }
        unused
    }

    fn hear(&mut self, path: &Path, source: SourceId) -> Name {
        let name = self.intern(path);
        let heard = self.interests.entry(Arc::clone(&name)).or_default();
        if !heard.sources.contains(&source) {
            if heard.sources.is_empty() {
                heard.sources.reserve_exact(1);
            }
            heard.sources.push(source);
        }
        name
    }

    /// One user more, for whom it is the way or, with `ends`, the file that it leads to.
    pub(super) fn engage(&mut self, path: &Path, ends: bool) -> Name {
        let name = self.intern(path);
        let armed = self.armed.entry(Arc::clone(&name)).or_default();
        armed.users += 1;
        armed.ends += u32::from(ends);
        name
    }

    pub(super) fn lose_interest(&mut self, name: &Name, leave: impl FnOnce(&mut Heard)) {
        let Some(heard) = self.interests.get_mut(name) else { return };
        leave(heard);
        if heard.sources.is_empty() && heard.ways.is_empty() {
            self.interests.remove(name);
        }
    }

    /// One user less; the path when that was the last.
    pub(super) fn release(&mut self, name: &Name, ends: bool) -> Option<PathBuf> {
        let armed = self.armed.get_mut(name)?;
        armed.users -= 1;
        armed.ends -= u32::from(ends);
        (armed.users == 0).then(|| path_of(name).to_owned())
    }

    pub(super) fn intern(&self, path: &Path) -> Name {
        let bytes = name_of(path);
        let known = self.interests.get_key_value(bytes).map(|(name, _)| name);
        let known = known.or_else(|| self.armed.get_key_value(bytes).map(|(name, _)| name));
        known.cloned().unwrap_or_else(|| Name::from(bytes))
    }
}

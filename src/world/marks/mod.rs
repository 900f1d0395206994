//! What the event handler marks: which sources moved, under which names and inodes they are heard.
//!
//! The handler marks here, synchronously, before anything else; the engine takes marks, answers and cookies together,
//! in one step, so a cookie is never seen without every mark that came before it. Nothing here can overflow: a source
//! is marked or it is not.
//!
//! The kernel reports a watched inode under the path that was armed last, and notify forgets every watch below a path
//! that was removed or renamed. So each armed path remembers its inode; whatever happens to one name of an inode is
//! heard for all its names, and losing one name's watch counts as losing all of them.

use super::filesystem::Kind;
use crate::index::found::Inode;
use crate::index::scrub::Held;
use crate::index::tree::Names;
use crate::index::{Depth, Settled, SourceId};
use openings::Openings;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

mod openings;
mod renames;
#[cfg(test)]
mod tests;

pub(super) use openings::{DIVIDERS, Opening};

/// Everything that happened since the last take.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events were, or may have been, lost; why.
    pub gap: Option<String>,
    /// Sources at which something happened.
    pub moved: HashMap<SourceId, Depth>,
    /// Folders of trees in which something happened, and under which names.
    pub stirred: HashMap<SourceId, Names>,
    /// Answers of the verifiers.
    pub answers: Vec<Settled>,
    /// Cookies that came back.
    pub cookies: Vec<usize>,
    /// What looked different although nothing was heard.
    pub differing: Vec<Held>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.gap.is_none()
            && self.moved.is_empty()
            && self.stirred.is_empty()
            && self.answers.is_empty()
            && self.cookies.is_empty()
            && self.differing.is_empty()
    }
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    batch: Batch,
    followed: HashSet<SourceId>,
    interests: HashMap<Vec<u8>, Vec<SourceId>>,
    /// Folders of trees: whatever happens in them is of interest, whatever its name.
    folders: HashMap<Vec<u8>, SourceId>,
    bound: HashMap<SourceId, Bound>,
    armed: BTreeMap<Vec<u8>, Armed>,
    names: HashMap<Inode, Vec<Vec<u8>>>,
    /// Inodes that lost their watch while the kernel is being asked for one. Paths are armed one at a time.
    lost: Option<HashSet<Inode>>,
    openings: Openings,
    /// Where sources that are gone went, as events told it.
    renames: HashMap<SourceId, PathBuf>,
    /// Where sources that are gone stood. A look may find that before the event that tells where to is heard.
    gone: HashMap<SourceId, PathBuf>,
    /// Sources on overlayfs.
    overlaid: HashSet<SourceId>,
    /// Sources on filesystems that do not report.
    silent: HashSet<SourceId>,
    pub(super) events: u64,
}

/// What one source is heard under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bound {
    /// `canonical folder/name` of every lookup.
    pub(super) lookups: Vec<PathBuf>,
    /// What is armed for it, in order of arming: folders top down, then files.
    pub(super) arms: Vec<PathBuf>,
    /// The file itself, where there is one.
    pub(super) end: Option<PathBuf>,
    /// The folder itself, of a source that is everything in a folder.
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Armed {
    /// Where notify's watch for this path may be: one inode, or several when something moved during the asking.
    inodes: Vec<Inode>,
    live: bool,
    users: u32,
    /// How many sources end here.
    ends: u32,
}

/// Where a watch on a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    inode: Option<Inode>,
    /// A symlink has taken the path's place. The watch is on what it leads to, and the route is wrong.
    through_link: bool,
}

impl Spot {
    pub(super) fn at(path: &Path) -> Self {
        let through_link = path.is_symlink();
        let inode = std::fs::metadata(path).ok().map(|found| Inode { dev: found.dev(), ino: found.ino() });
        Self { inode, through_link }
    }
}

impl Marks {
    /// Takes what happened since the last time.
    pub(super) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.batch.is_empty()
    }

    pub(super) fn watches_len(&self) -> usize {
        self.armed.values().filter(|armed| armed.live).count()
    }

    /// Notes that events may have been lost. Every watch must be made again before anything is believed.
    pub(super) fn gap(&mut self, why: String) {
        self.batch.gap.get_or_insert(why);
        self.armed.values_mut().for_each(|armed| armed.live = false);
        self.openings.lose();
    }

    pub(super) fn cookie(&mut self, index: usize) {
        self.batch.cookies.push(index);
    }

    pub(super) fn answer(&mut self, answer: Settled) {
        if self.followed.contains(&answer.source) {
            self.batch.answers.push(answer);
        }
    }

    pub(super) fn differ(&mut self, differing: Vec<Held>) {
        self.batch.differing.extend(differing);
    }

    pub(super) fn follow(&mut self, source: SourceId) {
        self.followed.insert(source);
    }

    /// What a source lies on, as its last look found it.
    pub(super) fn ground(&mut self, source: SourceId, kind: Kind) {
        for (held, theirs) in [(&mut self.overlaid, Kind::Overlay), (&mut self.silent, Kind::Unwatchable)] {
            if kind != theirs {
                held.remove(&source);
            } else if self.followed.contains(&source) {
                held.insert(source);
            }
        }
    }

    pub(super) fn on_overlay(&self, sources: &[SourceId]) -> usize {
        sources.iter().filter(|source| self.overlaid.contains(source)).count()
    }

    /// Something happened at `path`. `depth` says whether names may have changed.
    pub(super) fn strike(&mut self, path: &Path, depth: Depth, killing: bool) {
        let key = path.as_os_str().as_bytes();
        self.mark(key, depth);
        self.mark_aliases(path, depth);
        let Some(armed) = self.armed.get_mut(key) else { return };
        if depth == Depth::Names {
            armed.live = false;
        }
        if killing {
            self.lose_below(key);
        } else {
            for inode in armed.inodes.clone() {
                self.mark_names(inode, depth);
            }
        }
    }

    fn mark(&mut self, key: &[u8], depth: Depth) {
        for &source in self.interests.get(key).into_iter().flatten() {
            let held = self.batch.moved.entry(source).or_insert(depth);
            *held = depth.max(*held);
        }
        self.stir(key);
    }

    /// What happens to a folder's name may have happened to all that is in it.
    fn stir(&mut self, key: &[u8]) {
        if let Some(&folder) = self.folders.get(key) {
            self.batch.stirred.entry(folder).or_default().merge(Names::all(false));
        }
        let Some(slash) = key.iter().rposition(|&byte| byte == b'/') else { return };
        if let Some(&folder) = self.folders.get(&key[..slash.max(1)]) {
            let name = OsStr::from_bytes(&key[slash + 1..]).to_owned();
            self.batch.stirred.entry(folder).or_default().these.insert(name);
        }
    }

    /// A folder may stand at several paths (bind mounts), and the kernel reports what happens in it under one of them.
    fn mark_aliases(&mut self, path: &Path, depth: Depth) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let folder = folder.as_os_str().as_bytes();
        let inodes = self.armed.get(folder).map(|armed| armed.inodes.clone()).unwrap_or_default();
        for inode in inodes {
            let Some(names) = self.names.get(&inode).filter(|names| names.len() > 1) else { continue };
            for alias in names.clone().iter().filter(|alias| alias.as_slice() != folder) {
                let path = Path::new(OsStr::from_bytes(alias)).join(name);
                self.mark(path.as_os_str().as_bytes(), depth);
            }
        }
    }

    /// A filesystem came or went at `point`. What is looked up there or below leads elsewhere now, and no event says so.
    pub(super) fn remount(&mut self, point: &Path) {
        let below = |key: &[u8]| Path::new(OsStr::from_bytes(key)).starts_with(point);
        self.armed.iter_mut().filter(|(key, _)| below(key)).for_each(|(_, armed)| armed.live = false);
        let moved = self.interests.iter().filter(|(key, _)| below(key)).flat_map(|(_, readers)| readers);
        self.batch.moved.extend(moved.map(|&source| (source, Depth::Names)));
        for (_, &folder) in self.folders.iter().filter(|(key, _)| below(key)) {
            self.batch.stirred.entry(folder).or_default().merge(Names::all(true));
        }
        // The name itself leads elsewhere, which the folder that it is in must hear.
        self.stir(point.as_os_str().as_bytes());
    }

    fn mark_names(&mut self, inode: Inode, depth: Depth) {
        for name in self.names.get(&inode).cloned().unwrap_or_default() {
            self.mark(&name, depth);
        }
    }

    /// notify drops the watches of a path that was removed or renamed, and of everything below it.
    fn lose_below(&mut self, key: &[u8]) {
        let mut folder = key.to_vec();
        folder.push(b'/');
        let mut lost = self.armed.get(key).map(|armed| armed.inodes.clone()).unwrap_or_default();
        // One that is being armed for the first time has no inode yet, and loses its watch all the same.
        for (_, armed) in
            self.armed.range_mut(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder))
        {
            armed.live = false;
            lost.extend(&armed.inodes);
        }
        for inode in lost {
            self.lose(inode);
        }
    }

    /// An inode may be without its watch: all its names must be armed and looked at again.
    pub(super) fn lose(&mut self, inode: Inode) {
        if let Some(lost) = &mut self.lost {
            lost.insert(inode);
        }
        for name in self.names.get(&inode).cloned().unwrap_or_default() {
            if let Some(armed) = self.armed.get_mut(&name) {
                armed.live = false;
            }
            self.mark(&name, Depth::Names);
        }
    }

    /// The file that a source leads to, if everything on the way to it is armed: then its bytes alone can be looked at.
    pub(super) fn armed_end(&self, source: SourceId) -> Option<PathBuf> {
        let bound = self.bound.get(&source)?;
        let live =
            |path: &PathBuf| self.armed.get(path.as_os_str().as_bytes()).is_some_and(|armed| armed.live);
        bound.arms.iter().all(live).then(|| bound.end.clone())?
    }

    /// What is armed for a source.
    pub(super) fn arms_of(&self, source: SourceId) -> Vec<PathBuf> {
        self.bound.get(&source).map(|bound| bound.arms.clone()).unwrap_or_default()
    }

    /// The one inode that is watched under a path.
    pub(super) fn watched(&self, path: &Path) -> Option<Inode> {
        match self.armed.get(path.as_os_str().as_bytes())?.inodes[..] {
            [inode] => Some(inode),
            _ => None,
        }
    }

    /// Hears a source under these names from now on. Returns the paths that nobody uses any more, or `None` when the
    /// source is not followed any more.
    pub(super) fn bind(&mut self, source: SourceId, new: Bound) -> Option<Vec<PathBuf>> {
        if !self.followed.contains(&source) {
            return None;
        }
        for lookup in &new.lookups {
            let readers = self.interests.entry(lookup.as_os_str().as_bytes().to_vec()).or_default();
            if !readers.contains(&source) {
                readers.push(source);
            }
        }
        if let Some(folder) = &new.folder {
            self.folders.insert(folder.as_os_str().as_bytes().to_vec(), source);
        }
        for path in &new.arms {
            let armed = self.armed.entry(path.as_os_str().as_bytes().to_vec()).or_default();
            armed.users += 1;
            armed.ends += u32::from(new.end.as_ref() == Some(path));
        }
        let kept: HashSet<PathBuf> = new.lookups.iter().cloned().collect();
        let is_there = new.end.is_some();
        let old = self.bound.insert(source, new);
        match old.as_ref().and_then(|old| old.end.clone()) {
            _ if is_there => drop(self.gone.remove(&source)),
            Some(stood) => drop(self.gone.insert(source, stood)),
            None => {}
        }
        Some(old.map_or_else(Vec::new, |old| self.unbind(source, &old, &kept)))
    }

    /// Hears nothing of a source any more. Returns the paths that nobody uses any more.
    pub(super) fn unfollow(&mut self, source: SourceId) -> Vec<PathBuf> {
        self.followed.remove(&source);
        self.batch.moved.remove(&source);
        self.openings.unfollow(source);
        self.ground(source, Kind::Local);
        self.renames.remove(&source);
        self.gone.remove(&source);
        self.batch.stirred.remove(&source);
        let Some(old) = self.bound.remove(&source) else { return Vec::new() };
        self.unbind(source, &old, &HashSet::new())
    }

    fn unbind(&mut self, source: SourceId, old: &Bound, kept: &HashSet<PathBuf>) -> Vec<PathBuf> {
        for lookup in old.lookups.iter().filter(|lookup| !kept.contains(*lookup)) {
            let key = lookup.as_os_str().as_bytes();
            if let Some(readers) = self.interests.get_mut(key) {
                readers.retain(|&reader| reader != source);
                if readers.is_empty() {
                    self.interests.remove(key);
                }
            }
        }
        if let Some(folder) = &old.folder
            && self.bound.get(&source).is_none_or(|bound| bound.folder != old.folder)
        {
            let key = folder.as_os_str().as_bytes();
            if self.folders.get(key) == Some(&source) {
                self.folders.remove(key);
            }
        }
        let mut unused = Vec::new();
        for path in &old.arms {
            let Some(armed) = self.armed.get_mut(path.as_os_str().as_bytes()) else { continue };
            armed.users -= 1;
            armed.ends -= u32::from(old.end.as_ref() == Some(path));
            if armed.users == 0 {
                unused.push(path.clone());
            }
        }
        unused
    }

    /// Whether a path must be armed. If so it counts as armed from now on, so that whatever happens while the kernel
    /// is being asked takes that back.
    pub(super) fn begin_arming(&mut self, path: &Path) -> bool {
        let armed = self.armed.entry(path.as_os_str().as_bytes().to_vec()).or_default();
        let must = !std::mem::replace(&mut armed.live, true);
        if must {
            self.lost = Some(HashSet::new());
        }
        must
    }

    /// The kernel was asked: `before` and `after` are what stood at the path around the asking. `Err` when
    /// it is not certain which of them is heard; the path counts as not armed then.
    pub(super) fn end_arming(&mut self, path: &Path, before: Spot, after: Spot, asked: bool) -> bool {
        let key = path.as_os_str().as_bytes().to_vec();
        let lost = self.lost.take().unwrap_or_default();
        let Some(armed) = self.armed.get_mut(&key) else { return false };
        // Another name of this inode may have taken the new watch with it before this name was known to be one. And an
        // event about the path's earlier inode makes notify drop whatever it holds under the path: the new watch, if
        // that was made already, which the inode's other names then miss too.
        let certain = asked
            && armed.live
            && before == after
            && !after.through_link
            && after.inode.is_some_and(|inode| !lost.contains(&inode));
        let (before, after) = (before.inode, after.inode);
        armed.live = certain;
        let held = std::mem::take(&mut armed.inodes);
        if let (Some(new), true) = (after, certain) {
            armed.inodes.push(new);
            self.add_name(new, &key);
            for old in held.into_iter().filter(|&old| old != new) {
                self.forget_name(old, &key);
                // The kernel may still report the old inode under this name, where its other names do not hear it.
                self.lose(old);
            }
            return true;
        }
        armed.inodes = held;
        // What the kernel refused changes nothing for anybody. Taken for a loss, it would make the source itself suspect,
        // which is then refused again, for ever.
        if !asked && before == after {
            return false;
        }
        // Either inode may now be reported under this name, and loses its watch when this name loses it.
        for inode in before.into_iter().chain(after) {
            if !armed.inodes.contains(&inode) {
                armed.inodes.push(inode);
            }
        }
        for inode in before.into_iter().chain(after) {
            self.add_name(inode, &key);
            self.lose(inode);
        }
        false
    }

    fn add_name(&mut self, inode: Inode, key: &[u8]) {
        let names = self.names.entry(inode).or_default();
        if !names.iter().any(|name| name == key) {
            names.push(key.to_vec());
        }
    }

    fn forget_name(&mut self, inode: Inode, key: &[u8]) {
        if let Some(names) = self.names.get_mut(&inode) {
            names.retain(|name| name != key);
            if names.is_empty() {
                self.names.remove(&inode);
            }
        }
    }

    /// Whether a path that was unused is so still. It is forgotten then, and the caller takes its watch away, which
    /// takes it from every other name of the inode too.
    pub(super) fn begin_disarming(&mut self, path: &Path) -> bool {
        let key = path.as_os_str().as_bytes();
        if self.armed.get(key).is_none_or(|armed| armed.users > 0) {
            return false;
        }
        let inodes = self.armed.remove(key).map(|armed| armed.inodes).unwrap_or_default();
        for inode in inodes {
            self.forget_name(inode, key);
            self.lose(inode);
        }
        true
    }
}

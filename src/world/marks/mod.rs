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
use arm::Armed;
pub(super) use arm::Spot;
pub(super) use bind::Unbound;
use openings::Openings;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Bound::{Included, Unbounded};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ways::Way;
pub(super) use ways::{Lead, WayId};

mod arm;
mod bind;
mod openings;
mod renames;
mod ways;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ways_tests;

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
    /// How many events there have been by now, those of this batch among them.
    pub events: u64,
}

/// What there is to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    Nothing,
    /// Answers alone can wait a moment for more of them.
    Answers,
    /// Somebody waits for a cookie, or something is believed that may not be so any more.
    Events,
}

impl Batch {
    fn news(&self) -> News {
        let moved = !self.moved.is_empty() || !self.stirred.is_empty() || !self.differing.is_empty();
        if moved || self.gap.is_some() || !self.cookies.is_empty() {
            News::Events
        } else if self.answers.is_empty() {
            News::Nothing
        } else {
            News::Answers
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    batch: Batch,
    followed: HashSet<SourceId>,
    interests: HashMap<Name, Heard>,
    /// Folders of trees: whatever happens in them is of interest, whatever its name.
    folders: HashMap<Name, SourceId>,
    bound: HashMap<SourceId, Kept>,
    armed: BTreeMap<Name, Armed>,
    names: HashMap<Inode, Vec<Name>>,
    ways: HashMap<WayId, Way>,
    ways_by_name: HashMap<PathBuf, WayId>,
    ways_begun: u64,
    /// How often any path lost its watch.
    losses: u64,
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

/// A path as bytes, shared by everything that keeps it.
type Name = Arc<[u8]>;

fn name_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Who is marked when something happens at a path.
#[derive(Debug, Default)]
struct Heard {
    sources: Vec<SourceId>,
    ways: BTreeSet<WayId>,
}

/// What one source is heard under, as it is kept: along a way, and under names of its own.
#[derive(Debug)]
struct Kept {
    way: Option<WayId>,
    lookups: Box<[Name]>,
    arms: Box<[Name]>,
    end: Option<Name>,
    folder: Option<Name>,
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

impl Marks {
    /// Takes what happened since the last time.
    pub(super) fn take(&mut self) -> Batch {
        Batch { events: self.events, ..std::mem::take(&mut self.batch) }
    }

    pub(super) fn news(&self) -> News {
        self.batch.news()
    }

    /// How many answers there are to take, when there is nothing else.
    pub(super) fn answers_alone(&self) -> Option<usize> {
        (self.news() == News::Answers).then_some(self.batch.answers.len())
    }

    pub(super) fn watches_len(&self) -> usize {
        self.armed.values().filter(|armed| armed.live).count()
    }

    /// Notes that events may have been lost. Every watch must be made again before anything is believed.
    pub(super) fn gap(&mut self, why: String) {
        self.batch.gap.get_or_insert(why);
        self.armed.values_mut().for_each(|armed| armed.lose(&mut self.losses));
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

    pub(super) fn on_overlay(&self, sources: &HashSet<SourceId>) -> usize {
        sources.iter().filter(|source| self.overlaid.contains(source)).count()
    }

    /// Something happened at `path`. `depth` says whether names may have changed.
    pub(super) fn strike(&mut self, path: &Path, depth: Depth, killing: bool) {
        let key = name_of(path);
        self.mark(key, depth);
        self.mark_aliases(path, depth);
        let Some(armed) = self.armed.get_mut(key) else { return };
        if depth == Depth::Names {
            armed.lose(&mut self.losses);
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
        if let Some(heard) = self.interests.get(key) {
            for &source in &heard.sources {
                let held = self.batch.moved.entry(source).or_insert(depth);
                *held = depth.max(*held);
            }
            if !heard.ways.is_empty() {
                heard.ways.clone().into_iter().for_each(|way| self.mark_way(way, depth));
            }
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
        let folder = name_of(folder);
        let inodes = self.armed.get(folder).map(|armed| armed.inodes.clone()).unwrap_or_default();
        for inode in inodes {
            let Some(names) = self.names.get(&inode).filter(|names| names.len() > 1) else { continue };
            for alias in names.clone().iter().filter(|alias| alias.as_ref() != folder) {
                self.mark(name_of(&path_of(alias).join(name)), depth);
            }
        }
    }

    /// A filesystem came or went at `point`. What is looked up there or below leads elsewhere now, and no event says so.
    pub(super) fn remount(&mut self, point: &Path) {
        let below = |key: &[u8]| path_of(key).starts_with(point);
        let lost = self.armed.iter_mut().filter(|(key, _)| below(key));
        lost.for_each(|(_, armed)| armed.lose(&mut self.losses));
        let moved: Vec<Name> = self.interests.keys().filter(|key| below(key)).cloned().collect();
        moved.iter().for_each(|key| self.mark(key, Depth::Names));
        for (_, &folder) in self.folders.iter().filter(|(key, _)| below(key)) {
            self.batch.stirred.entry(folder).or_default().merge(Names::all(true));
        }
        // The name itself leads elsewhere, which the folder that it is in must hear.
        self.stir(name_of(point));
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
        let from = (Included(folder.as_slice()), Unbounded);
        for (_, armed) in
            self.armed.range_mut::<[u8], _>(from).take_while(|(path, _)| path.starts_with(&folder))
        {
            armed.lose(&mut self.losses);
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
                armed.lose(&mut self.losses);
            }
            self.mark(&name, Depth::Names);
        }
    }
}

//! Which inode is watched under which path, and what an arming that was disturbed is worth.

use super::{Marks, Name, name_of};
use crate::index::found::Inode;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Armed {
    /// Where notify's watch for this path may be: one inode, or several when something moved during the asking.
    pub(super) inodes: Vec<Inode>,
    pub(super) live: bool,
    /// How often it was not.
    pub(super) losses: u64,
    pub(super) users: u32,
    /// How many sources end here.
    pub(super) ends: u32,
}

impl Armed {
    pub(super) fn lose(&mut self, losses: &mut u64) {
        self.live = false;
        self.losses += 1;
        *losses += 1;
    }
}

/// Where a watch on a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) struct Spot {
    pub(super) inode: Option<Inode>,
    /// A symlink has taken the path's place. The watch is on what it leads to, and the route is wrong.
    pub(in crate::world) through_link: bool,
}

impl Spot {
    pub(in crate::world) fn at(path: &Path) -> Self {
        let here = std::fs::symlink_metadata(path).ok();
        let through_link = here.as_ref().is_some_and(std::fs::Metadata::is_symlink);
        let there = if through_link { std::fs::metadata(path).ok() } else { here };
        let inode = there.map(|found| Inode { dev: found.dev(), ino: found.ino() });
        Self { inode, through_link }
    }
}

impl Marks {
    /// Whether anybody is heard under a path.
    pub(in crate::world) fn is_used(&self, path: &Path) -> bool {
        self.armed.get(name_of(path)).is_some_and(|armed| armed.users > 0)
    }

    /// Whether a path must be armed. If so it counts as armed from now on, so that whatever happens while the kernel
    /// is being asked takes that back.
    pub(in crate::world) fn begin_arming(&mut self, path: &Path) -> bool {
        let name = self.intern(path);
        let armed = self.armed.entry(name).or_default();
        let must = !std::mem::replace(&mut armed.live, true);
        if must {
            self.lost = Some(HashSet::new());
        }
        must
    }

    /// The kernel was asked: `before` and `after` are what stood at the path around the asking. `Err` when
    /// it is not certain which of them is heard; the path counts as not armed then.
    pub(in crate::world) fn end_arming(
        &mut self,
        path: &Path,
        before: Spot,
        after: Spot,
        asked: bool,
    ) -> bool {
        let lost = self.lost.take().unwrap_or_default();
        let Some((key, _)) = self.armed.get_key_value(name_of(path)) else { return false };
        let key = Arc::clone(key);
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
        let refused = !asked && before == after;
        armed.live = certain;
        if !certain && !refused {
            armed.lose(&mut self.losses);
        }
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
        // which is then refused again, for ever. No way holds over it: what must be armed had been lost, which was
        // counted then, or was never armed.
        if refused {
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

    fn add_name(&mut self, inode: Inode, key: &Name) {
        let names = self.names.entry(inode).or_insert_with(|| Vec::with_capacity(1));
        if !names.contains(key) {
            names.push(Arc::clone(key));
        }
    }

    fn forget_name(&mut self, inode: Inode, key: &[u8]) {
        if let Some(names) = self.names.get_mut(&inode) {
            names.retain(|name| name.as_ref() != key);
            if names.is_empty() {
                self.names.remove(&inode);
            }
        }
    }

    /// Whether a path that was unused is so still. It is forgotten then, and the caller takes its watch away, which
    /// takes it from every other name of the inode too.
    pub(in crate::world) fn begin_disarming(&mut self, path: &Path) -> bool {
        let key = name_of(path);
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

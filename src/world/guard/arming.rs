//! Arming whole trees: first the watch, then the list, and what of the list is told.

use super::Seen;
use super::clock::FileTime;
use super::keeper::Keeper;
use super::walk::{Entry, is_left_out, list};
use super::watcher::Unarmed;
use std::io;
use std::path::Path;

/// What of a folder's entries is told when it is armed.
#[derive(Clone, Copy)]
pub(super) enum Telling {
    /// All of them: they came with it.
    All,
    /// Those that changed since, by somebody whom nobody watched.
    Unwatched(FileTime),
    /// Those that changed since; they may have been told before.
    Since(FileTime),
    /// None.
    Nothing,
}

impl Keeper {
    pub(super) fn arm_place(&mut self, no: u64, telling: Telling) {
        for folder in self.places[&no].folders.clone() {
            if let Some(home) = folder.parent() {
                // For what takes the tree's place.
                if let Some(Unarmed::Never(why)) = self.arm(home) {
                    self.limit(no, why);
                }
            }
            match std::fs::symlink_metadata(&folder) {
                Ok(found) => self.tell(no, telling, &Entry { path: folder.clone(), found }),
                Err(_) => (self.told)(Seen::Unwatched { no, path: folder.clone() }),
            }
            self.arm_tree(no, &folder, &folder, telling);
        }
    }

    /// Watches a folder and everything below it.
    pub(super) fn arm_tree(&mut self, no: u64, root: &Path, folder: &Path, telling: Telling) {
        let mut ahead = vec![folder.to_owned()];
        while let Some(folder) = ahead.pop() {
            if is_left_out(root, &folder) {
                continue;
            }
            match self.arm(&folder) {
                None => {
                    self.places.entry(no).or_default().armed.insert(folder.clone());
                }
                Some(Unarmed::Gone) => continue,
                Some(Unarmed::Astray) => {
                    // Notify would take this for the name of what it led to, and drop that watch when this name goes.
                    self.watcher.iter_mut().for_each(|watcher| watcher.disarm(&folder));
                    self.astray = true;
                    continue;
                }
                Some(Unarmed::Never(why)) => self.limit(no, why),
            }
            match list(&folder) {
                Ok(entries) => {
                    for entry in entries {
                        if is_left_out(root, &entry.path) {
                            continue;
                        }
                        self.tell(no, telling, &entry);
                        if entry.found.is_dir() {
                            ahead.push(entry.path);
                        } else if matches!(telling, Telling::All) {
                            self.links.suspect(no, &entry.path, &entry.found);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.limit(no, format!("{} cannot be listed: {error}", folder.display())),
            }
        }
    }

    fn arm(&mut self, folder: &Path) -> Option<Unarmed> {
        match &mut self.watcher {
            Some(watcher) => watcher.arm(folder).err(),
            None => {
                Some(Unarmed::Never("there is no watcher (raise fs.inotify.max_user_instances)".to_owned()))
            }
        }
    }

    pub(super) fn limit(&mut self, no: u64, why: String) {
        let place = self.places.entry(no).or_default();
        if !std::mem::replace(&mut place.limited, true) {
            (self.told)(Seen::Limit { no, why });
        }
    }

    fn tell(&self, no: u64, telling: Telling, entry: &Entry) {
        let path = entry.path.clone();
        match telling {
            Telling::All => (self.told)(Seen::Changed { no, path }),
            // An older folder that changed is one in which something came or went, which has been told by name.
            Telling::Since(since) if entry.changed() >= since && !entry.is_older_folder(since) => {
                (self.told)(Seen::Changed { no, path });
            }
            Telling::Unwatched(since) if entry.changed() >= since => {
                (self.told)(Seen::Unwatched { no, path });
            }
            _ => {}
        }
    }

    /// Some folder has lost its watch, and which one is not known. What changed there meanwhile
    /// is told; what was removed in that moment is not.
    pub(super) fn arm_all_anew(&mut self) {
        for no in self.places.keys().copied().collect::<Vec<_>>() {
            let since = self.good_for(no);
            for folder in self.places[&no].folders.clone() {
                self.arm_tree(no, &folder, &folder, Telling::Since(since));
            }
        }
    }
}

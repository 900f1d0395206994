//! What changed in a tree, path by path, since the oldest moment that some reader still speaks of.
//!
//! A reader was right at some version of the tree. For each path that changed since then the record says what stood there
//! until which version; readers of a hundred moments share it, and no tree is ever stored twice. A path that is again
//! what it was at every version that somebody speaks of has no record. When all readers are fresh there is none at all.

use super::sum::Print;
use crate::index::Index;
use crate::index::SourceId;
use crate::index::found::Found;
use crate::index::freshness::{Freshness, judge};
use crate::index::row::{Changed, Row};
use crate::index::shelf::source_key;
use crate::index::storage::{SourceState, Storage, StorageError, Table};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One path's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::index) struct Past {
    /// What stood there up to and including each of these versions, oldest first.
    pub(in crate::index) until: Vec<(u64, Option<Print>)>,
    /// What stands there now.
    pub(in crate::index) now: Option<Print>,
}

impl Past {
    /// What stood there at a version.
    fn at(&self, version: u64) -> Option<Print> {
        self.until.iter().find(|(until, _)| *until >= version).map_or(self.now, |(_, print)| *print)
    }

    /// Forgets what nobody speaks of. `moments` are sorted. Whether anything is left to say.
    fn prune(&mut self, moments: &[u64]) -> bool {
        let mut from = 0;
        self.until.retain(|(until, _)| {
            let spoken_of = moments.iter().any(|moment| (from..=*until).contains(moment));
            from = if spoken_of { until + 1 } else { from };
            spoken_of
        });
        moments.iter().any(|&moment| self.at(moment) != self.now)
    }
}

/// What differs from one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::index) struct Since {
    /// How many paths, and the first of them.
    pub(in crate::index) changed: Changed,
    /// A name appeared or vanished.
    pub(in crate::index) names: bool,
}

impl<S: Storage> Index<S> {
    /// The state of a path below a tree changed. `moments` are the versions that readers speak of, and `version` is the
    /// last that the tree was in as a whole.
    pub(in crate::index) fn remember(
        &mut self,
        tree: SourceId,
        path: &Path,
        (old, new): (Option<Print>, Option<Print>),
    ) -> Result<(), StorageError> {
        let Some(held) = self.grove.trees.get(&tree).filter(|held| !held.moments.is_empty()) else {
            return Ok(());
        };
        let version = held.version;
        // Before anything is written: half of a look that is told again after the process ended could not be told apart.
        self.set_adrift(tree)?;
        let key = change_key(tree, path);
        let record: Option<Past> = self.shelf.get(Table::Changes, &key)?;
        let mut past = record.unwrap_or(Past { until: Vec::new(), now: old });
        let known_until = past.until.last().map(|(until, _)| *until);
        if known_until.is_none_or(|until| until < version) {
            past.until.push((version, past.now));
        }
        past.now = new;
        let moments = self.grove.trees.get(&tree).map_or(&[][..], |held| &held.moments);
        if past.prune(moments) {
            self.shelf.put(Table::Changes, &key, &past)
        } else {
            self.shelf.remove(Table::Changes, &key)
        }
    }

    /// What changed in a tree since each of these versions.
    pub(in crate::index) fn changed_since(
        &self,
        tree: SourceId,
        versions: &[u64],
    ) -> Result<BTreeMap<u64, Since>, StorageError> {
        let mut since: BTreeMap<u64, Since> =
            versions.iter().map(|&version| (version, Since::default())).collect();
        for (key, past) in self.shelf.list::<Past>(Table::Changes, &source_key(tree))? {
            for (&version, since) in &mut since {
                let then = past.at(version);
                if then == past.now {
                    continue;
                }
                since.names |= then.is_none() || past.now.is_none();
                since.changed.number += 1;
                if since.changed.paths.len() < Changed::PATHS_MAX {
                    since.changed.paths.push(PathBuf::from(OsStr::from_bytes(&key[8..])));
                }
            }
        }
        Ok(since)
    }

    /// Every path that differs from what a reader of a tree saw, below the tree, in the order of names. None where that
    /// cannot be told: the tree is being verified, or what stood there then is not known any more.
    pub fn changed_paths(&self, row: &Row) -> Result<Option<Vec<PathBuf>>, StorageError> {
        let Some(tree) = row.source_id.filter(|source| !self.is_pending(*source)) else { return Ok(None) };
        let state: SourceState = self.shelf.must(Table::Sources, &source_key(tree))?;
        let Some(found @ Found::Tree(_)) = &state.found else { return Ok(None) };
        if judge(row, found) == Freshness::Fresh {
            return Ok(Some(Vec::new()));
        }
        let Some(version) = row.as_of else { return Ok(None) };
        let changes = self.shelf.list::<Past>(Table::Changes, &source_key(tree))?;
        let differs = changes.into_iter().filter(|(_, past)| past.at(version) != past.now);
        Ok(Some(differs.map(|(key, _)| PathBuf::from(OsStr::from_bytes(&key[8..]))).collect()))
    }

    /// Forgets what no reader speaks of any more.
    pub(in crate::index) fn forget_changes(
        &mut self,
        tree: SourceId,
        moments: &[u64],
    ) -> Result<(), StorageError> {
        for (key, mut past) in self.shelf.list::<Past>(Table::Changes, &source_key(tree))? {
            let held = past.clone();
            if !past.prune(moments) {
                self.shelf.remove(Table::Changes, &key)?;
            } else if past != held {
                self.shelf.put(Table::Changes, &key, &past)?;
            }
        }
        Ok(())
    }
}

fn change_key(tree: SourceId, path: &Path) -> Vec<u8> {
    [&source_key(tree)[..], path.as_os_str().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{Past, Print};

    #[expect(clippy::unnecessary_wraps, reason = "a path's state is a print or nothing")]
    fn print(byte: u8) -> Option<Print> {
        Some(Print([byte; 32]))
    }

    #[test]
    fn a_path_is_told_as_it_stood_at_each_version() {
        let past = Past { until: vec![(3, print(1)), (7, None)], now: print(2) };
        for (version, stood) in [(0, print(1)), (3, print(1)), (4, None), (7, None), (8, print(2))] {
            assert_eq!(past.at(version), stood, "{version}");
        }
    }

    #[test]
    fn only_what_somebody_speaks_of_is_kept() {
        let until = vec![(3, print(1)), (7, None), (9, print(3))];
        for (moments, kept, told) in [
            (&[2_u64, 8][..], vec![(3, print(1)), (9, print(3))], true),
            (&[5], vec![(7, None)], true),
            (&[10], vec![], false),
            (&[], vec![], false),
        ] {
            let mut past = Past { until: until.clone(), now: print(2) };
            assert_eq!(past.prune(moments), told, "{moments:?}");
            assert_eq!(past.until, kept, "{moments:?}");
        }
        let mut back = Past { until: vec![(3, print(1)), (4, print(2))], now: print(1) };
        assert!(!back.prune(&[1]), "it is again what it was for all who speak of it");
    }
}

//! Where things went: what a rename event told about sources that were renamed away, with the folder they stood in or
//! alone. A hint like every event; a look confirms it or drops it.

use super::{Marks, name_of, path_of};
use crate::index::SourceId;
use std::path::{Path, PathBuf};

impl Marks {
    /// Something was renamed. It is struck as any event is; this only remembers where to.
    pub(in crate::world) fn renamed(&mut self, from: &Path, to: &Path) {
        for gone in self.renames.values_mut() {
            if let Some(on) = moved(gone, from, to) {
                *gone = on;
            }
        }
        for source in self.hearing(from) {
            let end = self.bound.get(&source).and_then(|held| held.end.as_deref());
            if let Some(to) = end.and_then(|end| moved(path_of(end), from, to)) {
                self.renames.insert(source, to);
            } else if let Some(to) = self.gone.get(&source).and_then(|stood| moved(stood, from, to)) {
                // What was told before is followed above.
                self.renames.entry(source).or_insert(to);
            }
        }
    }

    /// The sources that are marked when something happens at a path, those that are led over it among them.
    fn hearing(&self, path: &Path) -> Vec<SourceId> {
        let Some(heard) = self.interests.get(name_of(path)) else { return Vec::new() };
        let ways = heard.ways.iter().filter_map(|way| self.ways.get(way));
        let led = ways.flat_map(|way| &way.readers);
        heard.sources.iter().chain(led).copied().collect()
    }

    /// Where the file of a source went.
    pub(in crate::world) fn renamed_to(&self, source: SourceId) -> Option<PathBuf> {
        self.renames.get(&source).cloned()
    }

    /// It is back, or something else is in its place.
    pub(in crate::world) fn forget_rename(&mut self, source: SourceId) {
        self.renames.remove(&source);
    }
}

/// Where a path leads after a rename of itself or of a folder on its way.
fn moved(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

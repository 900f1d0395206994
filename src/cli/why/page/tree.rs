//! Rows in the folders that their paths name. Pure.
//!
//! A chain of folders with nothing else in them is one step. What is deeper than a page can show is named by the rest of
//! its path.

use crate::cli::words::{harmless, state};
use crate::protocol::path::Reference;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Steps from the top. Browsers give up on pages that are nested much deeper.
const DEPTH_MAX: usize = 24;

/// How many rows are in which state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) fresh: usize,
    pub(super) stale: usize,
    pub(super) unknown: usize,
}

impl Tally {
    fn count(&mut self, row: &Value) {
        match state(row).0 {
            "fresh" => self.fresh += 1,
            "stale" => self.stale += 1,
            _ => self.unknown += 1,
        }
    }

    /// In words, what is doubtful first.
    pub(super) fn words(self) -> String {
        let parts = [(self.stale, "stale"), (self.unknown, "unknown"), (self.fresh, "fresh")];
        let parts =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn is_fresh(self) -> bool {
        self.stale + self.unknown == 0
    }
}

/// A folder with what is in it.
#[derive(Debug, Default)]
pub(super) struct Folder<'rows> {
    /// What is known below it.
    pub(super) tally: Tally,
    /// Folders in it, by their names.
    folders: BTreeMap<OsString, Folder<'rows>>,
    /// Rows in it: what they are called there.
    pub(super) rows: Vec<(String, &'rows Value)>,
}

impl<'rows> Folder<'rows> {
    /// All rows, each in its folder.
    pub(super) fn of(rows: impl IntoIterator<Item = &'rows Value>) -> Self {
        let mut top = Self::default();
        rows.into_iter().for_each(|row| top.put(row));
        top.sort();
        top
    }

    /// The folders in it; each with the name of the whole step to it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (String, &Self)> {
        self.folders.iter().map(|(name, folder)| {
            let (mut path, mut folder) = (PathBuf::from(name), folder);
            while let (true, [(name, only)]) = (folder.rows.is_empty(), folder.pair().as_slice()) {
                path.push(name);
                folder = only;
            }
            (harmless(&path.to_string_lossy()), folder)
        })
    }

    /// Its folders, but no more than two.
    fn pair(&self) -> Vec<(&OsString, &Self)> {
        self.folders.iter().take(2).collect()
    }

    fn put(&mut self, row: &'rows Value) {
        let path = serde_json::from_value(row["source"].clone())
            .map_or_else(|_| PathBuf::new(), |Reference(path)| path);
        let steps: Vec<OsString> = path
            .components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| part.as_os_str().to_owned())
            .collect();
        let deep = steps.len().saturating_sub(1).min(DEPTH_MAX);
        let rest: PathBuf = steps[deep..].iter().collect();
        let rest = if rest == Path::new("") { "." } else { &*rest.to_string_lossy() };
        let mut folder = self;
        folder.tally.count(row);
        for step in &steps[..deep] {
            folder = folder.folders.entry(step.clone()).or_default();
            folder.tally.count(row);
        }
        folder.rows.push((harmless(rest), row));
    }

    /// What is doubtful first, then by name.
    fn sort(&mut self) {
        self.rows.sort_by_cached_key(|(name, row)| (state(row).0 == "fresh", name.clone()));
        self.folders.values_mut().for_each(Self::sort);
    }
}

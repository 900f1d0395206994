//! Disks made of transcripts: what an agent saw whole, what it saw in part between lines of our own, and something where
//! it only knew that there is something.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::harness::Place;
use staled::agent::context::{Imported, context, known_files};
use staled::agent::rebase::{Places, Rebased, rebase};
use staled::agent::transcript::{Entry, Knowledge, Range, Transcript};
use staled::protocol::context::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Both machines, the other one known by its transcript.
pub(super) fn places<'a>(transcript: &'a Transcript, place: &'a Place) -> Places<'a> {
    Places {
        root: &place.root,
        first_cwd: transcript.first_cwd.as_deref(),
        cwds: &transcript.cwds,
        maps: &[],
        home: None,
    }
}

/// The lines that were shown of files that are known in part only.
pub(super) fn parts(transcript: &Transcript, places: &Places<'_>) -> BTreeMap<PathBuf, Vec<Range>> {
    let mut parts = BTreeMap::new();
    for entry in transcript.entries.iter().filter(|entry| entry.knowledge == Knowledge::Partial) {
        if let Rebased::Inside(path) = rebase(&entry.path, places) {
            parts.entry(path).or_insert_with(|| entry.ranges.clone());
        }
    }
    parts
}

/// Files that are not there, by what the transcript shows.
pub(super) fn gone(transcript: &Transcript, places: &Places<'_>) -> BTreeSet<PathBuf> {
    let gone = transcript.entries.iter().filter(|entry| entry.knowledge == Knowledge::Absent);
    let inside = |entry: &Entry| match rebase(&entry.path, places) {
        Rebased::Inside(path) => Some(path),
        Rebased::Outside(_) => None,
    };
    gone.filter_map(inside).collect()
}

/// Every file of which the transcript shows something.
pub(super) fn files(transcript: &Transcript, places: &Places<'_>) -> BTreeMap<PathBuf, Vec<u8>> {
    let parts = parts(transcript, places);
    let mut files: BTreeMap<PathBuf, Vec<u8>> =
        parts.into_iter().map(|(path, ranges)| (path, around(&ranges))).collect();
    files.extend(known_files(transcript, places).into_iter().map(|(path, seen)| (path, seen.to_vec())));
    files
}

/// A file in which these lines stand at their places.
fn around(ranges: &[Range]) -> Vec<u8> {
    let total = ranges.iter().map(|range| range.total.max(range.start + range.lines - 1)).max().unwrap();
    let mut lines: Vec<String> = (1..=total).map(|number| format!("line {number} was not shown")).collect();
    for range in ranges {
        let shown = String::from_utf8(range.content.0.clone()).unwrap();
        let first = usize::try_from(range.start).unwrap() - 1;
        shown.split('\n').zip(&mut lines[first..]).for_each(|(line, place)| line.clone_into(place));
    }
    lines.join("\n").into_bytes()
}

/// Lets everything that the import names be there, and imports.
pub(super) fn furnish(transcript: &Transcript, place: &Place, name: &str) -> Imported {
    // What is there decides what a path was taken for, so it may take a second time.
    for _ in 0..3 {
        let imported = import(transcript, place, name);
        let told = imported.context.results.iter().map(|told| &told.source);
        told.flat_map(|told| told.inputs.iter().flatten().chain([told]))
            .for_each(|told| stand_in(told, place));
    }
    import(transcript, place, name)
}

/// The context of a transcript at a root.
pub(super) fn import(transcript: &Transcript, place: &Place, name: &str) -> Imported {
    context(transcript, &places(transcript, place), Some(name.to_owned()), None)
}

fn stand_in(told: &Source, place: &Place) {
    let Some(path) = told.path.as_ref().map(|path| place.root.join(&path.0)) else { return };
    match told.kind.as_str() {
        "tree" => std::fs::create_dir_all(path).unwrap(),
        "file" if !path.exists() => write(&path, b"known by name only\n"),
        _ => {}
    }
}

/// Writes a file, and the folders it is in.
pub(super) fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

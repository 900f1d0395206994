//! A naive judge: what must be stale, told from the bytes on the disk and nothing else.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::harness::Place;
use staled::protocol::context::{Belief, LineRange, Source};
use staled::world::digest::blake3;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What stands below a root: every file with its bytes.
pub(super) type Disk = BTreeMap<PathBuf, Vec<u8>>;

/// What must be said of a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Must {
    Fresh,
    Stale,
    /// A filter decides that this judge does not know.
    Either,
}

/// Everything below the root.
pub(super) fn disk(place: &Place) -> Disk {
    let mut files = Disk::new();
    let mut folders = vec![place.root.clone()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(&place.root).unwrap().into(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// What must be said of a result that was registered when the disk was `then`.
pub(super) fn judge(told: &Belief, then: &Disk, now: &Disk) -> Must {
    match &told.digest {
        Some(seen) => stale_if(here(&told.source, now).as_ref() != Some(seen)),
        None => judge_source(&told.source, then, now),
    }
}

fn judge_source(source: &Source, then: &Disk, now: &Disk) -> Must {
    match source.kind.as_str() {
        "file" => stale_if(here(source, then) != here(source, now) || here(source, now).is_none()),
        "absent" => stale_if(now.contains_key(path(source))),
        "tree" => judge_tree(source, then, now),
        "command" => {
            let root =
                Source { kind: "tree".to_owned(), path: Some(Path::new(".").into()), ..Source::default() };
            let inputs = source.inputs.as_deref().unwrap_or(std::slice::from_ref(&root));
            let musts: Vec<Must> = inputs.iter().map(|input| judge_source(input, then, now)).collect();
            let any = |must| musts.contains(&must);
            if any(Must::Stale) {
                Must::Stale
            } else if any(Must::Either) {
                Must::Either
            } else {
                Must::Fresh
            }
        }
        _ => Must::Stale,
    }
}

fn judge_tree(tree: &Source, then: &Disk, now: &Disk) -> Must {
    let folder = path(tree);
    let below = |path: &&PathBuf| folder == Path::new(".") || path.starts_with(folder);
    let paths: BTreeSet<&PathBuf> = then.keys().chain(now.keys()).filter(below).collect();
    let bytes = tree.contents != Some(false);
    let differs = |path: &&&PathBuf| match (then.get(**path), now.get(**path)) {
        (Some(then), Some(now)) => bytes && then != now,
        _ => true,
    };
    let filtered = !tree.include.is_empty() || !tree.exclude.is_empty();
    match paths.iter().filter(differs).count() {
        0 => Must::Fresh,
        _ if filtered => Must::Either,
        _ => Must::Stale,
    }
}

fn stale_if(stale: bool) -> Must {
    if stale { Must::Stale } else { Must::Fresh }
}

fn here(source: &Source, disk: &Disk) -> Option<String> {
    let bytes = disk.get(path(source))?;
    let Some(LineRange { start_line, lines }) = source.range else { return Some(blake3(bytes).to_string()) };
    let text = String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "\n");
    let first = usize::try_from(start_line).unwrap() - 1;
    let lines: Vec<&str> = text.split('\n').skip(first).take(usize::try_from(lines).unwrap()).collect();
    (!lines.is_empty()).then(|| blake3(lines.join("\n").as_bytes()).to_string())
}

fn path(source: &Source) -> &Path {
    &source.path.as_ref().unwrap().0
}

//! Searches, commands and ranges of real sessions: how many of each an import registers.
//!
//! The root is empty, so that nothing but the transcript decides. The numbers were counted once, and looked at row by
//! row: a change of the rules shows here first.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use crate::harness::skipped;
use staled::agent::{self, context::context, rebase::Places};
use staled::protocol::context::Belief;
use std::path::Path;

/// Transcript, then how many ranges, trees, commands and volatile results, and how many questions were left out.
type Row = (&'static str, [usize; 5]);

const ROWS: &[Row] = &[
    ("cc-1.0.117-120-obra-large", [8, 0, 1, 2, 42]),
    ("cc-1.0.119-obra-tiny", [0, 0, 0, 0, 0]),
    ("cc-1.0.98-inline-sidechain", [0, 1, 18, 4, 32]),
    ("cc-2.0.76-small", [0, 2, 2, 0, 5]),
    ("cc-2.1.119-skills-8", [1, 0, 6, 5, 40]),
    ("cc-2.1.12-tiny", [0, 0, 3, 0, 2]),
    ("cc-2.1.14", [12, 3, 15, 0, 50]),
    ("cc-2.1.17-microcompact", [5, 2, 1, 0, 10]),
    ("cc-2.1.205-windows", [5, 0, 24, 16, 20]),
    ("cc-2.1.217-stalehint", [0, 1, 3, 4, 18]),
    ("cc-2.1.37-compact", [5, 9, 0, 19, 56]),
    ("cc-2.1.37-worktree", [0, 1, 2, 22, 33]),
    ("cc-2.1.39-branchswitch", [0, 0, 0, 1, 21]),
    ("cc-2.1.41-packmind", [3, 0, 4, 0, 9]),
    ("cc-2.1.49-cipherbox", [3, 4, 5, 12, 26]),
    ("cc-2.1.7-20files", [1, 8, 3, 1, 21]),
    ("cc-2.1.7-small", [0, 2, 0, 0, 4]),
    ("cc-obra-medium-noconv", [0, 0, 0, 0, 0]),
    ("codex-0.118", [0, 0, 1, 3, 12]),
    ("codex-0.126-vscode", [3, 0, 1, 5, 12]),
    ("codex-0.140-tiny", [0, 0, 3, 1, 10]),
    ("codex-0.141-52reads", [15, 0, 11, 98, 43]),
    ("codex-0.142.2-compacted", [17, 0, 12, 46, 61]),
];

#[test]
fn every_session_has_its_ranges_trees_and_commands() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let root = tempfile::tempdir().unwrap();
    let mut found: Vec<(String, [usize; 5])> = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".jsonl.gz") {
            found.push((name.to_owned(), count(&path, root.path())));
        }
    }
    found.sort();
    let want: Vec<_> = ROWS.iter().map(|&(name, row)| (name.to_owned(), row)).collect();
    assert_eq!(found, want);
}

fn count(path: &Path, root: &Path) -> [usize; 5] {
    let transcript = agent::open(path).unwrap();
    let cwd = transcript.first_cwd.as_deref();
    let places = Places { root, first_cwd: cwd, cwds: &transcript.cwds, maps: &[], home: None };
    let imported = context(&transcript, &places, None, None);
    let results = &imported.context.results;
    let of = |belongs: fn(&Belief) -> bool| results.iter().filter(|told| belongs(told)).count();
    let row = [
        of(|told| told.source.range.is_some()),
        of(|told| told.source.kind == "tree"),
        of(|told| told.source.kind == "command"),
        of(|told| told.source.kind == "volatile"),
        imported.counts.left_out,
    ];
    let asked = |told: &&Belief| matches!(told.source.kind.as_str(), "tree" | "command" | "volatile");
    assert!(results.iter().filter(asked).all(|told| told.critical == Some(false) && told.digest.is_none()));
    assert_eq!((row[2], row[3]), (imported.counts.commands, imported.counts.volatile), "{}", path.display());
    row
}

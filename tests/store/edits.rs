//! Random edits of a decision log of several files: with a receipt of its last line every one of them is found.

use crate::harness::say;
use staled::store::decision_log::{DecisionLog, Outcome, Receipt, verify_files};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A log of three files with ten lines of the caller's each.
struct Log {
    _folder: tempfile::TempDir,
    path: PathBuf,
    files: Vec<PathBuf>,
    whole: Vec<Vec<u8>>,
    last: Receipt,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions.jsonl");
        let (mut log, _) = DecisionLog::open(&path).unwrap();
        let mut files = Vec::new();
        for file in 0..3 {
            if file > 0 {
                files.push(folder.path().join(format!("decisions-{file}.jsonl")));
                log.rotate(&files[file - 1], None).unwrap();
            }
            for n in 0..10 {
                log.append(&format!(r#"{{"n":{n},"text":"{}"}}"#, "é {\\\"} ".repeat(n))).unwrap();
            }
        }
        files.push(path.clone());
        let last = log.last().unwrap().clone();
        let whole = files.iter().map(|path| fs::read(path).unwrap()).collect();
        Self { _folder: folder, path, files, whole, last }
    }

    /// Whether the edit is seen: broken, or a last line that is torn.
    fn is_found(&self) -> Result<bool, Outcome> {
        let outcome = verify_files(&self.path, &[], std::slice::from_ref(&self.last)).unwrap().outcome;
        match outcome {
            Outcome::Broken { .. } | Outcome::TornTail { .. } => Ok(true),
            Outcome::Verified { .. } => Err(outcome),
        }
    }
}

const EDITS: [(&str, fn(&[u8], &mut fastrand::Rng) -> Vec<u8>); 7] = [
    ("flip", flip),
    ("zero", zero),
    ("cut the end", |bytes, random| bytes[..random.usize(..bytes.len())].to_vec()),
    ("delete bytes", |bytes, random| without(bytes, &range(bytes, random))),
    ("delete a line", |bytes, random| without(bytes, &line(bytes, random))),
    ("insert", insert),
    ("swap", swap),
];

fn flip(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    edited[random.usize(..bytes.len())] ^= 1 << random.u8(..8);
    edited
}

fn zero(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    edited[range(bytes, random)].fill(0);
    edited
}

/// A line once more, anywhere between lines, or some bytes anywhere.
fn insert(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let (at, new) = if random.bool() {
        (line(bytes, random).start, bytes[line(bytes, random)].to_vec())
    } else {
        (random.usize(..bytes.len()), (0..random.usize(1..50)).map(|_| random.u8(..)).collect())
    };
    [&bytes[..at], &new, &bytes[at..]].concat()
}

/// Two lines, each in the other's place.
fn swap(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let one = random.usize(..lines.len());
    let other = (one + random.usize(1..lines.len())) % lines.len();
    lines.swap(one, other);
    lines.concat()
}

fn range(bytes: &[u8], random: &mut fastrand::Rng) -> Range<usize> {
    let start = random.usize(..bytes.len());
    start..(start + random.usize(1..200)).min(bytes.len())
}

fn line(bytes: &[u8], random: &mut fastrand::Rng) -> Range<usize> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let before = random.usize(..lines.len());
    let start = lines[..before].concat().len();
    start..start + lines[before].len()
}

fn without(bytes: &[u8], gone: &Range<usize>) -> Vec<u8> {
    [&bytes[..gone.start], &bytes[gone.end..]].concat()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_random_edit_of_a_log_is_found() {
    let log = Log::new();
    assert_eq!(log.is_found(), Err(Outcome::Verified { anchored: true }), "as it was written");
    let first = number("SEED").unwrap_or_else(|| fastrand::u64(..));
    let trials = number("STALED_TRIALS").unwrap_or(200);
    for seed in (0..trials).map(|trial| first.wrapping_add(trial)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let file = random.usize(..log.files.len());
        let (name, edit) = EDITS[random.usize(..EDITS.len())];
        let (path, whole): (&Path, &[u8]) = (&log.files[file], &log.whole[file]);
        let edited = edit(whole, random);
        assert_ne!(edited, whole, "{name} changes nothing; again with SEED={seed} STALED_TRIALS=1");
        fs::write(path, edited).unwrap();
        let found = log.is_found();
        assert_eq!(found, Ok(true), "{name} in file {file}; again with SEED={seed} STALED_TRIALS=1");
        fs::write(path, whole).unwrap();
    }
    say(&format!("{trials} edits of a decision log, all found"));
}

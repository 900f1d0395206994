//! Real transcripts, read where they lie beside the repository, against an independent replay and against the commits
//! that the sessions ended in. Skipped, aloud, where that folder does not exist.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use crate::harness::skipped;
use serde_json::Value;
use staled::agent::{
    self,
    rebase::{Places, Rebased, rebase},
    transcript::{Agent, Entry, Knowledge, Transcript},
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where we know better than the reference replay, which ignores `edited_text_file`: there the harness reports 164
/// lines that contradict the content read before, so that content is not what the session believes any more.
const CONTRADICTED: &[(&str, &str)] = &[("cc-2.1.119-skills-8", "/Users/dev/Projects/skills/README.md")];

#[test]
fn every_transcript_can_be_read() {
    let Some(folder) = folder() else { return };
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".jsonl.gz") {
            continue;
        }
        let got = agent::open(&file).unwrap();
        assert!(got.incomplete_tail.is_none(), "{name}");
        let agent = if name.starts_with("codex-") { Agent::Codex } else { Agent::ClaudeCode };
        assert_eq!(got.agent, agent, "{name}");
        read += 1;
    }
    assert_eq!(read, 23);
}

#[test]
fn transcripts_agree_with_the_reference_replay() {
    let Some(folder) = folder() else { return };
    let (mut files, mut entries) = (0, 0);
    for (name, want) in json(&folder.join("expected.json")).as_object().unwrap() {
        let got = agent::open(&folder.join(format!("{name}.jsonl.gz"))).unwrap();
        check_counts(name, &got, want);
        entries += check_entries(name, &got, want["entries"].as_array().unwrap());
        files += 1;
    }
    assert_eq!((files, entries), (18, 216));
}

#[test]
fn transcripts_agree_with_the_commits_they_ended_in() {
    let Some(folder) = folder() else { return };
    let (mut sessions, mut contents) = (0, 0);
    for truth in json(&folder.join("truth.json")).as_array().unwrap() {
        if truth["agent"] != "claude-code" {
            continue;
        }
        let got = agent::open(&folder.join(truth["file"].as_str().unwrap())).unwrap();
        assert_eq!(got.first_cwd.as_deref(), Some(Path::new(truth["session_cwd"].as_str().unwrap())));
        contents += check_truth(&got, truth);
        sessions += 1;
    }
    assert_eq!((sessions, contents), (10, 95));
}

fn check_counts(name: &str, got: &Transcript, want: &Value) {
    assert_eq!(got.counts.lines, want["lines"], "{name}");
    assert_eq!(got.counts.unparsable, want["unparsable"], "{name}");
    assert_eq!(got.counts.line_types, counts(&want["line_types"]), "{name}");
    assert_eq!(got.counts.tool_results, counts(&want["tool_results_main_file"]), "{name}");
    assert_eq!(got.first_cwd.as_deref().map(Path::to_string_lossy).as_deref(), want["first_cwd"].as_str());
    assert_eq!(got.versions, texts(&want["versions"]), "{name}");
}

/// Compares the entries that the reference replay has: ours are more by absent files and attachments.
fn check_entries(name: &str, got: &Transcript, want: &[Value]) -> usize {
    let ours: BTreeMap<&Path, &Entry> =
        got.entries.iter().map(|entry| (entry.path.as_path(), entry)).collect();
    assert_eq!(ours.len(), got.entries.len(), "{name}: a path has two entries");
    for want in want {
        let path = want["path"].as_str().unwrap();
        let entry = ours.get(Path::new(path)).unwrap_or_else(|| panic!("{name}: no entry for {path}"));
        if CONTRADICTED.contains(&(name, path)) {
            assert!(entry.contradicted && entry.knowledge == Knowledge::Unknown, "{name}: {path}");
            continue;
        }
        let (digest, bytes) = full(entry).unzip();
        assert_eq!(digest.as_deref(), want["full_content_blake3"].as_str(), "{name}: {path}");
        assert_eq!(bytes, want["bytes"].as_u64(), "{name}: {path}");
        assert_eq!(ranges(entry), expected_ranges(&want["partial_ranges"]), "{name}: {path}");
    }
    let theirs: BTreeSet<&str> = want.iter().filter_map(|entry| entry["path"].as_str()).collect();
    for entry in got.entries.iter().filter(|entry| !theirs.contains(entry.path.to_str().unwrap())) {
        let known = entry.knowledge == Knowledge::Absent || entry.tool == "Attachment";
        assert!(known, "{name}: an entry too many: {entry:?}");
    }
    want.len()
}

fn check_truth(got: &Transcript, truth: &Value) -> usize {
    let id = &truth["id"];
    let places = Places {
        root: Path::new("/elsewhere/repository"),
        first_cwd: got.first_cwd.as_deref(),
        cwds: &got.cwds,
        maps: &[],
        home: None,
    };
    let mut inside = BTreeMap::new();
    let mut outside = BTreeSet::new();
    for entry in &got.entries {
        match rebase(&entry.path, &places) {
            Rebased::Inside(path) => assert!(inside.insert(path, entry).is_none(), "{id}: {entry:?} twice"),
            Rebased::Outside(path) => drop(outside.insert(path.to_string_lossy().into_owned())),
        }
    }
    // User names were replaced in the transcripts but not in these paths, so they are told by their last component.
    let name = |path: &str| path.rsplit(['/', '\\']).next().map(str::to_owned);
    let outside_names: BTreeSet<_> = outside.iter().map(|path| name(path)).collect();
    for path in texts(&truth["outside_root"]) {
        assert!(outside_names.contains(&name(&path)), "{id}: {path} is not outside");
    }
    let not_asserted = texts(&truth["not_asserted"]);
    let mut contents = 0;
    for (path, want) in truth["tracked"].as_object().unwrap() {
        let entry = inside.get(&PathBuf::from(path)).unwrap_or_else(|| panic!("{id}: no entry for {path}"));
        if want["content_in_transcript"] == "full" && !not_asserted.contains(path) {
            let (digest, _) = full(entry).unwrap_or_else(|| panic!("{id}: {path} is not known"));
            assert_eq!(digest, want["x_blake3"], "{id}: {path}");
            contents += 1;
        }
    }
    contents
}

fn full(entry: &Entry) -> Option<(String, u64)> {
    match &entry.knowledge {
        Knowledge::Full { digest, bytes, .. } => Some((digest.to_hex(), *bytes)),
        _ => None,
    }
}

fn ranges(entry: &Entry) -> BTreeSet<(u64, u64, u64)> {
    entry.ranges.iter().map(|range| (range.start, range.lines, range.total)).collect()
}

/// The reference replay keeps every look; we keep none that a later one covers, nor looks at no line.
fn expected_ranges(list: &Value) -> BTreeSet<(u64, u64, u64)> {
    let looks: Vec<(u64, u64, u64)> = serde_json::from_value(list.clone()).unwrap();
    let covered = |at: usize, (start, lines, _): (u64, u64, u64)| {
        looks[at + 1..].iter().any(|later| later.0 <= start && start + lines <= later.0 + later.1)
    };
    let kept = looks.iter().enumerate().filter(|&(at, &look)| look.1 > 0 && !covered(at, look));
    kept.map(|(_, &look)| look).collect()
}

fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(FOLDER);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(&format!("there is no {FOLDER}"));
    None
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn counts(value: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(value.clone()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

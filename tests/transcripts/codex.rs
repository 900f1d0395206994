//! Rollouts of Codex: every number, and every content, against a second reading that is as small as can be, and against
//! the commits around the sessions.
//!
//! The second reading knows `cat`, `sed -n` and `nl -ba` by their letters alone, and the changes of patches by their
//! paths. What it finds must be among the entries; it does not claim to find all of them.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use crate::harness::{say, skipped};
use serde_json::Value;
use staled::agent::transcript::{Agent, Entry, Knowledge, Transcript};
use staled::agent::{self, rebase::Places, rebase::Rebased, rebase::rebase};
use staled::world::digest::blake3;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// File, then lines, results, reads, reads of nothing, files patched, and whether HEAD is still where it began.
const ROWS: [(&str, [usize; 5], bool); 5] = [
    ("codex-0.118", [180, 33, 12, 0, 1], false),
    ("codex-0.126-vscode", [152, 28, 6, 0, 3], false),
    ("codex-0.140-tiny", [92, 21, 2, 0, 15], false),
    ("codex-0.141-52reads", [1146, 266, 68, 0, 17], false),
    ("codex-0.142.2-compacted", [861, 177, 36, 1, 5], false),
];

/// What the second reading finds.
#[derive(Debug, Default)]
struct Found {
    lines: usize,
    answers: usize,
    /// Each plain read: the file, the first line, all that was shown, and whether that goes to the end.
    reads: Vec<(PathBuf, u64, String, bool)>,
    /// Reads of files that were not there.
    missing: Vec<PathBuf>,
    patched: BTreeSet<PathBuf>,
}

#[test]
fn every_rollout_is_read_as_a_second_reading_reads_it() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let mut rows = Vec::new();
    for (name, ..) in ROWS {
        let path = folder.join(format!("{name}.jsonl.gz"));
        let (got, want) = (agent::open(&path).unwrap(), second_reading(&path));
        assert_eq!((got.agent, got.counts.unparsable, got.conversation), (Agent::Codex, 0, true), "{name}");
        assert_eq!((got.counts.lines, &got.warnings[..]), (want.lines as u64, &[][..]), "{name}");
        let answers = got.counts.tool_results.values().sum::<u64>();
        let reads = got.counts.tool_results.get("exec_command:read").copied().unwrap_or(0);
        let edited = got.entries.iter().filter(|entry| entry.edited).map(|entry| entry.path.clone());
        assert_eq!(edited.collect::<BTreeSet<_>>(), want.patched, "{name}");
        let looks = want.reads.len() + want.missing.len();
        assert_eq!((answers, reads), (want.answers as u64, looks as u64), "{name}");
        let absent = |path: &PathBuf| {
            got.entries.iter().any(|entry| entry.path == *path && entry.knowledge == Knowledge::Absent)
        };
        assert!(want.missing.iter().all(absent), "{name}: {:?}", want.missing);
        check_contents(name, &got, &want);
        let row = [want.lines, want.answers, want.reads.len(), want.missing.len(), want.patched.len()];
        rows.push((name, row, got.head.is_some()));
    }
    assert_eq!(rows, ROWS);
}

/// Lines of another program may say anything: some of their words are changed, and nothing is wrong but what is known.
#[test]
fn no_odd_value_is_more_than_an_odd_value() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let mut random = fastrand::Rng::with_seed(7);
    let place = tempfile::tempdir().unwrap();
    let odd = [
        "null",
        "7",
        "-1",
        "[]",
        "{}",
        "\"\"",
        "\"\\ud800\"",
        "18446744073709551615",
        "\"@@ -9,9 +0,0 @@\"",
        "x",
    ];
    for name in ["codex-0.126-vscode", "codex-0.140-tiny"] {
        let text = unpacked(&folder.join(format!("{name}.jsonl.gz")));
        for round in 0..60 {
            let change = |line: &str| {
                // Long texts come as often as short ones, so that calls and answers are met.
                let values: Vec<(usize, &str)> = line.match_indices("\":").collect();
                if values.is_empty() || random.u8(..) > 40 {
                    return line.to_owned() + "\n";
                }
                let start = values[random.usize(..values.len())].0 + 2;
                let end = line[start..].find([',', '}']).map_or(line.len(), |end| start + end);
                let value = odd[random.usize(..odd.len())];
                format!("{}{value}{}\n", &line[..start], &line[end..])
            };
            let file = place.path().join("rollout.jsonl");
            std::fs::write(&file, text.lines().map(change).collect::<String>()).unwrap();
            let got = agent::open(&file).unwrap();
            let context = staled::agent::context::context(
                &got,
                &Places {
                    root: place.path(),
                    first_cwd: got.first_cwd.as_deref(),
                    cwds: &got.cwds,
                    maps: &[],
                    home: None,
                },
                None,
                None,
            );
            assert!(got.counts.lines > 80 && !context.context.results.is_empty(), "{name} {round}");
        }
    }
}

/// The last look at each file that was not patched is what is known of it.
fn check_contents(name: &str, got: &Transcript, want: &Found) {
    let entries: BTreeMap<&Path, &Entry> =
        got.entries.iter().map(|entry| (entry.path.as_path(), entry)).collect();
    for (at, (path, start, shown, to_end)) in want.reads.iter().enumerate() {
        let later = want.reads[at + 1..].iter().any(|(other, ..)| other == path);
        if later || want.patched.contains(path) {
            continue;
        }
        let entry = entries[path.as_path()];
        match &entry.knowledge {
            Knowledge::Full { content, .. } if *start == 1 && *to_end => {
                assert_eq!(String::from_utf8_lossy(content), *shown, "{name}: {}", path.display());
            }
            _ => {
                let shown = shown.strip_suffix('\n').unwrap_or(shown);
                let seen = entry
                    .ranges
                    .iter()
                    .any(|range| range.start == *start && range.content.0 == shown.as_bytes());
                assert!(seen, "{name}: {} from {start}: {entry:?}", path.display());
            }
        }
    }
}

fn second_reading(path: &Path) -> Found {
    let text = unpacked(path);
    let (mut found, mut calls) = (Found::default(), BTreeMap::new());
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        found.lines += 1;
        let item = &line["payload"];
        let id = || item["call_id"].as_str().unwrap().to_owned();
        match item["type"].as_str().unwrap_or_default() {
            "function_call" if item["name"] == "exec_command" => {
                let told = item["arguments"].as_str().unwrap();
                calls.insert(id(), serde_json::from_str::<Value>(told).unwrap());
            }
            "function_call_output" => {
                found.answers += 1;
                let Some((path, first, last, numbered)) = calls.get(&id()).and_then(plain) else { continue };
                let output = item["output"].as_str().unwrap();
                if output.contains("exited with code 2\n") && output.ends_with("No such file or directory\n")
                {
                    found.missing.push(path);
                } else if let Some((shown, to_end)) = shown(output, first, last, numbered) {
                    found.reads.push((path, first, shown, to_end));
                }
            }
            "custom_tool_call_output" => found.answers += 1,
            "patch_apply_end" if item["success"] == true => {
                found.patched.extend(item["changes"].as_object().unwrap().keys().map(PathBuf::from));
            }
            _ => {}
        }
    }
    found
}

pub(super) fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// A plain read: the file, the first line and the last, and whether they have numbers.
pub(super) fn plain(call: &Value) -> Option<(PathBuf, u64, u64, bool)> {
    let command = call["cmd"].as_str().unwrap();
    let moved = command.strip_prefix("cd ").and_then(|rest| rest.split_once(" && "));
    let (folder, command) = moved.unwrap_or((call["workdir"].as_str().unwrap_or_default(), command));
    let numbered = command.strip_prefix("nl -ba ");
    let (file, script) = match (numbered, command.strip_prefix("cat ")) {
        (Some(rest), _) => rest.split_once(" | sed -n ")?,
        (None, Some(file)) => (file, "'1,999999p'"),
        (None, None) => {
            let (script, file) = command.strip_prefix("sed -n ")?.split_once(' ')?;
            (file, script)
        }
    };
    let script = script.strip_prefix('\'')?.strip_suffix("p'")?;
    let (first, last) = script.split_once(',')?;
    let plain = !file.contains([' ', '*', '|', '>', ';', '&', '$', '\'', '"']);
    plain.then_some((
        Path::new(folder).join(file),
        first.parse().ok()?,
        last.parse().ok()?,
        numbered.is_some(),
    ))
}

/// What a read showed, and whether there is no more.
pub(super) fn shown(output: &str, first: u64, last: u64, numbered: bool) -> Option<(String, bool)> {
    let (_, shown) = output.split_once("Process exited with code 0\n")?.1.split_once("Output:\n")?;
    let number = shown.lines().count() as u64;
    let cut = shown.starts_with("Total output lines") || shown.starts_with("Warning: truncated");
    if cut || (number == 0 && first > 1) {
        return None;
    }
    let strip = |line: &str| line.split_once('\t').unwrap().1.to_owned() + "\n";
    let shown = if numbered { shown.lines().map(strip).collect() } else { shown.to_owned() };
    Some((shown, number < last - first + 1))
}

/// What the commits tell of a file that is known whole.
#[derive(Debug, Default, PartialEq, Eq)]
struct Agreed {
    /// As it was when the session began.
    read: usize,
    /// As the session left it, in the first later commit in which it differs.
    written: usize,
    /// Written otherwise since.
    beyond: usize,
}

#[test]
fn what_is_known_whole_is_what_the_commits_hold() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let truth: Value = serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap();
    let mut agreed = Agreed::default();
    for truth in truth.as_array().unwrap().iter().filter(|truth| truth["agent"] == "codex") {
        let got = agent::open(&folder.join(truth["file"].as_str().unwrap())).unwrap();
        let cwd = Path::new(truth["session_cwd"].as_str().unwrap());
        assert_eq!(got.first_cwd.as_deref(), Some(cwd));
        let root = Path::new("/elsewhere/repository");
        let places = Places { root, first_cwd: Some(cwd), cwds: &got.cwds, maps: &[], home: None };
        for entry in &got.entries {
            let Rebased::Inside(path) = rebase(&entry.path, &places) else { continue };
            check_whole(&path, entry, truth, &mut agreed);
        }
    }
    say(&format!("{agreed:?}"));
    assert_eq!(agreed, Agreed { read: 20, written: 6, beyond: 1 });
}

fn check_whole(path: &Path, entry: &Entry, truth: &Value, agreed: &mut Agreed) {
    let path = path.to_str().unwrap();
    let disputed = truth["not_asserted"].as_array().unwrap().iter().any(|told| told == path);
    let (Knowledge::Full { content, .. }, Some(at_x)) = (&entry.knowledge, truth["tracked"].get(path)) else {
        return;
    };
    let digest = blake3(content).to_hex();
    if disputed {
        return;
    }
    if !entry.edited {
        assert_eq!(digest, at_x["x_blake3"].as_str().unwrap(), "{path}");
        agreed.read += 1;
        return;
    }
    let mut later = truth["Ys"].as_array().unwrap().iter().filter_map(|later| later["stale"].get(path));
    if later.next().is_some_and(|first| *first == digest) {
        agreed.written += 1;
    } else {
        say(&format!("{path} was written otherwise since"));
        agreed.beyond += 1;
    }
}

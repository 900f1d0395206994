//! The law of the house: rooms depend one way, every outside crate has its doors, pure rooms read no clock.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Rooms that do no I/O, read no clock and know no async.
const PURE: [&str; 5] = ["session", "index", "memory", "decision", "protocol"];

/// Which rooms may name an outside crate.
const DOORS: [(&str, &[&str]); 29] = [
    ("base64", &["protocol"]),
    ("blake3", &["index", "memory", "world"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("flate2", &["world", "agent"]),
    ("ignore", &["index"]),
    ("jiff", &["protocol"]),
    ("jsonc_parser", &["cli"]),
    ("landlock", &["fork", "daemon"]),
    ("listenfd", &["daemon"]),
    ("notify", &["world"]),
    ("ratatui", &["cli"]),
    ("rmcp", &["mcp"]),
    ("rustix", &["world", "store", "fork", "daemon", "client", "cli"]),
    ("ruzstd", &["agent"]),
    ("sd_notify", &["daemon"]),
    ("serde", &["protocol", "store", "config", "client", "agent", "mcp", "cli"]),
    ("serde_json", &["protocol", "store", "daemon", "client", "agent", "mcp", "cli"]),
    ("sha1", &["world", "fork"]),
    ("sha2", &["world", "fork"]),
    ("signal_hook", &["daemon", "cli"]),
    ("sled", &["store"]),
    ("staled_lease", &["world"]),
    ("tokio", &["daemon", "mcp", "cli"]),
    ("toml", &["config"]),
    ("toml_edit", &["cli"]),
    ("tracing_subscriber", &["cli"]),
    ("unicode_normalization", &["memory"]),
    ("uuid", &["daemon", "cli"]),
];

/// What only the edges may do.
const IMPURE: [&str; 10] = [
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
    "tokio",
    "async fn",
    "File::",
];

#[test]
fn rooms_use_only_rooms_above_them() {
    let rooms = rooms();
    let mut broken = Vec::new();
    for (room, file, code) in sources() {
        let rank = rooms.iter().position(|name| *name == room);
        for used in uses(&code) {
            let used_rank = rooms.iter().position(|name| *name == used);
            if used_rank.is_none() || used_rank > rank {
                broken.push(format!("{}: {room} uses {used}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_outside_crate_is_named_behind_its_own_doors_only() {
    let mut broken = Vec::new();
    for (room, file, code) in sources() {
        for (name, doors) in DOORS {
            let named = words(&code).any(|(word, before, after)| {
                word == name && (after.starts_with("::") || before.ends_with("use "))
            });
            if named && !doors.contains(&room.as_str()) {
                broken.push(format!("{}: {name} has no door in {room}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_dependency_has_a_door_and_a_reason() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let section =
        manifest.split("[dependencies]").nth(1).unwrap().split("[dev-dependencies]").next().unwrap();
    let everywhere = ["thiserror", "tracing"];
    let known: BTreeSet<&str> = DOORS.iter().map(|(name, _)| *name).chain(everywhere).collect();
    let mut reason = false;
    for line in section.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            reason = true;
            continue;
        }
        let name = line.split(['=', ' ']).next().unwrap().replace('-', "_");
        assert!(known.contains(name.as_str()), "{name} has no door in tests/layout.rs");
        // serde and serde_json share one sentence, as do the two SHA crates.
        assert!(
            reason || ["serde_json", "sha2", "tracing_subscriber"].contains(&name.as_str()),
            "{name} has no reason"
        );
        reason = false;
    }
}

#[test]
fn pure_rooms_do_no_io_and_read_no_clock() {
    let mut broken = Vec::new();
    for (room, file, code) in sources().into_iter().filter(|(room, ..)| PURE.contains(&room.as_str())) {
        for forbidden in IMPURE.iter().filter(|forbidden| code.contains(**forbidden)) {
            broken.push(format!("{}: {room} names {forbidden}", file.display()));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_law_finds_what_breaks_it() {
    for (code, used) in [
        ("use crate::daemon::run;", "daemon"),
        ("use crate::{\n    daemon::run,\n    session,\n};", "daemon"),
        ("fn f() { crate::daemon::run() }", "daemon"),
    ] {
        assert!(uses(code).contains(used), "{code}");
    }
    assert!(uses("// crate::daemon\nlet a = \"b\";").is_empty());
}

#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut forgotten = Vec::new();
    for file in rust_files(&tests) {
        let (folder, stem) = (file.parent().unwrap(), file.file_stem().unwrap().to_str().unwrap().to_owned());
        let bench = folder.ends_with("perf");
        if stem == "main" || bench {
            continue;
        }
        let (parent, name) = if stem == "mod" {
            (folder.parent().unwrap(), folder.file_name().unwrap().to_str().unwrap().to_owned())
        } else {
            (folder, stem)
        };
        let root = if parent == tests { "main.rs" } else { "mod.rs" };
        let declared = std::fs::read_to_string(parent.join(root)).unwrap_or_default();
        if !declared.contains(&format!("mod {name};")) {
            forgotten.push(file);
        }
    }
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// The rooms in the order of `lib.rs`.
fn rooms() -> Vec<String> {
    let lib = std::fs::read_to_string(src().join("lib.rs")).unwrap();
    lib.lines()
        .filter_map(|line| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned()))
        .collect()
}

/// Every source file with its room, comments stripped.
fn sources() -> Vec<(String, PathBuf, String)> {
    let rooms = rooms();
    let mut sources = Vec::new();
    for file in rust_files(&src()) {
        let below = file.strip_prefix(src()).unwrap();
        let first = below.components().next().unwrap().as_os_str().to_str().unwrap();
        let room = first.strip_suffix(".rs").unwrap_or(first).to_owned();
        if rooms.contains(&room) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n");
            sources.push((room, below.to_owned(), code));
        }
    }
    assert!(sources.len() > 50, "the sources were not found");
    sources
}

/// Rooms that a piece of code names through `crate::`.
fn uses(code: &str) -> BTreeSet<String> {
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut used = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        if let Some(group) = after.strip_prefix('{') {
            let mut depth = 0;
            let group: String = group
                .chars()
                .take_while(|symbol| {
                    depth += match symbol {
                        '{' => 1,
                        '}' => -1,
                        _ => 0,
                    };
                    depth >= 0
                })
                .collect();
            used.extend(group.split(',').map(first_word).filter(|word| !word.is_empty()));
        } else {
            used.insert(first_word(after));
        }
    }
    used
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|symbol| symbol.is_alphanumeric() || *symbol == '_').collect()
}

/// Every word with what stands before and behind it on its line.
fn words(code: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    code.lines().flat_map(|line| {
        let borders = line.char_indices().filter(|(_, symbol)| !symbol.is_alphanumeric() && *symbol != '_');
        let mut start = 0;
        let mut words = Vec::new();
        for (at, symbol) in borders.chain([(line.len(), ' ')]) {
            if at > start {
                words.push((&line[start..at], &line[..start], &line[at..]));
            }
            start = at + if at < line.len() { symbol.len_utf8() } else { 0 };
        }
        words
    })
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

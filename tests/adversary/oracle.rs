//! The oracle: a naive rescan that follows paths like `open(2)`, and the comparison with what was claimed.

use super::head;
use super::layout::Place;
use super::sessions::Belief;
use super::trees::{self, Wide};
use serde_json::Value;
use staled::world::digest::blake3;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What stands at a place, or what a session saw there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Bytes(String),
    Nothing,
    /// A folder or a FIFO.
    Other,
    Commit(Option<String>),
    NoRepository,
    /// Of a command: what stands at each of its inputs.
    All(Vec<Content>),
    /// What never stands there: nothing could be taken over at the registration.
    Never,
}

/// What an answer says about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    Fresh,
    Stale(String),
    Unknown(String),
}

const DOUBTS: [&str; 8] = [
    "unwatchable_fs",
    "unreadable",
    "watch_limit",
    "gap",
    "live_writer",
    "unsettled",
    "repository_missing",
    "watcher_dead",
];

/// Reads the disk, each place once.
pub(crate) struct Rescan {
    root: PathBuf,
    read: HashMap<String, Content>,
}

impl Rescan {
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), read: HashMap::new() }
    }

    pub(crate) fn content(&mut self, place: &Place) -> Content {
        let path = self.root.join(&place.path);
        match &place.wide {
            Some(Wide::Command(inputs)) => {
                return Content::All(inputs.iter().map(|input| self.content(input)).collect());
            }
            Some(Wide::Tree(filter)) => {
                let read = || trees::read(&path, *filter);
                return self.read.entry(place.id()).or_insert_with(read).clone();
            }
            Some(Wide::Lines(first, lines)) => {
                let read = || read_path(&path, |bytes| lines_of(bytes, *first, *lines));
                return self.read.entry(place.id()).or_insert_with(read).clone();
            }
            None => {}
        }
        let key = if place.kind == "git_head" { place.id() } else { place.path.clone() };
        let whole = |bytes: &[u8]| Content::Bytes(blake3(bytes).to_string());
        let read = || if place.kind == "git_head" { read_head(&path) } else { read_path(&path, whole) };
        self.read.entry(key).or_insert_with(read).clone()
    }
}

/// The text of some lines, whichever way they end; what stands behind the last line is nothing that was ever seen.
pub(super) fn lines_of(bytes: &[u8], first: usize, lines: usize) -> Content {
    let text = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
    let all: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(text).collect();
    match all.get(first - 1..) {
        Some(rest @ [_, ..]) => {
            let shown = rest[..rest.len().min(lines)].join(&b'\n');
            Content::Bytes(blake3(&shown).to_string())
        }
        _ => Content::Never,
    }
}

fn read_path(path: &Path, of: impl Fn(&[u8]) -> Content) -> Content {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => match std::fs::read(path) {
            Ok(bytes) => of(&bytes),
            Err(error) => panic!("{} cannot be read: {error}", path.display()),
        },
        Ok(_) => Content::Other,
        Err(_) => Content::Nothing,
    }
}

fn read_head(repository: &Path) -> Content {
    if std::fs::metadata(repository).is_err() {
        return Content::NoRepository;
    }
    head::read(repository).map_or(Content::NoRepository, Content::Commit)
}

/// The claims of a `status` or `decide` answer, by row. Rows that are left out are fresh.
fn claims(answer: &Value) -> HashMap<&str, Claim> {
    let rows = answer.get("rows").or_else(|| answer.get("staleness_results"));
    let rows = rows.and_then(Value::as_array).expect("an answer has rows");
    rows.iter().map(|row| (row["result_id"].as_str().expect("a row has an id"), claim(row))).collect()
}

fn claim(row: &Value) -> Claim {
    let cause = row["cause"].as_str().unwrap_or_default().to_owned();
    match row["status"].as_str() {
        Some("fresh") => Claim::Fresh,
        _ if DOUBTS.contains(&cause.as_str()) => Claim::Unknown(cause),
        _ => Claim::Stale(cause),
    }
}

/// How a claim compares with the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    True,
    FalseFresh,
    FalseStale,
    Undecided,
}

/// How all claims of one answer compare with the disk.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) fresh: u64,
    pub(crate) stale: u64,
    pub(crate) unknown: u64,
    /// The first row about which something else is claimed than what stands there.
    pub(crate) wrong: Option<String>,
    /// The first row that is unknown for no reason that lasts.
    pub(crate) undecided: Option<String>,
}

impl Compared {
    /// What an answer claims about these beliefs, against the disk. `operator` is the process that may hold files open.
    pub(crate) fn of(beliefs: &[Belief], answer: &Value, rescan: &mut Rescan, operator: u32) -> Self {
        let claimed = claims(answer);
        let mut compared = Self::default();
        for Belief { place, seen, .. } in beliefs {
            let id = place.id();
            let claim = claimed.get(id.as_str()).unwrap_or(&Claim::Fresh);
            match claim {
                Claim::Fresh => compared.fresh += 1,
                Claim::Stale(_) => compared.stale += 1,
                Claim::Unknown(_) => compared.unknown += 1,
            }
            let now = rescan.content(place);
            let verdict = judge(claim, seen, &now);
            let told = || format!("{verdict:?}: {id}\n  claimed {claim:?}\n  saw {seen:?}\n  disk {now:?}");
            match verdict {
                Verdict::True => {}
                Verdict::Undecided if is_held(claim, &rescan.root.join(&place.path), operator) => {}
                Verdict::Undecided => drop(compared.undecided.get_or_insert_with(told)),
                _ => drop(compared.wrong.get_or_insert_with(told)),
            }
        }
        compared
    }
}

/// Whether a live writer is claimed where the operator does hold the file open.
fn is_held(claim: &Claim, path: &Path, operator: u32) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let file = identity(path);
    let mut open = std::fs::read_dir(format!("/proc/{operator}/fd")).into_iter().flatten();
    matches!(claim, Claim::Unknown(cause) if cause == "live_writer")
        && open.any(|held| held.is_ok_and(|held| file.is_some() && identity(&held.path()) == file))
}

/// Judges one claim: `seen` is what the session saw, `now` what stands there.
fn judge(claim: &Claim, seen: &Content, now: &Content) -> Verdict {
    match (claim, seen == now) {
        (Claim::Fresh, true) | (Claim::Stale(_), false) => Verdict::True,
        (Claim::Fresh, false) => Verdict::FalseFresh,
        (Claim::Stale(_), true) => Verdict::FalseStale,
        (Claim::Unknown(_), _) if *now == Content::NoRepository => Verdict::True,
        (Claim::Unknown(_), _) => Verdict::Undecided,
    }
}

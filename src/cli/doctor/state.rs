//! The files of the state: the decision log and its last line, the sizes of journal and index, and what was set aside or
//! left by an import.

use super::answers::Asked;
use super::{Finding, Places, bytes};
use crate::cli::words::{quoted, text};
use crate::store::bytes_below;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often, and how long apart, the end of a log is looked at before it is called torn.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn check(places: &Places, asked: &Asked) -> Vec<Finding> {
    let state = &places.folders.state;
    let mut findings = vec![
        decision_log(&state.join("decisions.jsonl"), asked),
        size("journal", &state.join("journal")),
        size("index", &state.join("index")),
    ];
    findings.extend(leftovers(state));
    findings
}

fn decision_log(path: &Path, asked: &Asked) -> Finding {
    const NAME: &str = "decision log";
    let shown = path.display();
    let synced = match &asked.status {
        Ok(status) => format!(", sync {}", text(status, "log_sync")),
        Err(_) => String::new(),
    };
    match end_of(path, || std::thread::sleep(PAUSE)) {
        Ok((len, true)) => Finding::well(NAME, format!("{shown}, {}, ends whole{synced}", bytes(len))),
        Ok((len, false)) => Finding::wrong(
            NAME,
            format!("{shown}, {}, ends inside a line{synced}", bytes(len)),
            "the daemon's next start cuts it off; `staled log verify` says where",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::well(NAME, format!("{shown} is not there yet, for nothing was decided"))
        }
        Err(error) => {
            Finding::wrong(NAME, format!("{shown} cannot be read: {error}"), "ask as the user of the daemon")
        }
    }
}

/// The length of a file, and whether it ends whole. A long line that is on its way may be seen half written, so one
/// that is not whole is looked at again.
pub(super) fn end_of(path: &Path, mut pause: impl FnMut()) -> std::io::Result<(u64, bool)> {
    let mut end = ends_whole(path)?;
    for _ in 1..LOOKS {
        if end.1 {
            break;
        }
        pause();
        end = ends_whole(path)?;
    }
    Ok(end)
}

/// The length of a file, and whether it is empty or ends with a line feed.
fn ends_whole(path: &Path) -> std::io::Result<(u64, bool)> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok((0, true));
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok((len, last == *b"\n"))
}

fn size(name: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    match std::fs::read_dir(folder) {
        Ok(_) => Finding::well(name, format!("{shown}, {}", bytes(bytes_below(folder)))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::well(name, format!("{shown} is not there yet"))
        }
        Err(error) => {
            Finding::wrong(name, format!("{shown} cannot be read: {error}"), "ask as the user of the daemon")
        }
    }
}

/// What healing or an import left behind: nobody reads it again, but whoever wants to know what happened.
fn leftovers(state: &Path) -> Vec<Finding> {
    const NAME: &str = "leftovers";
    let mut left: Vec<PathBuf> = Vec::new();
    for folder in [state.to_owned(), state.join("journal")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        left.extend(entries.map(|entry| entry.path()).filter(|path| is_left_over(path)));
    }
    left.sort();
    if left.is_empty() {
        return vec![Finding::well(NAME, "nothing was set aside")];
    }
    let has_journal = state.join("journal").exists();
    let told = left.iter().map(|path| {
        if is_an_index(path) {
            // Nothing is lost with it, and it is not kept for ever.
            let found = format!("{} was set aside, {}", path.display(), bytes(bytes_below(path)));
            return Finding::well(NAME, format!("{found}; another was made from the journal"));
        }
        let (what, remedy) = told(path, has_journal);
        Finding::wrong(NAME, format!("{} {what}, {}", path.display(), bytes(bytes_below(path))), remedy)
    });
    told.collect()
}

/// What a leftover is, and what to do about it. An import that is swapping journals may be met in the middle.
fn told(path: &Path, has_journal: bool) -> (&'static str, String) {
    let shown = quoted(path);
    let remove = format!("`rm -r {shown}` when nobody wants to look");
    match (name_of(path).as_str(), has_journal) {
        (NEW, _) => {
            let remedy =
                format!("where none is running, `rm -r {shown}`, and `staled import-state` once more");
            ("was left by an import that did not end", remedy)
        }
        (name, false) if name.starts_with(OLD) => {
            let remedy = "`staled import-state` once more: that one had no sessions";
            ("gave way to an import that did not end, and there is no journal", remedy.to_owned())
        }
        (name, true) if name.starts_with(OLD) => ("gave way to an import, and has no sessions", remove),
        _ => ("was set aside", remove),
    }
}

/// The journal that an import makes, and the one that it makes give way; that may have a number behind its name.
const NEW: &str = "journal.new";
const OLD: &str = "journal.old";

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_left_over(path: &Path) -> bool {
    let name = name_of(path);
    is_an_index(path)
        || name.contains(".torn-")
        || name.contains(".damaged")
        || name == NEW
        || name.starts_with(OLD)
}

fn is_an_index(path: &Path) -> bool {
    name_of(path).starts_with("index.aside-")
}

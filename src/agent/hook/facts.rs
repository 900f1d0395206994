//! What has gone stale, as an agent is told it: facts, in plain sentences, under the size that its harness takes.
//!
//! Facts only: no order to the model and no guess at who changed what, or why. Names come from the user's tree and may say
//! anything, so control characters are spelled out and long ones are cut. The same report gives the same text.

use crate::index::freshness::Doubt;
use crate::protocol::path::Reference;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The longest text, in characters; the least that any harness takes is 10,000.
pub const CHARS_MAX: usize = 8_000;
/// The longest name, in characters.
const NAME_CHARS_MAX: usize = 200;

/// A report of `decide`, read for what it says of single results.
#[derive(Debug)]
pub struct Rows<'a> {
    rows: Vec<&'a Value>,
    /// Paths of which lines were read since the whole of them went stale.
    read_since: BTreeSet<&'a str>,
}

impl<'a> Rows<'a> {
    /// The rows of a report or a status.
    #[must_use]
    pub fn of(answer: &'a Value) -> Self {
        let rows = ["staleness_results", "rows"].iter().find_map(|field| answer[*field].as_array());
        let rows: Vec<&Value> = rows.into_iter().flatten().collect();
        let fresh = rows.iter().filter(|row| row["status"] == "fresh");
        let read_since =
            fresh.filter_map(|row| part(row["result_id"].as_str()?)).map(|part| part.path).collect();
        Self { rows, read_since }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that the agent does not know to be out of date: stale, or critical and unknown. What rests on nothing that
    /// can be watched was never fresh, and the agent knew that.
    pub fn news(&self) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().copied().filter(|row| is_stale(row))
    }

    /// The stale rows about one path, whole or in part, and the lines of it that are fresh.
    #[must_use]
    pub fn of_path(&self, path: &str) -> (Vec<&'a Value>, Vec<Part<'a>>) {
        let own = |id: &str| id == path || part(id).is_some_and(|part| part.path == path);
        let lockfile = format!("lockfile:{path}");
        let stale = self.rows.iter().copied().filter(|row| {
            let id = row["result_id"].as_str().unwrap_or_default();
            is_stale(row) && (own(id) || id == lockfile)
        });
        let fresh = self.rows.iter().filter(|row| row["status"] == "fresh");
        let parts = fresh.filter_map(|row| part(row["result_id"].as_str()?)).filter(|part| part.path == path);
        (stale.collect(), parts.collect())
    }
}

/// Lines of a file as the id of a result names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// The file.
    pub path: &'a str,
    /// The first line, counted from 1.
    pub first: usize,
    /// The last.
    pub last: usize,
}

fn part(id: &str) -> Option<Part<'_>> {
    let (path, lines) = id.rsplit_once(':')?;
    let (first, last) = lines.split_once('-')?;
    Some(Part { path, first: first.parse().ok()?, last: last.parse().ok()? })
}

fn is_stale(row: &Value) -> bool {
    row["status"] == "stale" && row["cause"] != "volatile"
        || row["status"] == "unknown" && row["critical"] == true
}

/// Whether it cannot be told what became of it, rather than that it changed. The contract reports that as stale, too.
#[must_use]
pub fn is_doubtful(row: &Value) -> bool {
    row["status"] == "unknown" || row["cause"].as_str().and_then(Doubt::named).is_some()
}

/// What is stale, one line a result; empty where nothing is.
#[must_use]
pub fn told(rows: &Rows<'_>, session: &str, head: &str) -> String {
    let news: Vec<&Value> = rows.news().collect();
    if news.is_empty() {
        return String::new();
    }
    let (first, later): (Vec<&Value>, Vec<&Value>) = news.iter().partition(|row| !is_answer(row));
    let mut text = String::from(head);
    let more = format!("- … and more; `staled status {}` lists all {}", name(session), news.len());
    for row in first.into_iter().chain(later) {
        let again = row["result_id"].as_str().is_some_and(|id| rows.read_since.contains(id));
        let line = format!(
            "{}{}",
            sentence(row),
            if again { "; some lines of it were read again since" } else { "" }
        );
        if text.chars().count() + line.chars().count() + more.chars().count() + 4 > CHARS_MAX {
            let _ = write!(text, "\n{more}");
            break;
        }
        let _ = write!(text, "\n- {line}");
    }
    text
}

/// A search or a command: what it answered rests on files that are named by themselves where they were read.
fn is_answer(row: &Value) -> bool {
    matches!(row["cause"].as_str(), Some("input" | "names")) || row["changed"].is_object()
}

/// One row as a sentence.
#[must_use]
pub fn sentence(row: &Value) -> String {
    // A search is called what was looked for; where it looked is the folder alone.
    let field = if is_answer(row) { "result_id" } else { "source" };
    let what = serde_json::from_value::<Reference>(row[field].clone());
    let what = what.map_or_else(
        |_| name(row["result_id"].as_str().unwrap_or_default()),
        |path| name(&path.0.to_string_lossy()),
    );
    let lines =
        row["result_id"].as_str().and_then(part).map(|part| format!(", lines {}-{}", part.first, part.last));
    let since = row["since"].as_str().map(|since| format!(" (since {})", name(since))).unwrap_or_default();
    format!("{what}{}: {}{since}", lines.unwrap_or_default(), happened(row))
}

fn happened(row: &Value) -> String {
    let cause = row["cause"].as_str().unwrap_or_default();
    let of = |field: &str| serde_json::from_value::<Reference>(row[field].clone()).ok();
    match cause {
        "content" | "digest" if row["eol_only"] == true => {
            "only its line ends differ from what was read".to_owned()
        }
        "content" => format!("its content differs from what was read{}", first_changed(row)),
        "born_stale" => "what was read was not what was on the disk when it was recorded".to_owned(),
        "deleted" => "it no longer exists".to_owned(),
        "appeared" => "it exists now; it did not when it was looked for".to_owned(),
        "kind_changed" => "it is no longer the same kind of file".to_owned(),
        "renamed" => match of("renamed_to") {
            Some(to) => format!("it was renamed to {}", name(&to.0.to_string_lossy())),
            None => "it was renamed".to_owned(),
        },
        "range_moved" => match row["start_line"].as_u64() {
            Some(line) => format!("the lines that were read begin at line {line} now"),
            None => "the lines that were read stand elsewhere in it now".to_owned(),
        },
        "names" => format!("names in it appeared or vanished{}", first_changed(row)),
        "head_moved" => "it is another commit than the one that was seen".to_owned(),
        "schema" => "its schema differs".to_owned(),
        "input" => match row["input"].as_str() {
            Some(input) => format!("what it answered rests on {}, which changed", name(input)),
            None => "what it answered rests on something that changed".to_owned(),
        },
        "refuted" => "it was found to be wrong when it was used".to_owned(),
        doubt if is_doubtful(row) => format!("it cannot be verified ({})", name(doubt)),
        other => format!("it is stale ({})", name(other)),
    }
}

/// Of a tree, the first path that differs, and how many more do.
fn first_changed(row: &Value) -> String {
    let paths = row["changed"]["paths"].as_array();
    let first =
        paths.and_then(|paths| paths.first()).map(|path| serde_json::from_value::<Reference>(path.clone()));
    let Some(Ok(first)) = first else { return String::new() };
    let more = match row["changed"]["number"].as_u64().unwrap_or(1).saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" ({}{more})", name(&first.0.to_string_lossy()))
}

/// A name as a model may be shown it: one line, harmless, not too long.
fn name(text: &str) -> String {
    let odd = |symbol: char| {
        symbol.is_control()
            // What turns the direction of a text, and what a model reads where a person sees nothing.
            || matches!(symbol, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(symbol, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let mut shown = String::new();
    for (at, symbol) in text.chars().enumerate() {
        if at == NAME_CHARS_MAX {
            shown.push('…');
            break;
        }
        if odd(symbol) {
            shown.extend(symbol.escape_default());
        } else {
            shown.push(symbol);
        }
    }
    shown
}

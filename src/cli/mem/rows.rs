//! Observations and what is known of their sources, for people.

use crate::cli::out::Out;
use crate::cli::paint::{Paint, Tone};
use crate::cli::shell::Stop;
use crate::cli::table::{Cell, Table};
use crate::cli::words::{ago, change, end, head, list, now_micros, number, state, text};
use crate::protocol::path::Reference;
use serde_json::Value;
use std::path::PathBuf;

const TITLE_CHARS_MAX: usize = 56;
const PATH_CHARS_MAX: usize = 56;
/// Changed sources that are shown of one observation.
const CHANGED_MAX: usize = 3;
/// Below the numbers, so that the eye finds the observations.
const CHANGED_INDENT: usize = 7;

/// One observation a row, and below each what has changed under it.
pub(super) fn print(observations: &[Value], indent: usize, out: &mut Out) -> Result<(), Stop> {
    let now = now_micros();
    let mut table =
        Table::with_heading(&[mark_name(observations), "ID", "TYPE", "TITLE", "EVIDENCE", "UPDATED"]);
    observations.iter().for_each(|observation| table.push(cells(observation, now)));
    let mut lines = table.lines(out.paint, indent).into_iter();
    out.lines(lines.next())?;
    for (line, observation) in lines.zip(observations) {
        out.line(line)?;
        out.lines(changed(observation, indent + CHANGED_INDENT, out.paint))?;
    }
    Ok(())
}

/// What the first column is about: it is left out where it has nothing to say.
fn mark_name(observations: &[Value]) -> &'static str {
    if observations.iter().any(|observation| observation["score"].is_f64()) { "SCORE" } else { "" }
}

fn cells(observation: &Value, now_micros: i64) -> Vec<Cell> {
    let mark = match observation["score"].as_f64() {
        Some(score) => format!("{score:.2}"),
        None if observation["is_anchor"] == true => "→".to_owned(),
        None => String::new(),
    };
    let updated = observation["updated_at"].as_str().unwrap_or_default();
    vec![
        Cell::plain(mark),
        Cell::plain(number(observation, "id").to_string()),
        Cell::plain(text(observation, "type")),
        Cell::new(Tone::Strong, head(&text(observation, "title"), TITLE_CHARS_MAX)),
        Cell::new(tone(observation), text(observation, "evidence")),
        Cell::new(Tone::Faint, ago(updated, now_micros)),
    ]
}

/// Colour of what is known of an observation's sources.
pub(super) fn tone(observation: &Value) -> Tone {
    match observation["evidence"].as_str() {
        Some("fresh") => Tone::Good,
        Some("stale") => Tone::Bad,
        Some("unknown") => Tone::Doubt,
        _ => Tone::Faint,
    }
}

/// The sources of an observation that are not fresh, one a line.
pub(super) fn changed(observation: &Value, indent: usize, paint: Paint) -> Vec<String> {
    let (now, changed) = (now_micros(), list(observation, "changed"));
    let mut table = Table::default();
    for source in changed.iter().take(CHANGED_MAX) {
        let (word, tone) = state(source);
        let since = source["since"].as_str().map(|since| ago(since, now)).unwrap_or_default();
        table.push(vec![
            Cell::new(tone, word),
            Cell::plain(end(&from_here(&source["path"]), PATH_CHARS_MAX)),
            Cell::plain(text(source, "cause")),
            Cell::plain(change(source)),
            Cell::new(Tone::Faint, since),
        ]);
    }
    let mut lines = table.lines(paint, indent);
    if changed.len() > CHANGED_MAX {
        let more = changed.len() - CHANGED_MAX;
        lines.push(format!("{}… and {more} more (--json shows all)", " ".repeat(indent)));
    }
    lines
}

/// A path as one would spell it here.
pub(super) fn from_here(path: &Value) -> String {
    let Ok(Reference(path)) = serde_json::from_value(path.clone()) else { return String::new() };
    let below = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(PathBuf::from));
    let below = below.filter(|below| !below.as_os_str().is_empty());
    crate::cli::words::harmless(&below.unwrap_or(path).to_string_lossy())
}

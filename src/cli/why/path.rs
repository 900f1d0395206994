//! The story of one path: which sessions rest on it and what is known there, and the last decisions that listed it.

use super::history::{Entry, backward};
use crate::cli::paint::Tone;
use crate::cli::shell::{Done, Shell, Stop, parse};
use crate::cli::status::cells;
use crate::cli::table::{Cell, Table};
use crate::cli::words::{harmless, list, now_micros, state, text, to_the_second, transition_tone};
use crate::client::{Client, ClientError};
use crate::protocol::path::WirePath;
use crate::protocol::request::{List, Status};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// Decisions that are shown.
const DECISIONS_MAX: usize = 5;
/// Lines of the log that are looked through, from its end.
const LINES_MAX: usize = 10_000;

/// What the log and the daemon know about a path.
#[derive(Default)]
struct Story {
    /// Session, row.
    rows: Vec<(String, Value)>,
    /// The decision, its row.
    decisions: Vec<(Entry, Value)>,
}

pub(super) fn run(path: &Path, shell: &mut Shell) -> Done {
    let target = Target::new(path)?;
    let mut client = shell.client()?;
    let mut story = Story::default();
    let roots = roots(&mut client)?;
    let mut names: Vec<&String> = roots.keys().collect();
    names.sort();
    for session in names {
        story.rows.extend(rows_of(&mut client, session, &roots[session], &target)?);
    }
    let mut looked = 0;
    backward(&mut client, |entry| {
        looked += 1;
        if let Some(row) = named_by(&entry, &roots, &target) {
            story.decisions.push((entry, row));
        }
        story.decisions.len() >= DECISIONS_MAX || looked >= LINES_MAX
    })?;
    print(&target, &story, shell)?;
    Ok(u8::from(story.rows.is_empty()))
}

/// The path that is asked about: as it was spelled, from here, and where it leads.
struct Target {
    spelled: PathBuf,
    plain: PathBuf,
    real: Option<PathBuf>,
}

impl Target {
    fn new(path: &Path) -> Result<Self, Stop> {
        let absolute = std::path::absolute(path)
            .map_err(|error| Stop::failed(format!("{}: {error}", path.display())))?;
        Ok(Self { spelled: path.to_owned(), plain: plain(&absolute), real: absolute.canonicalize().ok() })
    }

    /// Whether a row of a session below `root` is about it. Without a root only the spelling can tell.
    fn is_source_of(&self, row: &Value, root: Option<&PathBuf>) -> bool {
        let pathless = ["head", "mtime"].iter().any(|signal| row["signal_type"] == *signal);
        let Ok(WirePath(source)) = serde_json::from_value(row["source"].clone()) else { return false };
        match root {
            _ if pathless => false,
            Some(root) => {
                let absolute = root.join(&source);
                plain(&absolute) == self.plain
                    || self.real.is_some() && absolute.canonicalize().ok() == self.real
            }
            None => source == self.spelled || plain(&source) == self.plain,
        }
    }
}

/// A path without `.` and, as far as its spelling tells, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn roots(client: &mut Client) -> Result<HashMap<String, PathBuf>, Stop> {
    let listed = parse(&client.ask("context.list", &List::default())?)?;
    let root = |session: &Value| {
        let root: WirePath = serde_json::from_value(session["root"].clone()).ok()?;
        Some((session["session"].as_str()?.to_owned(), root.0))
    };
    Ok(list(&listed, "sessions").iter().filter_map(root).collect())
}

fn rows_of(
    client: &mut Client,
    session: &str,
    root: &PathBuf,
    target: &Target,
) -> Result<Vec<(String, Value)>, Stop> {
    let answer = match client.ask("status", &Status { session: Some(session.to_owned()) }) {
        Ok(answer) => parse(&answer)?,
        // Dropped since it was listed, or without a row.
        Err(ClientError::Refused(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let about = list(&answer, "rows").iter().filter(|row| target.is_source_of(row, Some(root)));
    Ok(about.map(|row| (session.to_owned(), row.clone())).collect())
}

fn named_by(entry: &Entry, roots: &HashMap<String, PathBuf>, target: &Target) -> Option<Value> {
    let root = roots.get(entry.line["session"].as_str()?);
    list(&entry.line, "staleness_results").iter().find(|row| target.is_source_of(row, root)).cloned()
}

fn print(target: &Target, story: &Story, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(to_json(target, story));
    }
    let (paint, now) = (shell.out.paint, now_micros());
    let name = harmless(&target.plain.to_string_lossy());
    if story.rows.is_empty() {
        shell.out.line(format!("No session rests on {name}"))?;
    } else {
        shell.out.line(paint.of(Tone::Strong, &name))?;
        let mut table = Table::with_heading(&["SESSION", "STATE", "ID", "CAUSE", "SEEN → NOW", "SINCE"]);
        for (session, row) in &story.rows {
            let mut cells = cells(row, now);
            cells.remove(2);
            cells.insert(0, Cell::plain(harmless(session)));
            table.push(cells);
        }
        shell.out.lines(table.lines(paint, 2))?;
    }
    if !story.decisions.is_empty() {
        shell.out.line("\nThe last decisions that listed it, newest first")?;
        shell.out.lines(decisions(story).lines(paint, 2))?;
    }
    Ok(())
}

fn decisions(story: &Story) -> Table {
    let mut table = Table::with_heading(&["DECIDED", "SESSION", "TRANSITION", "IT WAS", "DECISION"]);
    for (Entry { line, .. }, row) in &story.decisions {
        let (word, tone) = state(row);
        let transition = text(line, "transition");
        table.push(vec![
            Cell::plain(to_the_second(line["decided_at"].as_str().unwrap_or_default())),
            Cell::plain(text(line, "session")),
            Cell::new(transition_tone(&transition), transition),
            Cell::new(tone, [word, &text(row, "cause")].join(" ").trim_end()),
            Cell::new(Tone::Faint, text(line, "decision")),
        ]);
    }
    table
}

fn to_json(target: &Target, story: &Story) -> Value {
    let sessions: Vec<Value> =
        story.rows.iter().map(|(session, row)| json!({ "session": session, "row": row })).collect();
    let decisions: Vec<&Value> = story.decisions.iter().map(|(entry, _)| &entry.line).collect();
    json!({ "path": WirePath(target.plain.clone()), "sessions": sessions, "decisions": decisions })
}

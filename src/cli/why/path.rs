//! The story of one path: which sessions rest on it and what is known there, and the last decisions that listed it.

use crate::cli::paint::Tone;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::status::cells;
use crate::cli::table::{Cell, Table};
use crate::cli::words::{harmless, now_micros, state, text, to_the_second, transition_tone};
use crate::client::log::Entry;
use crate::client::story::{OfPath, Target};
use crate::protocol::path::WirePath;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn run(path: &Path, shell: &mut Shell) -> Done {
    let target =
        Target::from_here(path).map_err(|error| Stop::failed(format!("{}: {error}", path.display())))?;
    let story = OfPath::find(&target, None, &mut shell.client()?)?;
    print(&target, &story, shell)?;
    Ok(u8::from(story.rows.is_empty()))
}

fn print(target: &Target, story: &OfPath, shell: &mut Shell) -> Result<(), Stop> {
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

fn decisions(story: &OfPath) -> Table {
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

fn to_json(target: &Target, story: &OfPath) -> Value {
    let sessions: Vec<Value> =
        story.rows.iter().map(|(session, row)| json!({ "session": session, "row": row })).collect();
    let decisions: Vec<&Value> = story.decisions.iter().map(|(entry, _)| &entry.line).collect();
    json!({ "path": WirePath(target.plain.clone()), "sessions": sessions, "decisions": decisions })
}

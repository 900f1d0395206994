//! `mem get`: one observation, whole, and what it was before.

use super::{no_observation, rows};
use crate::cli::paint::Tone;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::table::{Cell, Table};
use crate::cli::words::{harmless, list, number, text, to_the_second};
use crate::protocol::memory::Get;
use serde_json::Value;

/// Show an observation, whole
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem get 12
  staled mem get 12 --history --json | jq -r '.history[].content'")]
pub(super) struct Args {
    /// Its number
    id: i64,
    /// With what it said before, its first revision first
    #[arg(long)]
    history: bool,
}

pub(super) fn run(args: &Args, user_id: String, shell: &mut Shell) -> Done {
    let ask = Get { user_id, observation_id: args.id, history: args.history };
    let answer = shell.ask("mem_get_observation", &ask)?;
    if answer.value.is_null() {
        return Err(no_observation(args.id));
    }
    if !answer.printed {
        print(&answer.value, shell)?;
    }
    Ok(0)
}

fn print(observation: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let paint = shell.out.paint;
    shell.out.line(paint.of(Tone::Strong, &text(observation, "title")))?;
    shell.out.lines(facts(observation).lines(paint, 2))?;
    shell.out.lines(rows::changed(observation, 4, paint))?;
    shell.out.line("")?;
    shell.out.lines(content(observation, ""))?;
    for past in list(observation, "history") {
        let title = paint.of(Tone::Strong, &text(past, "title"));
        let (revision, at) = (number(past, "revision_count"), moment(past, "updated_at"));
        shell.out.line("")?;
        shell.out.line(format!("revision {revision}  {at}  {}  {title}", text(past, "type")))?;
        shell.out.lines(content(past, "  "))?;
    }
    Ok(())
}

fn facts(observation: &Value) -> Table {
    let mut table = Table::default();
    let mut row = |name: &str, value: Cell| table.push(vec![Cell::new(Tone::Faint, name), value]);
    row("type", Cell::plain(text(observation, "type")));
    if observation["topic_key"].is_string() {
        row("topic key", Cell::plain(text(observation, "topic_key")));
    }
    row("revision", Cell::plain(number(observation, "revision_count").to_string()));
    row("created", Cell::plain(moment(observation, "created_at")));
    row("updated", Cell::plain(moment(observation, "updated_at")));
    row("session", Cell::plain(text(observation, "session_id")));
    let names = std::iter::once("rests on").chain(std::iter::repeat(""));
    for (name, source) in names.zip(list(observation, "sources")) {
        row(name, Cell::plain(label(source)));
    }
    row("evidence", Cell::new(rows::tone(observation), text(observation, "evidence")));
    table
}

/// A file by its path, anything else by its kind and what it is about.
fn label(source: &Value) -> String {
    let kind = text(source, "kind");
    if kind.is_empty() {
        return rows::from_here(source);
    }
    let about = ["path", "command", "what"].into_iter().find(|field| !source[*field].is_null());
    format!("{kind} {}", about.map(|field| rows::from_here(&source[field])).unwrap_or_default())
}

fn moment(object: &Value, field: &str) -> String {
    object[field].as_str().map(to_the_second).unwrap_or_default()
}

/// Line by line, for a line feed is no harm here.
fn content(object: &Value, indent: &str) -> Vec<String> {
    let content = object["content"].as_str().unwrap_or_default();
    content.lines().map(|line| format!("{indent}{}", harmless(line))).collect()
}

//! `register` and `record`: tell the daemon what a session believes, and see how much of it holds.

use super::input;
use super::paint::Tone;
use super::shell::{Done, Shell, Stop};
use super::table::{Cell, Table};
use super::words::{counted, list, state, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Rows shown on a terminal.
const ROWS_MAX: usize = 18;

/// Register a session's context: everything it believes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled register context.json
  echo '{\"session\": \"s-01\", \"root\": \"/home/alice/app\", \"results\": [
    {\"id\": \"r1\", \"source\": {\"kind\": \"file\", \"path\": \"src/token.rs\"}}]}' | staled register -")]
pub(super) struct RegisterArgs {
    /// The context, one JSON object; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Add to a registered session, or replace results by their id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  echo '{\"session\": \"s-01\", \"remove\": [\"r1\"], \"decisions\": [\"The fix lives in is_valid\"]}' | staled record -")]
pub(super) struct RecordArgs {
    /// What changed, one JSON object; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn register(args: &RegisterArgs, shell: &mut Shell) -> Done {
    tell("context.register", &args.file, shell)
}

pub(super) fn record(args: &RecordArgs, shell: &mut Shell) -> Done {
    tell("context.record", &args.file, shell)
}

fn tell(method: &str, file: &Path, shell: &mut Shell) -> Done {
    let context = input::object(file)?;
    let answer = shell.ask(method, &context)?;
    if !answer.printed {
        print(&answer.value, shell)?;
    }
    Ok(0)
}

fn print(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let told: Vec<&Value> = list(answer, "results").iter().chain(list(answer, "invariants")).collect();
    let fresh = told.iter().filter(|row| row["status"] == "fresh").count() as u64;
    let total = told.len() as u64;
    let session = text(answer, "session");
    shell.out.line(format!(
        "{session}: {} told, {fresh} fresh, {} not",
        counted(total, "row"),
        total - fresh
    ))?;
    let shown = if shell.out.on_terminal { ROWS_MAX } else { usize::MAX };
    let mut table = Table::with_heading(&["STATE", "ID", "CAUSE", "BASELINE"]);
    told.iter().take(shown).for_each(|row| table.push(cells(row)));
    if !told.is_empty() {
        let lines = table.lines(shell.out.paint, 2);
        shell.out.lines(lines)?;
    }
    if told.len() > shown {
        shell.out.line(format!("  … and {} more (--json shows all)", told.len() - shown))?;
    }
    shell.out.flush()?;
    list(answer, "warnings")
        .iter()
        .filter_map(Value::as_str)
        .for_each(|warning| shell.out.talk(&format!("note: {warning}")));
    Ok(())
}

fn cells(row: &Value) -> Vec<Cell> {
    let (word, tone) = state(row);
    let id = if row["id"].is_null() { text(row, "name") } else { text(row, "id") };
    vec![
        Cell::new(tone, word),
        Cell::plain(id),
        Cell::plain(text(row, "cause")),
        Cell::new(Tone::Faint, text(row, "baseline")),
    ]
}

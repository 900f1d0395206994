//! `mem start`, `mem end` and `mem sessions`.

use super::rows;
use crate::cli::paint::Tone;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::table::{Cell, Table};
use crate::cli::words::{head, list, text, to_the_second};
use crate::protocol::memory::{ListSessions, Start, Summary};
use serde_json::Value;

const SUMMARY_CHARS_MAX: usize = 72;

/// Begin a session, or go on with the active one, and see what is remembered
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem start
  staled mem start --stale exclude --json | jq -r '.memories[].title'")]
pub(super) struct StartArgs {
    /// What becomes of memories whose sources are not fresh
    #[arg(long, value_enum)]
    stale: Option<super::look::Stale>,
}

/// End the active session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem end 'Expiry is fixed and tested.'")]
pub(super) struct EndArgs {
    /// What was done in it; `-` reads standard input
    text: String,
}

/// List the sessions, the latest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem sessions --limit 50")]
pub(super) struct SessionsArgs {
    /// At most so many, 1 to 100 [default: 10]
    #[arg(long, value_name = "N")]
    limit: Option<i64>,
}

pub(super) fn start(args: &StartArgs, user_id: String, shell: &mut Shell) -> Done {
    let ask = Start { user_id, stale: args.stale.map(Into::into) };
    let answer = shell.ask("mem_session_start", &ask)?;
    if !answer.printed {
        print_start(&answer.value, shell)?;
    }
    Ok(0)
}

fn print_start(started: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let how = if started["is_new"] == true { "has begun" } else { "goes on" };
    shell.out.line(format!("session {}  {how}", text(started, "session_id")))?;
    let ended = list(started, "sessions_context");
    if !ended.is_empty() {
        let mut table = Table::with_heading(&["ENDED", "SUMMARY"]);
        for session in ended {
            table.push(vec![Cell::new(Tone::Faint, moment(session, "date")), summary(session)]);
        }
        shell.out.line("")?;
        shell.out.lines(table.lines(shell.out.paint, 2))?;
    }
    let memories = list(started, "memories");
    if !memories.is_empty() {
        shell.out.line("")?;
        rows::print(memories, 2, &mut shell.out)?;
    }
    Ok(())
}

pub(super) fn end(args: &EndArgs, user_id: String, shell: &mut Shell) -> Done {
    let ask = Summary { user_id, summary: super::text(&args.text)? };
    let answer = shell.ask("mem_session_end", &ask)?;
    if !answer.printed {
        shell.out.line(format!(
            "session {}  {}",
            text(&answer.value, "id"),
            text(&answer.value, "status")
        ))?;
    }
    Ok(0)
}

pub(super) fn sessions(args: &SessionsArgs, user_id: String, shell: &mut Shell) -> Done {
    let answer = shell.ask("mem_list_sessions", &ListSessions { user_id, limit: args.limit })?;
    let sessions = list(&answer.value, "results");
    if answer.printed {
        return Ok(0);
    }
    if sessions.is_empty() {
        shell.out.talk("there is no session in this memory; `staled mem start` begins one");
        return Ok(0);
    }
    let mut table = Table::with_heading(&["SESSION", "STATE", "STARTED", "ENDED", "SUMMARY"]);
    sessions.iter().for_each(|session| table.push(cells(session)));
    shell.out.lines(table.lines(shell.out.paint, 0))?;
    Ok(0)
}

fn cells(session: &Value) -> Vec<Cell> {
    let state =
        if session["is_auto_generated"] == true { "expired".to_owned() } else { text(session, "status") };
    let tone = if state == "active" { Tone::Good } else { Tone::Plain };
    vec![
        Cell::plain(text(session, "id")),
        Cell::new(tone, state),
        Cell::new(Tone::Faint, moment(session, "started_at")),
        Cell::new(Tone::Faint, moment(session, "ended_at")),
        summary(session),
    ]
}

fn moment(session: &Value, field: &str) -> String {
    session[field].as_str().map(to_the_second).unwrap_or_default()
}

fn summary(session: &Value) -> Cell {
    Cell::plain(head(&text(session, "summary"), SUMMARY_CHARS_MAX))
}

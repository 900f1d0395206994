//! `list`: every session that the daemon holds.

use super::paint::Tone;
use super::shell::{Done, Shell, Stop};
use super::table::{Cell, Table};
use super::words::{list, number, path, text, to_the_second};
use crate::protocol::path::WirePath;
use crate::protocol::request::List;
use serde_json::Value;
use std::path::PathBuf;

/// List the registered sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled list
  staled list --root . --json | jq -r '.sessions[].session'")]
pub(super) struct Args {
    /// Only sessions of this root
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Only sessions of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    // The daemon knows roots as absolute paths.
    let root = args.root.as_deref().map(std::path::absolute).transpose().map_err(Stop::failed)?;
    let ask = List { root: root.map(WirePath), user: args.user.clone() };
    let answer = shell.ask("context.list", &ask)?;
    let sessions = list(&answer.value, "sessions");
    if answer.printed {
        return Ok(0);
    }
    if sessions.is_empty() {
        let all = args.root.is_none() && args.user.is_none();
        shell.out.talk(if all {
            "no sessions are registered; `staled register FILE` adds one"
        } else {
            "no registered session fits; `staled list` shows all"
        });
        return Ok(0);
    }
    let mut table =
        Table::with_heading(&["SESSION", "ROWS", "STALE", "UNKNOWN", "AGENT", "USER", "ROOT", "CAPTURED"]);
    for session in sessions {
        table.push(cells(session));
    }
    shell.out.lines(table.lines(shell.out.paint, 0))?;
    Ok(0)
}

fn cells(session: &Value) -> Vec<Cell> {
    let count = |field: &str| number(&session["counts"], field);
    let counted = |field: &str, tone: Tone| {
        let count = count(field);
        Cell::new(if count > 0 { tone } else { Tone::Plain }, count.to_string())
    };
    vec![
        Cell::plain(text(session, "session")),
        Cell::plain(count("results").to_string()),
        counted("stale", Tone::Bad),
        counted("unknown", Tone::Doubt),
        Cell::plain(text(session, "agent")),
        Cell::plain(text(session, "user")),
        Cell::plain(path(&session["root"])),
        Cell::new(Tone::Faint, session["captured_at"].as_str().map(to_the_second).unwrap_or_default()),
    ]
}

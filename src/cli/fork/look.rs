//! `fork list`, `fork status`, `fork access`: how forks stand, and what one may touch.

use super::super::paint::Tone;
use super::super::shell::{Done, Shell, answered};
use super::super::table::{Cell, Table};
use super::super::words::{ago, counted, head, list, now_micros, number, path, text};
use super::{broken, named};
use crate::protocol::fork::ask::{Access, AccessMode, List, OfFork};
use crate::protocol::path::WirePath;
use clap::ValueEnum;
use serde_json::Value;
use std::path::PathBuf;

const PATHS_MAX: usize = 20;

/// List the forks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled fork list
  staled fork list s-01 --json | jq -r '.forks[].branch'")]
pub(in crate::cli) struct ListArgs {
    /// Only forks of this session
    session: Option<String>,
}

/// Show what moved since a fork was made, and whether it is isolated still
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled fork status cache-the-token
  staled fork status cache-the-token --json | jq .both_changed")]
pub(in crate::cli) struct StatusArgs {
    /// The fork
    fork: String,
}

/// Ask whether a fork may touch a path
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 allow, 1 deny, 2 it could not be asked.

Example:
  staled fork access cache-the-token src/token.rs --mode write")]
pub(in crate::cli) struct AccessArgs {
    /// The fork
    fork: String,
    /// The path; a relative one is below the fork's root
    path: PathBuf,
    /// What is to be done there
    #[arg(long, value_enum, default_value_t = Mode::Read)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// Read it
    Read,
    /// Write it, or below it
    Write,
    /// List it
    List,
}

pub(super) fn list_all(args: &ListArgs, shell: &mut Shell) -> Done {
    let answer = shell.ask("fork.list", &List { session: args.session.clone() })?;
    if answer.printed {
        return Ok(0);
    }
    let forks = list(&answer.value, "forks");
    if forks.is_empty() {
        shell.out.talk("there are no forks; `staled fork create SESSION` makes them");
        return Ok(0);
    }
    let mut table = Table::with_heading(&["FORK", "TRIES", "CHANGED", "BOTH", "RUNS", "ISOLATION", "MADE"]);
    for fork in forks {
        table.push(cells(fork));
    }
    shell.out.lines(table.lines(shell.out.paint, 0))?;
    Ok(0)
}

fn cells(fork: &Value) -> Vec<Cell> {
    let count =
        |field: &str| fork[field].as_array().map_or_else(|| "?".to_owned(), |paths| paths.len().to_string());
    let both = if list(fork, "both_changed").is_empty() { Tone::Plain } else { Tone::Doubt };
    let (isolation, tone) = isolation(fork);
    vec![
        Cell::plain(text(fork, "fork")),
        Cell::plain(head(&text(fork, "hypothesis"), 40)),
        Cell::plain(count("changed")),
        Cell::new(both, count("both_changed")),
        Cell::plain(number(fork, "running").to_string()),
        Cell::new(tone, isolation),
        Cell::new(Tone::Faint, ago(fork["made_at"].as_str().unwrap_or_default(), now_micros())),
    ]
}

/// One that is being made or ended is not watched, so that nothing is known against it does not make it intact.
fn isolation(fork: &Value) -> (String, Tone) {
    let (word, stage) = (text(&fork["isolation"], "state"), text(fork, "stage"));
    let tone = match word.as_str() {
        "intact" => Tone::Good,
        "broken" => Tone::Bad,
        _ => Tone::Doubt,
    };
    match (stage.as_str(), word.as_str()) {
        ("making" | "ending", "intact") => (stage, Tone::Doubt),
        ("making" | "ending", _) => (format!("{stage}, {word}"), tone),
        _ => (word, tone),
    }
}

pub(super) fn status(args: &StatusArgs, shell: &mut Shell) -> Done {
    let fork = named(&mut shell.client()?, &args.fork)?;
    let answer = shell.ask("fork.status", &OfFork { fork })?;
    if answer.printed {
        return Ok(0);
    }
    let fork = answer.value;
    let (isolation, tone) = isolation(&fork);
    shell.out.line(format!("{}  {}", text(&fork, "fork"), shell.out.paint.of(tone, &isolation)))?;
    let lines = [
        ("tries", text(&fork, "hypothesis")),
        ("branch", text(&fork, "branch")),
        ("workspace", path(&fork["workspace"])),
        ("scratchpad", path(&fork["scratchpad"])),
        ("base", text(&fork, "base")),
        ("parent", path(&fork["parent"])),
        ("runs", counted(number(&fork, "running"), "command")),
        ("denied", counted(number(&fork, "denied"), "time")),
    ];
    for (name, said) in lines.iter().filter(|(_, said)| !said.is_empty()) {
        shell.out.line(format!("  {}  {said}", shell.out.paint.of(Tone::Faint, &format!("{name:<12}"))))?;
    }
    print_moved(&fork, shell)?;
    for seen in list(&fork["isolation"], "seen") {
        shell.out.line(format!("  {}  {}", text(seen, "kind"), path(&seen["path"])))?;
    }
    Ok(0)
}

/// What moved, path by path.
pub(super) fn print_moved(answer: &Value, shell: &mut Shell) -> Result<(), super::super::shell::Stop> {
    if let Some(moved) = answer["base_moved"]["head"].as_object() {
        let id =
            |field: &str| moved[field].as_str().map_or("nothing", |id| &id[..id.len().min(12)]).to_owned();
        shell.out.line(format!("  the parent's HEAD moved: {} → {}", id("was"), id("now")))?;
    }
    let moved = [
        ("changed in the parent", &answer["base_moved"]["changed"]),
        ("changed here", &answer["changed"]),
        ("changed in both", &answer["both_changed"]),
    ];
    for (what, paths) in moved {
        let paths = paths.as_array().map(Vec::as_slice).unwrap_or_default();
        for one in paths.iter().take(PATHS_MAX) {
            shell.out.line(format!("  {what}: {}", path(one)))?;
        }
        if paths.len() > PATHS_MAX {
            shell.out.line(format!("  {what}: {} more", paths.len() - PATHS_MAX))?;
        }
    }
    Ok(())
}

pub(super) fn access(args: &AccessArgs, shell: &mut Shell) -> Done {
    let mode = match args.mode {
        Mode::Read => AccessMode::Read,
        Mode::Write => AccessMode::Write,
        Mode::List => AccessMode::List,
    };
    let fork = named(&mut shell.client()?, &args.fork)?;
    let answer = shell.ask("fork.access", &Access { fork, path: WirePath(args.path.clone()), mode })?;
    let code = u8::from(answer.value["access"] != "allow");
    if answer.printed {
        return Ok(code);
    }
    broken(&answer.value, shell);
    let said = format!("{}: {}", text(&answer.value, "access"), text(&answer.value, "reason"));
    answered(code, shell.out.line(said))
}

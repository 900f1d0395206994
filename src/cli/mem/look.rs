//! `mem search`, `mem timeline` and `mem stats`: what is asked changes nothing.

use super::{no_observation, rows};
use crate::cli::paint::Tone;
use crate::cli::shell::{Done, Shell};
use crate::cli::table::{Cell, Table};
use crate::cli::words::{harmless, list, number};
use crate::protocol::memory::{self, Around, OfUser, Search};
use clap::ValueEnum;

/// Search what is remembered, best first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
No query is an error but a blank one: `C++` and `say \"hi` are looked for as they are, a query of one or two characters
anywhere in a text. What rests on changed files says so.

Example:
  staled mem search 'token expiry'
  staled mem search cache --type decision --type pattern --stale exclude
  staled mem search -- '-rf'")]
pub(super) struct SearchArgs {
    /// What is looked for
    query: String,
    /// At most so many, 1 to 100 [default: 10]
    #[arg(long, value_name = "N")]
    limit: Option<i64>,
    /// Only this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "not_types")]
    types: Vec<String>,
    /// All but this type; may be given several times
    #[arg(long = "not-type", value_name = "TYPE")]
    not_types: Vec<String>,
    /// What becomes of those whose sources are not fresh
    #[arg(long, value_enum)]
    stale: Option<Stale>,
}

/// As the protocol has it, by the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Stale {
    /// They are listed where they stand, and say so
    Include,
    /// They come after all others
    Demote,
    /// They are left out
    Exclude,
}

impl From<Stale> for memory::Stale {
    fn from(stale: Stale) -> Self {
        match stale {
            Stale::Include => Self::Include,
            Stale::Demote => Self::Demote,
            Stale::Exclude => Self::Exclude,
        }
    }
}

/// Show what was remembered shortly before and after an observation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem timeline 12")]
pub(super) struct TimelineArgs {
    /// Its number
    id: i64,
}

/// Count what is remembered, and how much of it is stale
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem stats")]
pub(super) struct StatsArgs {}

pub(super) fn search(args: SearchArgs, user_id: String, shell: &mut Shell) -> Done {
    let some = |types: Vec<String>| Some(types).filter(|types| !types.is_empty());
    let ask = Search {
        user_id,
        query: args.query,
        limit: args.limit,
        types: some(args.types),
        types_exclude: some(args.not_types),
        stale: args.stale.map(Into::into),
    };
    let answer = shell.ask("mem_search", &ask)?;
    let found = list(&answer.value, "results");
    match (answer.printed, found.is_empty()) {
        (true, _) => {}
        (false, true) => shell.out.talk("nothing that is remembered fits"),
        (false, false) => rows::print(found, 0, &mut shell.out)?,
    }
    Ok(0)
}

pub(super) fn timeline(args: &TimelineArgs, user_id: String, shell: &mut Shell) -> Done {
    let answer = shell.ask("mem_timeline", &Around { user_id, observation_id: args.id })?;
    let around = list(&answer.value, "results");
    if around.is_empty() {
        return Err(no_observation(args.id));
    }
    if !answer.printed {
        rows::print(around, 0, &mut shell.out)?;
    }
    Ok(0)
}

pub(super) fn stats(user_id: String, shell: &mut Shell) -> Done {
    let answer = shell.ask("mem_stats", &OfUser { user_id })?;
    if answer.printed {
        return Ok(0);
    }
    let stats = &answer.value;
    let mut table = Table::default();
    let mut row = |name: &str, tone: Tone, count: u64| {
        let tone = if count == 0 { Tone::Plain } else { tone };
        table.push(vec![Cell::new(Tone::Faint, name), Cell::new(tone, count.to_string())]);
    };
    row("sessions", Tone::Plain, number(stats, "sessions"));
    row("observations", Tone::Plain, number(stats, "observations"));
    for (kind, count) in stats["by_type"].as_object().into_iter().flatten() {
        row(&format!("  {}", harmless(kind)), Tone::Plain, count.as_u64().unwrap_or_default());
    }
    row("stale", Tone::Bad, number(stats, "stale"));
    row("unknown", Tone::Doubt, number(stats, "unknown"));
    shell.out.lines(table.lines(shell.out.paint, 0))?;
    Ok(0)
}

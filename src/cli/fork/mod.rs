//! `fork`: branches of a session that cannot touch each other.
//!
//! A fork is named by its id, its branch, or as much of the end of its id as only one fork has.

mod create;
mod end;
mod exec;
mod look;
mod merge;

use super::shell::{Done, Shell, Stop, parse};
use super::words::{list, text};
use crate::client::Client;
use crate::fork::ForkError;
use crate::protocol::fork::ask::List;
use crate::protocol::fork::record::breaks;
use clap::Subcommand;
use serde_json::Value;

/// Branch a session off, work in the branches, and bring the best one home
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A fork is named by its id, its branch, or as much of the end of its id as only one fork has.

Example:
  staled fork create s-01 'Cache the token' 'Ask twice'
  staled fork exec cache-the-token -- cargo test
  staled fork merge cache-the-token --apply")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Args),
    List(look::ListArgs),
    Status(look::StatusArgs),
    Access(look::AccessArgs),
    Exec(exec::Args),
    Merge(merge::Args),
    Discard(end::DiscardArgs),
    Reprovision(end::ReprovisionArgs),
}

pub(super) fn run(args: Args, shell: &mut Shell) -> Done {
    match args.command {
        Command::Create(args) => create::run(args, shell),
        Command::List(args) => look::list_all(&args, shell),
        Command::Status(args) => look::status(&args, shell),
        Command::Access(args) => look::access(&args, shell),
        Command::Exec(args) => exec::run(&args, shell),
        Command::Merge(args) => merge::run(&args, shell),
        Command::Discard(args) => end::discard(&args, shell),
        Command::Reprovision(args) => end::reprovision(&args, shell),
    }
}

/// The id of the fork that is meant. A whole name is the daemon's to find.
fn named(client: &mut Client, name: &str) -> Result<String, Stop> {
    if name.contains('/') {
        return Ok(name.to_owned());
    }
    let answer = parse(&client.ask("fork.list", &List::default())?)?;
    let ids: Vec<String> = list(&answer, "forks").iter().map(|fork| text(fork, "fork")).collect();
    let last = |id: &String| id.rsplit('/').next().unwrap_or_default().to_owned();
    let whole: Vec<&String> = ids.iter().filter(|id| last(id) == name).collect();
    let fitting =
        if whole.is_empty() { ids.iter().filter(|id| last(id).ends_with(name)).collect() } else { whole };
    match fitting[..] {
        [id] => Ok(id.clone()),
        [] => Err(Stop::failed(format!("there is no fork {name}")).remedy("`staled fork list` shows all")),
        _ => {
            let ids: Vec<&str> = fitting.iter().map(|id| id.as_str()).collect();
            Err(Stop::failed(format!("{name} may be any of {}", ids.join(", "))).remedy("name one of them"))
        }
    }
}

/// What is known against a fork; nothing of one that is whole.
fn broken(answer: &Value, shell: &Shell) {
    if answer["isolation_broken"] == true {
        let seen = list(&answer["isolation"], "seen");
        // What came first may have been a doubt.
        let first = seen
            .iter()
            .find(|seen| breaks(&text(seen, "kind")))
            .map(|seen| format!(": {} {}", text(seen, "kind"), super::words::path(&seen["path"])));
        shell.out.talk(&format!(
            "isolation broken{}; `staled fork reprovision` makes it anew and keeps what it did",
            first.unwrap_or_default()
        ));
    }
}

fn refused(error: ForkError) -> Stop {
    Stop::failed(error)
}

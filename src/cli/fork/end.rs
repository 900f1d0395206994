//! `fork discard` and `fork reprovision`: the end of a fork, or its beginning anew. Nothing of it is lost.

use super::super::shell::{Done, Shell, Stop};
use super::super::words::{path, text};
use super::create::print_made;
use super::named;
use crate::protocol::fork::ask::Discard;
use serde_json::Value;

/// Discard a fork; what it committed stays reachable by the id that is named
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled fork discard ask-twice
  staled fork discard ask-twice --force")]
pub(in crate::cli) struct DiscardArgs {
    /// The fork
    fork: String,
    /// Even if it holds work that is not committed or not merged, which is kept
    #[arg(long)]
    force: bool,
}

/// Make a fork anew from where its session stands now, whole again after its isolation broke
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled fork reprovision ask-twice --force")]
pub(in crate::cli) struct ReprovisionArgs {
    /// The fork
    fork: String,
    /// Even if it holds work that is not committed or not merged, which is kept
    #[arg(long)]
    force: bool,
}

pub(super) fn discard(args: &DiscardArgs, shell: &mut Shell) -> Done {
    let fork = named(&mut shell.client()?, &args.fork)?;
    let answer = shell.ask("fork.discard", &Discard { fork, force: args.force })?;
    if !answer.printed {
        print_discarded(&answer.value, shell)?;
    }
    Ok(0)
}

pub(super) fn reprovision(args: &ReprovisionArgs, shell: &mut Shell) -> Done {
    let fork = named(&mut shell.client()?, &args.fork)?;
    let answer = shell.ask("fork.reprovision", &Discard { fork, force: args.force })?;
    if !answer.printed {
        print_made(&answer.value, shell)?;
        print_kept(&answer.value, shell)?;
    }
    Ok(0)
}

pub(super) fn print_discarded(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    shell.out.line(format!("{} is discarded", text(answer, "fork")))?;
    print_kept(answer, shell)
}

fn print_kept(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let kept = &answer["kept"];
    if kept.is_null() {
        return Ok(());
    }
    shell.out.line(format!("  kept in      {}", path(&kept["path"])))?;
    for (name, field) in [("commit", "commit"), ("uncommitted", "uncommitted"), ("get it back", "fetch")] {
        let said = text(kept, field);
        if !said.is_empty() {
            shell.out.line(format!("  {name:<11}  {said}"))?;
        }
    }
    Ok(())
}

//! `fork merge`: the daemon's judgement, and with `--apply` the merge itself, in the user's own process.

use super::super::paint::Tone;
use super::super::shell::{Done, Shell, Stop, answered, parse};
use super::super::words::{counted, harmless, list, number, path, text};
use super::end::print_discarded;
use super::look::print_moved;
use super::{broken, named, refused};
use crate::client::Client;
use crate::fork::git::Git;
use crate::fork::merge::{Judged, Merged, apply};
use crate::protocol::fork::ask::{Discard, List, Merge};
use crate::protocol::path::WirePath;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How long one step of git may take; a merge of a large repository takes seconds.
const PATIENCE: Duration = Duration::from_secs(600);

/// Judge whether a fork may come home, and with --apply bring it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 it may be merged, or is; 11 it may not, for what it rests on is stale or its isolation is broken;
1 both changed the same, so nothing was merged; 2 it could not be judged or merged.

Example:
  staled fork merge cache-the-token
  staled fork merge cache-the-token --apply --discard-others")]
pub(in crate::cli) struct Args {
    /// The fork
    fork: String,
    /// Merge it into the branch that it began on, if that may be
    #[arg(long)]
    apply: bool,
    /// Discard the other forks of its session when it is merged; what they did is kept
    #[arg(long, requires = "apply")]
    discard_others: bool,
    /// How long to wait for verification, in milliseconds, up to `decision.deadline_ms_max` [default: `decision.deadline_ms`]
    #[arg(long, value_name = "N")]
    deadline_ms: Option<u64>,
}

/// What the daemon said, as far as a merge needs it.
#[derive(Debug, Deserialize)]
struct Answer {
    fork: String,
    mode: String,
    may_merge: bool,
    isolation_broken: bool,
    uncommitted: Vec<WirePath>,
    tip: Option<String>,
    parent: WirePath,
    parent_branch: Option<String>,
    parent_head: Option<String>,
    base: Option<String>,
    workspace: WirePath,
    branch: String,
    #[serde(default)]
    hypothesis: String,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let mut client = shell.client()?;
    let fork = named(&mut client, &args.fork)?;
    let said = client.ask("fork.merge", &Merge { fork, deadline_ms: args.deadline_ms })?;
    let judgement = parse(&said)?;
    let answer: Answer = serde_json::from_str(&said)
        .map_err(|error| Stop::failed(format!("the daemon's judgement is not whole: {error}")))?;
    if !args.apply || !answer.may_merge || answer.isolation_broken {
        let code = if answer.may_merge { 0 } else { 11 };
        return answered(code, print(&said, &judgement, shell));
    }
    let judged = judged(&answer)?;
    let git = Git::find().map_err(|error| refused(error.into()))?.with_timeout(PATIENCE);
    let merged = apply(&git, &judged).map_err(refused)?;
    let discarded = match (&merged, args.discard_others) {
        (Merged::Conflict(_), _) | (_, false) => Vec::new(),
        _ => discard_others(&mut client, &judgement, shell)?,
    };
    let code = u8::from(matches!(merged, Merged::Conflict(_)));
    answered(code, print_merged(&merged, &answer, judgement, &discarded, shell))
}

/// What the daemon said, when nothing stands against it.
fn judged(answer: &Answer) -> Result<Judged, Stop> {
    if answer.mode == "copy" {
        let (from, to) = (answer.workspace.0.display(), answer.parent.0.display());
        return Err(Stop::failed(format!("{} is a copy without a history to merge", answer.fork)).remedy(format!(
            "`diff -r {to} {from}` shows what differs; copy over what you want, or `git init` before the next fork"
        )));
    }
    if !answer.uncommitted.is_empty() {
        let paths: Vec<String> =
            answer.uncommitted.iter().map(|path| harmless(&path.0.to_string_lossy())).collect();
        let many = counted(paths.len() as u64, "file");
        let few = paths[..paths.len().min(10)].join(", ");
        let commit = format!("staled fork exec {} -- sh -c 'git add -A && git commit'", answer.fork);
        return Err(Stop::failed(format!("{many} of the fork not committed: {few}"))
            .remedy(format!("`{commit}` commits them; discard what is not wanted")));
    }
    let tip = answer
        .tip
        .clone()
        .ok_or_else(|| Stop::failed("the fork has no commit, so there is nothing to merge"))?;
    Ok(Judged {
        tree: answer.parent.0.clone(),
        branch: answer.parent_branch.clone(),
        head: answer.parent_head.clone(),
        born: answer.base.is_some(),
        workspace: answer.workspace.0.clone(),
        fork_branch: answer.branch.clone(),
        tip,
        message: format!("Merge fork {}: {}\n", answer.branch, answer.hypothesis),
    })
}

fn print(said: &str, judgement: &Value, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(said);
    }
    let (word, tone) =
        if judgement["may_merge"] == true { ("may merge", Tone::Good) } else { ("may not merge", Tone::Bad) };
    let why = text(&judgement["reason"], "text");
    shell.out.line(format!("{}  {}  {why}", shell.out.paint.of(tone, word), text(judgement, "fork")))?;
    shell.out.line(format!(
        "  {} on {}",
        counted(number(judgement, "commits"), "commit"),
        text(judgement, "branch")
    ))?;
    for one in list(judgement, "uncommitted") {
        shell.out.line(format!("  not committed: {}", path(one)))?;
    }
    print_moved(judgement, shell)?;
    broken(judgement, shell);
    Ok(())
}

/// Every other fork of the session goes; what it did is kept, and where is said.
fn discard_others(client: &mut Client, judgement: &Value, shell: &Shell) -> Result<Vec<Value>, Stop> {
    let ask = List { session: judgement["session"].as_str().map(str::to_owned) };
    let listed = parse(&client.ask("fork.list", &ask)?)?;
    let mut gone = Vec::new();
    for fork in list(&listed, "forks").iter().filter_map(|fork| fork["fork"].as_str()) {
        if judgement["fork"] == fork {
            continue;
        }
        match client.ask("fork.discard", &Discard { fork: fork.to_owned(), force: true }) {
            Ok(answer) => gone.push(parse(&answer)?),
            // It is merged; one that stays is said and does not undo that.
            Err(error) => shell.out.talk(&format!("staled: {} stays: {error}", harmless(fork))),
        }
    }
    Ok(gone)
}

fn print_merged(
    merged: &Merged,
    answer: &Answer,
    mut judgement: Value,
    discarded: &[Value],
    shell: &mut Shell,
) -> Result<(), Stop> {
    let (how, commit, conflicts) = match merged {
        Merged::Already => ("already", answer.parent_head.clone(), Vec::new()),
        Merged::Forward(to) => ("forward", Some(to.clone()), Vec::new()),
        Merged::Merge(to) => ("merge", Some(to.clone()), Vec::new()),
        Merged::Conflict(paths) => ("conflict", None, paths.clone()),
    };
    if shell.json {
        let conflicts: Vec<WirePath> = conflicts.into_iter().map(WirePath).collect();
        judgement["applied"] = json!({ "how": how, "commit": commit, "conflicts": conflicts });
        judgement["discarded"] = Value::Array(discarded.to_vec());
        return shell.out.line(judgement);
    }
    let short = commit.as_deref().map(|id| id[..id.len().min(12)].to_owned()).unwrap_or_default();
    let onto = answer.parent_branch.as_deref().unwrap_or("HEAD");
    let line = match merged {
        Merged::Already => format!("{} has all of {} already", onto, answer.branch),
        Merged::Forward(_) => format!("{onto} is {} now ({short})", answer.branch),
        Merged::Merge(_) => format!("{} is merged into {onto} ({short})", answer.branch),
        Merged::Conflict(_) => {
            format!("{} and {onto} changed the same, so nothing was merged", answer.branch)
        }
    };
    shell.out.line(harmless(&line))?;
    shell.out.lines(
        conflicts.iter().map(|path: &PathBuf| harmless(&format!("  both changed {}", path.display()))),
    )?;
    if matches!(merged, Merged::Conflict(_)) {
        // Not the other way round: a fork may not read its parent, and who writes in it otherwise breaks its isolation.
        let (tree, from) = (answer.parent.0.display(), answer.workspace.0.display());
        let pull = format!("git -C {tree} pull --no-rebase {from} {}", answer.branch);
        shell.out.talk(&harmless(&format!("`{pull}` brings it there, to be resolved by hand")));
    }
    discarded.iter().try_for_each(|fork| print_discarded(fork, shell))
}

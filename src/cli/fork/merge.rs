//! `fork merge`: the daemon's judgement, and with `--apply` the merge itself, in the user's own process.
//!
//! A merge takes its time, so the daemon is asked twice: before it is computed, and before it lands.

use super::super::paint::Tone;
use super::super::shell::{Done, Shell, Stop, answered, parse};
use super::super::words::{counted, harmless, list, number, path, text};
use super::end::print_discarded;
use super::look::print_moved;
use super::{broken, named, refused};
use crate::client::{Client, ClientError};
use crate::fork::ForkError;
use crate::fork::git::Git;
use crate::fork::merge::{Judged, Merged, STALE, apply};
use crate::protocol::fork::ask::{Discard, List, Merge};
use crate::protocol::path::WirePath;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How long one step of git may take; a merge of a large repository takes seconds.
const PATIENCE: Duration = Duration::from_secs(600);

/// Judge whether a fork may come home, and with --apply bring it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 it may be merged, or is; 11 it may not, for what it rests on is stale, its isolation is broken, or it
moved while it was merged; 1 both changed the same, so nothing was merged; 2 it could not be judged or merged.

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

/// A judgement: as it came, and as it is read.
struct Said {
    text: String,
    value: Value,
    answer: Answer,
}

impl Said {
    fn of(text: String) -> Result<Self, Stop> {
        let value = parse(&text)?;
        let answer = serde_json::from_str(&text)
            .map_err(|error| Stop::failed(format!("the daemon's judgement is not whole: {error}")))?;
        Ok(Self { text, value, answer })
    }

    fn lets_merge(&self) -> bool {
        self.answer.may_merge && !self.answer.isolation_broken
    }

    /// The same of something else than what was to be merged, which is not let for that.
    fn of_another(mut self, why: &ForkError) -> Self {
        self.value["may_merge"] = Value::Bool(false);
        self.value["reason"] = json!({ "code": why.code(), "text": why.to_string(), "evidence": [] });
        self.text = self.value.to_string();
        self
    }
}

/// Why nothing was merged.
enum Unmerged {
    /// It was let when it began, and is not any more.
    NotLet,
    Hindered(ForkError),
    Unasked(Stop),
}

impl From<ForkError> for Unmerged {
    fn from(error: ForkError) -> Self {
        Self::Hindered(error)
    }
}

impl From<Stop> for Unmerged {
    fn from(stop: Stop) -> Self {
        Self::Unasked(stop)
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let mut client = shell.client()?;
    let fork = named(&mut client, &args.fork)?;
    let ask = Merge { fork, deadline_ms: args.deadline_ms };
    let mut said = Said::of(client.ask("fork.merge", &ask)?)?;
    if !args.apply || !said.lets_merge() {
        let code = if said.answer.may_merge { 0 } else { 11 };
        return answered(code, print(&said, shell));
    }
    let judged_first = judged(&said.answer)?;
    let git = Git::find().map_err(|error| refused(error.into()))?.with_timeout(PATIENCE);
    let merged = apply(&git, &judged_first, || {
        said = Said::of(ask_again(&mut client, "fork.merge", &ask, shell)?)?;
        if said.lets_merge() { Ok(judged(&said.answer)?) } else { Err(Unmerged::NotLet) }
    });
    let merged = match merged {
        Ok(merged) => merged,
        Err(Unmerged::NotLet) => return answered(11, print(&said, shell)),
        Err(Unmerged::Hindered(error)) if error.code() == STALE => {
            return answered(11, print(&said.of_another(&error), shell));
        }
        Err(Unmerged::Hindered(error)) => return Err(refused(error)),
        Err(Unmerged::Unasked(stop)) => return Err(stop),
    };
    let discarded = match (&merged, args.discard_others) {
        (Merged::Conflict(_), _) | (_, false) => Vec::new(),
        _ => discard_others(&mut client, &said.value, shell),
    };
    let code = u8::from(matches!(merged, Merged::Conflict(_)));
    answered(code, print_merged(&merged, &said.answer, said.value, &discarded, shell))
}

/// On the connection that there is; a daemon that was started anew meanwhile, or that let go of who was silent for as long as
/// the merge took, is asked on another.
fn ask_again(client: &mut Client, method: &str, ask: &impl Serialize, shell: &Shell) -> Result<String, Stop> {
    match client.ask(method, ask) {
        Err(ClientError::Broken { .. }) => {
            *client = shell.client()?;
            Ok(client.ask(method, ask)?)
        }
        told => Ok(told?),
    }
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
        let commits = format!("`{commit}` commits them; discard what is not wanted");
        let apart = "what ends with a slash is a repository of its own, which is not merged: take what you want out of it and \
                     empty its folder";
        let of_its_own = |path: &String| path.ends_with('/');
        let remedy = match (paths.iter().any(of_its_own), paths.iter().all(of_its_own)) {
            (false, _) => commits,
            (true, false) => format!("{commits}; {apart}"),
            (true, true) => apart.to_owned(),
        };
        return Err(Stop::failed(format!("{many} of the fork not committed: {few}")).remedy(remedy));
    }
    let tip = answer
        .tip
        .clone()
        .ok_or_else(|| Stop::failed("the fork has no commit, so there is nothing to merge"))?;
    Ok(Judged {
        tree: answer.parent.0.clone(),
        branch: answer.parent_branch.clone(),
        head: answer.parent_head.clone(),
        base: answer.base.clone(),
        workspace: answer.workspace.0.clone(),
        fork_branch: answer.branch.clone(),
        tip,
        message: format!("Merge fork {}: {}\n", answer.branch, answer.hypothesis),
    })
}

fn print(said: &Said, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        return shell.out.line(&said.text);
    }
    let judgement = &said.value;
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

/// Every other fork of the session goes; what it did is kept, and where is said. It is merged already: what stays is said,
/// and does not undo that.
fn discard_others(client: &mut Client, judgement: &Value, shell: &Shell) -> Vec<Value> {
    let stay = |which: &str, stop: Stop| {
        if let Stop::Failed(why) = stop {
            let why = why.to_string();
            shell.out.talk(&format!("staled: {which}: {}", why.trim_start_matches("staled: ")));
        }
    };
    let ask = List { session: judgement["session"].as_str().map(str::to_owned) };
    let listed = ask_again(client, "fork.list", &ask, shell).and_then(|answer| parse(&answer));
    let listed = listed.unwrap_or_else(|stop| {
        stay("it is merged; the others stay", stop);
        Value::Null
    });
    let mut gone = Vec::new();
    for fork in list(&listed, "forks").iter().filter_map(|fork| fork["fork"].as_str()) {
        if judgement["fork"] == fork {
            continue;
        }
        let ask = Discard { fork: fork.to_owned(), force: true };
        match ask_again(client, "fork.discard", &ask, shell).and_then(|answer| parse(&answer)) {
            Ok(answer) => gone.push(answer),
            Err(stop) => stay(&format!("it is merged; {} stays", harmless(fork)), stop),
        }
    }
    gone
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

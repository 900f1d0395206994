//! `run`: starts an agent the way the decision says: with the session it had, in a branch of it, or anew.
//!
//! Promise: the agent is started whatever happens here, but for one case: a session that another live process goes on with is
//! not gone on with a second time. Without a daemon, without a session and without an answer it is started as if we were not
//! there. We become the agent (`exec`), so its exit code, its terminal and its signals are its own.

mod brief;
mod start;

use super::shell::{Done, Shell, Stop, parse, usual_folders};
use super::words::{head, list, text};
use crate::client::Client;
use crate::protocol::fork::ask;
use crate::protocol::path::WirePath;
use crate::protocol::request::{Decide, Holder, List, Release};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::Value;
use start::Start;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the daemon may take for one answer; the longest that a decision takes by default is less. Then the agent is
/// started all the same.
const PATIENCE: Duration = Duration::from_secs(12);
/// The reason on one line.
const REASON_CHARS_MAX: usize = 300;

/// Start an agent the way the decision says: resumed, in a fork, or anew with what still holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Which session: the one that is named, or the last one that this agent had in the work tree (or the folder) around the working
directory. Then, by the decision:
  resume   the agent goes on with the session
  fork     the branches are made, and the agent goes on with a copy of the session in the first one, or in --branch;
           STALED_FORK names it to the hooks
  fresh    a new session; what still holds is in a file that STALED_BRIEF names, and the hooks tell it to the agent
Without a session, without a daemon, or where the arguments choose a session themselves, the agent is started plainly. What
was decided is said on stderr; then we become the agent, whose exit code is its own. A session that another live process goes
on with is not resumed without --anyway. --json prints with --print only.
Exit codes: 2 not started, for the session is held; 126, 127 the agent cannot be run, or is not there.

Example:
  staled run claude
  staled run claude -- -p 'Go on'
  staled run claude --print --json
  staled run codex --session 019a…")]
pub(super) struct Args {
    /// The agent
    agent: Whose,
    /// The session to go on with [default: the last one of this agent here]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The branch of a fork to start in, by the end of its name [default: the first]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Resume a session that another process holds too
    #[arg(long)]
    anyway: bool,
    /// Print what would be run, and run and make nothing
    #[arg(long)]
    print: bool,
    /// What the agent is given
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// Whose program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Whose {
    #[value(alias = "claude-code")]
    Claude,
    Codex,
}

impl Whose {
    /// As its sessions name it.
    fn agent(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let start = choose(args, shell)?;
    if args.print {
        shell.out.line(if shell.json { start.to_json().to_string() } else { start.to_string() })?;
        return Ok(0);
    }
    start.said.iter().for_each(|line| shell.out.talk(line));
    Err(start.exec())
}

/// What is to be started. Everything that goes wrong on the way is said, and ends in a plain start.
fn choose(args: &Args, shell: &Shell) -> Result<Start, Stop> {
    let plain = |why: &str| {
        Ok(Start::plain(args.agent, &args.arguments)
            .saying(format!("staled: {why}; {} is started plainly", args.agent.program())))
    };
    if start::chooses_itself(args.agent, &args.arguments) {
        return plain("the arguments choose what to go on with");
    }
    let socket = shell.socket()?;
    let mut client = match Client::connect_for(&socket, PATIENCE) {
        Ok(client) => client,
        Err(error) => return plain(&reason(&error.into())),
    };
    let session = match &args.session {
        Some(session) => {
            refuse_foreign(session, args.agent, &mut client)?;
            session.clone()
        }
        None => match last(args.agent, &mut client) {
            Ok(Some(session)) => session,
            Ok(None) => return plain(&format!("no session of {} is known here", args.agent.agent())),
            Err(stop) => return plain(&reason(&stop)),
        },
    };
    match decided(args, &session, &mut client, shell) {
        Ok(start) => Ok(start),
        Err(Held::By(pid)) => Err(held(&session, pid)),
        Err(Held::No(stop)) => plain(&format!("{session}: {}", reason(&stop))),
    }
}

/// Why a session is not gone on with.
enum Held {
    By(u64),
    No(Stop),
}

impl<E: Into<Stop>> From<E> for Held {
    fn from(error: E) -> Self {
        Self::No(error.into())
    }
}

fn decided(args: &Args, session: &str, client: &mut Client, shell: &Shell) -> Result<Start, Held> {
    // We become the agent, so it is ours that the process holds it by. Who only looks holds nothing.
    let holder = (!args.print).then(|| Holder { pid: std::process::id() });
    let holds = holder.is_some();
    let ask = Decide { session: session.to_owned(), holder, ..Decide::default() };
    let report = parse(&client.ask("decide", &ask)?)?;
    let transition = text(&report, "transition");
    let held_by = report["held_by"]["pid"].as_u64();
    if let (Some(pid), "resume", false) = (held_by, transition.as_str(), args.anyway) {
        return Err(Held::By(pid));
    }
    if holds && transition != "resume" {
        // A copy or a new session goes on; the old one is nobody's.
        let release = Release { session: session.to_owned(), holder: Holder { pid: std::process::id() } };
        let _ = client.ask("context.release", &release);
    }
    let start = Start::plain(args.agent, &args.arguments).of(&report);
    let mut start = match transition.as_str() {
        "resume" => start.resumed(session),
        "fork" => start.forked(session, &branch(args, session, &report, client)?),
        "fresh" if args.print => start.fresh(Path::new("(a new file)")),
        "fresh" => start.fresh(&brief::write(&runtime(shell)?, &report)?),
        other => return Err(Stop::failed(format!("what is the transition {other:?}?")).into()),
    };
    start.said.push(headline(session, &report, &transition, held_by));
    let line = format!("  {start}");
    start.said.push(line);
    Ok(start)
}

fn headline(session: &str, report: &Value, transition: &str, held_by: Option<u64>) -> String {
    let why = head(&text(&report["reason"], "text"), REASON_CHARS_MAX);
    let held = held_by.map(|pid| format!(" (process {pid} goes on with {session} too)")).unwrap_or_default();
    format!("staled: {transition}  {session}: {why}{held}")
}

/// A session is gone on with by its own agent, and where it began: elsewhere no agent finds it. One that cannot be found is
/// for the decision to refuse.
fn refuse_foreign(session: &str, whose: Whose, client: &mut Client) -> Result<(), Stop> {
    let Ok(listed) = client.ask("context.list", &List::default()) else { return Ok(()) };
    let listed = parse(&listed)?;
    let Some(found) = list(&listed, "sessions").iter().find(|found| found["session"] == session) else {
        return Ok(());
    };
    let agent = text(found, "agent");
    if agent != whose.agent() {
        return Err(Stop::failed(format!("{session} is a session of {agent}, not of {}", whose.agent())));
    }
    let here = here()?;
    match wire_path(&found["root"]).filter(|root| *root != here) {
        None => Ok(()),
        Some(root) => Err(Stop::failed(format!("{session} is a session of {}", root.display()))
            .remedy("start there what is to go on with it")),
    }
}

/// The work tree that we are in, or the folder.
fn here() -> Result<PathBuf, Stop> {
    let here = std::env::current_dir().map_err(|error| Stop::failed(format!("where are we? {error}")))?;
    let root = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
    Ok(root.to_owned())
}

/// The last session of this agent that began in the work tree, or the folder, that we are in.
fn last(whose: Whose, client: &mut Client) -> Result<Option<String>, Stop> {
    let ask = List { root: Some(WirePath(here()?)), user: None };
    let listed = parse(&client.ask("context.list", &ask)?)?;
    // Agents name their sessions by a UUID; what was named otherwise was imported, and no agent knows it.
    let known = |session: &&Value| {
        session["agent"] == whose.agent() && uuid::Uuid::parse_str(&text(session, "session")).is_ok()
    };
    let newest =
        list(&listed, "sessions").iter().filter(known).max_by_key(|session| text(session, "captured_at"));
    Ok(newest.map(|session| text(session, "session")))
}

/// The fork to start in: one of those that there are, or of those that are made now.
fn branch(args: &Args, session: &str, report: &Value, client: &mut Client) -> Result<Value, Stop> {
    let ask = ask::List { session: Some(session.to_owned()) };
    let listed = parse(&client.ask("fork.list", &ask)?)?;
    let mut forks = list(&listed, "forks").to_vec();
    // Those of an earlier goal try something else. The first is that of the first way, not of the alphabet.
    let ways = list(&report["context"], "hypotheses");
    forks.retain(|fork| ways.contains(&fork["hypothesis"]));
    forks.sort_by_key(|fork| ways.iter().position(|way| *way == fork["hypothesis"]));
    if forks.is_empty() && args.print {
        // Nothing is made to be looked at; the report has the names that they would have.
        forks = list(report, "forks").to_vec();
    } else if forks.is_empty() {
        let ask = ask::Create { session: session.to_owned(), ..ask::Create::default() };
        forks = list(&parse(&client.ask("fork.create", &ask)?)?, "forks").to_vec();
    }
    let wanted = |fork: &&Value| {
        args.branch
            .as_deref()
            .is_none_or(|name| fork["branch"].as_str().is_some_and(|branch| branch.ends_with(name)))
    };
    let found = forks.iter().find(wanted).cloned().ok_or_else(|| {
        let names: Vec<String> = forks.iter().map(|fork| text(fork, "branch")).collect();
        Stop::failed(format!("no branch is named so; there are {}", names.join(", ")))
    })?;
    match wire_path(&found["workspace"]).filter(|workspace| !args.print && !workspace.is_dir()) {
        Some(gone) => Err(Stop::failed(format!("its workspace {} is gone", gone.display()))),
        None => Ok(found),
    }
}

/// The folder of the daemon's socket, which is ours alone.
fn runtime(shell: &Shell) -> Result<PathBuf, Stop> {
    match &shell.named_socket {
        Some(socket) => Ok(socket.parent().unwrap_or(Path::new(".")).to_owned()),
        None => Ok(usual_folders()?.runtime),
    }
}

fn held(session: &str, pid: u64) -> Stop {
    Stop::failed(format!("process {pid} goes on with {session}; nothing was started")).remedy(
        "--anyway starts it all the same, and the session goes on in two ways; without us a new one begins",
    )
}

/// Why something could not be done, on one line.
fn reason(stop: &Stop) -> String {
    match stop {
        Stop::Failed(failure) => {
            let said = failure.to_string();
            said.trim_start_matches("staled: ").lines().next().unwrap_or_default().to_owned()
        }
        Stop::Unread => "nobody reads".to_owned(),
    }
}

/// A path as it came over the wire.
fn wire_path(value: &Value) -> Option<PathBuf> {
    WirePath::deserialize(value).ok().map(|path| path.0)
}

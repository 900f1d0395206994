//! `import`: what a transcript shows that its session believes, registered with the daemon.

mod follow;
mod progress;

use super::shell::{Done, Shell, Stop};
use super::words::{counted, list};
use crate::agent;
use crate::agent::context::{Imported, context, known_files};
use crate::agent::rebase::Places;
use crate::agent::transcript::{Agent as Writer, Transcript};
use clap::Subcommand;
use progress::Progress;
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// Register what an agent's transcript shows that its session believes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled import claude-code session.jsonl --root ~/app
  staled import codex rollout.jsonl.zst --root ~/app")]
pub(super) struct Args {
    #[command(subcommand)]
    agent: Agent,
}

#[derive(Debug, Subcommand)]
enum Agent {
    /// A session of Claude Code (~/.claude/projects/*/*.jsonl; plain, gzip or zstd)
    #[command(after_help = "\
Example:
  staled import claude-code ~/.claude/projects/-home-alice-app/5f2c….jsonl --root ~/app
  staled import claude-code session.jsonl.gz --root /tmp/replay --rebuild
  staled import claude-code session.jsonl --root ~/app --follow --json

What the agent saw is the baseline, never what is on the disk now: a file that differs, or lines of one,
are stale from the start. What a search found and what a command printed is not kept: the tree as it is
now is their baseline, and they are never critical. What is on the disk is also the baseline of HEAD and
the lockfiles in DIR, which no agent reads and every agent relies on.

Commands that wrote something are no results; those that ask the network, or a program that is not known,
rest on nothing that can be watched, and are stale from the start.

Importing a session again replaces what was registered under its name. With --follow it is registered
once, and from then on what each new line of the transcript changes is added to it.")]
    ClaudeCode(ImportArgs),
    /// A session of Codex (~/.codex/sessions/*/*/*/rollout-*.jsonl; plain, gzip or zstd)
    #[command(after_help = "\
Example:
  staled import codex ~/.codex/sessions/2026/04/10/rollout-2026-04-10T20-02-04-019d….jsonl --root ~/app
  staled import codex rollout.jsonl.zst --root ~/app --session review
  staled import codex rollout.jsonl --root ~/app --follow --json

What the agent saw is the baseline, never what is on the disk now. Codex reads by commands: `cat FILE`,
`sed -n 'A,Bp' FILE`, `nl -ba FILE | sed -n 'A,Bp'`, `head` and `tail` of one file, whose output was shown
whole, are reads of it. Any other command is a question: the tree as it is now is its baseline, and it is
never critical. HEAD is where the session began, unless it moved it itself; lockfiles in DIR are watched
from now on.

Turns that were rolled back are forgotten, though what they wrote stays written: the session believes what
it believed before them.

Importing a session again replaces what was registered under its name. With --follow it is registered
once, and from then on what each new line of the transcript changes is added to it.")]
    Codex(ImportArgs),
}

#[derive(Debug, clap::Args)]
struct ImportArgs {
    /// The transcript
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the session's repository is on this machine
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// A path prefix of the transcript and what it is here; may be given more than once
    #[arg(long = "map", value_name = "FROM=TO", value_parser = parse_map)]
    maps: Vec<(PathBuf, PathBuf)>,
    /// Name of the session; the transcript's own id unless given
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// What the session is for, in one sentence
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
    /// First write every file that the transcript shows whole into DIR, which must be empty or missing
    #[arg(long)]
    rebuild: bool,
    /// Go on as the transcript grows: one line of what changed after each quiet moment
    #[arg(long)]
    follow: bool,
}

fn parse_map(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.into(), to.into())),
        _ => Err("expected FROM=TO".to_owned()),
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let (writer, args) = match &args.agent {
        Agent::ClaudeCode(args) => (Writer::ClaudeCode, args),
        Agent::Codex(args) => (Writer::Codex, args),
    };
    if args.follow {
        return follow::follow(writer, args, shell);
    }
    let mut progress = Progress::new(&args.file);
    let transcript = agent::open_telling(&args.file, |at| progress.tell(at));
    progress.end();
    let transcript = transcript.map_err(Stop::failed)?;
    is_by(writer, &transcript, args)?;
    if !transcript.conversation {
        // A context of HEAD and lockfiles alone would resume whatever the session believed.
        let why = transcript.warnings.join("; ");
        return Err(Stop::failed(format!("{}: {why}", super::input::name(&args.file))));
    }
    let root = root(&args.root, args.rebuild)?;
    let imported = imported(&transcript, args, &root, args.rebuild)?;
    let answer = shell.client()?.ask("context.register", &imported.context)?;
    print(&transcript, &imported, &super::shell::parse(&answer)?, shell)?;
    Ok(0)
}

/// Refuses the transcript of another agent, and says whose it is.
fn is_by(wanted: Writer, transcript: &Transcript, args: &ImportArgs) -> Result<(), Stop> {
    // A file in which nobody can be told by their lines is nobody else's.
    let told = transcript.conversation || transcript.agent == Writer::Codex;
    if !told || transcript.agent == wanted {
        return Ok(());
    }
    let (file, writer) = (super::input::name(&args.file), transcript.agent.name());
    let whose = match transcript.agent {
        Writer::ClaudeCode => "a session of Claude Code",
        Writer::Codex => "a rollout of Codex",
    };
    Err(Stop::failed(format!("{file} is {whose}"))
        .remedy(format!("`staled import {writer} {file} --root DIR` reads it")))
}

/// The context of a transcript; with `rebuild` its files are written first.
fn imported(
    transcript: &Transcript,
    args: &ImportArgs,
    root: &Path,
    rebuild: bool,
) -> Result<Imported, Stop> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = Places {
        root,
        first_cwd: transcript.first_cwd.as_deref(),
        cwds: &transcript.cwds,
        maps: &args.maps,
        home: home.as_deref(),
    };
    if rebuild {
        self::rebuild(transcript, &places)?;
    }
    let fallback = || args.file.file_name().map(|name| name.to_string_lossy().into_owned());
    let session = args.session.clone().or_else(|| transcript.session_id.clone()).or_else(fallback);
    Ok(context(transcript, &places, session, args.goal.clone()))
}

fn root(root: &Path, rebuild: bool) -> Result<PathBuf, Stop> {
    let failed = |error| Stop::failed(format!("cannot use the root {}: {error}", root.display()));
    if rebuild {
        std::fs::create_dir_all(root).map_err(failed)?;
        if std::fs::read_dir(root).map_err(failed)?.next().is_some() {
            let why = format!(
                "the root {} is not empty, and --rebuild writes into empty folders only",
                root.display()
            );
            return Err(Stop::failed(why));
        }
    }
    let root = root.canonicalize().map_err(failed)?;
    if root.is_dir() {
        Ok(root)
    } else {
        Err(Stop::failed(format!("the root {} is not a folder", root.display())))
    }
}

/// Writes what the agent last saw. A name of the transcript never leads out of the root.
fn rebuild(transcript: &Transcript, places: &Places<'_>) -> Result<(), Stop> {
    for (path, content) in known_files(transcript, places) {
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            continue;
        }
        let path = places.root.join(path);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| Stop::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

/// Says what was registered.
fn print(
    transcript: &Transcript,
    imported: &Imported,
    answer: &Value,
    shell: &mut Shell,
) -> Result<(), Stop> {
    if shell.json {
        let (counts, asked) = (&transcript.counts, imported.counts);
        let said = json!({
            "session": answer["session"],
            "lines": counts.lines,
            "unparsable": counts.unparsable,
            "searches": asked.searches,
            "commands": asked.commands,
            "volatile": asked.volatile,
            "left_out": asked.left_out,
            "results": answer["results"],
            "invariants": answer["invariants"],
            "notes": imported.notes,
        });
        shell.out.line(said)?;
        return shell.out.flush();
    }
    let rows: Vec<_> = list(answer, "results").iter().chain(list(answer, "invariants")).collect();
    let critical = imported.context.results.iter().filter(|told| told.critical == Some(true)).count();
    let stale = rows.iter().filter(|row| row["status"] != "fresh").count();
    let session = super::words::text(answer, "session");
    shell.out.line(format!(
        "{session}: {} of {}, {} of them critical",
        counted(rows.len() as u64, "source"),
        counted(transcript.counts.lines, "line"),
        critical
    ))?;
    shell.out.line(format!("  {}", still(stale, &session)))?;
    shell.out.flush()?;
    imported.notes.iter().for_each(|note| shell.out.talk(&format!("note: {note}")));
    Ok(())
}

/// How many results are no more what the agent saw.
fn still(stale: usize, session: &str) -> String {
    match stale {
        0 => "all are what the agent saw".to_owned(),
        n => format!("{n} are not what the agent saw; `staled status {session}` shows them"),
    }
}

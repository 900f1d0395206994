//! The command line: one file a command.
//!
//! Data goes to stdout and talk to stderr; one line a fact, in a stable order, readable without colour. A reader that
//! goes away ends the program quietly. Exit codes: 0 done, 1 a negative answer, 2 it could not be done; `decide`,
//! `fork exec`, `fork merge`, `log verify`, `log replay` and `serve` have codes of their own, which their `--help` tells.
//!
//! A new command is one file, one variant here and one line in `Command::run`.

mod away;
mod check;
mod completions;
mod decide;
mod doctor;
mod drop;
mod export;
mod fork;
mod hook;
mod html;
mod import;
mod input;
mod install;
mod journal;
mod list;
mod log;
mod mcp;
mod mem;
mod metrics;
mod out;
mod paint;
mod register;
mod reload;
mod replay;
mod report;
mod rescan;
mod run;
mod screen;
mod serve;
mod shell;
mod status;
mod stop;
mod table;
mod tail;
mod trace;
mod watch;
mod why;
mod words;

pub use rescan::rescan;

use clap::{Parser, Subcommand};
use out::Out;
use shell::{Done, Globals, Shell, Stop, answered};
use std::ffi::OsString;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Example:
  staled serve &
  staled register context.json
  staled decide s-01

Exit codes: 0 done, 1 a negative answer, 2 it could not be done; see `staled decide --help`,
`staled log verify --help`, `staled log replay --help`, `staled fork exec --help`, `staled fork merge --help` and
`staled serve --help` for theirs.";

/// Knows what an agent session still knows, and answers resume, fork or fresh with evidence.
#[derive(Debug, Parser)]
#[command(name = "staled", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Register(register::RegisterArgs),
    Record(register::RecordArgs),
    Decide(decide::Args),
    Import(import::Args),
    Install(install::Args),
    Status(status::Args),
    Tail(tail::Args),
    Why(why::Args),
    Check(check::Args),
    Doctor(doctor::Args),
    Export(export::Args),
    ImportState(export::ImportArgs),
    Log(log::Args),
    Mem(mem::Args),
    Mcp(mcp::Args),
    Metrics(metrics::Args),
    Fork(fork::Args),
    Hook(hook::Args),
    Run(run::Args),
    List(list::Args),
    Drop(drop::Args),
    Reload(reload::Args),
    Stop(stop::Args),
    Completions(completions::Args),
}

impl Command {
    fn run(self, shell: &mut Shell) -> Done {
        match self {
            Self::Serve(args) => serve::run(&args, shell),
            Self::Register(args) => register::register(&args, shell),
            Self::Record(args) => register::record(&args, shell),
            Self::Decide(args) => decide::run(&args, shell),
            Self::Import(args) => import::run(&args, shell),
            Self::Install(args) => install::run(&args, shell),
            Self::Status(args) => status::run(&args, shell),
            Self::Tail(args) => tail::run(&args, shell),
            Self::Why(args) => why::run(&args, shell),
            Self::Check(args) => check::run(&args, shell),
            Self::Doctor(args) => doctor::run(&args, shell),
            Self::Export(args) => export::run(&args, shell),
            Self::ImportState(args) => export::import(&args, shell),
            Self::Log(args) => log::run(args, shell),
            Self::Mem(args) => mem::run(args, shell),
            Self::Mcp(args) => mcp::run(&args, shell),
            Self::Metrics(args) => metrics::run(&args, shell),
            Self::Fork(args) => fork::run(args, shell),
            Self::Hook(args) => hook::run(&args, shell),
            Self::Run(args) => run::run(&args, shell),
            Self::List(args) => list::run(&args, shell),
            Self::Drop(args) => drop::run(&args, shell),
            Self::Reload(args) => reload::run(&args, shell),
            Self::Stop(args) => stop::run(&args, shell),
            Self::Completions(args) => completions::run(&args, shell),
        }
    }
}

/// Runs the program with these arguments, the program's own name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let hook = arguments.iter().any(|argument| argument == "hook");
    let (done, out) = match Cli::try_parse_from(arguments) {
        Ok(cli) => {
            let mut shell = Shell::new(cli.globals);
            let done = cli.command.run(&mut shell);
            (done, shell.out)
        }
        Err(usage) => {
            let mut out = Out::new();
            let said = say_usage(&usage, &mut out);
            // With 2 a hook that is misspelled in the settings would stop its agent at every tool.
            (said.map(|code| if hook { code.min(1) } else { code }), out)
        }
    };
    end(done, out)
}

/// Help and version are what was asked for; everything else that clap says is talk.
fn say_usage(usage: &clap::Error, out: &mut Out) -> Done {
    let text = usage.render().to_string();
    if usage.use_stderr() {
        out.talk(text.trim_end());
    } else {
        out.line(text.trim_end())?;
    }
    Ok(u8::try_from(usage.exit_code()).unwrap_or(2))
}

fn end(done: Done, mut out: Out) -> ExitCode {
    let done = done.and_then(|code| answered(code, out.flush()));
    let code = match done {
        Ok(code) => code,
        Err(Stop::Unread) => 0,
        Err(Stop::Failed(failure)) => {
            // What was said before the failure stays said.
            let _ = out.flush();
            out.talk(&failure.to_string());
            failure.code
        }
    };
    ExitCode::from(code)
}

//! `decide`: resume, fork or fresh, and why. The exit code is the decision.

use super::input;
use super::report;
use super::rescan::rescan_by;
use super::shell::{Done, Shell, Stop, answered, parse, usual_folders};
use super::words::{counted, list};
use crate::config::Config;
use crate::decision::policy::Policy;
use crate::index::view::Listed;
use crate::protocol::context::Context;
use crate::protocol::request::Decide;
use clap::ValueEnum;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Rows above which only those that are not fresh are listed, as the daemon does it.
const ROWS_MAX: u32 = 1_000;

/// Decide whether a session can resume, should fork, or must start fresh
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 resume, 10 fork, 11 fresh, 2 no decision could be made.

Example:
  staled decide s-01
  staled decide s-01 --json | jq .typed_summary
  staled decide s-01 --memory
  staled decide s-01 --provision
  staled decide --no-daemon --context context.json")]
pub(super) struct Args {
    /// The session
    #[arg(required_unless_present = "context")]
    session: Option<String>,
    /// Which rows the report lists
    #[arg(long, value_enum, default_value_t = Rows::All)]
    rows: Rows,
    /// How long to wait for verification, in milliseconds, up to `decision.deadline_ms_max` [default: `decision.deadline_ms`]
    #[arg(long, value_name = "N")]
    deadline_ms: Option<u64>,
    /// Let a fresh start carry on what the user's memory knows and nothing has changed, told apart
    #[arg(long, conflicts_with = "no_daemon")]
    memory: bool,
    /// Make the branches of a fork at once, and say where they are
    #[arg(long, conflicts_with = "no_daemon")]
    provision: bool,
    /// Judge a context by one plain rescan, without a daemon and without its log
    #[arg(long, requires = "context")]
    no_daemon: bool,
    /// The context to be judged without a daemon; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "no_daemon")]
    context: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// Every row, up to 1,000
    All,
    /// Only rows that are not fresh
    Stale,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let text = match &args.context {
        Some(file) => without_daemon(file, args)?,
        None => shell.client()?.ask("decide", &ask(args))?,
    };
    let report = parse(&text)?;
    let code = code(&report)?;
    if let Some(note) = args.context.as_ref().and_then(|_| weak_rows(&report)) {
        shell.out.talk(&note);
    }
    answered(code, print(&text, &report, shell))
}

fn ask(args: &Args) -> Decide {
    let rows = match args.rows {
        Rows::All => None,
        Rows::Stale => Some("stale".to_owned()),
    };
    let session = args.session.clone().unwrap_or_default();
    let memory = args.memory.then_some(true);
    let provision = args.provision.then_some(true);
    Decide { session, rows, deadline_ms: args.deadline_ms, memory, provision, ..Decide::default() }
}

fn without_daemon(file: &Path, args: &Args) -> Result<String, Stop> {
    let context = serde_json::from_str::<Context>(&input::text(file)?)
        .map_err(|error| Stop::failed(format!("{} is not a context: {error}", input::name(file))))?;
    let session = args.session.clone().or_else(|| context.session.clone());
    let listed = match args.rows {
        Rows::All => Listed::AllUpTo(ROWS_MAX),
        Rows::Stale => Listed::Doubtful,
    };
    rescan_by(Context { session, ..context }, listed, &policy()?).map_err(Stop::failed)
}

/// A row without a digest is compared with itself, which proves nothing; that must not pass in silence.
fn weak_rows(report: &Value) -> Option<String> {
    let rows = list(report, "staleness_results").iter();
    let weak = rows.filter(|row| row["baseline"] == "registration").count() as u64;
    let came = counted(weak, "row");
    (weak > 0).then(|| {
        format!("note: {came} came without a digest, so what is on disk now stands in for what the agent saw")
    })
}

/// The policy that a daemon of the same user would have.
fn policy() -> Result<Policy, Stop> {
    let config = Config::load(None).map_err(Stop::failed)?;
    Ok(config.policy(&usual_folders()?.state))
}

fn code(report: &Value) -> Done {
    match report["transition"].as_str() {
        Some("resume") => Ok(0),
        Some("fork") => Ok(10),
        Some("fresh") => Ok(11),
        _ => Err(Stop::failed("the daemon's report carries no transition")),
    }
}

fn print(text: &str, report: &Value, shell: &mut Shell) -> Result<(), Stop> {
    if shell.json {
        shell.out.line(text)?;
    } else {
        let lines = report::lines(report, shell.out.paint);
        shell.out.lines(lines)?;
    }
    shell.out.flush()
}

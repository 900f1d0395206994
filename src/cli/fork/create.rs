//! `fork create`: one branch for each hypothesis.

use super::super::shell::{Done, Shell, Stop, parse};
use super::super::words::{counted, list, number, path, text};
use crate::client::Client;
use crate::protocol::fork::ask::Create;
use crate::protocol::fork::record::Mode;
use crate::protocol::path::WirePath;
use crate::protocol::request::Subscribe;
use clap::ValueEnum;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long after the last word of the daemon it is looked whether all is made.
const PAUSE: Duration = Duration::from_millis(100);

/// Branch a session off: a tree, a branch and a scratchpad for each hypothesis
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled fork create s-01
  staled fork create s-01 'Cache the token' 'Ask twice' --copy .env
  staled fork create s-01 --json | jq -r '.forks[].workspace'")]
pub(in crate::cli) struct Args {
    /// The session to branch off
    session: String,
    /// What the branches try [default: the hypotheses of the session's goal]
    hypothesis: Vec<String>,
    /// How their trees are made [default: what fits the place]
    #[arg(long, value_enum)]
    mode: Option<How>,
    /// The id of the commit to begin at, without what is not committed [default: HEAD, with it]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// An ignored file that is copied too, below the session's root; may be given again
    #[arg(long, value_name = "PATH")]
    copy: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    /// A repository of its own
    Git,
    /// A copy of the folder
    Copy,
}

pub(super) fn run(args: Args, shell: &mut Shell) -> Done {
    let ask = Create {
        session: args.session,
        hypotheses: (!args.hypothesis.is_empty()).then_some(args.hypothesis),
        mode: args.mode.map(|how| match how {
            How::Git => Mode::Git,
            How::Copy => Mode::Copy,
        }),
        from: args.from,
        copy: args.copy.into_iter().map(WirePath).collect(),
    };
    let mut client = shell.client()?;
    let answer = if std::io::stderr().is_terminal() && !shell.json {
        with_progress(&mut client, &shell.socket()?, &ask)
    } else {
        client.ask("fork.create", &ask).map_err(Stop::from)
    }?;
    if shell.json {
        shell.out.line(answer)?;
    } else {
        print_made(&parse(&answer)?, shell)?;
    }
    Ok(0)
}

/// Forks that were just made, and what is not in them.
pub(super) fn print_made(answer: &Value, shell: &mut Shell) -> Result<(), Stop> {
    for fork in list(answer, "forks") {
        shell.out.line(text(fork, "fork"))?;
        shell.out.line(format!("  branch     {}", text(fork, "branch")))?;
        shell.out.line(format!("  workspace  {}", path(&fork["workspace"])))?;
        if let Some(base) = fork["base"].as_str() {
            shell.out.line(format!("  base       {}", super::super::words::harmless(base)))?;
        }
        for left in list(fork, "left_out") {
            shell.out.line(format!("  left out   {} ({})", path(&left["path"]), text(left, "why")))?;
        }
        for link in list(fork, "shared_by_symlink") {
            shell.out.line(format!("  shared     {} (a link that leads out of it)", path(link)))?;
        }
    }
    let missing: Vec<String> = list(answer, "missing").iter().map(path).collect();
    if !missing.is_empty() {
        let many = counted(missing.len() as u64, "file");
        shell.out.talk(&format!("note: {many} to be copied, and not there: {}", missing.join(", ")));
    }
    Ok(())
}

/// Asks, and meanwhile says how far it is: on one line, which is cleared again.
fn with_progress(client: &mut Client, socket: &Path, ask: &Create) -> Result<String, Stop> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| follow(socket, &ask.session, &done));
        let answer = client.ask("fork.create", ask);
        done.store(true, Ordering::Relaxed);
        Ok(answer?)
    })
}

/// Progress is a courtesy: where it cannot be had, nothing is said.
fn follow(socket: &Path, session: &str, done: &AtomicBool) {
    let wanted = Subscribe { topics: vec!["fork".to_owned()], session: Some(session.to_owned()) };
    let Ok(mut told) = Client::connect(socket).and_then(|client| client.subscribe(&wanted)) else { return };
    let mut stderr = std::io::stderr();
    while !done.load(Ordering::Relaxed) {
        match told.next(PAUSE) {
            Ok(Some(line)) => {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                if event["params"]["event"] == "progress" {
                    let _ = write!(stderr, "\r\x1b[K{}", progress(&event["params"]));
                    let _ = stderr.flush();
                }
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
    let _ = write!(stderr, "\r\x1b[K");
}

fn progress(event: &Value) -> String {
    let count = |field: &str| {
        let text = event[field].as_str().and_then(|text| text.parse().ok());
        text.unwrap_or_else(|| number(event, field))
    };
    format!("{}: {} of {} files", text(event, "fork"), count("files"), count("files_all"))
}

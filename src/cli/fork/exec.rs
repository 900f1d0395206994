//! `fork exec`: a command that can touch its own fork and nothing of another.
//!
//! Order: connected, asked, the lock held, looked for leaks, confined, started. The look may take long, and the daemon counts
//! a command without the lock for ten seconds only. The connection is open already when we are confined with the command, so
//! the daemon can be told that it has ended.

use super::super::shell::{Done, Shell, Stop, parse};
use super::{broken, named, refused};
use crate::client::ClientError;
use crate::fork::confine;
use crate::protocol::fork::answer::Confinement;
use crate::protocol::fork::ask::Exec;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// Run a command that the kernel keeps to its own fork
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command reads and runs everything but the parent's tree, other forks and staled's own state; folders that hold one of
these cannot be listed, and what is made in them later is not seen. It writes in the fork's workspace and its scratchpad,
where TMPDIR is. Its exit code is passed on, 128 and the number of the signal that ended it.

Not prevented: what another program does for it through a unix socket, the daemon's own among them (it may ask the daemon
for anything that you may); names and times of hidden files, and their mode (stat, inotify, chmod, utimes); root.

Exit codes: 126 it could not be confined or started, and did not run.

Example:
  staled fork exec cache-the-token -- cargo test
  staled fork exec cache-the-token -- sh -c 'git commit -am \"Cache it\"'")]
pub(in crate::cli) struct Args {
    /// The fork
    fork: String,
    /// The command, and what it is given
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Not run.
const NOT_RUN: u8 = 126;

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let mut client = shell.client()?;
    let fork = named(&mut client, &args.fork)?;
    let answer = client.ask("fork.exec", &Exec { fork, ended: None })?;
    broken(&parse(&answer)?, shell);
    let of: Confinement = serde_json::from_str(&answer).map_err(Stop::failed)?;
    let ran = confined(args, &of);
    let end = Exec { fork: of.fork.clone(), ended: Some(of.exec) };
    let ended = match client.ask("fork.exec", &end) {
        // A daemon that was started anew, or that let go of who was silent for so long: a socket can be reached still.
        Err(ClientError::Broken { .. }) => {
            shell.client().and_then(|mut client| Ok(client.ask("fork.exec", &end)?))
        }
        told => told.map_err(Stop::from),
    };
    let code = code(ran?);
    match ended {
        Ok(answer) => broken(&parse(&answer)?, shell),
        // The command ran, and its code is the answer; the lock tells the daemon the rest.
        Err(Stop::Failed(why)) => {
            shell.out.talk(&format!("{why}\n  so the daemon was not told that it ended"));
        }
        Err(Stop::Unread) => {}
    }
    Ok(code)
}

fn confined(args: &Args, of: &Confinement) -> Result<ExitStatus, Stop> {
    let not_run = |error: crate::fork::ForkError| not_run(&refused(error));
    // Held by us until the command is gone, and by whatever it leaves running after that.
    let _held = confine::hold(&of.lock.0).map_err(not_run)?;
    confine::refuse_leaks(of).map_err(not_run)?;
    let (program, rest) = args.command.split_first().expect("because clap asks for one");
    let mut command = confine::command(of, program);
    command.args(rest);
    let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).map_err(Stop::failed)?;
    confine::enter(of).map_err(not_run)?;
    wait(&mut command, signals, program)
}

fn not_run(stop: &Stop) -> Stop {
    match stop {
        Stop::Failed(failure) => {
            let said = failure.to_string();
            Stop::with_code(NOT_RUN, said.trim_start_matches("staled: "))
        }
        Stop::Unread => Stop::Unread,
    }
}

/// Waits for its end. What a terminal sends it sends to the command too; what others send to us is passed on.
fn wait(command: &mut Command, mut signals: Signals, program: &OsString) -> Result<ExitStatus, Stop> {
    let started = command.spawn();
    let mut child = started
        .map_err(|error| Stop::with_code(NOT_RUN, format!("cannot run {}: {error}", program.display())))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let by_terminal = std::io::stdin().is_terminal();
    let handle = signals.handle();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) else { continue };
                if !(by_terminal && matches!(signal, Signal::INT | Signal::QUIT)) {
                    // One that is gone meanwhile needs no signal.
                    let _ = kill_process(pid, signal);
                }
            }
        });
        let status = child.wait();
        handle.close();
        status.map_err(Stop::failed)
    })
}

fn code(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_RUN)
}

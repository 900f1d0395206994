//! `stop`: end the daemon, and wait until it has ended, so that another one may be started at once.

use super::shell::{Done, Shell, parse};
use super::words::number;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// The daemon drains within ten seconds.
const PATIENCE: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(10);

/// Stop the daemon and wait for its end
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Under systemd the unit starts it anew; there, use `systemctl --user stop staled`.

Example:
  staled stop && staled serve")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, shell: &mut Shell) -> Done {
    let hello = shell.client()?.ask("hello", &json!({}))?;
    let pid = i32::try_from(number(&parse(&hello)?, "pid")).ok().and_then(Pid::from_raw);
    let printed = shell.ask("shutdown", &json!({}))?.printed;
    let ended = wait(shell, pid);
    if !printed {
        shell.out.line(if ended { "the daemon has stopped" } else { "the daemon is stopping" })?;
    }
    Ok(0)
}

/// Until its process is gone; where that cannot be seen, until nobody answers any more.
fn wait(shell: &Shell, pid: Option<Pid>) -> bool {
    let begun = Instant::now();
    let mut silent_since = None;
    while begun.elapsed() < PATIENCE {
        if pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH)) {
            return true;
        }
        if shell.client().is_err()
            && silent_since.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(1)
        {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

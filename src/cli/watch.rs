//! `status --watch` where there is no screen to fill: asks again when the daemon tells of a change, and every two seconds.
//!
//! On a terminal without a keyboard the same place is written over; elsewhere what changed is printed below what stood there, so that a
//! program or a log can follow. A daemon that goes away is waited for; a session that is dropped ends the watch.

use super::away::{Ended, is_away};
use super::shell::{Done, Shell, parse};
use super::status::print;
use crate::client::{Client, ClientError, Subscription};
use crate::protocol::request::{Status, Subscribe};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What no event tells of (a registration, say, or how long ago something was) is asked for this often.
const TICK: Duration = Duration::from_secs(2);
/// Changes that come so close together are shown as one: a checkout changes thousands of rows.
const CALM: Duration = Duration::from_millis(50);
/// Between two tries to reach a daemon that is away.
const PAUSE: Duration = Duration::from_millis(250);

/// Fields of a status that move although nothing changed.
const RESTLESS: [&str; 3] = ["clock", "uptime_s", "events"];

pub(super) fn watch(session: Option<&str>, shell: &mut Shell) -> Done {
    let mut watch =
        Watch { status: Status { session: session.map(str::to_owned), ..Status::default() }, shown: None };
    let mut told = watch.subscribe(shell)?;
    loop {
        let round = watch.show(shell).and_then(|()| {
            shell.out.still_read()?;
            Ok(await_change(&mut told)?)
        });
        match round {
            Ok(()) => {}
            Err(Ended::Client(error)) if is_away(&error) => {
                shell.out.talk("the daemon went away; waiting for it to come back");
                told = watch.await_daemon(shell)?;
                shell.out.talk("the daemon is back");
            }
            Err(ended) => return Err(ended.into()),
        }
    }
}

/// What is watched, and what was shown of it last.
struct Watch {
    status: Status,
    shown: Option<Value>,
}

impl Watch {
    fn subscribe(&self, shell: &Shell) -> Result<Subscription, Ended> {
        let topics = ["staleness", "gap"].map(str::to_owned).to_vec();
        let wanted = Subscribe { topics, session: self.status.session.clone() };
        Ok(connect(shell)?.subscribe(&wanted)?)
    }

    /// Asks, and shows the answer if it says anything new. On a terminal it is always new: it says how long ago.
    fn show(&mut self, shell: &mut Shell) -> Result<(), Ended> {
        let text = connect(shell)?.ask("status", &self.status)?;
        let answer = parse(&text)?;
        let steady = steady(answer.clone());
        let redraws = shell.out.redraws() && !shell.json;
        if self.shown.as_ref() == Some(&steady) && !redraws {
            return Ok(());
        }
        if redraws {
            shell.out.begin_again(self.shown.is_none())?;
        } else if self.shown.is_some() && !shell.json {
            shell.out.line("")?;
        }
        if shell.json {
            shell.out.line(&text)?;
        } else {
            print(&answer, self.status.session.is_some(), shell)?;
        }
        if redraws {
            shell.out.end_here()?;
        }
        shell.out.flush()?;
        self.shown = Some(steady);
        Ok(())
    }

    fn await_daemon(&self, shell: &Shell) -> Result<Subscription, Ended> {
        loop {
            std::thread::sleep(PAUSE);
            shell.out.still_read()?;
            match self.subscribe(shell) {
                Err(Ended::Client(error)) if is_away(&error) => {}
                ended => return ended,
            }
        }
    }
}

/// For every question anew, so that no connection but the subscribed one is ever idle.
fn connect(shell: &Shell) -> Result<Client, Ended> {
    Ok(Client::connect(&shell.socket()?)?)
}

/// Waits for a change, or for the next tick; of changes that come close together, for the last.
fn await_change(told: &mut Subscription) -> Result<(), ClientError> {
    if told.next(TICK)?.is_none() {
        return Ok(());
    }
    let by = Instant::now() + CALM;
    while told.next(by.saturating_duration_since(Instant::now()))?.is_some() {
        if Instant::now() >= by {
            break;
        }
    }
    Ok(())
}

fn steady(mut answer: Value) -> Value {
    if let Some(fields) = answer.as_object_mut() {
        RESTLESS.iter().for_each(|field| drop(fields.remove(*field)));
    }
    answer
}

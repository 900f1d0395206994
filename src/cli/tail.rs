//! `tail`: the decision log, one line a decision; `-f` goes on as decisions are made.

use super::away::Ended;
use super::paint::{Paint, Tone};
use super::shell::{Done, Shell, Stop};
use super::words::{harmless, text, to_the_second, transition_tone};
use crate::client::log::{PAGE_LEN, last_seq, page};
use crate::client::{Client, ClientError};
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(250);

/// Show the last decisions, and the events between them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled tail -n 20
  staled tail -f
  staled tail -f --json | jq -c 'select(.transition == \"fresh\") | .reason'")]
pub(super) struct Args {
    /// Go on as decisions are made
    #[arg(short, long)]
    follow: bool,
    /// How many of the last lines to begin with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: u64,
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let mut client = shell.client()?;
    let last = last_seq(&mut client)?;
    let mut tail = Tail { after: last.saturating_sub(args.lines), width: 4 };
    tail.show(&mut client, last, shell)?;
    if args.follow { tail.follow(client, shell) } else { Ok(0) }
}

/// Where the reader stands.
struct Tail {
    after: u64,
    width: usize,
}

impl Tail {
    /// Shows what follows, up to `last`.
    fn show(&mut self, client: &mut Client, last: u64, shell: &mut Shell) -> Result<(), Ended> {
        while self.after < last {
            let lines = page(client, self.after, PAGE_LEN).map_err(Ended::Client)?;
            if lines.is_empty() {
                break;
            }
            self.print(&lines, shell).map_err(Ended::Stop)?;
        }
        shell.out.flush().map_err(Ended::Stop)
    }

    fn print(&mut self, lines: &[Box<RawValue>], shell: &mut Shell) -> Result<(), Stop> {
        let parsed =
            lines.iter().map(|line| super::shell::parse(line.get())).collect::<Result<Vec<Value>, Stop>>()?;
        let widest = parsed.iter().map(|line| session(line).chars().count()).max().unwrap_or(0);
        self.width = self.width.max(widest.min(40));
        for (raw, line) in lines.iter().zip(&parsed) {
            self.after = line["seq"].as_u64().unwrap_or(self.after);
            if shell.json {
                shell.out.line(raw.get())?;
            } else {
                shell.out.line(one_line(line, self.width, shell.out.paint))?;
            }
        }
        Ok(())
    }

    /// Shows what is decided from now on, whichever daemon decides it.
    fn follow(&mut self, mut client: Client, shell: &mut Shell) -> Done {
        loop {
            std::thread::sleep(PAUSE);
            match self.show(&mut client, u64::MAX, shell) {
                Ok(()) => {}
                Err(Ended::Client(ClientError::Broken { .. })) => {
                    shell.out.talk("the daemon went away; waiting for it to come back");
                    client = self.await_daemon(shell)?;
                }
                Err(ended) => return Err(ended.into()),
            }
        }
    }

    /// A daemon that was started anew goes on with the same log, or has begun another one.
    fn await_daemon(&mut self, shell: &Shell) -> Result<Client, Stop> {
        loop {
            std::thread::sleep(PAUSE);
            let Ok(mut client) = shell.client() else { continue };
            if last_seq(&mut client)? < self.after {
                self.after = 0;
            }
            return Ok(client);
        }
    }
}

/// Time, session, transition, reason; of an event, its name and what it says.
pub(super) fn one_line(line: &Value, width: usize, paint: Paint) -> String {
    let (moment, word, said) = match line["event"].as_str() {
        None => ("decided_at", text(line, "transition"), text(&line["reason"], "text")),
        Some(event) => ("at", harmless(event), said_by(line)),
    };
    let moment = to_the_second(line[moment].as_str().unwrap_or_default());
    let tone = if line["event"].is_null() { transition_tone(&word) } else { Tone::Faint };
    let word = paint.of(tone, &format!("{word:<6}"));
    format!("{}  {:<width$}  {word}  {said}", paint.of(Tone::Faint, &format!("{moment:<20}")), session(line))
}

fn session(line: &Value) -> String {
    let session = text(line, "session");
    if session.is_empty() { "-".to_owned() } else { session }
}

/// What an event says beyond its name: the reason alone where there is one.
pub(super) fn said_by(line: &Value) -> String {
    let known = ["event", "at", "seq", "prev", "hash", "session"];
    if let Some(why) = line["why"].as_str().or(line["what"].as_str()) {
        return harmless(why);
    }
    let fields = line.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
    let fields: Vec<String> = fields
        .map(|(name, value)| {
            harmless(&format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        })
        .collect();
    fields.join(" ")
}

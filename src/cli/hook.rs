//! `hook`: one event of an agent, from its stdin to the daemon, and the answer to its stdout.
//!
//! Promise: the agent goes on, whatever happens here. The exit code is 0, what is printed is the agent's own JSON or nothing,
//! and after the deadline the process is gone: what was seen until then is kept for the next hook, and one line says so in
//! the journal and on stderr. Everything that may take long happens on a thread that nobody waits for.

use super::shell::{Done, Shell, Stop};
use super::words::harmless;
use crate::agent::hook::spool::{self, Spool};
use crate::agent::hook::{Agent, Event, Payload, Reply, Turn, turn};
use crate::client::{Client, ClientError};
use crate::config::{Config, Hook};
use crate::daemon::{Folders, Journald};
use crate::protocol::time;
use crate::session::moment::Moment;
use clap::ValueEnum;
use rustix::process::getppid;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest event that is read, in bytes; answers of tools are part of it.
const EVENT_BYTES_MAX: u64 = 64 << 20;

/// Tell the daemon what an agent sees and does, and the agent what has gone stale; agents run it as their hook
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The event comes on stdin and the answer goes to stdout, both in the agent's own JSON. An event ends with exit code 0: without a
daemon, or after hook.deadline_ms, the agent goes on, what was seen is kept for the next hook, and the journal has a line.
STALED_FORK names the fork that the agent works in, STALED_BRIEF a file with what a new session is to begin with; `staled run`
sets both.

Example:
  staled install claude-code     # has every event of Claude Code run `staled hook claude-code`
  echo '{\"session_id\":\"s\",\"cwd\":\"/tmp\",\"hook_event_name\":\"Stop\"}' | staled hook claude-code")]
pub(super) struct Args {
    /// Whose event it is
    agent: Whose,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Whose {
    #[value(alias = "claude")]
    ClaudeCode,
    Codex,
    Gemini,
}

impl From<Whose> for Agent {
    fn from(whose: Whose) -> Self {
        match whose {
            Whose::ClaudeCode => Self::ClaudeCode,
            Whose::Codex => Self::Codex,
            Whose::Gemini => Self::Gemini,
        }
    }
}

pub(super) fn run(args: &Args, shell: &mut Shell) -> Done {
    let began = Instant::now();
    let (config, broken) = match Config::load(None) {
        Ok(config) => (config.hook, None),
        Err(error) => (Hook::default(), Some(error.to_string())),
    };
    let deadline = Duration::from_millis(config.deadline_ms);
    let (tell, told) = mpsc::channel();
    let task = Task { agent: args.agent.into(), socket: shell.named_socket.clone(), config, tell };
    std::thread::spawn(move || task.run());
    let mut kept = Kept::default();
    let ended = loop {
        match told.recv_timeout(deadline.saturating_sub(began.elapsed())) {
            Ok(Told::Seen(seen)) => kept = seen,
            Ok(Told::Answer(answer)) => break Ok(answer),
            Ok(Told::Failed(why)) => break Err(why),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                break Err(format!("no answer within {} ms (hook.deadline_ms)", deadline.as_millis()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break Err("it broke down; see above".to_owned()),
        }
    };
    match ended {
        Ok(answer) if answer.is_empty() => {}
        Ok(answer) => {
            // An agent that cannot be told goes on; one exit code of ours would stop it.
            if shell.out.line(answer).and_then(|()| shell.out.flush()).is_err() {
                complain(shell, &kept, "its answer cannot be written to stdout");
                return Err(Stop::Unread);
            }
        }
        Err(why) => complain(shell, &kept, &format!("{why}{}", kept.keep())),
    }
    if let Some(why) = broken {
        complain(shell, &kept, &format!("{why}; the defaults of [hook] count"));
    }
    Ok(0)
}

/// What the thread that nobody waits for says.
enum Told {
    /// It has read the event, and this is to be kept when nothing more is heard.
    Seen(Kept),
    Answer(String),
    Failed(String),
}

/// An event that may have to wait.
#[derive(Default)]
struct Kept {
    /// What it was, for people.
    event: String,
    line: Option<(Spool, String)>,
}

impl Kept {
    /// Keeps it, and says what became of it.
    fn keep(&self) -> String {
        match &self.line {
            None => String::new(),
            Some((spool, line)) => match spool.keep(line) {
                Ok(()) => "; what was seen waits for the next hook of this session".to_owned(),
                Err(error) => format!("; what was seen is lost: {error}"),
            },
        }
    }
}

struct Task {
    agent: Agent,
    socket: Option<PathBuf>,
    config: Hook,
    tell: Sender<Told>,
}

impl Task {
    fn run(self) {
        let said = match self.answer() {
            Ok(answer) => Told::Answer(answer),
            Err(why) => Told::Failed(why),
        };
        // Nobody listens after the deadline.
        let _ = self.tell.send(said);
    }

    fn answer(&self) -> Result<String, String> {
        let mut event = Vec::new();
        let read = std::io::stdin().take(EVENT_BYTES_MAX + 1).read_to_end(&mut event);
        read.map_err(|error| format!("the event cannot be read: {error}"))?;
        if event.len() as u64 > EVENT_BYTES_MAX {
            return Err(format!("the event is longer than {EVENT_BYTES_MAX} bytes"));
        }
        let event: Value = serde_json::from_slice(&event)
            .or_else(|_| serde_json::from_str(&whole_letters(&String::from_utf8_lossy(&event))))
            .map_err(|error| format!("the event is no JSON: {error}"))?;
        let payload = self.agent.read(&event)?;
        if matches!(payload.event, Event::Other) {
            return Ok(String::new());
        }
        let reply = self.turn(&payload)?;
        Ok(self.agent.render(&payload.name, &reply))
    }

    fn turn(&self, payload: &Payload) -> Result<Reply, String> {
        let folders = Folders::usual().map_err(|error| error.to_string())?;
        let spool = Spool::of(&folders.state, &payload.session);
        let options = self.options(payload);
        let turn = Turn::new(payload, &options, project().as_deref());
        let event = format!("{} of session {}", payload.name, payload.session);
        // Until it is looked at, all that can be kept is that there was something.
        let unseen = turn.unseen().map(|sighting| (spool.clone(), spool::line(&sighting)));
        let _ = self.tell.send(Told::Seen(Kept { event: event.clone(), line: unseen }));
        let line = turn.look().map(|sighting| (spool.clone(), spool::line(&sighting)));
        let _ = self.tell.send(Told::Seen(Kept { event: event.clone(), line }));
        let socket = self.socket.as_ref().unwrap_or(&folders.socket);
        let asked = Client::connect(socket).and_then(|mut client| turn.ask(&mut client, &spool));
        if asked.as_ref().is_err_and(turn::is_final) {
            // What is refused now will be refused again, and everything later would wait behind it.
            let _ = self.tell.send(Told::Seen(Kept { event, line: None }));
        }
        asked.map_err(|error: ClientError| error.to_string())
    }

    fn options(&self, payload: &Payload) -> turn::Options {
        let holds = matches!(payload.event, Event::Begun(_) | Event::Prompted | Event::Rested);
        let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        turn::Options {
            target: self.config.target,
            others: self.config.others,
            holder: holds.then(holder).flatten(),
            fork: variable("STALED_FORK"),
            brief: variable("STALED_BRIEF").map(PathBuf::from),
            patience_ms: self.config.deadline_ms / 2,
            home: variable("HOME").map(PathBuf::from),
            at: now(),
        }
    }
}

/// JSON in which half a letter is the sign for none: a harness that counts UTF-16 units cuts long outputs within one.
fn whole_letters(json: &str) -> String {
    let unit = |at: &str| u16::from_str_radix(at.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let (mut whole, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = rest.get(6..).unwrap_or_default();
        let len = match unit(rest) {
            Some(0xd800..=0xdbff) if matches!(unit(after), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                whole.push_str("\\ufffd");
                rest = after;
                continue;
            }
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    whole + rest
}

/// Where the agent was started, as it tells its hooks.
fn project() -> Option<PathBuf> {
    ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"]
        .iter()
        .find_map(|name| std::env::var_os(name).filter(|path| !path.is_empty()))
        .map(PathBuf::from)
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time::to_text(Moment { micros: i64::try_from(since.as_micros()).unwrap_or_default() })
}

/// The process that runs hooks: our parent, or whoever started the shell that it ran us through.
fn holder() -> Option<u32> {
    let mut pid = u32::try_from(getppid()?.as_raw_nonzero().get()).ok()?;
    for _ in 0..4 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, tail) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        if !matches!(name, "sh" | "bash" | "dash" | "zsh" | "fish" | "env" | "timeout") {
            break;
        }
        pid = tail.split_whitespace().nth(1)?.parse().ok()?;
    }
    (pid > 1).then_some(pid)
}

/// One line, where the user's other troubles are found too.
fn complain(shell: &mut Shell, kept: &Kept, why: &str) {
    let event = if kept.event.is_empty() { "an event" } else { &kept.event };
    let line = harmless(&format!("staled hook: {event}: {why}")).replace('\n', " ");
    let entry = format!("MESSAGE={line}\nPRIORITY=4\nSYSLOG_IDENTIFIER=staled-hook\n");
    // Where there is no journal, stderr has it alone.
    let _ = Journald::usual().send(entry.as_bytes());
    shell.out.talk(&line);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn half_a_letter_is_no_reason_to_hear_nothing() {
        for (json, want) in [
            (r#"["a\ud83d"]"#, r#"["a\ufffd"]"#),
            (r#"["\ude00\ud83d\ud83d\ude00é\\ud83d\n"]"#, r#"["\ufffd\ufffd\ud83d\ude00é\\ud83d\n"]"#),
            (r#"["\u00e9"]"#, r#"["\u00e9"]"#),
            (r#"["\"#, r#"["\"#),
            (r#"["\ud83"#, r#"["\ud83"#),
        ] {
            assert_eq!(super::whole_letters(json), want);
        }
    }

    #[test]
    fn the_holder_is_a_process_that_lives() {
        let holder = super::holder().expect("a test has a parent");
        assert!(Path::new(&format!("/proc/{holder}")).exists());
    }
}

//! One event from the agent to the daemon and back.
//!
//! Two steps, so that whoever minds the deadline can keep what was seen when the daemon takes too long: first
//! [`Turn::look`], which needs no daemon, then [`Turn::ask`].

use super::event::{Begin, Call, Event, Payload};
use super::facts::{self, Rows};
use super::lockfiles;
use super::sight::{Scene, Sighting, sight, target};
use super::spool::Spool;
use super::telling::{earlier, may_pass, volatile};
use crate::agent::context::{belief, source};
use crate::client::{Client, ClientError};
use crate::config::Gate;
use crate::protocol::context::{Belief, Context};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What a hook needs to know beside the event.
#[derive(Debug, Clone)]
pub struct Options {
    /// For an edit of a file that is itself stale.
    pub target: Gate,
    /// For an edit of another file while a critical result is stale.
    pub others: Gate,
    /// The process that holds the session.
    pub holder: Option<u32>,
    /// The fork that the agent works in.
    pub fork: Option<String>,
    /// What a new session is to begin with, in a file that is taken away once it is told.
    pub brief: Option<PathBuf>,
    /// How long a decision may wait for what is being verified: what is not settled by then is told as doubt, in time.
    pub patience_ms: u64,
    /// Of the user.
    pub home: Option<PathBuf>,
    /// RFC 3339, of now.
    pub at: String,
}

/// What the agent is told.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Facts; empty where there are none.
    pub text: String,
    /// What becomes of the call.
    pub verdict: Option<Verdict>,
}

/// What becomes of a call, where it does not just go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is refused.
    Deny,
    /// The user decides.
    Ask,
}

/// One event on its way.
#[derive(Debug)]
pub struct Turn<'a> {
    pub(super) payload: &'a Payload,
    pub(super) options: &'a Options,
    /// Where the session began.
    pub(super) root: PathBuf,
}

impl<'a> Turn<'a> {
    /// The turn of an event. `project` is where the agent was started, when it says so: its root stays the session's,
    /// wherever a `cd` leads.
    #[must_use]
    pub fn new(payload: &'a Payload, options: &'a Options, project: Option<&Path>) -> Self {
        let root = toplevel(project.filter(|path| path.is_absolute()).unwrap_or(&payload.cwd));
        Self { payload, options, root }
    }

    /// What the event shows, where it shows anything.
    #[must_use]
    pub fn look(&self) -> Option<Sighting> {
        self.look_from(&self.root, None)
    }

    /// What is to be told of an event that could not be looked at in time.
    #[must_use]
    pub fn unseen(&self) -> Option<Sighting> {
        let Event::After(calls) = &self.payload.event else { return None };
        let named = |call: &Call| {
            target(call).map_or_else(|| call.tool.clone(), |path| format!("{} {path}", call.tool))
        };
        let names: Vec<String> = calls.iter().take(10).map(named).collect();
        let what = format!("what nobody looked at in time: {}", names.join(", "));
        Some(Sighting { told: vec![volatile("unseen", &what)], ..Sighting::at(&self.root) })
    }

    fn look_from(&self, root: &Path, held: Option<&Context>) -> Option<Sighting> {
        let scene =
            Scene { root, cwd: &self.payload.cwd, home: self.options.home.as_deref(), at: &self.options.at };
        match &self.payload.event {
            Event::After(calls) => Some(sight(calls, scene, held)),
            Event::Loaded(path) => Some(loaded(path, scene)),
            _ => None,
        }
    }

    /// Tells the daemon, and says what the agent is to know.
    pub fn ask(&self, client: &mut Client, spool: &Spool) -> Result<Reply, ClientError> {
        self.tell_waiting(client, spool)?;
        match &self.payload.event {
            Event::Begun(begin) => self.begun(client, *begin),
            Event::Prompted => self.prompted(client),
            Event::Before(calls) => self.before(client, calls),
            Event::After(_) | Event::Loaded(_) => self.after(client),
            Event::Rested => self.rested(client),
            Event::Other => Ok(Reply::default()),
        }
    }

    fn tell_waiting(&self, client: &mut Client, spool: &Spool) -> Result<(), ClientError> {
        // What cannot be listed waits on; this event is told all the same.
        let waiting = spool.waiting().unwrap_or_default();
        if waiting.is_empty() {
            return Ok(());
        }
        for waiting in waiting {
            let unreadable = || Sighting {
                told: vec![volatile(
                    "unreadable",
                    "what was seen while the daemon was away, and cannot be read any more",
                )],
                ..Sighting::at(&self.root)
            };
            let sighting = waiting.sighting.clone().unwrap_or_else(unreadable);
            let held = self.held_or_begun(client)?;
            match self.record(client, sighting.late(&held), &held) {
                // It will be refused for ever, and nothing later of the session is to wait for it.
                Err(error) if is_final(&error) => {}
                told => told?,
            }
            let _ = waiting.done();
        }
        spool.tidy();
        Ok(())
    }

    fn begun(&self, client: &mut Client, begin: Begin) -> Result<Reply, ClientError> {
        if begin == Begin::Resumed && self.options.fork.is_some() {
            // An agent that is to go on in a fork begins under the name that it leaves, which is another's to hold; what it
            // knows it is told under its own.
            return Ok(Reply::default());
        }
        let held = self.held(client)?;
        match begin {
            Begin::Cleared => self.register(client, Vec::new(), true)?,
            Begin::New if held.is_none() && self.options.fork.is_none() => {
                self.register(client, Vec::new(), false)?;
                return Ok(Reply { text: self.brief(), verdict: None });
            }
            _ if held.is_none() && self.options.fork.is_some() => self.inherit(client)?,
            _ if held.is_none() => {
                self.register(client, vec![earlier()], false)?;
                let told = "staled has no record of what this session read before now.";
                return Ok(Reply { text: told.to_owned(), verdict: None });
            }
            _ => {}
        }
        self.decided(client)
    }

    /// What whoever started the agent left for it to begin with.
    fn brief(&self) -> String {
        let Some(path) = &self.options.brief else { return String::new() };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Told once: another session that inherits the variable is another one.
        let _ = std::fs::remove_file(path);
        text.chars().take(facts::CHARS_MAX).collect()
    }

    fn prompted(&self, client: &mut Client) -> Result<Reply, ClientError> {
        let reply = self.decided(client)?;
        if reply == Reply::default() && self.held(client)?.is_none() {
            self.begin_midway(client)?;
            return self.decided(client);
        }
        Ok(reply)
    }

    /// A decision, logged like every other, and what it found stale.
    fn decided(&self, client: &mut Client) -> Result<Reply, ClientError> {
        let holder = self.options.holder.map(|pid| json!({ "pid": pid }));
        let mut ask = json!({ "session": self.payload.session, "rows": "stale", "deadline_ms": self.options.patience_ms });
        if let Some(holder) = holder {
            ask["holder"] = holder;
        }
        let report = match client.ask("decide", &ask) {
            Ok(report) => parse(&report)?,
            // Nothing was read yet, and nothing is relied on.
            Err(error) if is_word(&error, "no_session_context") => return Ok(Reply::default()),
            Err(error) => return Err(error),
        };
        // Whether lines of what is stale were read since stands in rows that are fresh.
        let stale = Rows::of(&report).news().next().is_some();
        let rows = if stale { self.status(client, "all")?.unwrap_or_default() } else { Value::Null };
        let head = "What staled knows of this session's earlier reads:";
        let mut text = facts::told(&Rows::of(&rows), &self.payload.session, head);
        if let Some(pid) = report["held_by"]["pid"].as_u64() {
            let line = format!("Another process works in this session too (pid {pid}).");
            text = if text.is_empty() { line } else { format!("{text}\n{line}") };
        }
        Ok(Reply { text, verdict: None })
    }

    /// Of several edits the first that does not just go on decides for all.
    fn before(&self, client: &mut Client, calls: &[Call]) -> Result<Reply, ClientError> {
        let mut replies = Vec::new();
        for call in calls {
            replies.push(self.before_one(client, call)?);
            if replies.last().is_some_and(|reply| reply.verdict.is_some()) {
                return Ok(replies.pop().unwrap_or_default());
            }
        }
        Ok(replies.into_iter().find(|reply| !reply.text.is_empty()).unwrap_or_default())
    }

    fn before_one(&self, client: &mut Client, call: &Call) -> Result<Reply, ClientError> {
        let Some(path) = target(call) else { return Ok(Reply::default()) };
        if let Some(fork) = &self.options.fork {
            let ask = json!({ "fork": fork, "path": self.payload.cwd.join(path), "mode": "write" });
            let answer = parse(&client.ask("fork.access", &ask)?)?;
            if answer["access"] != "allow" {
                let reason = answer["reason"].as_str().unwrap_or("it is outside of the fork").to_owned();
                return Ok(Reply { text: reason, verdict: Some(Verdict::Deny) });
            }
        }
        // Most sessions know nothing that is stale, and then the length of the rest does not count.
        if self.status(client, "stale")?.is_none_or(|status| Rows::of(&status).is_empty()) {
            return Ok(Reply::default());
        }
        let Some(status) = self.status(client, "all")? else { return Ok(Reply::default()) };
        Ok(super::gate::judge(&status, call, &self.payload.cwd.join(path), self.options))
    }

    /// The rows of the session; `None` where nothing is known of it.
    fn status(&self, client: &mut Client, rows: &str) -> Result<Option<Value>, ClientError> {
        match client.ask("status", &json!({ "session": self.payload.session, "rows": rows })) {
            Ok(status) => parse(&status).map(Some),
            Err(error) if is_word(&error, "no_session_context") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn after(&self, client: &mut Client) -> Result<Reply, ClientError> {
        let held = self.held_or_begun(client)?;
        let root = held.root.as_ref().map_or(&self.root, |root| &root.0);
        let Some(mut sighting) = self.look_from(root, Some(&held)) else { return Ok(Reply::default()) };
        let Event::After(calls) = &self.payload.event else {
            self.record(client, sighting, &held)?;
            return Ok(Reply::default());
        };
        let (locked, text) = lockfiles::changed(calls, root, &held);
        sighting.locked = locked;
        self.record(client, sighting, &held)?;
        Ok(Reply { text, verdict: None })
    }

    fn rested(&self, client: &mut Client) -> Result<Reply, ClientError> {
        let holder = json!({ "pid": self.options.holder });
        let ask = json!({ "session": self.payload.session, "holder": holder });
        if self.options.holder.is_some() {
            client.ask("context.release", &ask)?;
        }
        Ok(Reply::default())
    }
}

/// A file of instructions: the agent was shown it as it is.
fn loaded(path: &Path, scene: Scene<'_>) -> Sighting {
    let place = path.strip_prefix(scene.root).unwrap_or(path);
    let told = Belief {
        tool: Some("InstructionsLoaded".to_owned()),
        critical: Some(false),
        captured_at: Some(scene.at.to_owned()),
        ..belief(place.to_string_lossy().into_owned(), source(place, "file"))
    };
    Sighting { told: vec![told], ..Sighting::at(scene.root) }
}

/// The work tree that a folder is in, or the folder itself.
fn toplevel(cwd: &Path) -> PathBuf {
    let found = cwd.ancestors().find(|folder| folder.join(".git").exists());
    found.unwrap_or(cwd).to_owned()
}

fn parse(text: &str) -> Result<Value, ClientError> {
    read(text)
}

pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ClientError> {
    serde_json::from_str(text).map_err(|error| ClientError::Nonsense(error.to_string()))
}

/// Whether the daemon will never take it, however often it is told.
#[must_use]
pub fn is_final(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if !may_pass(refusal))
}

pub(super) fn is_word(error: &ClientError, word: &str) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.word() == Some(word))
}

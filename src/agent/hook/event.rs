//! One hook event, whichever agent sent it.

use serde_json::Value;
use std::path::PathBuf;

/// An agent whose hooks are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl Agent {
    /// Its name on the command line, and as the `agent` of its sessions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// What an event of this agent says; an error says what is missing.
    pub fn read(self, payload: &Value) -> Result<Payload, String> {
        match self {
            Self::ClaudeCode => super::claude_code::read(payload),
            Self::Codex => super::codex::read(payload),
            Self::Gemini => super::gemini::read(payload),
        }
    }

    /// The answer in the agent's own words; empty where nothing is to be said.
    #[must_use]
    pub fn render(self, event: &str, reply: &super::Reply) -> String {
        match self {
            Self::ClaudeCode => super::claude_code::render(event, reply),
            Self::Codex => super::codex::render(event, reply),
            Self::Gemini => super::gemini::render(event, reply),
        }
    }
}

/// What a hook was told.
#[derive(Debug, Clone)]
pub struct Payload {
    /// Who tells.
    pub agent: Agent,
    /// The agent's own name of the session, and behind it that of the sub-agent.
    pub session: String,
    /// It is a sub-agent's.
    pub sub: bool,
    /// Where the agent works.
    pub cwd: PathBuf,
    /// The agent's own name of the event.
    pub name: String,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A session begins, or goes on.
    Begun(Begin),
    /// The user said something.
    Prompted,
    /// Files are about to be edited, each told as an edit.
    Before(Vec<Call>),
    /// Tools were used.
    After(Vec<Call>),
    /// A file of instructions was loaded.
    Loaded(PathBuf),
    /// The agent has finished its turn, or the session ends: it no longer holds the session.
    Rested,
    /// Nothing that matters here.
    Other,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Anew.
    New,
    /// Emptied: what was known is no longer in the context.
    Cleared,
    /// With what an earlier process had in its context.
    Resumed,
    /// With what an earlier process had, under another name.
    Forked,
    /// With a summary of what was in the context.
    Compacted,
}

/// One use of a tool, in the words of Claude Code, whose shapes the replay reads.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The agent's name of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it was given.
    pub input: Value,
    /// What it gave, structured.
    pub response: Option<Value>,
    /// Why it failed.
    pub error: Option<String>,
    /// How long it took, where that was told.
    pub duration_ms: Option<u64>,
}

/// The text of a field; `None` when it is missing, empty or of another kind.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// What every payload of every agent has.
pub(super) fn frame(agent: Agent, payload: &Value, event: Event) -> Result<Payload, String> {
    let said = |field: &str| text(payload, field).ok_or_else(|| format!("the payload has no {field}"));
    let cwd = PathBuf::from(said("cwd")?);
    if !cwd.is_absolute() {
        return Err(format!("the payload's cwd is not absolute: {}", cwd.display()));
    }
    Ok(Payload {
        agent,
        session: match text(payload, "agent_id") {
            // What a sub-agent was shown its parent was not: each knows what it saw itself.
            Some(agent) => format!("{}/{agent}", said("session_id")?),
            None => said("session_id")?.to_owned(),
        },
        sub: text(payload, "agent_id").is_some(),
        cwd,
        name: said("hook_event_name")?.to_owned(),
        event,
    })
}

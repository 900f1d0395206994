//! What is started: a program, its arguments, where, and what its environment says beside ours.

use super::super::install::AGENTS;
use super::super::shell::Stop;
use super::super::words::{quoted, text};
use super::{Whose, wire_path};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the fork to the hooks.
const FORK: &str = "STALED_FORK";
/// Names the file with what still holds to the hooks.
const BRIEF: &str = "STALED_BRIEF";
/// Names the program of the agent, where it is another one.
const PROGRAM: &str = "STALED_AGENT";

/// What is to be started, and what is said before.
#[derive(Debug)]
pub(super) struct Start {
    whose: Whose,
    program: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    environment: Vec<(&'static str, OsString)>,
    decision: Value,
    transition: Value,
    session: Value,
    pub(super) said: Vec<String>,
}

impl Start {
    pub(super) fn plain(whose: Whose, arguments: &[OsString]) -> Self {
        let named = std::env::var_os(PROGRAM).filter(|name| !name.is_empty());
        Self {
            whose,
            program: named.unwrap_or_else(|| whose.program().into()),
            arguments: arguments.to_vec(),
            folder: None,
            environment: Vec::new(),
            decision: Value::Null,
            transition: Value::Null,
            session: Value::Null,
            said: Vec::new(),
        }
    }

    pub(super) fn saying(mut self, line: String) -> Self {
        self.said.push(line);
        self
    }

    /// By this decision.
    pub(super) fn of(mut self, report: &Value) -> Self {
        self.decision = report["decision"].clone();
        self.transition = report["transition"].clone();
        self.session = report["session"].clone();
        self
    }

    pub(super) fn resumed(mut self, session: &str) -> Self {
        self.lead(match self.whose {
            Whose::Claude => vec!["--resume", session],
            Whose::Codex => vec!["resume", session],
        });
        self
    }

    pub(super) fn forked(mut self, session: &str, fork: &Value) -> Self {
        let transcript = transcript(session);
        self.lead(match self.whose {
            Whose::Claude => vec!["--resume", transcript.as_deref().unwrap_or(session), "--fork-session"],
            Whose::Codex => vec!["fork", session],
        });
        self.folder = wire_path(&fork["workspace"]);
        // One that is only looked at has no id yet.
        let id = text(fork, "fork");
        let id = if id.is_empty() { text(fork, "branch") } else { id };
        self.environment.push((FORK, id.into()));
        self
    }

    pub(super) fn fresh(mut self, brief: &Path) -> Self {
        self.environment.push((BRIEF, brief.into()));
        self
    }

    fn lead(&mut self, words: Vec<&str>) {
        self.arguments.splice(0..0, words.into_iter().map(OsString::from));
    }

    /// Becomes the agent; comes back only where that cannot be.
    pub(super) fn exec(self) -> Stop {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_remove(BRIEF).env_remove(FORK).envs(self.environment);
        if let Some(folder) = &self.folder {
            command.current_dir(folder).env("PWD", folder);
        }
        let error = command.exec();
        let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
        Stop::with_code(code, format!("cannot run {}: {error}", self.program.display()))
            .remedy(format!("{PROGRAM} names the program, where it is another one"))
    }

    pub(super) fn to_json(&self) -> Value {
        let words = |words: &mut dyn Iterator<Item = &OsString>| -> Vec<String> {
            words.map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let environment: serde_json::Map<String, Value> = self
            .environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value.to_string_lossy())))
            .collect();
        json!({
            "transition": self.transition,
            "session": self.session,
            "decision": self.decision,
            "command": words(&mut std::iter::once(&self.program).chain(&self.arguments)),
            "folder": self.folder,
            "environment": environment,
            "said": self.said,
        })
    }
}

/// As a shell would start it.
impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "cd {} && ", word(folder.as_os_str()))?;
        }
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", word(value))?;
        }
        write!(f, "{}", word(&self.program))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", word(argument)))
    }
}

fn word(text: &OsStr) -> String {
    let plain = |text: &&str| {
        let symbols = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-+@:=,".contains(symbol);
        !text.is_empty() && text.chars().all(symbols)
    };
    text.to_str().filter(plain).map_or_else(|| quoted(Path::new(text)), str::to_owned)
}

/// The transcript of a session of Claude Code, which looks for an id among those of its working directory's repository
/// only, and the workspace of a fork is another one. A path it takes wherever it is.
fn transcript(session: &str) -> Option<String> {
    // What is no UUID may be a path to anywhere.
    uuid::Uuid::parse_str(session).ok()?;
    let claude = AGENTS.iter().find(|agent| agent.name == Whose::Claude.agent())?;
    let projects = std::fs::read_dir(claude.own().ok()?.folder.join("projects")).ok()?;
    let files = projects.flatten().map(|project| project.path().join(format!("{session}.jsonl")));
    let newest = files.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file))).max();
    newest.and_then(|(_, file)| file.to_str().map(str::to_owned))
}

/// Whether these arguments say by themselves which session it is, or that it is none.
pub(super) fn chooses_itself(whose: Whose, arguments: &[OsString]) -> bool {
    const CLAUDE_FLAGS: [&str; 6] = ["--resume", "-r", "--continue", "-c", "--session-id", "--from-pr"];
    const CLAUDE_COMMANDS: [&str; 14] = [
        "agents",
        "auth",
        "auto-mode",
        "config",
        "doctor",
        "gateway",
        "install",
        "mcp",
        "plugin",
        "plugins",
        "project",
        "setup-token",
        "update",
        "upgrade",
    ];
    const CODEX_COMMANDS: [&str; 16] = [
        "exec",
        "e",
        "review",
        "login",
        "logout",
        "mcp",
        "mcp-server",
        "app-server",
        "completion",
        "sandbox",
        "debug",
        "apply",
        "a",
        "resume",
        "fork",
        "cloud",
    ];
    let words = || arguments.iter().filter_map(|argument| argument.to_str());
    let first = words().next().unwrap_or_default();
    match whose {
        Whose::Claude => {
            let flag = |word: &str| CLAUDE_FLAGS.contains(&word.split('=').next().unwrap_or_default());
            CLAUDE_COMMANDS.contains(&first) || words().any(flag)
        }
        Whose::Codex => CODEX_COMMANDS.contains(&first),
    }
}

//! Claude Code: `settings.json` of the user or of a project.
//!
//! The hooks are shell commands, which every version takes, and wait three seconds at most: a hook of ours is gone long
//! before.

use super::agent::{Agent, Options, Scope, Servers, flag};
use super::json::Dialect;
use std::path::{Path, PathBuf};

/// What an administrator set.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Hooks of Claude Code: it tells the daemon what it sees, and is told what has gone stale
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The hooks go into ~/.claude/settings.json, or into that of CLAUDE_CONFIG_DIR; --project takes .claude/settings.json of the
project. Whatever else stands there keeps its bytes, and what was there before is beside it in settings.json.staled-backup.
Again, it brings our entries up to date and changes nothing else; --uninstall leaves the file as it was. --mcp adds the
server `staled mcp` to ~/.claude.json, with --project to .mcp.json.
Exit codes: 0 installed, or so already; 2 not; a file is written whole or not at all.

Example:
  staled install claude-code
  staled install claude-code --print
  staled install claude-code --uninstall")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) options: Options,
}

pub(super) const AGENT: Agent = Agent {
    name: "claude-code",
    rests: "Stop",
    unchecked: "",
    variable: Some("CLAUDE_CONFIG_DIR"),
    folder: ".claude",
    settings: "settings.json",
    dialect: Dialect::Strict,
    events: &[
        ("SessionStart", None),
        ("UserPromptSubmit", None),
        ("PreToolUse", Some("Edit|Write|MultiEdit|NotebookEdit")),
        ("PostToolUse", Some("Read|Edit|Write|MultiEdit|NotebookEdit|Grep|Glob|LS|Bash")),
        ("PostToolUseFailure", Some("Read|Bash")),
        ("InstructionsLoaded", None),
        ("Stop", None),
        ("SessionEnd", None),
    ],
    timeout: 3,
    names_hooks: false,
    servers,
    off,
    next: &[
        "Claude Code reads its settings when a session begins",
        "`staled doctor` proves that its hooks reach the daemon",
    ],
};

fn servers(scope: &Scope) -> Servers {
    let path = match &scope.around {
        Some(project) if scope.project => project.join(".mcp.json"),
        Some(home) => home.join(".claude.json"),
        None => scope.folder.join(".claude.json"),
    };
    Servers::Json(path, Dialect::Strict)
}

/// Any of the files that Claude Code reads may switch all hooks off.
fn off(scope: &Scope) -> Vec<String> {
    let own = ["settings.json", "settings.local.json"].map(|name| scope.folder.join(name));
    let mut files: Vec<PathBuf> = own.into();
    if scope.project {
        files.extend(AGENT.own().map(|own| AGENT.settings(&own)));
    }
    files.push(PathBuf::from(MANAGED));
    let said = |path: &Path, key: &str, means: &str| {
        let on = flag(path, Dialect::Strict, &[key]) == Some(true);
        on.then(|| format!("{means}: {key} is true in {}", path.display()))
    };
    let of_file = |path: &PathBuf| {
        [
            said(path, "disableAllHooks", "no hook runs, whoever installed it"),
            said(path, "allowManagedHooksOnly", "no hook runs but those of an administrator"),
        ]
    };
    files.iter().flat_map(of_file).flatten().collect()
}

//! Codex: `hooks.json` of the user or of a project, and `config.toml` for the server.
//!
//! Codex runs a hook only after the user has trusted it, by its hash: one that is brought up to date is to be trusted again.

use super::agent::{Agent, Options, Scope, Servers};
use super::json::Dialect;

/// Hooks of Codex: it tells the daemon what it runs and edits, and is told what has gone stale
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The hooks go into ~/.codex/hooks.json, or into that of CODEX_HOME; --project takes .codex/hooks.json of the project. Whatever
else stands there keeps its bytes, and what was there before is beside it in hooks.json.staled-backup. Codex runs a hook only
after you have trusted it in /hooks. --mcp adds the server `staled mcp` to config.toml.
Exit codes: 0 installed, or so already; 2 not; a file is written whole or not at all.

Example:
  staled install codex
  staled install codex --mcp --print")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) options: Options,
}

/// Codex reads, edits and runs by these tools.
const TOOLS: Option<&str> = Some("Bash|apply_patch|Edit|Write");

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    rests: "Stop",
    unchecked: "; whether you have trusted them in /hooks cannot be checked from here",
    variable: Some("CODEX_HOME"),
    folder: ".codex",
    settings: "hooks.json",
    dialect: Dialect::Strict,
    events: &[
        ("SessionStart", None),
        ("UserPromptSubmit", None),
        ("PreToolUse", TOOLS),
        ("PostToolUse", TOOLS),
        ("Stop", None),
    ],
    timeout: 3,
    names_hooks: false,
    servers: |scope| Servers::Toml(scope.folder.join("config.toml")),
    off,
    next: &[
        "start codex and trust the hooks in /hooks: until then it skips them without a word",
        "`staled doctor` proves that they reach the daemon",
    ],
};

fn off(scope: &Scope) -> Vec<String> {
    let path = scope.folder.join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let config = text.parse::<toml_edit::DocumentMut>().unwrap_or_default();
    let off = |key: &str| {
        let flag =
            config.get("features").and_then(|features| features.get(key)).and_then(toml_edit::Item::as_bool);
        (flag == Some(false)).then(|| format!("no hook runs: features.{key} is false in {}", path.display()))
    };
    ["hooks", "codex_hooks"].into_iter().filter_map(off).collect()
}

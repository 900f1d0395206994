//! Gemini CLI: `settings.json` of the user or of a project, in which comments are allowed and times are milliseconds.

use super::agent::{Agent, Options, Scope, Servers, flag};
use super::json::Dialect;

/// Hooks of Gemini CLI: it tells the daemon what it sees, and is told what has gone stale
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The hooks go into ~/.gemini/settings.json; --project takes .gemini/settings.json of the project, whose hooks Gemini CLI trusts
less. Whatever else stands there keeps its bytes, comments too, and what was there before is beside it in
settings.json.staled-backup. --mcp adds the server `staled mcp` to the same file.
Exit codes: 0 installed, or so already; 2 not; a file is written whole or not at all.

Example:
  staled install gemini
  staled install gemini --uninstall")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) options: Options,
}

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    rests: "SessionEnd",
    unchecked: "",
    variable: None,
    folder: ".gemini",
    settings: "settings.json",
    dialect: Dialect::Comments,
    events: &[
        ("SessionStart", None),
        ("BeforeAgent", None),
        ("BeforeTool", Some("replace|write_file")),
        ("AfterTool", None),
        ("SessionEnd", None),
        ("PreCompress", None),
    ],
    timeout: 3_000,
    names_hooks: true,
    servers: |scope| Servers::Json(AGENT.settings(scope), Dialect::Comments),
    off,
    next: &[
        "Gemini CLI reads its settings when a session begins",
        "`staled doctor` proves that its hooks reach the daemon",
    ],
};

fn off(scope: &Scope) -> Vec<String> {
    let path = AGENT.settings(scope);
    let off = |keys: &[&str]| {
        let off = flag(&path, Dialect::Comments, keys) == Some(false);
        off.then(|| format!("no hook runs: {} is false in {}", keys.join("."), path.display()))
    };
    [off(&["hooksConfig", "enabled"]), off(&["tools", "enableHooks"])].into_iter().flatten().collect()
}

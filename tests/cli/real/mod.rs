//! The real Claude Code, where it is installed: it needs no account to read its settings and run its hooks, and speaks to a
//! model that a test plays. Where it is missing that is said, and the tests are skipped.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

mod model;
mod tests;

use super::serve::Serving;
use super::{Run, program, run_of};
use crate::fork::git;
use crate::harness::{Place, skipped};
use model::Model;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// As Claude Code names a session.
const ID: &str = "0a0a0a0a-1b1b-4c2c-8d3d-4e4e4e4e4e4e";

/// A repository, a daemon, the installed hooks, Claude Code and its model.
struct Scene {
    daemon: Serving,
    place: Place,
    model: Model,
    claude: PathBuf,
}

impl Scene {
    /// `None` where there is no Claude Code, or it does not start.
    fn new() -> Option<Self> {
        let claude = claude()?;
        let place = Place::new();
        place.write("a.txt", "one\ntwo\n");
        git(&place.root, &["init", "-q"]);
        git(&place.root, &["add", "."]);
        git(&place.root, &["commit", "-q", "-m", "first"]);
        // No test is about how late a loaded machine is.
        let config = place.home.join(".config/staled");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), "[hook]\ndeadline_ms = 60_000\n").unwrap();
        let path = PathBuf::from(std::env::var_os("PATH").unwrap());
        let daemon = Serving::start_under(&place, &[], &[("PATH", &path)]);
        let scene = Self { daemon, place, model: Model::start(), claude };
        scene.staled(&["install", "claude-code"]).ok();
        Some(scene)
    }

    /// Nothing but what is given here: no account, no network but the model.
    fn around(&self, mut command: Command) -> Command {
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("STALED_SOCKET", &self.daemon.socket);
        command.env("ANTHROPIC_BASE_URL", self.model.url()).env("ANTHROPIC_API_KEY", "sk-ant-none");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        command.env("STALED_AGENT", &self.claude).env("IS_SANDBOX", "1");
        command.current_dir(&self.place.root).stdin(Stdio::null());
        command
    }

    fn staled(&self, args: &[&str]) -> Run {
        run_of(self.around(program(&self.place)).args(args).output().unwrap())
    }

    fn claude(&self, args: &[&str]) -> Run {
        let mut command = Command::new(&self.claude);
        command.env_clear().env("HOME", &self.place.home).env("STALED_JOURNAL_SOCKET", "/nowhere/journal");
        run_of(self.around(command).args(args).output().unwrap())
    }

    /// What the daemon knows of the session.
    fn status(&self) -> Value {
        self.staled(&["status", ID, "--json"]).ok().json()
    }
}

/// Claude Code, where it is and starts.
fn claude() -> Option<PathBuf> {
    let named = std::env::var_os("STALED_TEST_CLAUDE").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/claude/node_modules/.bin/claude");
    let anywhere = std::env::split_paths(&path).map(|folder| folder.join("claude"));
    let found = named.into_iter().chain([own]).chain(anywhere).find(|file| file.is_file());
    let Some(found) = found else {
        skipped("Claude Code is not installed");
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let tried = Command::new(&found).arg("--version").env("HOME", home.path()).stdin(Stdio::null()).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skipped("Claude Code is installed, and does not start");
        return None;
    }
    Some(found)
}

/// A call of a tool; no two have the same id.
fn call(tool: &str, input: Value) -> Value {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let id = format!("toolu_{}", CALLS.fetch_add(1, Ordering::Relaxed));
    json!([{ "type": "tool_use", "id": id, "name": tool, "input": input }])
}

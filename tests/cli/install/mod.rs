//! `staled install claude-code|codex|gemini`, as a user runs it: what goes in, what stays, and what is left when it is out.

mod bytes;
mod refused;
mod settings;
mod toml;

use super::{Run, program, run_of};
use crate::harness::Place;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where each agent has its hooks, below its home.
const CLAUDE: &str = ".claude/settings.json";
const CODEX: &str = ".codex/hooks.json";
const GEMINI: &str = ".gemini/settings.json";

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = program(place);
    command.arg("install").args(args);
    command
}

fn install(place: &Place, args: &[&str]) -> Run {
    run_of(command(place, args).output().expect("it runs"))
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn backup(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.staled-backup", path.display()))
}

/// JSON, a byte order mark before it or not.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The commands of an event's hooks.
fn commands(settings: &Value, event: &str) -> Vec<String> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    let hooks = groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default());
    hooks.map(|hook| hook["command"].as_str().unwrap_or_default().to_owned()).collect()
}

fn ours(agent: &str) -> String {
    format!("{} hook {agent}", env!("CARGO_BIN_EXE_staled"))
}

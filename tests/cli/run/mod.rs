//! `staled run`, with an agent that says how it was started.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

mod apart;
mod chosen;

use super::serve::Serving;
use super::{Run, program, run_of};
use crate::fork::git;
use crate::harness::{Place, digest, file};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// As an agent names its session.
const ID: &str = "0a0a0a0a-1b1b-4c2c-8d3d-4e4e4e4e4e4e";

/// Says how it was started, and ends as nothing else does.
const AGENT: &str = r#"#!/bin/sh
echo "cwd $(pwd -P)"
for word in "$@"; do echo "word $word"; done
echo "fork ${STALED_FORK-none}"
if [ -n "$STALED_BRIEF" ]; then
  echo "brief $(stat -c %a "$STALED_BRIEF") $STALED_BRIEF"
  cat "$STALED_BRIEF"
fi
if [ -n "$ASK" ]; then "$STALED" decide "$ASK" --json | grep -o '"held_by":{[^}]*}' | sed "s/:$$}/:me}/"; fi
exit 7
"#;

/// A repository with a session in it, a daemon, and the agent.
struct Scene {
    daemon: Serving,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("src/a.rs", "one\n");
        place.write("deep/er/b", "two\n");
        git(&place.root, &["init", "-q"]);
        git(&place.root, &["add", "."]);
        git(&place.root, &["commit", "-q", "-m", "first"]);
        fs::create_dir_all(&place.home).unwrap();
        fs::write(place.home.join("agent"), AGENT).unwrap();
        fs::set_permissions(place.home.join("agent"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = PathBuf::from(std::env::var_os("PATH").unwrap());
        let daemon = Serving::start_under(&place, &[], &[("PATH", &path)]);
        let scene = Self { daemon, place };
        scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &json!({}));
        scene
    }

    fn register(&self, session: &str, agent: &str, captured_at: &str, more: &Value) {
        let mut context = json!({
            "session": session, "agent": agent, "root": self.place.root, "captured_at": captured_at,
            "results": [file("src/a.rs", "one\n")],
        });
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let context = super::json_file(&self.place, "context.json", &context);
        let mut command = self.command();
        run_of(command.args(["register", &context]).output().unwrap()).ok();
    }

    fn command(&self) -> Command {
        let mut command = program(&self.place);
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("STALED_SOCKET", &self.daemon.socket);
        command
            .env("STALED_AGENT", self.place.home.join("agent"))
            .env("STALED", env!("CARGO_BIN_EXE_staled"));
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        run_of(self.command().arg("run").args(args).output().unwrap())
    }

    /// What the agent was given when it was started by this.
    fn words(&self, args: &[&str]) -> Vec<String> {
        let run = self.run(args).ends(7);
        run.out.lines().filter_map(|line| line.strip_prefix("word ")).map(str::to_owned).collect()
    }
}

/// A fact that rests on the file, and another one on another.
fn facts() -> Value {
    json!({
        "goal": {"statement": "Fix expiry"},
        "results": [
            {"id": "src/a.rs", "source": {"kind": "file", "path": "src/a.rs"}, "digest": digest("one\n")},
            {"id": "b", "source": {"kind": "file", "path": "deep/er/b"}, "digest": digest("two\n")},
        ],
        "facts": [
            {"statement": "A is one", "evidence": "src/a.rs:1", "sources": ["src/a.rs"]},
            {"statement": "B is two", "evidence": "deep/er/b:1", "sources": ["b"]},
        ],
    })
}

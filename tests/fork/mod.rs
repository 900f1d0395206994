//! Forks over the socket: a daemon in process, a real repository, and what a naive look at both trees says.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod create;
mod decide;
mod discard;
mod kills;
mod merge;
mod moved;
mod restart;
mod swapped;
mod work;

use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A git that knows nobody's configuration.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(dir).args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]).args(args);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(key);
    }
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
    git.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b.c")]);
    git.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b.c")]);
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A daemon, and a session `s` that has read two files of a repository with one commit, and wants to try two ways.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) daemon: Daemon,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        place.write("src/token.rs", "ttl\n");
        place.write("src/clock.rs", "skew\n");
        place.write("README", "readme\n");
        place.write(".gitignore", "target/\n.env\n");
        git(&place.root, &["init", "-q"]);
        git(&place.root, &["add", "."]);
        git(&place.root, &["commit", "-qm", "first"]);
        Self::on(place)
    }

    pub(crate) fn on(place: Place) -> Self {
        let daemon = Daemon::start(&place.home);
        let scene = Self { place, daemon };
        scene.register();
        scene
    }

    pub(crate) fn register(&self) {
        let goal = json!({ "statement": "Fix token expiry", "branchable": true, "hypotheses": ["Cache it", "Check twice"] });
        let mut results = vec![];
        for path in ["src/token.rs", "src/clock.rs"] {
            let content = std::fs::read_to_string(self.root().join(path)).unwrap_or_default();
            results.push(file(path, &content));
        }
        let facts = json!([{ "id": "f1", "statement": "TTL is checked once", "evidence": "src/token.rs:1", "sources": ["src/token.rs"] }]);
        let context =
            json!({ "session": "s", "root": self.root(), "goal": goal, "results": results, "facts": facts });
        self.daemon.ask("context.register", &context);
    }

    pub(crate) fn root(&self) -> &Path {
        &self.place.root
    }

    pub(crate) fn create(&self, more: &Value) -> Vec<Value> {
        let mut ask = json!({ "session": "s" });
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let created = self.daemon.ask("fork.create", &ask);
        created["forks"].as_array().unwrap().clone()
    }

    pub(crate) fn status(&self, fork: &str) -> Value {
        self.daemon.ask("fork.status", &json!({ "fork": fork }))
    }

    /// What a command under `fork exec` does, as the daemon sees it.
    pub(crate) fn work(&self, fork: &str, deed: impl FnOnce(&Path)) {
        let begun = self.daemon.ask("fork.exec", &json!({ "fork": fork }));
        let workspace = PathBuf::from(begun["workspace"].as_str().unwrap());
        deed(&workspace);
        self.daemon.ask("fork.exec", &json!({ "fork": fork, "ended": begun["exec"] }));
    }

    pub(crate) fn commit(&self, fork: &str, path: &str, content: &str) {
        self.work(fork, |workspace| {
            std::fs::write(workspace.join(path), content).unwrap();
            git(workspace, &["add", "-A"]);
            git(workspace, &["commit", "-qm", "work"]);
        });
    }

    pub(crate) fn merge(&self, fork: &str) -> Value {
        self.daemon.ask("fork.merge", &json!({ "fork": fork, "deadline_ms": 10_000 }))
    }

    /// What the decision log says became of forks.
    pub(crate) fn log(&self) -> Vec<Value> {
        let log = self.daemon.ask("log.read", &json!({ "limit": 1_000 }));
        let lines = log["lines"].as_array().unwrap().iter().cloned();
        lines.filter(|line| line["event"] == "fork").collect()
    }
}

pub(crate) fn at(value: &Value) -> PathBuf {
    PathBuf::from(value.as_str().unwrap_or_else(|| panic!("{value} is no path")))
}

pub(crate) fn paths(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect()
}

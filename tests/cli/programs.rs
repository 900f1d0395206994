//! The daemon runs git, and nothing else: whatever a repository is configured to have run is not, not even where nothing but
//! itself holds the daemon back.

use super::serve::Serving;
use super::{git, program, staled};
use crate::daemon::write_each;
use crate::harness::{Place, can_trace, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Everything that git would run while it looks at a repository or at its files.
const PROGRAMS: [&str; 12] = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.editor",
    "core.pager",
    "core.askPass",
    "core.gitProxy",
    "diff.external",
    "diff.odd.textconv",
    "filter.odd.clean",
    "filter.odd.smudge",
    "filter.odd.process",
    "gpg.program",
];

#[test]
fn no_program_that_a_repository_names_is_ever_run() {
    if !can_trace() {
        return;
    }
    let place = Place::new();
    let canary = place.home.join("canary");
    let later = repository(&place, &canary);
    // It could run them: what holds it back is not the confinement.
    let config = place.home.join("config.toml");
    std::fs::write(&config, "[server]\nconfine = \"off\"\n").expect("a file");
    let trace = place.home.join("trace");
    let daemon =
        Serving::start_by(&place, traced(&place, &trace), &["--config", config.to_str().expect("UTF-8")]);
    let source = |id: &str, source: Value| json!({ "id": id, "source": source });
    let context = json!({ "session": "s", "root": place.root, "results": [
        source("file", json!({ "kind": "file", "path": "a.odd" })),
        source("tree", json!({ "kind": "tree", "path": "." })),
        source("command", json!({ "kind": "command", "command": format!("{}", canary.display()) })),
        source("head", json!({ "kind": "git_head", "path": "sub", "policy": "relevant" })),
        source("lock", json!({ "kind": "lockfile", "path": "Cargo.lock" })) ] });
    ask(&daemon, "context.register", &context);
    wait_until("it is fresh", || decide(&daemon)["transition"] == "resume");
    std::fs::write(place.root.join(".git/refs/heads/main"), later).expect("a branch");
    place.write("a.odd", "2");
    wait_until("it is not", || decide(&daemon)["transition"] == "fresh");
    ask(&daemon, "fork.create", &json!({ "session": "s", "hypotheses": ["one"] }));
    let fork = json!({ "fork": "s/one", "force": true });
    wait_until("it is independent", || {
        ask(&daemon, "fork.status", &json!({ "fork": "s/one" }))["independent"] == true
    });
    ask(&daemon, "fork.merge", &json!({ "fork": "s/one" }));
    ask(&daemon, "fork.reprovision", &fork);
    ask(&daemon, "fork.discard", &fork);
    staled(&place, &daemon.socket, &["stop"]).ok();
    let ran = std::fs::read_to_string(&trace).expect("a trace");
    let ran: Vec<&str> = ran.lines().filter(|line| line.contains("exec")).collect();
    let is_git = |line: &&&str| line.split('"').nth(1).is_some_and(|program| program.ends_with("/git"));
    let others: Vec<&&str> = ran.iter().filter(|line| !is_git(line)).collect();
    assert!(others.len() == 1 && others[0].contains("/staled\", [\""), "{others:#?}");
    assert!(!canary.with_extension("ran").exists());
    // Git itself would have.
    let status = Command::new("git").args(["status"]).current_dir(&place.root).output().expect("git runs");
    assert!(canary.with_extension("ran").exists(), "{status:?}");
}

/// A repository that names the canary wherever it can; returns a commit that HEAD is not at.
fn repository(place: &Place, canary: &Path) -> String {
    std::fs::create_dir_all(&place.home).expect("a folder");
    let script = format!("#!/bin/sh\n: > {}\n", canary.with_extension("ran").display());
    let install = |path: PathBuf| {
        std::fs::write(&path, &script).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    };
    install(canary.to_owned());
    write_each(place, &["a.odd", "sub/b", "Cargo.lock"], "1");
    place.write(".gitattributes", "*.odd filter=odd diff=odd\n");
    git(place, &["init", "-q"]);
    git(place, &["add", "-A"]);
    git(place, &["commit", "-q", "-m", "one"]);
    git(place, &["commit", "-q", "-m", "two", "--allow-empty"]);
    let head = place.root.join(".git/refs/heads/main");
    let later = std::fs::read_to_string(head).expect("a branch");
    git(place, &["reset", "-q", "--hard", "HEAD~1"]);
    for hook in
        ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-commit"]
    {
        install(place.root.join(".git/hooks").join(hook));
    }
    for name in PROGRAMS {
        git(place, &["config", name, canary.to_str().expect("UTF-8")]);
    }
    assert!(!canary.with_extension("ran").exists(), "setting up has run it");
    later
}

/// The program, with every program that it starts written down.
fn traced(place: &Place, trace: &Path) -> Command {
    let plain = program(place);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=execve,execveat", "-e", "signal=none", "-o"]).arg(trace);
    command.arg(plain.get_program()).env_clear().env("HOME", &place.home);
    // A daemon that runs git must find it.
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).current_dir(&place.root);
    command
}

fn ask(daemon: &Serving, method: &str, params: &Value) -> Value {
    let answer = Client::connect(&daemon.socket).expect("it serves").ask(method, params).expect("an answer");
    serde_json::from_str(&answer).expect("JSON")
}

fn decide(daemon: &Serving) -> Value {
    ask(daemon, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }))
}

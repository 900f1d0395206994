//! What git opens of a fork's repository when the daemon runs it: objects, and nothing that says how git is to go about it.

use super::super::{program, serve::Serving, staled};
use crate::fork::git;
use crate::harness::{Place, can_trace, file, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn traced(place: &Place, trace: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=execve,open,openat,openat2",
        "-e",
        "signal=none",
        "-o",
    ]);
    command.arg(trace).arg(program(place).get_program()).env_clear().env("HOME", &place.home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).current_dir(&place.root);
    command
}

fn ask(daemon: &Serving, method: &str, params: &Value) -> Value {
    let answer = Client::connect(&daemon.socket).unwrap().ask(method, params).unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Whatever a repository may have beside its objects.
fn work(workspace: &Path) {
    std::fs::write(workspace.join("tracked"), "stashed\n").unwrap();
    git(workspace, &["stash", "-q"]);
    std::fs::write(workspace.join("tracked"), "committed\n").unwrap();
    git(workspace, &["commit", "-qam", "work"]);
    git(workspace, &["branch", "aside"]);
    git(workspace, &["pack-refs", "--all"]);
    let linked = workspace.join("../scratchpad/linked");
    git(workspace, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    // A repository in the tree, as the index has it, that is the fork's own.
    std::fs::create_dir(workspace.join("inner")).unwrap();
    std::fs::write(workspace.join("inner/.git"), "gitdir: ../.git\n").unwrap();
    let head = git(workspace, &["rev-parse", "HEAD"]);
    git(workspace, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},inner")]);
    git(workspace, &["commit", "-qm", "inner"]);
    git(workspace, &["update-index", "--split-index"]);
    std::fs::write(workspace.join("tracked"), "not committed\n").unwrap();
    std::fs::write(workspace.join("new"), "n\n").unwrap();
    std::fs::write(workspace.join(".git/info/attributes"), "* filter=evil\n").unwrap();
}

#[test]
fn git_opens_nothing_of_a_forks_repository_but_objects() {
    if !can_trace() {
        return;
    }
    let place = Place::new();
    place.write("tracked", "1\n");
    git(&place.root, &["init", "-q"]);
    git(&place.root, &["add", "-A"]);
    git(&place.root, &["commit", "-qm", "one"]);
    std::fs::create_dir_all(&place.home).unwrap();
    let (config, trace) = (place.home.join("config.toml"), place.home.join("trace"));
    std::fs::write(&config, "[server]\nconfine = \"off\"\n").unwrap();
    let daemon = Serving::start_by(&place, traced(&place, &trace), &["--config", config.to_str().unwrap()]);
    let goal = json!({ "statement": "g", "branchable": true, "hypotheses": ["One"] });
    let read = [file("tracked", "1\n")];
    ask(
        &daemon,
        "context.register",
        &json!({ "session": "s", "root": place.root, "goal": goal, "results": read }),
    );
    let made = ask(&daemon, "fork.create", &json!({ "session": "s" }));
    let workspace = PathBuf::from(made["forks"][0]["workspace"].as_str().unwrap_or_else(|| panic!("{made}")));
    let fork = json!({ "fork": "s/one", "force": true });
    let status = || ask(&daemon, "fork.status", &json!({ "fork": "s/one" }));
    wait_until("it is independent", || status()["independent"] == true);
    work(&workspace);
    let merge = ask(&daemon, "fork.merge", &json!({ "fork": "s/one", "deadline_ms": 10_000 }));
    assert_eq!(merge["uncommitted"], json!(["tracked", "new", "inner/"]), "{merge}");
    let gone = ask(&daemon, "fork.discard", &fork);
    let kept = PathBuf::from(gone["kept"]["path"].as_str().unwrap_or_else(|| panic!("{gone}")));
    let id = gone["kept"]["uncommitted"].as_str().unwrap();
    assert_eq!(git(&kept, &["show", &format!("{id}:tracked")]), "not committed");
    assert_eq!(git(&kept, &["show", "stash:tracked"]), "stashed");
    assert!(kept.join("staled.nested/inner/.git").is_file());
    staled(&place, &daemon.socket, &["stop"]).ok();

    let opened = opened_by_git(&std::fs::read_to_string(&trace).unwrap());
    let repositories = [workspace.join(".git"), kept];
    let below = |path: &PathBuf| {
        let below = repositories.iter().find_map(|repository| path.strip_prefix(repository).ok());
        below.map(|path| path.to_string_lossy().into_owned())
    };
    let below: HashSet<String> = opened.iter().filter_map(below).collect();
    assert!(below.iter().any(|path| path.starts_with("objects/")), "nothing was traced: {opened:?}");
    // The index is written when the fork is made, before anybody works there.
    let other = |path: &&String| !path.starts_with("objects") && *path != "index" && *path != "index.lock";
    let other: Vec<&String> = below.iter().filter(other).collect();
    assert!(other.is_empty(), "{other:?}");
}

/// The absolute paths that processes opened which are git.
fn opened_by_git(trace: &str) -> Vec<PathBuf> {
    let mut gits = HashSet::new();
    let mut opened = Vec::new();
    for line in trace.lines() {
        let Some((pid, call)) = line.split_once(' ') else { continue };
        let Some(path) = call.split('"').nth(1) else { continue };
        if call.trim_start().starts_with("execve") && path.ends_with("/git") {
            gits.insert(pid);
        } else if gits.contains(pid) {
            opened.push(PathBuf::from(path));
        }
    }
    opened
}

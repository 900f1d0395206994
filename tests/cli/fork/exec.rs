//! `fork exec`: what becomes of the command, and what the daemon is told.

use super::super::run_of;
use super::stub::{Heard, Scene, serve};
use crate::harness::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// A fork, and a daemon that lets commands run in it.
fn scene() -> Option<(Scene, PathBuf, Heard)> {
    if let Err(error) = staled::fork::confine::available() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return None;
    }
    let scene = Scene::forked();
    let home = scene.workspace.parent().unwrap().to_owned();
    fs::create_dir_all(home.join("scratchpad")).unwrap();
    let answer = json!({
        "fork": "s/try", "exec": 7, "workspace": scene.workspace, "scratchpad": home.join("scratchpad"),
        "root": scene.workspace, "lock": home.join("exec.lock"), "isolation_broken": false,
        "hidden": [scene.parent, scene.place.home.join("forks")], "readable": [scene.parent.join(".git/objects")],
    });
    let socket = scene.place.home.join("run/socket");
    let heard = serve(&socket, move |method, asked| match (method, asked["ended"].is_null()) {
        ("fork.exec", true) => answer.clone(),
        ("fork.exec", false) => json!({ "fork": "s/try", "ended": 7, "isolation_broken": false }),
        ("fork.list", _) => {
            json!({ "forks": [{ "fork": "s/try" }, { "fork": "t/other" }, { "fork": "t/try-it" }] })
        }
        _ => panic!("nobody asks {method}"),
    });
    Some((scene, socket, heard))
}

fn told(heard: &Heard) -> Vec<Value> {
    heard
        .lock()
        .unwrap()
        .iter()
        .filter(|(method, _)| method == "fork.exec")
        .map(|(_, asked)| asked.clone())
        .collect()
}

#[test]
fn the_code_of_the_command_is_passed_on_and_its_end_is_told() {
    let Some((scene, socket, heard)) = scene() else { return };
    for (script, code, out) in [
        ("pwd; echo mine > new && cat new", 0, format!("{}\nmine\n", scene.workspace.display())),
        ("exit 3", 3, String::new()),
        ("kill -9 $$", 137, String::new()),
        ("cat ../../../../../root/parent/a; echo $? > code; git add -A; git commit -qm x", 0, String::new()),
    ] {
        let mut command = scene.command(&socket, &["fork", "exec", "try", "--", "sh", "-c", script]);
        command.env("GIT_DIR", scene.parent.join(".git"));
        let run = run_of(command.output().unwrap()).ends(code);
        assert_eq!(run.out, out, "{run:?}");
        let told = std::mem::take(&mut *heard.lock().unwrap());
        let last: Vec<_> = told.iter().rev().take(2).map(|(_, asked)| asked.clone()).collect();
        assert_eq!(last, [json!({ "fork": "s/try", "ended": 7 }), json!({ "fork": "s/try" })], "{script}");
    }
    assert_eq!(fs::read_to_string(scene.workspace.join("code")).unwrap(), "1\n");
}

#[test]
fn one_that_cannot_be_confined_or_started_is_not_run_and_is_told_so() {
    let Some((scene, socket, heard)) = scene() else { return };
    let run = |args: &[&str]| {
        run_of(scene.command(&socket, &[&["fork", "exec", "s/try", "--"], args].concat()).output().unwrap())
    };
    run(&["/nowhere/at/all"]).fails(126, "cannot run /nowhere/at/all");
    assert_eq!(told(&heard).last().unwrap()["ended"], 7);
    let lock = scene.workspace.with_file_name("exec.lock");
    fs::remove_file(&lock).unwrap();
    let shared = scene.workspace.join("shared");
    fs::hard_link(scene.parent.join("a"), &shared).unwrap();
    run(&["touch", "ran"]).fails(126, shared.to_str().unwrap());
    assert!(!scene.workspace.join("ran").exists());
    assert!(lock.exists(), "it was held before anything was looked for, which may take long");
    assert_eq!(told(&heard).last().unwrap()["ended"], 7);
}

#[test]
fn a_signal_to_us_reaches_the_command() {
    let Some((scene, socket, heard)) = scene() else { return };
    let script = "trap 'echo ended; exit 5' TERM; : > up; while :; do sleep 0.05; done";
    let child = scene.command(&socket, &["fork", "exec", "s/try", "--", "sh", "-c", script]).spawn().unwrap();
    wait_until("it runs", || scene.workspace.join("up").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let run = run_of(child.wait_with_output().unwrap()).ends(5);
    assert_eq!((run.out.as_str(), told(&heard).len()), ("ended\n", 2));
}

#[test]
fn a_fork_is_named_by_as_much_of_its_end_as_only_one_has() {
    let Some((scene, socket, heard)) = scene() else { return };
    let run =
        |name: &str| run_of(scene.command(&socket, &["fork", "exec", name, "--", "true"]).output().unwrap());
    for (name, id) in [("try", "s/try"), ("it", "t/try-it"), ("staled/s/try", "staled/s/try")] {
        run(name);
        assert!(told(&heard).iter().any(|asked| asked["fork"] == id), "{name}");
    }
    run("nobody").fails(2, "there is no fork nobody\n  `staled fork list`");
    run("").fails(2, "may be any of s/try, t/other, t/try-it");
}

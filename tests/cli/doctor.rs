//! `doctor` beside a real daemon and without one.

use super::{Run, staled};
use crate::daemon::register;
use crate::harness::{Daemon, Place, file};
use serde_json::json;

/// What is said of everything that goes by this name.
fn said<'run>(run: &'run Run, name: &str) -> Vec<&'run str> {
    let of_name = |line: &&str| line[2..].trim_start().starts_with(name);
    run.out.lines().filter(of_name).collect()
}

#[test]
fn it_looks_with_and_without_a_daemon() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let (socket, state) = (daemon.folders.socket.clone(), daemon.folders.state.clone());
    let run = staled(&place, &socket, &["doctor"]);
    assert!(said(&run, "daemon").concat().contains("answers"), "{run:?}");
    assert!(said(&run, "root").concat().contains(place.root.to_str().expect("UTF-8")), "{run:?}");
    assert!(said(&run, "max_user_watches").concat().contains("the daemon holds"), "{run:?}");
    assert!(said(&run, "journal").concat().contains(state.to_str().expect("UTF-8")), "{run:?}");
    let wrong = run.out.lines().any(|line| line.starts_with("!!"));
    assert!(run.out.lines().all(|line| line.starts_with("ok  ") || line.starts_with("!!  ")), "{run:?}");
    assert_eq!(run.code, i32::from(wrong), "{run:?}");
    daemon.stop();
    let run = staled(&place, &socket, &["doctor", "--state", state.to_str().expect("UTF-8")]).ends(1);
    let [daemon] = said(&run, "daemon")[..] else { panic!("{run:?}") };
    assert!(daemon.starts_with("!!") && daemon.ends_with("`staled serve`"), "{run:?}");
    assert!(said(&run, "decision log").concat().starts_with("ok"), "{run:?}");
    let checks = staled(&place, &socket, &["doctor", "--json"]).ends(1).json();
    assert_eq!(checks["ok"], false);
    let checks = checks["checks"].as_array().expect("checks");
    let daemon = checks.iter().find(|check| check["name"] == "daemon").expect("it is said");
    assert_eq!((&daemon["ok"], daemon["remedy"].as_str()), (&json!(false), Some("start it: `staled serve`")));
}

/// With time enough for a loaded machine, which no test is about.
fn unhurried(place: &Place) {
    let folder = place.home.join(".config/staled");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), "[hook]\ndeadline_ms = 15_000\n").expect("a file");
}

#[test]
fn hooks_are_tried_as_the_agent_runs_them() {
    let place = Place::new();
    unhurried(&place);
    let daemon = Daemon::start(&place.home);
    let socket = daemon.folders.socket.clone();
    let doctor = || staled(&place, &socket, &["doctor"]);
    assert!(said(&doctor(), "claude-code").is_empty(), "who does not use it is told nothing of it");
    let settings = place.home.join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    std::fs::write(&settings, "{}\n").expect("a file");
    let run = doctor();
    let [line] = said(&run, "claude-code")[..] else { panic!("{run:?}") };
    assert!(line.starts_with("ok") && line.ends_with("`staled install claude-code` adds them"), "{run:?}");
    staled(&place, &socket, &["install", "claude-code"]).ok();
    let before = daemon.ask("context.list", &json!({}));
    let run = doctor();
    let [line] = said(&run, "claude-code")[..] else { panic!("{run:?}") };
    assert!(line.starts_with("ok") && line.ends_with("settings.json reach the daemon"), "{run:?}");
    assert_eq!(daemon.ask("context.list", &json!({})), before, "it changes nothing");
    daemon.stop();
    let run = doctor();
    let [line] = said(&run, "claude-code")[..] else { panic!("{run:?}") };
    assert!(line.contains("not known without one"), "{run:?}");
}

#[test]
fn hooks_that_reach_nobody_are_found_out() {
    let place = Place::new();
    unhurried(&place);
    let daemon = Daemon::start(&place.home);
    let socket = daemon.folders.socket.clone();
    let wrong = |name: &str, what: &str, remedy: &str| {
        let run = staled(&place, &socket, &["doctor"]).ends(1);
        let found = said(&run, name)
            .into_iter()
            .any(|line| line.starts_with("!!") && line.contains(what) && line.contains(remedy));
        assert!(found, "{what:?} is not in {run:?}");
    };
    let install = |args: &[&str]| staled(&place, &socket, &[&["install", "claude-code"], args].concat()).ok();
    let settings = place.home.join(".claude/settings.json");
    let fake = |script: &str| {
        let path = place.home.join("fake/staled");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        // Aside and renamed: what was just written may still be open in a process that another test is starting.
        let new = path.with_extension("new");
        std::fs::write(&new, format!("#!/bin/sh\n{script}\n")).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&new, mode).expect("a mode");
        std::fs::rename(&new, &path).expect("renamed");
        path.to_str().expect("UTF-8").to_owned()
    };
    install(&["--exec", &fake("cat > /dev/null")]);
    wrong("claude-code", "did not hear of it", "staled install claude-code");
    fake("echo 'something broke' >&2");
    wrong("claude-code", "it said: something broke", "staled install claude-code");
    fake("exit 3");
    wrong("claude-code", "exit status: 3", "staled install claude-code");
    std::fs::remove_file(place.home.join("fake/staled")).expect("it goes");
    wrong("claude-code", "fake/staled, which is no program", "staled install claude-code");
    install(&[]);
    let whole = std::fs::read_to_string(&settings).expect("it is there");
    std::fs::write(&settings, whole.replace("\"Stop\"", "\"Elsewhere\"")).expect("a file");
    wrong("claude-code", "no hook of ours at Stop", "staled install claude-code");
    // One that was changed by hand is found among those that are as they were.
    let elsewhere = whole.replacen("hook claude-code", "hook claude-code --socket /nowhere/x 2>/dev/null", 1);
    std::fs::write(&settings, elsewhere).expect("a file");
    wrong("claude-code", "did not hear of it", "staled install claude-code");
    std::fs::write(&settings, whole.replacen('{', "{\"disableAllHooks\": true,", 1)).expect("a file");
    wrong("claude-code", "disableAllHooks is true in", "take that out");
    std::fs::write(&settings, "{\n  nothing\n}").expect("a file");
    wrong("claude-code", "settings.json:2:3:", "no hook of the file runs");
}

#[test]
fn every_agent_is_tried_by_its_own_hooks() {
    let place = Place::new();
    unhurried(&place);
    let daemon = Daemon::start(&place.home);
    let socket = daemon.folders.socket.clone();
    for (agent, end) in [
        ("claude-code", "settings.json reach the daemon"),
        (
            "codex",
            "hooks.json reach the daemon; whether you have trusted them in /hooks cannot be checked from here",
        ),
        ("gemini", "settings.json reach the daemon"),
    ] {
        staled(&place, &socket, &["install", agent]).ok();
        let run = staled(&place, &socket, &["doctor"]);
        let [line] = said(&run, agent)[..] else { panic!("{run:?}") };
        assert!(line.starts_with("ok") && line.ends_with(end), "{run:?}");
    }
}

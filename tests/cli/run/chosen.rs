//! Resumed or anew, by the decision.

use super::{ID, Scene, facts};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_session_that_holds_is_gone_on_with() {
    let scene = Scene::new();
    let run = scene.run(&["claude", "--", "-p", "two words"]).ends(7);
    let wanted = format!(
        "cwd {}\nword --resume\nword {ID}\nword -p\nword two words\nfork none\n",
        scene.place.root.display()
    );
    assert_eq!(run.out, wanted, "{run:?}");
    let said: Vec<&str> = run.err.lines().collect();
    let [decided, started] = said[..] else { panic!("{run:?}") };
    assert!(decided.starts_with(&format!("staled: resume  {ID}: All 1 results")), "{run:?}");
    assert!(started.ends_with(&format!("agent --resume {ID} -p 'two words'")), "{run:?}");
}

#[test]
fn the_agent_holds_the_session_as_long_as_it_runs() {
    let scene = Scene::new();
    let run = scene.command().args(["run", "claude"]).env("ASK", ID).output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(out.ends_with("\"held_by\":{\"pid\":me}\n"), "{out}");
    assert!(scene.run(&["claude"]).ends(7).out.contains("--resume"), "its end frees it");
}

#[test]
fn the_last_session_of_the_agent_in_the_work_tree_is_meant() {
    let scene = Scene::new();
    let newest = "0b0b0b0b-1b1b-4c2c-8d3d-4e4e4e4e4e4e";
    let codex = "0c0c0c0c-1b1b-4c2c-8d3d-4e4e4e4e4e4e";
    scene.register(newest, "claude-code", "2026-11-30T11:00:00Z", &json!({}));
    scene.register(codex, "codex", "2026-11-30T12:00:00Z", &json!({}));
    scene.register("imported", "claude-code", "2026-11-30T13:00:00Z", &json!({}));
    assert_eq!(scene.words(&["claude"]), ["--resume", newest]);
    assert_eq!(scene.words(&["codex", "--", "-m", "x"]), ["resume", codex, "-m", "x"]);
    assert_eq!(scene.words(&["claude", "--session", ID]), ["--resume", ID]);
    let mut deep = scene.command();
    let deep = deep.args(["run", "claude", "--print"]).current_dir(scene.place.root.join("deep/er"));
    let deep = String::from_utf8(deep.output().unwrap().stdout).unwrap();
    assert!(deep.ends_with(&format!("agent --resume {newest}\n")), "{deep}");
}

#[test]
fn a_world_that_changed_begins_anew_with_what_still_holds() {
    let scene = Scene::new();
    scene.register(ID, "claude-code", "2026-11-30T10:00:00Z", &facts());
    scene.place.write("src/a.rs", "other\n");
    let run = scene.run(&["claude", "--", "-p", "x"]).ends(7);
    assert!(run.out.contains("\nword -p\nword x\nfork none\n") && !run.out.contains("--resume"), "{run:?}");
    let runtime = scene.daemon.socket.parent().unwrap();
    assert!(run.out.contains(&format!("\nbrief 600 {}/brief-", runtime.display())), "{run:?}");
    for told in ["Fix expiry", "- B is two (deep/er/b:1)\n", "relied on:\n- src/a.rs\n"] {
        assert!(run.out.contains(told), "{told}: {run:?}");
    }
    assert!(!run.out.contains("A is one"), "what rests on it fell with it: {run:?}");
    assert!(run.err.starts_with(&format!("staled: fresh  {ID}: src/a.rs changed")), "{run:?}");
    // The agent of this test reads its brief and leaves it; the next start clears away after the dead.
    let briefs = || {
        let names = std::fs::read_dir(runtime).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("brief-")).count()
    };
    assert_eq!(briefs(), 1);
    let run = scene.command().args(["run", "claude"]).env("ASK", ID).output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(!out.contains("held_by\":{"), "a new session holds nothing of the old one: {out}");
    assert_eq!(briefs(), 1);
}

#[test]
fn a_session_that_another_process_holds_is_named_and_left_to_it() {
    let scene = Scene::new();
    let me = std::process::id();
    let mut client = staled::client::Client::connect(&scene.daemon.socket).unwrap();
    client.ask("decide", &json!({"session": ID, "holder": {"pid": me}})).unwrap();
    let run = scene.run(&["claude"]);
    run.fails(2, &format!("process {me} goes on with {ID}; nothing was started"));
    assert!(run.err.contains("--anyway"), "{run:?}");
    let run = scene.run(&["claude", "--anyway"]).ends(7);
    assert!(run.out.contains("word --resume\n"), "{run:?}");
    assert!(run.err.contains(&format!("(process {me} goes on with {ID} too)")), "{run:?}");
    scene.place.write("src/a.rs", "other\n");
    let run = scene.run(&["claude"]).ends(7);
    assert!(!run.out.contains("--resume"), "a new session takes nothing from it: {run:?}");
}

#[test]
fn whatever_goes_wrong_the_agent_is_started_plainly() {
    let scene = Scene::new();
    let run = scene.run(&["claude", "--session", "no-such", "--", "-p", "x"]).ends(7);
    assert!(run.out.contains("word -p\nword x\nfork none\n"), "{run:?}");
    assert!(
        run.err.contains("there is no session \"no-such\"")
            && run.err.ends_with("; claude is started plainly\n"),
        "{run:?}"
    );
    let run = scene.run(&["codex"]).ends(7);
    assert!(run.err.contains("no session of codex is known here; codex is started plainly"), "{run:?}");
    for args in
        [&["claude", "--", "--resume=x"][..], &["claude", "--", "mcp", "list"], &["codex", "--", "exec", "x"]]
    {
        let run = scene.run(args).ends(7);
        assert!(run.err.contains("the arguments choose") && !run.out.contains(ID), "{run:?}");
    }
    let mut alone = scene.command();
    let run = alone
        .args(["run", "claude", "--", "x"])
        .env("STALED_SOCKET", "/nowhere/staled.sock")
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(
        run.status.code() == Some(7) && said.contains("no daemon answers") && said.ends_with("plainly\n"),
        "{said}"
    );
    let mut none = scene.command();
    let run = none.args(["run", "claude"]).env("STALED_AGENT", "/nowhere/claude").output().unwrap();
    assert_eq!(run.status.code(), Some(127), "{run:?}");
    let file = scene.place.home.join("agent");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(scene.run(&["claude"]).code, 126);
}

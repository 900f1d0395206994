//! What Claude Code does with what we wrote.

use super::{ID, Scene, call};
use serde_json::{Value, json};

/// Everything that is said in a conversation.
fn words(conversation: &Value) -> String {
    conversation.to_string()
}

#[test]
fn claude_code_takes_the_settings_and_tells_the_daemon() {
    let Some(scene) = Scene::new() else { return };
    let file = scene.place.root.join("a.txt");
    scene.model.says(call("Read", json!({"file_path": file})));
    let debug = scene.place.home.join("debug");
    let args = ["-p", "Read it", "--session-id", ID, "--debug-file", debug.to_str().unwrap()];
    assert_eq!(scene.claude(&args).ok().out, "done\n");
    let log = std::fs::read_to_string(&debug).unwrap();
    let ended = format!(
        "SessionEnd:other [{} hook claude-code] completed with status 0",
        env!("CARGO_BIN_EXE_staled")
    );
    assert!(log.contains(&ended), "{log}");
    let status = scene.status();
    let fresh = status["counts"]["fresh"].as_u64();
    assert!(fresh.is_some_and(|fresh| fresh > 0), "{status}");

    // What another hand does meanwhile is told with the next prompt.
    scene.place.write("a.txt", "one\nTWO\n");
    scene.model.heard();
    scene.claude(&["-p", "Go on", "--resume", ID]).ok();
    let heard = scene.model.heard();
    assert!(words(&heard[0]).contains("What staled knows of this session's earlier reads"), "{heard:?}");
}

#[test]
fn an_edit_is_refused_in_our_words() {
    let Some(scene) = Scene::new() else { return };
    let config = scene.place.home.join(".config/staled/config.toml");
    std::fs::write(config, "[hook]\ndeadline_ms = 60_000\nothers = \"deny\"\n").unwrap();
    let [a, b] = ["a.txt", "b.txt"].map(|name| scene.place.root.join(name));
    scene.place.write("b.txt", "three\n");
    scene.model.says(call("Read", json!({"file_path": a})));
    scene.model.says(call("Read", json!({"file_path": b})));
    // What it edits it builds on.
    scene.model.says(call("Edit", json!({"file_path": b, "old_string": "three", "new_string": "3"})));
    let other = b.clone();
    scene.model.says_after(
        move || std::fs::write(other, "four\n").unwrap(),
        call("Edit", json!({"file_path": a, "old_string": "one", "new_string": "1"})),
    );
    let args = ["-p", "Do it", "--session-id", ID, "--dangerously-skip-permissions"];
    assert_eq!(scene.claude(&args).ok().out, "done\n");
    let heard = scene.model.heard();
    let refused = words(heard.last().unwrap());
    assert!(refused.contains("rests on what has changed since it was read"), "{refused}");
    assert!(refused.contains("\"is_error\":true") && refused.contains("b.txt"), "{refused}");
    assert_eq!(std::fs::read_to_string(&a).unwrap(), "one\ntwo\n", "{refused}");
}

#[test]
fn settings_that_it_does_not_take_tell_the_daemon_nothing() {
    let Some(scene) = Scene::new() else { return };
    let settings = scene.place.home.join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace("\"command\",", "\"commando\",")).unwrap();
    scene.claude(&["-p", "Read it", "--session-id", ID]).ok();
    scene.staled(&["status", ID]).ends(2);
}

#[test]
fn run_starts_it_as_the_decision_says() {
    let Some(scene) = Scene::new() else { return };
    let file = scene.place.root.join("a.txt");
    scene.model.says(call("Read", json!({"file_path": file})));
    // What it edits it builds on.
    scene.model.says(call("Edit", json!({"file_path": file, "old_string": "one", "new_string": "1"})));
    scene.claude(&["-p", "Read it", "--session-id", ID, "--permission-mode", "acceptEdits"]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\ntwo\n");
    scene.model.heard();
    let run = scene.staled(&["run", "claude", "--", "-p", "Go on"]).ok();
    assert!(run.err.starts_with(&format!("staled: resume  {ID}: ")) && run.out == "done\n", "{run:?}");
    let heard = scene.model.heard();
    assert!(words(&heard[0]).contains("Read it") && words(&heard[0]).contains("Go on"), "{heard:?}");

    let goal = json!({"statement": "g", "branchable": true, "hypotheses": ["Cache it", "Check twice"]});
    let record = super::super::json_file(&scene.place, "record.json", &json!({"session": ID, "goal": goal}));
    scene.staled(&["record", &record]).ok();
    let run = scene.staled(&["run", "claude", "--", "-p", "Try it"]).ok();
    assert!(run.err.starts_with(&format!("staled: fork  {ID}: ")) && run.out == "done\n", "{run:?}");
    let heard = scene.model.heard();
    assert!(words(&heard[0]).contains("Read it") && words(&heard[0]).contains("Try it"), "{heard:?}");
    assert!(words(&heard[0]).contains("cache-it"), "it works in the workspace: {heard:?}");

    scene.place.write("a.txt", "other\n");
    let run = scene.staled(&["run", "claude", "--session", ID, "--", "-p", "Anew"]).ok();
    assert!(
        run.err.starts_with(&format!("staled: fresh  {ID}: a.txt changed")) && run.out == "done\n",
        "{run:?}"
    );
    let heard = scene.model.heard();
    assert!(!words(&heard[0]).contains("Read it") && words(&heard[0]).contains("Anew"), "{heard:?}");
    // The facts of the old session came with the first hook of the new one, which took the file away.
    assert!(words(&heard[0]).contains(&format!("An earlier session ({ID}) worked here")), "{heard:?}");
    let runtime = scene.daemon.socket.parent().unwrap();
    let names = std::fs::read_dir(runtime).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with("brief-")), "it was read");
}

//! The agent goes on, whatever becomes of its hooks; and what they saw is not lost.

use super::Agent;
use crate::harness::{Daemon, Place};
use serde_json::json;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

#[test]
fn without_a_daemon_the_agent_goes_on_and_what_was_read_is_told_later() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let socket = daemon.folders.socket.clone();
    let agent = Agent::new(&place, &socket, "down");
    agent.start("startup").nothing();
    daemon.stop();
    let said = agent.read("a.rs");
    assert!(
        said.complaints.contains("staled hook: PostToolUse of session down: no daemon answers at"),
        "{said:?}"
    );
    assert!(said.complaints.contains("what was seen waits for the next hook"), "{said:?}");
    assert_eq!((said.complaints.matches('\n').count(), said.context.as_str()), (1, ""));
    assert_eq!(agent.edit_before("a.rs").decision, None);
    let kept = walk(&place.home.join(".local/state/staled/hooks"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(!std::fs::read_to_string(&kept[0]).unwrap().contains("\"1\\n"), "contents are not kept");
    // The world changes before anybody hears of the read.
    place.write("a.rs", "2\n");
    let daemon = Daemon::start(&place.home);
    agent.prompt().tells(&["a.rs: what was read was not what was on the disk when it was recorded"]);
    assert_eq!(walk(&place.home.join(".local/state/staled/hooks")).len(), 0);
    assert_eq!(daemon.ask("decide", &json!({ "session": "down" }))["stale"], json!(["a.rs"]));
}

#[test]
fn a_daemon_that_never_answers_costs_the_deadline_and_no_more() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let runtime = place.home.join("run");
    std::fs::create_dir_all(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let socket = runtime.join("staled.sock");
    let _deaf = UnixListener::bind(&socket).unwrap();
    let agent = Agent::new(&place, &socket, "deaf");
    agent.configure("deadline_ms = 100");
    let begun = Instant::now();
    let said = agent.read("a.rs");
    // A client would wait 90 s for its answer; that it did not wait is what counts here.
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(said.complaints.contains("no answer within 100 ms (hook.deadline_ms)"), "{said:?}");
    assert_eq!(
        walk(&place.home.join(".local/state/staled/hooks")).len(),
        usize::from(said.complaints.contains("waits"))
    );
}

#[test]
fn what_is_told_late_of_a_tree_is_never_fresh() {
    let place = Place::new();
    place.write("src/a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "late");
    agent.start("startup").nothing();
    daemon.stop();
    agent.bash("grep -rn 1 src", "src/a.rs:1:1");
    place.write("src/a.rs", "2\n");
    let daemon = Daemon::start(&place.home);
    agent.prompt().nothing();
    let report = daemon.ask("decide", &json!({ "session": "late" }));
    assert_eq!((&report["stale"], &report["counts"]["fresh"]), (&json!(["grep -rn 1 src"]), &json!(0)));
}

#[test]
fn what_the_daemon_will_never_take_holds_up_nothing_later() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "stuck");
    agent.start("startup").nothing();
    let input = json!({ "pattern": "*/".repeat(1_500) });
    let call = json!({ "tool_name": "Glob", "tool_input": input, "tool_response": { "filenames": [] } });
    let said = agent.fire("PostToolUse", &call);
    assert!(said.complaints.contains("bytes") && !said.complaints.contains("waits"), "{said:?}");
    agent.read("a.rs").nothing();
    // It waited already.
    daemon.stop();
    agent.fire("PostToolUse", &call);
    let _daemon = Daemon::start(&place.home);
    agent.read("a.rs").nothing();
    assert_eq!(walk(&place.home.join(".local/state/staled/hooks")).len(), 0);
}

#[test]
fn no_exit_code_of_ours_stops_the_agent() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "codes");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", "2\n");
    let command = agent.settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let event = json!({ "session_id": "codes", "cwd": place.root, "hook_event_name": "UserPromptSubmit" });
    let mut said = super::Said::default();
    agent.run(&format!("{command} >/dev/full"), "any", &event.to_string(), &mut said);
    assert!(said.complaints.contains("its answer cannot be written"), "{said:?}");
    let misspelled =
        std::process::Command::new(env!("CARGO_BIN_EXE_staled")).args(["hook", "cloude"]).output().unwrap();
    assert_eq!(misspelled.status.code(), Some(1), "2 would stop an agent");
}

#[test]
fn what_is_no_event_is_no_trouble() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "odd");
    let command = agent.settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    for (payload, complaint) in [
        ("", "the event is no JSON"),
        ("{", "the event is no JSON"),
        ("[]", "has no cwd"),
        ("\"Stop\"", "has no cwd"),
        (r#"{"session_id":"s","hook_event_name":"Stop"}"#, "has no cwd"),
        (r#"{"session_id":"s","hook_event_name":"Stop","cwd":"here"}"#, "cwd is not absolute"),
        (r#"{"session_id":7,"hook_event_name":"Stop","cwd":"/"}"#, "has no session_id"),
        (r#"{"session_id":"s","hook_event_name":"Later","cwd":"/"}"#, ""),
        (r#"{"session_id":"s","hook_event_name":"PostToolUse","cwd":"/tmp"}"#, ""),
        (
            r#"{"session_id":"s","hook_event_name":"PostToolUse","cwd":"/tmp","tool_name":"Read","tool_input":7}"#,
            "",
        ),
        (
            r#"{"session_id":"s","hook_event_name":"PreToolUse","cwd":"/tmp","tool_name":"Edit","tool_input":{}}"#,
            "",
        ),
        (r#"{"session_id":"s","hook_event_name":"PostToolBatch","cwd":"/tmp","tool_calls":{}}"#, ""),
        (r#"{"session_id":"a\u0000b","hook_event_name":"Stop","cwd":"/tmp"}"#, "session must be"),
    ] {
        let mut said = super::Said::default();
        agent.run(&command, "any", payload, &mut said);
        assert_eq!(said.complaints.is_empty(), complaint.is_empty(), "{payload}: {said:?}");
        assert!(said.complaints.contains(complaint), "{payload}: {said:?}");
        assert_eq!(said.context, "", "{payload}");
    }
}

#[test]
fn a_broken_configuration_is_said_and_the_defaults_count() {
    let place = Place::new();
    place.write("a.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "broken");
    agent.start("startup").nothing();
    agent.configure("targte = \"off\"");
    let said = agent.prompt();
    assert!(
        said.complaints.contains("targte") && said.complaints.contains("the defaults of [hook] count"),
        "{said:?}"
    );
}

impl Agent<'_> {
    fn edit_before(&self, path: &str) -> super::Said {
        let input = json!({ "file_path": self.path(path), "old_string": "1", "new_string": "2" });
        self.fire("PreToolUse", &json!({ "tool_name": "Edit", "tool_input": input }))
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

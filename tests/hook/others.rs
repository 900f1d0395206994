//! Codex and Gemini CLI: payloads as they send them, and answers that hold to their own rules.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::Agent;
use crate::harness::{Daemon, Place};
use serde_json::{Value, json};

/// Codex knows these keys and fails a hook that says another.
const CODEX_KEYS: [&str; 4] =
    ["hookEventName", "additionalContext", "permissionDecision", "permissionDecisionReason"];

/// An agent by its own words.
struct Other<'a> {
    agent: Agent<'a>,
    name: &'static str,
}

impl<'a> Other<'a> {
    fn new(place: &'a Place, daemon: &Daemon, name: &'static str) -> Self {
        Self { agent: Agent::new(place, &daemon.folders.socket, name), name }
    }

    /// What is told by an event: the context, or the reason of a refusal.
    fn fire(&self, event: &str, more: &Value) -> (String, bool) {
        let mut payload = json!({
            "session_id": self.name, "transcript_path": null, "cwd": self.agent.place.root, "hook_event_name": event,
            "model": "m", "permission_mode": "default", "turn_id": "t", "timestamp": "2026-11-30T10:00:00Z",
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let run = crate::cli::feed_in(
            self.agent.place,
            &self.agent.environment,
            &["hook", self.name],
            &payload.to_string(),
        );
        assert_eq!(run.err(), "", "{event}");
        match self.name {
            "codex" => said_by_codex(event, &run.out),
            _ => said_by_gemini(event, &run.out),
        }
    }
}

fn said_by_codex(event: &str, out: &str) -> (String, bool) {
    if out.is_empty() {
        return (String::new(), false);
    }
    let answer: Value = serde_json::from_str(out).unwrap();
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["hookSpecificOutput"]);
    let specific = answer["hookSpecificOutput"].as_object().unwrap();
    assert!(specific.keys().all(|key| CODEX_KEYS.contains(&key.as_str())), "{answer}");
    assert_eq!(specific["hookEventName"], event);
    let denied = specific.get("permissionDecision").is_some_and(|decision| decision == "deny");
    let text = ["additionalContext", "permissionDecisionReason"].iter().find_map(|key| specific.get(*key));
    (text.unwrap().as_str().unwrap().to_owned(), denied)
}

fn said_by_gemini(event: &str, out: &str) -> (String, bool) {
    let answer: Value = serde_json::from_str(out).expect("one JSON object and nothing else");
    if answer["decision"] == "deny" {
        return (answer["reason"].as_str().unwrap().to_owned(), true);
    }
    let specific = &answer["hookSpecificOutput"];
    assert!(specific.is_null() || specific["hookEventName"] == event, "{answer}");
    (specific["additionalContext"].as_str().unwrap_or_default().to_owned(), false)
}

#[test]
fn codex_is_told_what_its_commands_showed_and_its_patches_left() {
    let place = Place::new();
    place.write("a.rs", "1\n2\n3\n");
    place.write("b.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let codex = Other::new(&place, &daemon, "codex");
    let nothing = (String::new(), false);
    let bash = |command: &str, output: &str| {
        codex.fire(
            "PostToolUse",
            &json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_response": output }),
        )
    };
    let patch = |event: &str, text: &str| {
        let patch = format!("*** Begin Patch\n{text}\n*** End Patch");
        codex.fire(event, &json!({ "tool_name": "apply_patch", "tool_input": { "command": patch }, "tool_response": "Success" }))
    };
    let prompt = || codex.fire("UserPromptSubmit", &json!({ "prompt": "go on" })).0;
    assert_eq!(codex.fire("SessionStart", &json!({ "source": "startup" })), nothing);
    assert_eq!(bash("cat a.rs", "1\n2\n3\n"), nothing);
    assert_eq!(bash("sed -n '1,1p' b.rs", "1\n"), nothing);
    assert_eq!(prompt(), "");

    place.write("a.rs", "1\nX\n3\n");
    assert!(prompt().contains("- a.rs: its content differs from what was read"), "{}", prompt());
    let update = "*** Update File: a.rs\n@@\n X\n-3\n+4";
    let (reason, denied) = patch("PreToolUse", update);
    assert!(denied && reason.contains("a.rs"), "{reason}");
    assert_eq!(bash("cat a.rs", "1\nX\n3\n"), nothing);
    assert_eq!(patch("PreToolUse", update), nothing);
    place.write("a.rs", "1\nX\n4\n");
    assert_eq!(patch("PostToolUse", update), nothing);
    assert_eq!(prompt(), "", "its own patch is what it knows");

    // Somebody else writes between the patch and its hook.
    place.write("a.rs", "1\nY\n5\n");
    assert_eq!(patch("PostToolUse", "*** Update File: a.rs\n@@\n X\n-4\n+5"), nothing);
    assert!(prompt().contains("a.rs"), "what the patch left is not there");

    place.write("new.rs", "new\n");
    std::fs::remove_file(place.root.join("b.rs")).unwrap();
    assert_eq!(patch("PostToolUse", "*** Add File: new.rs\n+new\n*** Delete File: b.rs"), nothing);
    assert_eq!(bash("cat a.rs", "1\nY\n5\n"), nothing);
    assert_eq!(prompt(), "");
    place.write("b.rs", "1\n");
    assert!(prompt().contains("b.rs: it exists now"), "{}", prompt());
    assert_eq!(codex.fire("Stop", &json!({ "stop_hook_active": false })), nothing);
}

#[test]
fn gemini_is_told_in_its_own_words() {
    let place = Place::new();
    let long =
        (1..=50).map(|line: u32| line.to_string()).chain([String::new()]).collect::<Vec<_>>().join("\n");
    place.write("a.rs", "1\n2\n3\n");
    place.write("long.rs", &long);
    let daemon = Daemon::start(&place.home);
    let gemini = Other::new(&place, &daemon, "gemini");
    let nothing = (String::new(), false);
    let tool = |event: &str, name: &str, input: &Value, told: &Value| {
        let response = json!({ "llmContent": told, "returnDisplay": "" });
        gemini.fire(event, &json!({ "tool_name": name, "tool_input": input, "tool_response": response }))
    };
    let prompt = || gemini.fire("BeforeAgent", &json!({ "prompt": "go on" })).0;
    assert_eq!(gemini.fire("SessionStart", &json!({ "source": "startup" })), nothing);
    let read = json!({ "file_path": place.root.join("a.rs") });
    assert_eq!(tool("AfterTool", "read_file", &read, &json!("1\n2\n3\n")), nothing);
    let part = "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 2-3 of 51 total lines.\n\
                Action: more.\n\n--- FILE CONTENT (truncated) ---\n2\n3";
    let some = json!({ "file_path": "long.rs", "offset": 1, "limit": 2 });
    assert_eq!(tool("AfterTool", "read_file", &some, &json!(part)), nothing);
    assert_eq!(prompt(), "");

    place.write("a.rs", "1\nX\n3\n");
    place.write("long.rs", &long.replace("\n40\n", "\nforty\n"));
    let told = prompt();
    assert!(told.contains("- a.rs: its content differs") && !told.contains("long.rs"), "{told}");
    let edit = json!({ "file_path": place.root.join("a.rs"), "old_string": "3", "new_string": "4" });
    let (reason, denied) = tool("BeforeTool", "replace", &edit, &json!(null));
    assert!(denied && reason.contains("a.rs"), "{reason}");
    assert_eq!(tool("AfterTool", "read_file", &read, &json!("1\nX\n3\n")), nothing);
    assert_eq!(tool("BeforeTool", "replace", &edit, &json!(null)), nothing);
    place.write("a.rs", "1\nX\n4\n");
    assert_eq!(tool("AfterTool", "replace", &edit, &json!("Successfully modified file")), nothing);
    assert_eq!(prompt(), "");
    place.write("long.rs", &long.replace("\n2\n", "\ntwo\n"));
    assert!(prompt().contains("long.rs, lines 2-3"), "{}", prompt());

    let whole = json!({ "file_path": "long.rs", "content": "all of it\n" });
    place.write("long.rs", "all of it\n");
    assert_eq!(tool("AfterTool", "write_file", &whole, &json!("ok")), nothing);
    assert_eq!(prompt(), "");
    let search = json!({ "pattern": "x", "include": "*.md" });
    assert_eq!(tool("AfterTool", "search_file_content", &search, &json!("No matches")), nothing);
    place.write("note.md", "x\n");
    assert!(prompt().contains("note.md"), "{}", prompt());
    assert_eq!(gemini.fire("SessionEnd", &json!({ "reason": "exit" })), nothing);
}

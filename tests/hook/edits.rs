//! Edits, of the agent and of others, and what is known after them.

use super::Agent;
use crate::harness::{Daemon, Place};
use serde_json::json;

#[test]
fn some_lines_are_known_by_themselves_and_make_an_edit_of_them_possible() {
    let place = Place::new();
    let text = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n10\n");
    place.write("a.rs", &text("2", "9"));
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-3");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", &text("X", "Z"));
    agent.prompt().tells(&["a.rs"]);
    // What is read again in part does not make the whole known, and the rest is told on.
    agent.read_lines("a.rs", 2, 3).nothing();
    agent.prompt().tells(&["- a.rs: its content differs", "some lines of it were read again since"]);
    let whole_is_stale = || {
        let report = daemon.ask("decide", &json!({ "session": "cc-3" }));
        assert_eq!((&report["transition"], &report["drop"]), (&json!("resume"), &json!(["a.rs"])));
    };
    whole_is_stale();
    assert_eq!(agent.edit("a.rs", "5", "6").decision.expect("it was not read again").0, "deny");
    // Nor is it by an edit of what was read again, for nobody has shown what else has changed.
    agent.edit("a.rs", "X", "Y\nY").nothing();
    whole_is_stale();
    // What was read again is known where it stands now.
    agent.edit("a.rs", "4", "four").nothing();
    whole_is_stale();
    agent.prompt().tells(&["some lines of it were read again since"]);
    assert_eq!(agent.edit("a.rs", "Z", "z").decision.expect("it was not read again").0, "deny");
    place.write("a.rs", &text("other", "9"));
    agent.prompt().tells(&["a.rs, lines 2-5: its content differs"]);
    agent.read("a.rs").nothing();
    agent.edit("a.rs", "5", "five").nothing();
    assert_eq!(daemon.ask("decide", &json!({ "session": "cc-3" }))["stale"], json!([]));
}

#[test]
fn an_edit_renews_a_file_whatever_ends_its_lines() {
    let place = Place::new();
    place.write("a.rs", "\u{feff}1\r\n2\r\n3\r\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-11");
    agent.start("startup").nothing();
    // Agents are shown neither the mark nor the carriage returns.
    agent.shown("a.rs", "1\n2\n3\n", 1, 4, 4).nothing();
    agent.prompt().nothing();
    agent.edit("a.rs", "3", "4").nothing();
    agent.prompt().nothing();
    let report = daemon.ask("decide", &json!({ "session": "cc-11" }));
    assert_eq!((&report["transition"], &report["stale"]), (&json!("resume"), &json!([])));
    place.write("a.rs", "\u{feff}1\r\n2\r\n5\r\n");
    agent.prompt().tells(&["a.rs: its content differs"]);
}

#[test]
fn an_edit_of_what_was_never_read_again_does_not_make_it_known() {
    let place = Place::new();
    place.write("a.rs", "1\n2\n3\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-4");
    agent.configure("deadline_ms = 60_000\ntarget = \"off\"");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", "X\n2\n3\n");
    agent.edit("a.rs", "3", "4").nothing();
    agent.prompt().tells(&["a.rs: its content differs"]);
    agent.read("a.rs").nothing();
    agent.prompt().nothing();
}

#[test]
fn answers_of_commands_go_with_the_sessions_own_edits_and_stale_with_those_of_others() {
    let place = Place::new();
    place.write("src/a.rs", "1\n");
    place.write("src/b.rs", "1\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-5");
    agent.start("startup").nothing();
    agent.read("src/a.rs").nothing();
    agent.bash("cargo test", "ok\n").nothing();
    agent.edit("src/a.rs", "1", "2").nothing();
    agent.prompt().nothing();
    agent.bash("cargo test", "ok\n").nothing();
    place.write("src/b.rs", "2\n");
    agent.prompt().tells(&["- cargo test: "]);
    // The names that it looked for are others by its own new file, and it knows.
    let glob = json!({ "tool_name": "Glob", "tool_input": { "pattern": "docs/*.md" }, "tool_response": {} });
    agent.fire("PostToolUse", &glob).nothing();
    agent.bash("cargo test", "ok\n").nothing();
    place.write("docs/new.md", "1\n");
    let input = json!({ "file_path": agent.path("docs/new.md"), "content": "1\n" });
    let response = json!({ "type": "create", "filePath": agent.path("docs/new.md"), "content": "1\n" });
    let write = json!({ "tool_name": "Write", "tool_input": input, "tool_response": response });
    agent.fire("PostToolUse", &write).nothing();
    agent.prompt().nothing();
    agent.fire("PostToolUse", &glob).nothing();
    place.write("docs/other.md", "1\n");
    agent.prompt().tells(&["docs/*.md"]);
}

#[test]
fn a_lockfile_that_its_own_command_changed_is_told_at_once_and_known_from_then_on() {
    let place = Place::new();
    place.write("Cargo.lock", "one\n");
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-9");
    agent.start("startup").nothing();
    place.write("Cargo.lock", "two\n");
    agent
        .bash("cd sub && cargo add serde", "")
        .tells(&["Cargo.lock is not what this session knew it to be."]);
    agent.prompt().nothing();
    // Another command has nothing to do with it.
    place.write("Cargo.lock", "three\n");
    agent.bash("ls", "Cargo.lock\n").nothing();
    agent.prompt().tells(&["Cargo.lock: its content differs"]);
    agent.read_lines("Cargo.lock", 1, 1).tells(&["Cargo.lock is not what this session knew it to be."]);
    agent.prompt().nothing();
    // Nor has a command that began after somebody else had changed it.
    place.write("Cargo.lock", "four\n");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    std::fs::File::open(agent.path("Cargo.lock")).unwrap().set_modified(long_ago).unwrap();
    agent.bash("cargo test", "ok\n").nothing();
    agent.prompt().tells(&["Cargo.lock: its content differs"]);
}

#[test]
fn an_edit_leaves_as_stale_as_it_was_what_it_did_not_show() {
    let place = Place::new();
    let lines = |changed: &str| {
        (1..100).map(|no| if no == 90 { changed.to_owned() } else { format!("{no}\n") }).collect::<String>()
    };
    place.write("a.rs", &lines("90\n"));
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-8");
    agent.start("startup").nothing();
    agent.read_lines("a.rs", 1, 20).nothing();
    agent.read_lines("a.rs", 80, 15).nothing();
    place.write("a.rs", &lines("outside\n"));
    agent.edit("a.rs", "4\n5\n6", "4\nfive\n6").nothing();
    agent.prompt().tells(&["a.rs, lines 80-94: its content differs"]);
    assert_eq!(agent.edit("a.rs", "outside", "mine").decision.expect("it was not read again").0, "deny");
    agent.read_lines("a.rs", 80, 15).nothing();
    agent.prompt().nothing();
    agent.edit("a.rs", "outside", "mine").nothing();
    agent.prompt().nothing();
}

#[test]
fn what_is_no_text_and_what_is_not_there_stops_no_edit_for_ever() {
    let place = Place::new();
    std::fs::write(place.root.join("a.c"), b"caf\xe9\nx\n").unwrap();
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-11");
    agent.start("startup").nothing();
    agent.shown("a.c", "caf\u{fffd}\nx\n", 1, 3, 3).nothing();
    let failed = json!({
        "tool_name": "Bash", "tool_input": { "command": "cat b.rs" },
        "error": "Exit code 1\ncat: b.rs: No such file or directory",
    });
    agent.fire("PostToolUseFailure", &failed).nothing();
    agent.prompt().nothing();
    place.write("b.rs", "now\n");
    agent.prompt().tells(&["b.rs: it exists now"]);
}

#[test]
fn what_somebody_else_wrote_beside_an_edit_is_not_taken_for_the_edits_own() {
    let place = Place::new();
    let text = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n10\n");
    place.write("a.rs", &text("2", "9"));
    let daemon = Daemon::start(&place.home);
    let agent = Agent::new(&place, &daemon.folders.socket, "cc-14");
    agent.start("startup").nothing();
    agent.read("a.rs").nothing();
    place.write("a.rs", &text("X", "9"));
    agent.prompt().tells(&["a.rs"]);
    agent.read_lines("a.rs", 2, 3).nothing();
    // The edit replaces X; before its hook looks, somebody replaces the ninth line.
    place.write("a.rs", &text("Y", "outside"));
    let input = json!({ "file_path": agent.path("a.rs"), "old_string": "X", "new_string": "Y" });
    let response = json!({
        "filePath": agent.path("a.rs"), "oldString": "X", "newString": "Y", "originalFile": text("X", "9"),
    });
    let edit = json!({ "tool_name": "Edit", "tool_input": input, "tool_response": response });
    agent.fire("PostToolUse", &edit).nothing();
    assert_eq!(agent.edit("a.rs", "outside", "mine").decision.expect("it was never shown").0, "deny");
}

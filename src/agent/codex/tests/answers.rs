//! Calls and answers in the spellings of all versions, and the session's own facts.

use super::*;
use std::path::PathBuf;

#[test]
fn the_session_is_the_first_that_speaks() {
    let other = line("session_meta", json!({"id": "parent", "cwd": "/p", "cli_version": "0.118.0"}));
    let moved = line("turn_context", json!({"cwd": "/w/sub"}));
    let got = session(&[vec![other, moved], ran("cat f", "a", 0)]);
    assert_eq!((got.agent.name(), got.session_id.as_deref()), ("codex", Some("s")));
    assert_eq!((got.versions.join(" "), got.git_branch.as_deref()), ("0.118.0 0.140.0".into(), Some("main")));
    assert_eq!(got.cwds, ["/w", "/w/sub"].map(PathBuf::from));
    assert_eq!(got.head.as_deref(), Some("8a0ac12c5aaf646b750b045812b27415fdf80e24"));
    assert_eq!(beliefs(&got), [r#"/w/sub/f "a" whole"#]);
    assert_eq!(got.counts.tool_results.iter().collect::<Vec<_>>(), [(&"exec_command:read".to_owned(), &1)]);
}

#[test]
fn a_session_that_moves_head_no_longer_says_where_it_is() {
    for (command, said) in [
        ("git status", true),
        ("git log && git diff", true),
        ("git add -A && git commit -m x", false),
        ("git checkout -q side", false),
        ("git pull --rebase", false),
        ("git stash & git reset", false),
    ] {
        assert_eq!(session(&[ran(command, "", 0)]).head.is_some(), said, "{command}");
    }
}

#[test]
fn commands_are_known_in_all_their_spellings() {
    let answered = |name: &str, arguments: &Value, told: &Value| {
        beliefs(&session(&[vec![call("1", name, arguments), output("1", told)]]))
    };
    let plain = json!(told("a", 0));
    let old =
        json!(json!({"output": "a", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}).to_string());
    let parts = json!([{"type": "input_text", "text": told("a", 0)}]);
    let named = json!(format!("Command: /bin/zsh -lc 'cat\n f'\n{}", told("a", 0)));
    let short = json!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\na");
    for (name, arguments, told) in [
        ("exec_command", json!({"cmd": "cat f", "workdir": "/w"}), &plain),
        ("exec_command", json!({"cmd": "cat f", "workdir": "", "shell": "/bin/zsh"}), &named),
        ("exec_command", json!({"cmd": "cat f", "workdir": "."}), &parts),
        ("shell", json!({"command": ["bash", "-lc", "cat f"], "workdir": "/w"}), &old),
        ("shell", json!({"command": ["cat", "f"], "timeout_ms": 1000}), &old),
        ("container.exec", json!({"command": ["/bin/sh", "-c", "cat f"]}), &short),
        ("shell_command", json!({"command": "cat f"}), &short),
    ] {
        let got = answered(name, &arguments, told);
        let got: Vec<_> = got.iter().map(|told| told.replace("/w/./f", "/w/f")).collect();
        assert_eq!(got, [r#"/w/f "a" whole"#], "{name} {arguments}");
    }
    let words = json!({"command": ["grep", "x y", "it's"]});
    assert_eq!(answered("shell", &words, &old), ["? grep 'x y' 'it'\\''s'"]);
    let power = json!({"command": ["powershell.exe", "-Command", "cat f"]});
    assert_eq!(answered("shell", &power, &old), ["? cat f other shell"]);
    for odd in [json!(7), json!("command rejected by the user"), Value::Null] {
        let got = session(&[vec![call("1", "exec_command", &json!({"cmd": "ls"})), output("1", &odd)]]);
        assert_eq!((got.unasked.refused, got.asked.len()), (1, 0), "{odd}");
    }
}

#[test]
fn a_command_that_goes_on_is_answered_when_it_ends() {
    let start = call("1", "exec_command", &json!({"cmd": "cargo test"}));
    let running = output("1", &json!("Chunk ID: 1\nProcess running with session ID 44\nOutput:\nx"));
    let more = |id: &str| call(id, "write_stdin", &json!({"session_id": 44, "chars": ""}));
    let still = output("2", &json!("Process running with session ID 44\nOutput:\n"));
    let begun = vec![start, running, more("2")];
    let got = session(std::slice::from_ref(&begun));
    assert_eq!((got.unasked.background, got.asked.len()), (1, 0));
    let ended = vec![still, more("3"), output("3", &json!(told("ok", 0)))];
    let got = session(&[begun, ended]);
    assert_eq!((got.unasked.background, beliefs(&got)), (0, vec!["? cargo test unseen".to_owned()]));
}

#[test]
fn what_was_told_beside_a_cut_answer_is_what_was_printed() {
    let beside = |printed: &str| {
        let end =
            json!({"type": "exec_command_end", "call_id": "1", "aggregated_output": printed, "exit_code": 0});
        let cut = told("a…9 tokens truncated…z", 0);
        let asked = call("1", "exec_command", &json!({"cmd": "cat f"}));
        beliefs(&session(&[vec![asked, line("event_msg", end), output("1", &json!(cut))]]))
    };
    assert_eq!(beside("a\nz\n"), [r#"/w/f "a\nz\n" whole"#]);
    assert_eq!(beside("a…9 chars truncated…z"), ["? cat f unseen"]);
}

#[test]
fn the_first_rollouts_had_bare_items() {
    let bare = |line: &Value| line["payload"].clone();
    let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let old = json!(json!({"output": "a", "metadata": {"exit_code": 0}}).to_string());
    for place in [
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        "<environment_context>\nCurrent working directory: /w\nApproval policy: never\n</environment_context>",
    ] {
        let got = import(&[vec![
            json!({"id": "s", "timestamp": "t", "instructions": null, "git": {"branch": "main"}}),
            json!({"record_type": "state"}),
            said(place),
            said("go on"),
            bare(&call("1", "shell", &json!({"command": ["bash", "-lc", "cat f"]}))),
            bare(&output("1", &old)),
            json!({"type": "local_shell_call", "call_id": "2", "action":
                {"type": "exec", "command": ["cat", "g"], "working_directory": "/w"}}),
            bare(&output("2", &old)),
        ]]);
        assert_eq!((got.session_id.as_deref(), got.conversation), (Some("s"), true));
        assert_eq!(beliefs(&got), [r#"/w/f "a" whole"#, r#"/w/g "a" whole"#], "{place}");
    }
}

#[test]
fn odd_lines_are_passed_over() {
    let got = session(&[
        vec![line("event_msg", json!(7)), line("compacted", Value::Null), json!({"payload": {}}), json!({})],
        vec![line("response_item", json!({"type": "function_call", "name": 3}))],
        vec![output("nobody", &json!("x"))],
        vec![call("1", "exec_command", &json!("no object")), output("1", &json!(told("a", 0)))],
        vec![line("inter_agent_communication", json!({"type": "message"}))],
    ]);
    assert!(got.entries.is_empty() && got.asked.is_empty());
    assert_eq!((got.counts.lines, got.counts.unmatched_results, got.counts.unparsable), (10, 1, 0));
}

#[test]
fn contents_are_not_printed() {
    assert!(!format!("{:?}", session(&[ran("cat f", "secret", 0)])).contains("secret"));
}

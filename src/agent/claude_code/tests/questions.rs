//! Searches and commands: which answers are believed, and since when.

use super::*;
use crate::agent::transcript::Question;

fn grep(pattern: &str, result: &Value) -> Vec<Value> {
    pair("Grep", &json!({"pattern": pattern, "path": "src"}), result, &Value::Null)
}

fn bash(command: &str, result: &Value) -> Vec<Value> {
    pair("Bash", &json!({"command": command}), result, &Value::Null)
}

fn printed(stdout: &str) -> Value {
    json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false})
}

/// Each question as `what @line`, with what was shown and how it is known.
fn asked(story: &[Vec<Value>]) -> Vec<String> {
    let transcript = import(jsonl(story));
    let shown = transcript.asked.iter().map(|asked| {
        let what = match &asked.question {
            Question::Grep { pattern, path, .. } => format!("{pattern} in {path:?}"),
            Question::Glob { pattern, .. } => pattern.clone(),
            Question::List { ignore, .. } => format!("list without {ignore:?}"),
            Question::Command { text, shell } => format!("{shell} {text}"),
        };
        let shown = asked.shown.as_ref().map(|shown| format!(" {:?}", String::from_utf8_lossy(&shown.0)));
        let flags =
            [(asked.failed, " failed"), (asked.via_summary, " summary"), (asked.via_sidechain, " sidechain")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        format!("{what} @{}{}{flags}", asked.line, shown.unwrap_or_default())
    });
    shown.collect()
}

#[test]
fn a_question_stands_where_it_was_answered_last() {
    let found = json!({"mode": "content", "filenames": []});
    let longer = json!({"mode": "content", "filenames": ["a"]});
    for (case, story, want) in [
        ("once", vec![grep("x", &found)], vec![r#"x in Some("src") @2"#]),
        (
            "two",
            vec![grep("x", &found), grep("y", &longer)],
            vec![r#"x in Some("src") @2"#, r#"y in Some("src") @4"#],
        ),
        ("again", vec![grep("x", &found), grep("x", &longer)], vec![r#"x in Some("src") @4"#]),
        ("failed", vec![grep("x", &json!("Error: Path does not exist"))], vec![]),
        (
            "failed the second time",
            vec![grep("x", &found), grep("x", &json!("Error: no"))],
            vec![r#"x in Some("src") @2"#],
        ),
        ("blank", vec![grep(" ", &found)], vec![]),
        ("glob", vec![pair("Glob", &json!({"pattern": "*.rs"}), &found, &Value::Null)], vec!["*.rs @2"]),
        (
            "list",
            vec![pair("LS", &json!({"path": "/w", "ignore": ["a"]}), &json!(null), &Value::Null)],
            vec![r#"list without ["a"] @2"#],
        ),
        ("sub-agent", vec![sidechain(grep("x", &found))], vec![r#"x in Some("src") @2 sidechain"#]),
        (
            "sub-agent, then itself, then sub-agent",
            vec![sidechain(grep("x", &found)), grep("x", &longer), sidechain(grep("x", &found))],
            vec![r#"x in Some("src") @6"#],
        ),
        ("compacted", vec![grep("x", &found), boundary(&json!({}))], vec![r#"x in Some("src") @2 summary"#]),
        (
            "preserved",
            vec![named(grep("x", &found), "u1"), boundary(&json!({"preservedMessages": {"uuids": ["u1"]}}))],
            vec![r#"x in Some("src") @2"#],
        ),
    ] {
        assert_eq!(asked(&story), want, "{case}");
    }
}

#[test]
fn a_command_that_ran_was_answered_and_one_that_did_not_was_not() {
    let failed = json!("Error: Exit code 1\nassertion failed");
    for (case, story, want) in [
        ("ran", vec![bash("ls", &printed("a\nb"))], vec![r#"Bash ls @2 "a\nb""#]),
        ("failed", vec![bash("make", &failed)], vec!["Bash make @2 failed"]),
        ("then passed", vec![bash("make", &failed), bash("make", &printed(""))], vec![r#"Bash make @4 """#]),
        (
            "refused",
            vec![bash("make", &json!("The user doesn't want to proceed with this tool use."))],
            vec![],
        ),
        ("blocked", vec![bash("make", &json!("Error: Blocked: sleep"))], vec![]),
        ("its sibling failed", vec![bash("make", &json!("Sibling tool call errored"))], vec![]),
        ("in the background", vec![bash("make", &json!({"stdout": "", "backgroundTaskId": "b1"}))], vec![]),
        (
            "in the background, as asked",
            vec![pair(
                "Bash",
                &json!({"command": "x", "run_in_background": true}),
                &printed(""),
                &Value::Null,
            )],
            vec![],
        ),
        (
            "with words to stderr",
            vec![bash("ls", &json!({"stdout": "a", "stderr": "b"}))],
            vec!["Bash ls @2"],
        ),
        ("interrupted", vec![bash("ls", &json!({"stdout": "a", "interrupted": true}))], vec!["Bash ls @2"]),
        (
            "kept elsewhere",
            vec![bash("ls", &json!({"stdout": "a", "persistedOutputPath": "/x"}))],
            vec!["Bash ls @2"],
        ),
        ("cut", vec![bash("ls", &printed(&"a".repeat(30_000)))], vec!["Bash ls @2"]),
        ("no structure", vec![bash("ls", &json!(null))], vec!["Bash ls @2"]),
        (
            "another shell",
            vec![pair("PowerShell", &json!({"command": "dir"}), &printed("a"), &Value::Null)],
            vec![r#"PowerShell dir @2 "a""#],
        ),
    ] {
        assert_eq!(asked(&story), want, "{case}");
    }
}

#[test]
fn what_was_not_answered_is_counted() {
    let refused = json!("Error: Permission to use Bash has been denied");
    let background = json!({"stdout": "", "backgroundTaskId": "b1"});
    let story = [bash("a", &refused), grep("b", &json!("Error: no")), bash("c", &background)];
    let unasked = import(jsonl(&story)).unasked;
    assert_eq!((unasked.refused, unasked.background), (2, 1));
}

#[test]
fn a_command_ran_where_it_was_called_not_where_it_led() {
    let mut story = bash("cd sub && ls", &printed("a"));
    story[0]["cwd"] = json!("/w/before");
    story[1]["cwd"] = json!("/w/before/sub");
    assert_eq!(import(jsonl(&[story])).asked[0].cwd.as_deref(), Some("/w/before"));
}

#[test]
fn the_last_edit_is_remembered() {
    let refused = json!("Error: no");
    for (case, story, want) in [
        ("none", vec![read_whole("a")], None),
        ("one", vec![read_whole("a"), write("b")], Some(4)),
        ("two", vec![write("b"), edit(None, "b", "c"), read_whole("c")], Some(4)),
        (
            "refused",
            vec![write("b"), pair("Edit", &json!({"file_path": F}), &refused, &Value::Null)],
            Some(2),
        ),
    ] {
        assert_eq!(import(jsonl(&story)).last_edit, want, "{case}");
    }
}

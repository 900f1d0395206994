//! Short invented rollouts, line by line, and what is believed after them.

mod answers;
mod patches;
mod reads;
mod turns;

use crate::agent::transcript::{Entry, Knowledge, Question, Transcript};
use serde_json::{Value, json};

fn line(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-04-10T20:11:51.000Z", "type": kind, "payload": payload})
}

fn meta() -> Value {
    let git = json!({"commit_hash": "8a0ac12c5aaf646b750b045812b27415fdf80e24", "branch": "main"});
    line("session_meta", json!({"id": "s", "cwd": "/w", "cli_version": "0.140.0", "git": git}))
}

fn event(kind: &str) -> Value {
    line("event_msg", json!({"type": kind}))
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    line(
        "response_item",
        json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id}),
    )
}

fn output(id: &str, told: &Value) -> Value {
    line("response_item", json!({"type": "function_call_output", "call_id": id, "output": told}))
}

/// What the model is told of a command that ended.
fn told(printed: &str, code: i64) -> String {
    let tokens = printed.len().div_ceil(4);
    format!(
        "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code {code}\nOriginal token count: {tokens}\nOutput:\n{printed}"
    )
}

/// A command and its answer, as two lines.
fn ran(command: &str, printed: &str, code: i64) -> Vec<Value> {
    let id = format!("call-{command}-{}", printed.len());
    vec![call(&id, "exec_command", &json!({"cmd": command})), output(&id, &json!(told(printed, code)))]
}

fn import(story: &[Vec<Value>]) -> Transcript {
    let lines: String = story.iter().flatten().map(|line| line.to_string() + "\n").collect();
    crate::agent::read(lines.as_bytes(), |_, _| {}).unwrap()
}

/// The rollout of a session in `/w`.
fn session(story: &[Vec<Value>]) -> Transcript {
    let mut whole = vec![vec![meta()]];
    whole.extend_from_slice(story);
    import(&whole)
}

fn show(entry: &Entry) -> String {
    let knowledge = match &entry.knowledge {
        Knowledge::Full { content, .. } => format!("{:?}", String::from_utf8_lossy(content)),
        other => format!("{other:?}"),
    };
    let text = |content: &[u8]| String::from_utf8_lossy(content).replace('\n', "/");
    let ranges: Vec<_> = entry
        .ranges
        .iter()
        .map(|range| format!(" {}+{}={}", range.start, range.lines, text(&range.content.0)))
        .collect();
    let flags = [
        (entry.edited, " edited"),
        (entry.read_whole, " whole"),
        (entry.via_summary, " summary"),
        (entry.contradicted, " contradicted"),
    ];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    format!("{} {knowledge}{}{flags}", entry.path.display(), ranges.concat())
}

/// Entries as text, then commands that are questions.
fn beliefs(transcript: &Transcript) -> Vec<String> {
    let asked = transcript.asked.iter().map(|asked| {
        let Question::Command { text, shell } = &asked.question else { panic!("{asked:?}") };
        let flags = [
            (shell != "Bash", " other shell"),
            (asked.failed, " failed"),
            (asked.via_summary, " summary"),
            (asked.shown.is_none(), " unseen"),
        ];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        format!("? {text}{flags}")
    });
    transcript.entries.iter().map(show).chain(asked).collect()
}

fn check(case: &str, story: &[Vec<Value>], want: &[&str]) {
    assert_eq!(beliefs(&session(story)), want, "{case}");
}

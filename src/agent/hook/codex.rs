//! Hooks of Codex: its payloads, and the answers that it takes. A key that it does not know fails the hook, so an answer has
//! none that its own schema lacks.
//!
//! Codex has no tool that reads: what it knows of a file it was shown by a plain command, and what it writes it writes by a
//! patch. A patch is told as the edits that it makes, against the disk as they left it.

use super::claude_code::begin;
use super::event::{Agent, Call, Event, Payload, frame, text};
use super::sight::{look, plain};
use super::turn::{Reply, Verdict};
use crate::agent::codex::output::{Output, is_cut, parse};
use crate::agent::codex::patch::{self, Change, Chunk};
use crate::agent::codex::{Ran, Saw, saw};
use crate::agent::context::read_small;
use crate::agent::transcript::Knowledge;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn read(payload: &Value) -> Result<Payload, String> {
    frame(Agent::Codex, payload, event(payload))
}

fn event(payload: &Value) -> Event {
    match text(payload, "hook_event_name").unwrap_or_default() {
        "SessionStart" => Event::Begun(begin(text(payload, "source"))),
        "UserPromptSubmit" => Event::Prompted,
        "PreToolUse" => {
            Event::Before(patched(payload).iter().flat_map(|change| edits(change, payload)).collect())
        }
        "PostToolUse" => Event::After(answered(payload)),
        "Stop" | "SessionEnd" => Event::Rested,
        _ => Event::Other,
    }
}

fn command(payload: &Value) -> Option<&str> {
    let input = payload.get("tool_input")?;
    ["command", "input", "patch"].iter().find_map(|field| text(input, field)).or_else(|| input.as_str())
}

/// What a patch says; nothing where the call is another.
fn patched(payload: &Value) -> Vec<Change> {
    let patches = matches!(text(payload, "tool_name"), Some("apply_patch" | "Edit" | "Write"));
    command(payload).filter(|_| patches).and_then(patch::parse).unwrap_or_default()
}

fn absolute(path: &str, payload: &Value) -> String {
    Path::new(text(payload, "cwd").unwrap_or("/")).join(path).to_string_lossy().into_owned()
}

/// The files that a change is about to touch, each as an edit of what it replaces there.
fn edits(change: &Change, payload: &Value) -> Vec<Call> {
    let edit = |path: &str, chunks: &[Chunk]| {
        let edits: Vec<Value> =
            chunks.iter().map(|chunk| json!({ "old_string": chunk.replaced() })).collect();
        Call {
            tool: "Edit".to_owned(),
            input: json!({ "file_path": absolute(path, payload), "edits": edits }),
            ..Call::default()
        }
    };
    match change {
        Change::Write { path, .. } | Change::Delete { path } => vec![edit(path, &[])],
        Change::Update { path, to, chunks } => {
            let to = to.iter().map(|to| edit(to, &[]));
            [edit(path, chunks)].into_iter().chain(to).collect()
        }
    }
}

fn answered(payload: &Value) -> Vec<Call> {
    if text(payload, "tool_name") == Some("Bash") {
        return ran(payload).into_iter().collect();
    }
    patched(payload).iter().flat_map(|change| made(change, payload)).collect()
}

/// A command, with what it printed where that was shown whole.
fn ran(payload: &Value) -> Option<Call> {
    let told = payload.get("tool_response").unwrap_or(&Value::Null);
    let plain = || {
        let text = told.as_str().map(str::to_owned)?;
        Some(Output { cut: is_cut(&text), text, exit_code: Some(0), running: None })
    };
    let output = parse(told).or_else(plain);
    let failed = output.as_ref().and_then(|output| output.exit_code).is_some_and(|code| code != 0);
    let shown = output.as_ref().filter(|output| !output.cut && output.running.is_none());
    if let Some(read) = shown.filter(|_| !failed).and_then(|output| looked(payload, &output.text)) {
        return Some(read);
    }
    let response = shown.map(|output| json!({ "stdout": output.text, "stderr": "" }));
    let error = output.as_ref().filter(|_| failed);
    Some(Call {
        id: "call".to_owned(),
        tool: "Bash".to_owned(),
        input: json!({ "command": command(payload)? }),
        response: Some(response.unwrap_or_else(|| json!({}))),
        error: error
            .map(|output| format!("Exit code {}\n{}", output.exit_code.unwrap_or_default(), output.text)),
        duration_ms: None,
    })
}

/// The read that a command plainly was, by the rules by which a rollout is read.
fn looked(payload: &Value, output: &str) -> Option<Call> {
    let ran = Ran {
        command: command(payload)?,
        cwd: text(payload, "cwd"),
        output,
        exit_code: Some(0),
        captured_at: None,
        line: 1,
    };
    let Saw::File(entry) = saw(&ran) else { return None };
    let path = entry.path.to_str()?;
    match &entry.knowledge {
        Knowledge::Full { content, .. } => Some(shown_whole(path, std::str::from_utf8(content).ok()?)),
        Knowledge::Partial => {
            let range = entry.ranges.first()?;
            let start = usize::try_from(range.start).ok()?;
            Some(look(path, std::str::from_utf8(&range.content.0).ok()?, start))
        }
        Knowledge::Absent | Knowledge::Unknown => None,
    }
}

fn shown_whole(path: &str, content: &str) -> Call {
    let count = content.split('\n').count();
    let file = json!({
        "filePath": path, "content": content, "startLine": 1, "numLines": count, "totalLines": count,
    });
    Call {
        id: "read".to_owned(),
        tool: "Read".to_owned(),
        input: json!({ "file_path": path }),
        response: Some(json!({ "type": "text", "file": file })),
        error: None,
        duration_ms: None,
    }
}

/// What a change has made of the disk.
fn made(change: &Change, payload: &Value) -> Vec<Call> {
    match change {
        Change::Write { path, content } => vec![added(&absolute(path, payload), content)],
        Change::Delete { path } => vec![gone(&absolute(path, payload))],
        Change::Update { path, to, chunks } => {
            let now = absolute(to.as_ref().unwrap_or(path), payload);
            let disk = read_small(Path::new(&now)).and_then(|disk| String::from_utf8(disk).ok());
            let after = disk.map(|disk| plain(&disk));
            let before = after.as_deref().and_then(|after| patch::revert(chunks, after));
            let mut calls = match (before, after, to) {
                (Some(before), Some(after), None) => vec![edited(&now, &before, &after)],
                // Somebody else wrote since, and what the patch left is not there, or not alone; or the file has another name,
                // under which nothing is known of its other lines.
                _ => chunks.iter().map(|chunk| look(&now, &chunk.left(), 1)).collect(),
            };
            calls.extend(to.as_ref().map(|_| gone(&absolute(path, payload))));
            calls
        }
    }
}

fn added(path: &str, content: &str) -> Call {
    Call {
        id: path.to_owned(),
        tool: "Write".to_owned(),
        input: json!({ "file_path": path, "content": content }),
        response: Some(json!({ "type": "create", "filePath": path, "content": content })),
        error: None,
        duration_ms: None,
    }
}

fn edited(path: &str, before: &str, after: &str) -> Call {
    let response =
        json!({ "filePath": path, "oldString": before, "newString": after, "originalFile": before });
    Call {
        id: path.to_owned(),
        tool: "Edit".to_owned(),
        input: json!({ "file_path": path }),
        response: Some(response),
        error: None,
        duration_ms: None,
    }
}

/// The agent knows that there is no such file.
fn gone(path: &str) -> Call {
    Call {
        id: format!("gone {path}"),
        tool: "Read".to_owned(),
        input: json!({ "file_path": path }),
        response: None,
        error: Some("File does not exist".to_owned()),
        duration_ms: None,
    }
}

pub(super) fn render(event: &str, reply: &Reply) -> String {
    let mut specific = json!({ "hookEventName": event });
    match (event, reply.verdict) {
        // It cannot ask its user; what would be asked is not done.
        ("PreToolUse", Some(Verdict::Deny | Verdict::Ask)) => {
            specific["permissionDecision"] = json!("deny");
            specific["permissionDecisionReason"] = json!(reply.text);
        }
        ("SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse", None)
            if !reply.text.is_empty() =>
        {
            specific["additionalContext"] = json!(reply.text);
        }
        _ => return String::new(),
    }
    json!({ "hookSpecificOutput": specific }).to_string()
}

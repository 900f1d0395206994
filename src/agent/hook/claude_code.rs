//! Hooks of Claude Code: its payloads, and the answers that it takes.
//!
//! Shape decides, never the version. What is not understood is no event, and an answer says only what the event can carry.

use super::event::{Agent, Begin, Call, Event, Payload, frame, text};
use super::turn::{Reply, Verdict};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The longest context that is taken from a hook, in characters; longer ones are put in a file that nobody reads.
pub const CONTEXT_CHARS_MAX: usize = 10_000;

pub(super) fn read(payload: &Value) -> Result<Payload, String> {
    frame(Agent::ClaudeCode, payload, event(payload))
}

fn event(payload: &Value) -> Event {
    match text(payload, "hook_event_name").unwrap_or_default() {
        "SessionStart" => Event::Begun(begin(text(payload, "source"))),
        "UserPromptSubmit" => Event::Prompted,
        "PreToolUse" => Event::Before(vec![call(payload)]),
        "PostToolUse" => Event::After(vec![call(payload)]),
        "PostToolUseFailure" => {
            let error = text(payload, "error").unwrap_or("Error").to_owned();
            Event::After(vec![Call { error: Some(error), response: None, ..call(payload) }])
        }
        "PostToolBatch" => {
            let calls = payload.get("tool_calls").and_then(Value::as_array);
            Event::After(calls.into_iter().flatten().map(call).collect())
        }
        "InstructionsLoaded" => {
            text(payload, "file_path").map_or(Event::Other, |path| Event::Loaded(PathBuf::from(path)))
        }
        "Stop" | "SessionEnd" => Event::Rested,
        _ => Event::Other,
    }
}

/// How a session begins. A source that nobody knows yet may bring anything with it.
pub(super) fn begin(source: Option<&str>) -> Begin {
    match source {
        Some("startup") => Begin::New,
        Some("clear") => Begin::Cleared,
        Some("compact") => Begin::Compacted,
        Some("fork") => Begin::Forked,
        _ => Begin::Resumed,
    }
}

fn call(payload: &Value) -> Call {
    let field = |name: &str| payload.get(name).filter(|value| !value.is_null()).cloned();
    Call {
        id: text(payload, "tool_use_id").unwrap_or("call").to_owned(),
        tool: text(payload, "tool_name").unwrap_or_default().to_owned(),
        input: field("tool_input").unwrap_or_default(),
        response: field("tool_response"),
        error: None,
        duration_ms: payload.get("duration_ms").and_then(Value::as_u64),
    }
}

/// Events whose answer may carry a context.
const CARRIERS: [&str; 5] =
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch"];

pub(super) fn render(event: &str, reply: &Reply) -> String {
    let mut specific = json!({ "hookEventName": event });
    if let Some(verdict) = reply.verdict.as_ref().filter(|_| event == "PreToolUse") {
        let decision = match verdict {
            Verdict::Deny => "deny",
            Verdict::Ask => "ask",
        };
        specific["permissionDecision"] = json!(decision);
        specific["permissionDecisionReason"] = json!(reply.text);
    } else if !reply.text.is_empty() && CARRIERS.contains(&event) {
        specific["additionalContext"] = json!(reply.text);
    } else {
        return String::new();
    }
    json!({ "hookSpecificOutput": specific }).to_string()
}

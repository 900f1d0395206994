//! Hooks of Gemini CLI: its payloads, told in the words of Claude Code, and the answers that it takes: one JSON object and
//! nothing else.

use super::claude_code::begin;
use super::event::{Agent, Call, Event, Payload, frame, text};
use super::turn::{Reply, Verdict};
use serde_json::{Value, json};

/// What stands before the lines of a file that was not shown whole.
const PART: &str = "--- FILE CONTENT (truncated) ---\n";

pub(super) fn read(payload: &Value) -> Result<Payload, String> {
    frame(Agent::Gemini, payload, event(payload))
}

fn event(payload: &Value) -> Event {
    match text(payload, "hook_event_name").unwrap_or_default() {
        "SessionStart" => Event::Begun(begin(text(payload, "source"))),
        "BeforeAgent" => Event::Prompted,
        "BeforeTool" => match text(payload, "tool_name") {
            Some("replace" | "write_file") => Event::Before(vec![call(payload, "Edit", input(payload))]),
            _ => Event::Other,
        },
        "AfterTool" => Event::After(answered(payload)),
        "AfterAgent" | "SessionEnd" => Event::Rested,
        _ => Event::Other,
    }
}

fn field<'a>(payload: &'a Value, names: &[&str]) -> Option<&'a str> {
    let input = payload.get("tool_input")?;
    names.iter().find_map(|name| text(input, name))
}

/// The input, with the file's path where Claude Code has it.
fn input(payload: &Value) -> Value {
    let mut input =
        payload.get("tool_input").filter(|input| input.is_object()).cloned().unwrap_or_else(|| json!({}));
    if let (Some(path), Some(cwd)) =
        (field(payload, &["file_path", "absolute_path", "path"]), text(payload, "cwd"))
    {
        input["file_path"] = json!(std::path::Path::new(cwd).join(path));
    }
    input
}

fn call(payload: &Value, tool: &str, input: Value) -> Call {
    let error = payload
        .get("tool_response")
        .and_then(|response| response.get("error"))
        .filter(|error| !error.is_null());
    let error = error.map(|error| {
        let told = text(error, "message").map_or_else(|| error.to_string(), str::to_owned);
        let missing = ["not found", "ENOENT", "no such file"]
            .iter()
            .any(|word| told.to_lowercase().contains(&word.to_lowercase()));
        if missing { format!("File does not exist: {told}") } else { format!("Error: {told}") }
    });
    Call { id: "call".to_owned(), tool: tool.to_owned(), input, response: None, error, duration_ms: None }
}

fn answered(payload: &Value) -> Vec<Call> {
    let path = || input(payload)["file_path"].clone();
    let with = |tool: &str, response: Value| Call {
        response: Some(response),
        ..call(payload, tool, input(payload))
    };
    let folder = || field(payload, &["dir_path", "path"]);
    match text(payload, "tool_name").unwrap_or_default() {
        "read_file" => match shown(payload) {
            Some(file) => vec![with("Read", json!({ "type": "text", "file": file }))],
            None => vec![with("Read", json!({ "type": "other" }))],
        },
        "write_file" => {
            let content = field(payload, &["content"]).unwrap_or_default();
            vec![with("Write", json!({ "filePath": path(), "content": content }))]
        }
        "replace" => {
            let [old, new] = ["old_string", "new_string"].map(|name| &payload["tool_input"][name]);
            let several = payload["tool_input"]["expected_replacements"].as_u64().unwrap_or(1) > 1
                || payload["tool_input"]["allow_multiple"] == true;
            let response = json!({
                "filePath": path(), "oldString": old, "newString": new, "replaceAll": several, "originalFile": null,
            });
            vec![with("Edit", response)]
        }
        "run_shell_command" => vec![with("Bash", json!({}))],
        "search_file_content" | "grep_search" => {
            let glob = field(payload, &["include", "include_pattern"]);
            let asked = json!({ "pattern": field(payload, &["pattern"]), "path": folder(), "glob": glob });
            vec![Call { input: asked, ..with("Grep", json!({})) }]
        }
        "glob" => {
            let asked = json!({ "pattern": field(payload, &["pattern"]), "path": folder() });
            vec![Call { input: asked, ..with("Glob", json!({})) }]
        }
        "list_directory" => vec![Call { input: json!({ "path": folder() }), ..with("LS", json!({})) }],
        "read_many_files" => many(payload)
            .map(|glob| {
                let asked = json!({ "pattern": format!("(all of {glob})"), "glob": glob });
                Call { input: asked, ..with("Grep", json!({})) }
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The globs of `read_many_files`; of what it showed nothing is known but where it came from.
fn many(payload: &Value) -> impl Iterator<Item = &str> {
    let input = &payload["tool_input"];
    let globs = ["include", "paths"].iter().find_map(|field| input[*field].as_array());
    globs.into_iter().flatten().filter_map(Value::as_str)
}

/// What a read showed, as Claude Code tells it.
fn shown(payload: &Value) -> Option<Value> {
    let told = &payload["tool_response"]["llmContent"];
    let content = told.as_str().or_else(|| told.as_array()?.first()?.get("text")?.as_str())?;
    let path = input(payload)["file_path"].clone();
    if let Some((head, content)) = content.split_once(PART) {
        let (_, lines) = head.split_once("Showing lines ")?;
        let mut numbers = lines
            .split(|symbol: char| !symbol.is_ascii_digit())
            .filter_map(|number| number.parse::<u64>().ok());
        let (first, last, total) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let count = (last + 1).checked_sub(first)?;
        // Long lines are cut too, and nothing tells which.
        let exact = content.split('\n').count() as u64 == count && !content.contains("... [truncated]");
        return exact.then(|| {
            json!({ "filePath": path, "content": content, "startLine": first, "numLines": count, "totalLines": total })
        });
    }
    let partial = ["offset", "limit", "start_line", "end_line"]
        .iter()
        .any(|field| payload["tool_input"][*field].is_number());
    let count = content.split('\n').count();
    (!partial).then(|| {
        json!({ "filePath": path, "content": content, "startLine": 1, "numLines": count, "totalLines": count })
    })
}

pub(super) fn render(event: &str, reply: &Reply) -> String {
    let answer = match (event, reply.verdict) {
        // It cannot ask its user; what would be asked is not done.
        ("BeforeTool", Some(Verdict::Deny | Verdict::Ask)) => {
            json!({ "decision": "deny", "reason": reply.text })
        }
        ("SessionStart" | "BeforeAgent" | "AfterTool", None) if !reply.text.is_empty() => {
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": reply.text } })
        }
        // Before a tool only the user can be told.
        ("BeforeTool", None) if !reply.text.is_empty() => json!({ "systemMessage": reply.text }),
        _ => json!({}),
    };
    answer.to_string()
}

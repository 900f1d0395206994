//! Short invented sessions, line by line, and how a belief is written in an expectation.

mod beliefs;
mod questions;
mod streams;

use crate::agent::transcript::{Entry, Knowledge, Transcript};
use serde_json::{Value, json};

const F: &str = "/w/f";

/// A call and its answer, as two lines.
fn pair(tool: &str, input: &Value, result: &Value, more: &Value) -> Vec<Value> {
    let id = format!("call-{tool}-{}", result.to_string().len());
    let ask = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": "told"});
    if result.is_string() {
        block["is_error"] = json!(true);
        block["content"] = result.clone();
    }
    let mut answer = json!({"type": "user", "sessionId": "s", "cwd": "/w", "message": {"content": [block]},
        "toolUseResult": result});
    for (key, value) in more.as_object().into_iter().flatten() {
        answer[key] = value.clone();
    }
    vec![json!({"type": "assistant", "sessionId": "s", "message": {"content": [ask]}}), answer]
}

fn read_part(content: &str, start: u64, lines: u64, total: u64) -> Vec<Value> {
    let file = json!({"filePath": F, "content": content, "startLine": start, "numLines": lines,
        "totalLines": total});
    pair("Read", &json!({"file_path": F}), &json!({"type": "text", "file": file}), &Value::Null)
}

fn read_whole(content: &str) -> Vec<Value> {
    let lines = content.split('\n').count() as u64;
    read_part(content, 1, lines, lines)
}

fn read_other(result: &Value) -> Vec<Value> {
    pair("Read", &json!({"file_path": F}), result, &Value::Null)
}

fn edit(original: Option<&str>, old: &str, new: &str) -> Vec<Value> {
    let result = json!({"filePath": F, "oldString": old, "newString": new, "originalFile": original,
        "replaceAll": false});
    pair(
        "Edit",
        &json!({"file_path": F, "old_string": "not this", "new_string": "nor this"}),
        &result,
        &Value::Null,
    )
}

fn edit_all(original: &str, old: &str, new: &str) -> Vec<Value> {
    let result = json!({"filePath": F, "oldString": old, "newString": new, "originalFile": original,
        "replaceAll": true, "userModified": true});
    pair("Edit", &json!({"file_path": F}), &result, &Value::Null)
}

fn write(content: &str) -> Vec<Value> {
    let result = json!({"type": "create", "filePath": F, "content": content});
    pair("Write", &json!({"file_path": F}), &result, &Value::Null)
}

fn attach(attachment: &Value) -> Vec<Value> {
    vec![json!({"type": "attachment", "attachment": attachment})]
}

fn named(mut lines: Vec<Value>, uuid: &str) -> Vec<Value> {
    lines.last_mut().unwrap()["uuid"] = json!(uuid);
    lines
}

fn sidechain(mut lines: Vec<Value>) -> Vec<Value> {
    for line in &mut lines {
        line["isSidechain"] = json!(true);
    }
    lines
}

fn boundary(metadata: &Value) -> Vec<Value> {
    vec![json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata})]
}

fn jsonl(story: &[Vec<Value>]) -> String {
    story.iter().flatten().map(|line| line.to_string() + "\n").collect()
}

fn import(text: impl AsRef<[u8]>) -> Transcript {
    crate::agent::read(text.as_ref(), |_, _| {}).unwrap()
}

fn show(entry: &Entry) -> String {
    let knowledge = match &entry.knowledge {
        Knowledge::Full { content, bytes, digest } => {
            assert_eq!((content.len() as u64, crate::world::digest::blake3(content)), (*bytes, *digest));
            format!("{:?}", String::from_utf8_lossy(content))
        }
        other => format!("{other:?}"),
    };
    let ranges: Vec<_> =
        entry.ranges.iter().map(|range| format!(" {}+{}", range.start, range.lines)).collect();
    let flags = [
        (entry.edited, " edited"),
        (entry.read_whole, " whole"),
        (entry.plan, " plan"),
        (entry.via_summary, " summary"),
        (entry.via_sidechain, " sidechain"),
        (entry.contradicted, " contradicted"),
    ];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    format!("{} {knowledge}{}{flags}", entry.tool, ranges.concat())
}

fn check(case: &str, story: &[Vec<Value>], want: &[&str]) {
    let got: Vec<String> = import(jsonl(story)).entries.iter().map(show).collect();
    assert_eq!(got, want, "{case}");
}

//! Calls that were just answered, as the transcript that they will stand in.
//!
//! A hook is told of a call what the transcript keeps of it, so the same replay reads both, and what a session is found to
//! believe is the same whether it was told live or imported later.

use super::replay::Replay;
use crate::agent::hook::event::Call;
use crate::agent::line::Line;
use crate::agent::transcript::{Counts, Transcript};
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// What the calls showed, one after the other. `at` is when, in RFC 3339.
pub(in crate::agent) fn live(calls: &[Call], cwd: &str, at: &str) -> Transcript {
    let mut replay = Replay::default();
    let pairs = calls.iter().enumerate().flat_map(|(no, call)| {
        let cwd = asked_in(call, Path::new(cwd));
        pair(&format!("{no}:{}", call.id), call).map(|line| (line, cwd.clone()))
    });
    for (number, (mut line, cwd)) in (1..).zip(pairs) {
        line["cwd"] = json!(cwd.to_string_lossy());
        line["timestamp"] = json!(at);
        replay.step(&Line::of(line, number));
    }
    replay.finish(Counts::default(), None)
}

/// Where a command was run. A hook is told where its `cd` led, and there is no such folder below that again.
fn asked_in(call: &Call, cwd: &Path) -> PathBuf {
    let command = call.input.get("command").and_then(Value::as_str).filter(|_| call.tool == "Bash");
    let led = || {
        let (led, _) = command?.trim_start().strip_prefix("cd ")?.split_once([';', '&', '\n'])?;
        let led = Path::new(led.trim().trim_matches(['"', '\'']));
        let led: PathBuf = led.components().filter(|part| *part != Component::CurDir).collect();
        let plain = led.components().all(|part| matches!(part, Component::Normal(_)));
        let again = plain && cwd.ends_with(&led) && !cwd.join(&led).is_dir();
        cwd.ancestors().nth(led.components().count()).filter(|_| again)
    };
    led().unwrap_or(cwd).to_owned()
}

fn pair(id: &str, call: &Call) -> [Value; 2] {
    let used = json!({ "type": "tool_use", "id": id, "name": call.tool, "input": call.input });
    let asked = json!({ "type": "assistant", "message": { "content": [used] } });
    let result = match &call.error {
        Some(error) => {
            json!({ "type": "tool_result", "tool_use_id": id, "content": error, "is_error": true })
        }
        None => json!({ "type": "tool_result", "tool_use_id": id }),
    };
    let structured = call.error.as_ref().map_or(call.response.clone(), |error| Some(json!(error)));
    let answered = json!({ "type": "user", "message": { "content": [result] }, "toolUseResult": structured });
    [asked, answered]
}

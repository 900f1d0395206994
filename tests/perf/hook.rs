//! What one hook costs the agent: the whole process, from its start to its end, beside `/bin/true` in the same run. The figure
//! to quote is the difference at p50 (5 ms at most) and at p99 (15 ms at most).
//!
//! `cargo bench --bench hook`

#![expect(clippy::unwrap_used, reason = "a bench fails where it stands")]

#[path = "yard.rs"]
mod yard;

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const RESULTS: usize = 40;
const ROUNDS: usize = 9;
const CALLS: usize = 100;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let yard = yard("hook", FILES);
    let daemon = Peer::daemon(&yard);
    let mut asking = Line::to(&daemon);
    let results = |range: std::ops::Range<usize>| range.map(|n| yard.result(n)).collect::<Vec<_>>();
    for (name, range) in [("all", 0..FILES), ("agent", 0..RESULTS)] {
        asking.ask(
            "context.register",
            &json!({ "session": name, "root": yard.root, "results": results(range) }),
        );
    }
    let event = |name: &str, more: Value| {
        let mut event = json!({ "session_id": "agent", "cwd": yard.root, "hook_event_name": name });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event.to_string()
    };
    let content = yard::content(7);
    let lines = content.split('\n').count();
    let file = json!({
        "filePath": yard.file(7), "content": content, "startLine": 1, "numLines": lines, "totalLines": lines,
    });
    let input = json!({ "file_path": yard.file(7), "old_string": "x", "new_string": "y" });
    let events = [
        event("UserPromptSubmit", json!({ "prompt": "go on" })),
        event("PreToolUse", json!({ "tool_name": "Edit", "tool_input": input })),
        event(
            "PostToolUse",
            json!({ "tool_name": "Read", "tool_input": input, "tool_response": { "type": "text", "file": file } }),
        ),
    ];
    let home = yard.home("agent");
    std::fs::create_dir_all(&home).unwrap();
    let mut table = Table::new(&["/bin/true", "UserPromptSubmit", "PreToolUse", "PostToolUse"]);
    for _ in 0..yard::number("STALED_BENCH_ROUNDS", ROUNDS) {
        let mut round: [Samples; 4] = Default::default();
        for _ in 0..CALLS {
            round[0].time(|| run(Command::new("/bin/true"), "{}"));
            for (event, samples) in events.iter().zip(&mut round[1..]) {
                samples.time(|| run(hook(&home, daemon.socket()), event));
            }
        }
        table.add(round);
    }
    table.print();
    for (column, name) in [(1, "UserPromptSubmit"), (2, "PreToolUse"), (3, "PostToolUse")] {
        for (percent, ms_at_most) in [(50, 5.0), (99, 15.0)] {
            let over: Vec<f64> = table
                .percentiles(column, percent)
                .into_iter()
                .zip(table.percentiles(0, percent))
                .map(|(hook, bare)| (hook - bare) / 1_000_000.0)
                .collect();
            yard::judge(&format!("{name} over /bin/true, p{percent}, ms"), over, Some(ms_at_most));
        }
    }
}

fn hook(home: &Path, socket: &Path) -> Command {
    let mut hook = Command::new(env!("CARGO_BIN_EXE_staled"));
    hook.args(["hook", "claude-code"]).env_clear().env("HOME", home).env("STALED_SOCKET", socket);
    hook
}

fn run(mut command: Command, event: &str) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // /bin/true reads nothing.
    let _ = child.stdin.take().unwrap().write_all(event.as_bytes());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

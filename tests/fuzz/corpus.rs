//! Requests that are taken, one and more for every method, and what is put where it does not belong.

use super::tree::quoted;
use crate::harness::{Place, digest};
use fastrand::Rng;
use serde_json::{Value, json};

/// Every key that any request has, and some that none has.
pub(super) const KEYS: &[&str] = &[
    "session",
    "user",
    "agent",
    "root",
    "captured_at",
    "goal",
    "results",
    "invariants",
    "facts",
    "decisions",
    "open_questions",
    "scratchpad_bytes",
    "replace",
    "remove",
    "statement",
    "branchable",
    "shares_mutable_state",
    "hypotheses",
    "id",
    "name",
    "tool",
    "critical",
    "source",
    "digest",
    "content",
    "lf_digest",
    "encoding",
    "stat",
    "kind",
    "path",
    "policy",
    "what",
    "range",
    "include",
    "exclude",
    "contents",
    "gitignore",
    "command",
    "cwd",
    "inputs",
    "start_line",
    "lines",
    "evidence",
    "sources",
    "rows",
    "deadline_ms",
    "provision",
    "memory",
    "holder",
    "pid",
    "fact",
    "observed",
    "topics",
    "after",
    "limit",
    "tail",
    "report",
    "bytes",
    "jsonrpc",
    "method",
    "params",
    "",
    "\u{0}",
    "__proto__",
];

/// Numbers and other things that are no text. The last are no JSON.
const LEAVES: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e400",
    "-1e400",
    "1e-400",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    "{\"bytes\":\"/w==\"}",
    "{\"bytes\":\"YQBi\"}",
    "{\"bytes\":\"\"}",
    "{\"bytes\":7}",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "NaN",
    "-Infinity",
    "01",
    "'a'",
    "\"",
    "\"\\x\"",
    "\"\u{1}\"",
    "",
    ",",
    "nul",
    "/**/",
];

/// Texts. None is an absolute path of a large folder, for a tree there would only test this machine's disk.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "./a",
    "../root/a",
    "a/",
    "a//b",
    "sub",
    "sub/b",
    "gone",
    "fifo",
    "loop",
    "dir",
    "d.db",
    ".git",
    ".git/HEAD",
    "Cargo.lock",
    "/dev/zero",
    "/dev/full",
    "/dev/null",
    "/proc/self/mem",
    "/nowhere/at/all",
    "\u{0}",
    "a\u{0}b",
    "\u{e9}",
    "\u{1f600}",
    "\u{202e}a",
    "\u{feff}",
    "\u{1b}[31m",
    "line\nline",
    "<private>p</private>",
    "<private>",
    "</private>",
    "file",
    "absent",
    "tree",
    "command",
    "git_head",
    "lockfile",
    "sqlite_schema",
    "volatile",
    "strict",
    "relevant",
    "network",
    "base64",
    "utf-8",
    "all",
    "stale",
    "staleness",
    "decision",
    "gap",
    "fork",
    "f2/one-way",
    "write",
    "copy",
    "git",
    "unborn",
    "**",
    "[",
    "[!a",
    "{a,b",
    "!a",
    "*.{",
    "\\",
    "**/**/**/a",
    "blake3:",
    "blake3:00",
    "sha256:zz",
    "git:da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "2026-11-29T10:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "-9999-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "alice",
    "root",
    "f0",
    "f1",
    "f2",
    "r-file",
    "r-tree",
    "r-cmd",
    "head",
    "====",
    "YQ==",
    "true",
    "1",
];

/// A text, quoted.
pub(super) fn any_text(rng: &mut Rng) -> String {
    let text = TEXTS[rng.usize(..TEXTS.len())];
    match rng.u8(..20) {
        0 => quoted(&text.repeat(rng.usize(0..600))),
        1 => quoted(&format!("{text}{}", TEXTS[rng.usize(..TEXTS.len())])),
        2 => quoted(&"/a".repeat(rng.usize(1..3_000))),
        _ => quoted(text),
    }
}

pub(super) fn any_leaf(rng: &mut Rng) -> String {
    match rng.u8(..20) {
        0 => {
            let depth = [5, 100, 127, 128, 129, 30_000][rng.usize(..6)];
            format!("{}{}", "[".repeat(depth), "]".repeat(depth))
        }
        1 => {
            let depth = [5, 127, 128, 5_000][rng.usize(..4)];
            format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
        }
        2..=9 => LEAVES[rng.usize(..LEAVES.len())].to_owned(),
        _ => any_text(rng),
    }
}

/// Method and parameters of requests that are taken, in this order and any other.
pub(crate) fn requests(place: &Place, report: &Value) -> Vec<(&'static str, Value)> {
    let root = &place.root;
    let mut requests = vec![
        ("hello", json!({})),
        ("context.register", whole_context(place)),
        (
            "context.register",
            json!({ "session": "f1", "root": root, "replace": true,
            "results": [{ "id": "r-file", "source": { "kind": "file", "path": "a" } }] }),
        ),
        (
            "context.register",
            json!({ "session": "f2", "root": root, "results": [
            { "id": "r-file", "source": { "kind": "file", "path": { "bytes": "YQ==" } }, "content": "MQ==", "encoding": "base64" },
            { "id": "r-cmd", "source": { "kind": "command", "command": "make", "cwd": "sub",
                "inputs": [{ "kind": "file", "path": "a" }, { "kind": "tree", "path": "sub", "contents": false }] } }] }),
        ),
        (
            "context.record",
            json!({ "session": "f1", "remove": ["r-gone"], "decisions": ["d"], "open_questions": ["q"],
            "results": [{ "id": "r-more", "source": { "kind": "absent", "path": "gone" } }] }),
        ),
        ("context.get", json!({ "session": "f1" })),
        ("context.list", json!({ "root": root })),
        (
            "decide",
            json!({ "session": "f1", "rows": "stale", "deadline_ms": 50, "holder": { "pid": std::process::id() },
            "goal": { "statement": "g", "branchable": true, "shares_mutable_state": false, "hypotheses": ["x", "y"] } }),
        ),
        ("decide", json!({ "session": "f0", "deadline_ms": 100 })),
        ("status", json!({})),
        ("status", json!({ "session": "f1" })),
        ("touch_ack", json!({ "session": "f1", "path": "a", "digest": digest("1") })),
        ("fact.refute", json!({ "session": "f0", "fact": "k", "observed": "it was not so" })),
        ("fact.refute", json!({ "session": "f0", "source": "a" })),
        ("subscribe", json!({ "topics": ["staleness", "decision", "fork", "gap"], "session": "f1" })),
        ("log.read", json!({ "after": 0, "limit": 3 })),
        ("log.read", json!({ "limit": 2, "tail": true })),
        ("check", json!({ "report": report })),
        ("reload", json!({})),
    ];
    requests.extend(of_memory(place));
    requests.extend(of_forks());
    requests.push(("context.release", json!({ "session": "f2", "holder": { "pid": 4 } })));
    requests.push(("context.drop", json!({ "session": "f2" })));
    requests
}

fn of_forks() -> Vec<(&'static str, Value)> {
    vec![
        (
            "fork.create",
            json!({ "session": "f2", "hypotheses": ["one way", "../../other"], "copy": ["sub/b", "gone"] }),
        ),
        ("fork.create", json!({ "session": "f1", "hypotheses": ["copied"], "mode": "copy" })),
        ("fork.list", json!({ "session": "f2" })),
        ("fork.status", json!({ "fork": "f2/one-way" })),
        ("fork.access", json!({ "fork": "f2/one-way", "path": "a", "mode": "write" })),
        ("fork.access", json!({ "fork": "staled/f2/one-way", "path": "/etc", "mode": "list" })),
        ("fork.exec", json!({ "fork": "f1/copied" })),
        ("fork.exec", json!({ "fork": "f1/copied", "ended": 1 })),
        ("fork.merge", json!({ "fork": "f2/one-way", "deadline_ms": 100 })),
        ("fork.reprovision", json!({ "fork": "f2/one-way", "force": true })),
        ("fork.discard", json!({ "fork": "f2/one-way" })),
        ("fork.discard", json!({ "fork": "f2/other", "force": true })),
        (
            "decide",
            json!({ "session": "f1", "provision": true, "goal": { "branchable": true, "hypotheses": ["p", "q"] } }),
        ),
    ]
}

fn of_memory(place: &Place) -> Vec<(&'static str, Value)> {
    let (user, a) = ("alice", place.root.join("a"));
    vec![
        ("mem_session_start", json!({ "user_id": user, "stale": "demote" })),
        (
            "mem_save",
            json!({ "user_id": user, "type": "decision", "title": "t <private>p</private>", "content": "c",
            "topic_key": "k", "sources": [a, { "kind": "tree", "path": place.root.join("sub") }] }),
        ),
        (
            "mem_save",
            json!({ "user_id": user, "type": "pattern", "title": "other", "content": "words of it",
            "sources": [{ "source": { "kind": "file", "path": a }, "digest": digest("1") }] }),
        ),
        ("mem_session_summary", json!({ "user_id": user, "summary": "so far" })),
        (
            "mem_search",
            json!({ "user_id": user, "query": "words of c++", "limit": 3, "types_exclude": ["profile"] }),
        ),
        ("mem_search", json!({ "user_id": user, "query": "-", "types": ["decision"], "stale": "exclude" })),
        ("mem_get_observation", json!({ "user_id": user, "observation_id": 1, "history": true })),
        ("mem_timeline", json!({ "user_id": user, "observation_id": 2 })),
        ("mem_stats", json!({ "user_id": user })),
        ("mem_list_sessions", json!({ "user_id": user, "limit": 2 })),
        ("mem_session_end", json!({ "user_id": user, "summary": "done" })),
        ("decide", json!({ "session": "f0", "deadline_ms": 100, "memory": true })),
        ("mem_forget", json!({ "user_id": user, "id": 2 })),
    ]
}

/// One of everything that a context can have.
fn whole_context(place: &Place) -> Value {
    let source = |id: &str, source: Value| json!({ "id": id, "source": source });
    json!({
        "session": "f0", "user": "alice", "agent": "claude-code", "root": place.root,
        "captured_at": "2026-11-29T10:00:00Z", "scratchpad_bytes": 18_200,
        "goal": { "statement": "g", "branchable": false, "shares_mutable_state": true, "hypotheses": ["x"] },
        "results": [
            { "id": "r-file", "tool": "Read", "critical": true, "captured_at": "2026-11-29T10:00:00Z",
              "source": { "kind": "file", "path": "a" }, "digest": digest("1"), "lf_digest": digest("1"), "stat": { "size": 1 } },
            { "id": "r-lines", "source": { "kind": "file", "path": "sub/b", "range": { "start_line": 1, "lines": 2 } }, "content": "x" },
            source("r-absent", json!({ "kind": "absent", "path": "gone" })),
            source("r-tree", json!({ "kind": "tree", "path": "sub", "include": ["**/*"], "exclude": ["*.o"], "contents": true, "gitignore": false })),
            source("r-cmd", json!({ "kind": "command", "command": "cargo test", "cwd": "." })),
            source("r-db", json!({ "kind": "sqlite_schema", "path": "d.db" })),
            source("r-fifo", json!({ "kind": "file", "path": "fifo" })),
            source("r-net", json!({ "kind": "volatile", "what": "network" })),
        ],
        "invariants": [
            { "name": "head", "source": { "kind": "git_head", "path": ".", "policy": "relevant" } },
            { "name": "lock", "critical": false, "source": { "kind": "lockfile", "path": "Cargo.lock" } },
        ],
        "facts": [{ "id": "k", "statement": "s", "evidence": "a:1", "sources": ["r-file", "head", "a"] }],
        "decisions": ["d"], "open_questions": ["q"],
    })
}

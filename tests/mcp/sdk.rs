//! A client that is not ours: the official SDK for Python, which `.ci/run` installs into a folder below the target.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::Scene;
use crate::harness::skipped;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The SDK's own interpreter.
fn python() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let python = target.join("mcp-venv/bin/python");
    let there = Command::new(&python).args(["-c", "import mcp.client, jsonschema"]).output();
    there.is_ok_and(|ran| ran.status.success()).then_some(python)
}

/// What the SDK got for each step, and the version of the protocol that it agreed on.
fn client(python: &Path, scene: &Scene, mode: &str, steps: &Value) -> (String, Vec<Value>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/sdk.py");
    let mut command = Command::new(python);
    command.arg(script).arg(env!("CARGO_BIN_EXE_staled")).arg(&scene.daemon.folders.socket);
    let ran = command.arg(mode).arg(steps.to_string()).env("HOME", &scene.place.home).output().unwrap();
    assert!(ran.status.success(), "{mode}: {}", String::from_utf8_lossy(&ran.stderr));
    let mut told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let done = told["done"].as_array_mut().map(std::mem::take).unwrap();
    (told["version"].as_str().unwrap().to_owned(), done)
}

#[test]
fn the_official_sdk_lists_calls_and_reads() {
    let Some(python) = python() else {
        return skipped("the Python SDK of MCP is missing; .ci/run installs it");
    };
    // The handshake of old, and what took its place in 2026.
    for (mode, newest) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let scene = Scene::new();
        let source = scene.place.root.join("a.txt");
        let save = json!({ "content": "In Token", "type": "decision", "title": "Where", "sources": [source,
            { "kind": "command", "command": "ls", "inputs": [{ "kind": "tree", "path": scene.place.root }] }] });
        let uri = "staled://session/s-01/report";
        let steps = json!([
            ["tools"],
            ["call", "decide", { "session": "s-01" }],
            ["call", "mem_save", save],
            ["call", "mem_search", { "query": "token" }],
            ["call", "mem_get_observation", { "observation_id": 7 }],
            ["call", "decide", { "session": "nobody", "odd": 1 }],
            ["call", "stale_check", { "session": "s-01", "paths": [{ "bytes": "/w==" }, "a.txt"] }],
            ["resources"],
            ["templates"],
            ["read", uri],
        ]);
        let (version, done) = client(&python, &scene, mode, &steps);
        assert_eq!(version, newest);
        let [tools, decided, saved, found, none, refused, checked, resources, templates, read] = &done[..]
        else {
            panic!("{done:?}")
        };
        assert_eq!(tools.as_array().unwrap().len(), 15);
        assert_eq!(
            (&decided["fits"], &decided["structuredContent"]["transition"]),
            (&json!(true), &json!("fork"))
        );
        assert_eq!(
            (&saved["fits"], &saved["structuredContent"]["evidence"]),
            (&json!(true), &json!("fresh")),
            "{saved}"
        );
        assert_eq!(
            (&found["fits"], &found["structuredContent"]["results"][0]["id"]),
            (&json!(true), &json!(1))
        );
        assert_eq!((&none["isError"], &none["content"][0]["text"]), (&json!(false), &json!("null")));
        assert_eq!((&refused["fits"], &refused["isError"]), (&json!(false), &json!(true)));
        assert_eq!(refused["structuredContent"]["code"], "invalid_params");
        assert_eq!((&checked["fits"], &checked["isError"]), (&json!(true), &json!(false)));
        assert_eq!(resources["resources"][0]["uri"], uri);
        assert_eq!(templates["resourceTemplates"][0]["name"], "report");
        let report: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(report["decision"], decided["structuredContent"]["decision"]);
    }
}

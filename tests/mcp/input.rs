//! What stands on its input: garbage, more than anybody may send, and its end.

use super::{Scene, Server};
use crate::harness::Place;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn its_end_ends_it() {
    let place = Place::new();
    let nowhere = Path::new("/nowhere/staled.sock");
    let (ended, said) = Server::silent(&place, nowhere).end();
    assert!(ended.success() && said.is_empty(), "before a word: {ended} {said}");
    let (ended, said) = Server::start(&place, nowhere).end();
    assert!(ended.success() && said.is_empty(), "after the handshake: {ended} {said}");
    let mut server = Server::silent(&place, nowhere);
    std::io::Write::write_all(server.stdin.as_mut().unwrap(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth")
        .unwrap();
    let (ended, said) = server.end();
    assert!(ended.success() && said.is_empty(), "within a line: {ended} {said}");
}

/// Whoever asks and closes is answered still.
#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut scene = Scene::new();
    let id =
        scene.server.send("tools/call", &json!({ "name": "decide", "arguments": { "session": "s-01" } }));
    scene.server.stdin = None;
    let answer = scene.server.hear();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)));
    assert!(scene.server.end().0.success());
}

#[test]
fn garbage_is_no_end() {
    let mut scene = Scene::new();
    for garbage in ["", "nonsense", "{", "\u{feff}", "\0\u{1b}[2J", "{\"jsonrpc\":\"2.0\"", "'", "[[[[[[[["] {
        scene.server.say(garbage);
    }
    std::io::Write::write_all(scene.server.stdin.as_mut().unwrap(), b"\xff\xfe\xff\n").unwrap();
    // JSON that is no message is answered, without an id for there is none.
    for odd in [
        "{}",
        "[]",
        "7",
        "null",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
    ] {
        scene.server.say(odd);
        let answer = scene.server.hear();
        assert_eq!(
            (&answer["error"]["code"], answer.get("result")),
            (&json!(-32600), None),
            "{odd}: {answer}"
        );
    }
    for odd in [
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nonsense\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"m\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":12345}}",
    ] {
        scene.server.say(odd);
    }
    let answer = scene.server.answer("nonsense/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = scene.server.answer("tools/call", &json!({ "arguments": {} }));
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    assert_eq!(scene.call("status", &json!({}))["health"], "ok");
}

#[test]
fn what_comes_before_the_handshake_is_no_end() {
    let place = Place::new();
    let mut server = Server::silent(&place, Path::new("/nowhere/staled.sock"));
    server.say("nonsense");
    server.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    server.say("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}");
    server.ask("ping", &json!({}));
    let early = server.answer("tools/list", &json!({}));
    assert!(early["error"]["code"].is_i64(), "{early}");
    server.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_eq!(server.begin()["protocolVersion"], super::VERSION);
    assert_eq!(server.ask("tools/list", &json!({}))["tools"].as_array().unwrap().len(), 15);
    assert!(server.end().0.success());
}

#[test]
fn more_than_the_daemon_takes_is_refused_and_more_than_anybody_takes_is_dropped() {
    let mut scene = Scene::new();
    let of = |mebibytes: usize| "x".repeat(mebibytes << 20);
    let save = |content: String| json!({ "content": content, "type": "pattern", "title": "t" });
    let (code, sentence) = scene.refused("mem_save", &save(of(2)));
    assert_eq!(code, "too_large", "{sentence}");
    assert!(sentence.contains("memory.content_bytes_max"), "{sentence}");
    let (code, sentence) = scene.refused("mem_save", &save(of(20)));
    assert_eq!(code, "too_large", "{sentence}");
    assert!(sentence.contains("server.request_bytes_max"), "{sentence}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    scene.server.say(&format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{deep}}}"));
    scene.server.say(
        &json!({ "jsonrpc": "2.0", "id": "huge", "method": "ping", "params": { "pad": of(65) } }).to_string(),
    );
    assert_eq!(
        scene.call("status", &json!({}))["health"],
        "ok",
        "neither was answered, and neither was the end"
    );
    let (ended, said) = scene.server.end();
    assert!(ended.success());
    assert!(said.contains("exceeded the maximum line length") && !said.contains("xxx"), "{said}");
}

/// The daemon's log and a terminal are not to be steered by what a client sends or a tree holds.
#[test]
fn names_leave_as_data() {
    let mut scene = Scene::new();
    let name = "new\nline \u{1b}[2J\u{202e}.txt";
    scene.place.write(name, "seen\n");
    let row = crate::harness::file(name, "other\n");
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "results": [row] }));
    let id = scene
        .server
        .send("tools/call", &json!({ "name": "stale_check", "arguments": { "session": "s-01" } }));
    let line = scene.server.lines.recv_timeout(crate::harness::PATIENCE).unwrap();
    assert!(!line.contains('\u{1b}'), "{line:?}");
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["structuredContent"]["stale"][0]["source"], name);
    // Within the text it is escaped once more: it stands on one line, as a string of JSON.
    assert!(!answer["result"]["content"][0]["text"].as_str().unwrap().contains(['\n', '\u{1b}']));
}

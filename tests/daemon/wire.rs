//! Framing and JSON-RPC: whatever arrives, an answer or a closed connection, and never a daemon that hangs.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, PATIENCE, Place, digest, file, wait_until};
use base64::Engine as _;
use serde_json::{Value, json};
use staled::config::Config;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// A connection that says whatever a test wants.
pub(crate) struct Raw {
    reader: BufReader<UnixStream>,
}

impl Raw {
    pub(super) fn connect(daemon: &Daemon) -> Self {
        let stream = UnixStream::connect(&daemon.folders.socket).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        stream.set_write_timeout(Some(PATIENCE)).expect("a bound");
        Self { reader: BufReader::new(stream) }
    }

    pub(super) fn stream(&self) -> &UnixStream {
        self.reader.get_ref()
    }

    pub(super) fn send(&self, bytes: impl AsRef<[u8]>) {
        self.stream().write_all(bytes.as_ref()).expect("the daemon reads");
    }

    /// The next answer; `None` when the daemon has closed.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))),
            // Closed while we were still talking.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn say(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(line);
        self.send("\n");
        self.answer().expect("an answer")
    }
}

fn hello(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"hello\"}}")
}

fn small(change: impl FnOnce(&mut Config)) -> (Place, Daemon) {
    let place = Place::new();
    let mut config = Config::default();
    change(&mut config);
    let daemon = Daemon::start_with(&place.home, config);
    (place, daemon)
}

#[test]
fn what_is_no_request_is_answered_with_the_right_code_and_the_connection_lives_on() {
    let (_place, daemon) = small(|_| ());
    let mut raw = Raw::connect(&daemon);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_report = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"check","params":{{"report":{deep}}}}}"#);
    let deep_params =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"decide","params":{{"session":{deep}}}}}"#);
    let deep_path = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"touch_ack","params":{{"session":"s","digest":"","path":{deep}}}}}"#
    );
    let cases: Vec<(Vec<u8>, i64, Value)> = vec![
        (b"".to_vec(), -32700, Value::Null),
        (b" ".to_vec(), -32700, Value::Null),
        (b"{".to_vec(), -32700, Value::Null),
        (format!("{}x", hello("1")).into_bytes(), -32700, Value::Null),
        (b"\xff\xfe".to_vec(), -32700, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"method":"hel\ud800lo"}"#.to_vec(), -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec(), -32700, Value::Null),
        (b"1".to_vec(), -32600, Value::Null),
        (b"[]".to_vec(), -32600, Value::Null),
        (b"{}".to_vec(), -32600, Value::Null),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"hello"}]"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"1.0","id":1,"method":"hello"}"#.to_vec(), -32600, json!(1)),
        (br#"{"id":1,"method":"hello"}"#.to_vec(), -32600, json!(1)),
        (br#"{"method":"hello"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":{},"method":"hello"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":[1],"method":"hello"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":true,"method":"hello"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"method":"hello","method":"shutdown"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#.to_vec(), -32601, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"decide"}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"decide","params":["s"]}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"decide","params":{"session":"s","session":"t"}}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"decide","params":{"session":"s","deadline_ms":-1}}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"decide","params":{"session":"s\u0000"}}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"touch_ack","params":{"session":"s","digest":"","path":"a\u0000b"}}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"touch_ack","params":{"session":"s","digest":"","path":{"bytes":"YQBi"}}}"#.to_vec(), -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"touch_ack","params":{"session":"s","digest":"","path":{"bytes":"!"}}}"#.to_vec(), -32602, json!(1)),
        (deep.into_bytes(), -32600, Value::Null),
        (deep_report.into_bytes(), -32602, json!(1)),
        (deep_params.into_bytes(), -32602, json!(1)),
        (deep_path.into_bytes(), -32602, json!(1)),
    ];
    for (line, code, id) in cases {
        let answer = raw.say(&line);
        let shown: String = String::from_utf8_lossy(&line).chars().take(120).collect();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}: {answer}");
        assert!(answer.get("result").is_none() && answer["jsonrpc"] == "2.0", "{answer}");
    }
    assert_eq!(raw.say(hello("1"))["result"]["name"], "staled");
}

#[test]
fn an_unknown_field_is_refused_by_name_in_every_verb() {
    let (_place, daemon) = small(|_| ());
    let mut raw = Raw::connect(&daemon);
    for method in [
        "context.register",
        "context.record",
        "context.get",
        "context.list",
        "context.drop",
        "context.release",
        "decide",
        "status",
        "touch_ack",
        "fact.refute",
        "subscribe",
        "log.read",
        "check",
    ] {
        let answer = raw.say(
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "sessoin": 1 } }).to_string(),
        );
        assert_eq!(answer["error"]["code"], -32602, "{method}");
        assert!(
            answer["error"]["message"].as_str().expect("a sentence").contains("sessoin"),
            "{method}: {answer}"
        );
    }
    for (inside, named) in [
        (json!({ "results": [{ "id": "a", "sorce": {} }] }), "sorce"),
        (
            json!({ "results": [{ "id": "a", "source": { "kind": "file", "path": "a", "patth": 1 } }] }),
            "patth",
        ),
        (json!({ "goal": { "statment": "x" } }), "statment"),
        (json!({ "facts": [{ "statement": "x", "source": ["a"] }] }), "source"),
    ] {
        let answer = raw.say(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "context.register", "params": inside }).to_string(),
        );
        assert!(answer["error"]["message"].as_str().expect("a sentence").contains(named), "{answer}");
    }
}

#[test]
fn an_id_comes_back_as_it_was_spelled_and_a_notification_gets_nothing() {
    let (_place, daemon) = small(|_| ());
    let mut raw = Raw::connect(&daemon);
    for id in [
        "1",
        "-7",
        "1.5",
        "1e400",
        "123456789012345678901234567890",
        "null",
        "\"\"",
        "\"a\\u00e9\\n\"",
        "\"\\ud83d\\ude00\"",
    ] {
        raw.send(hello(id) + "\n");
        let mut line = String::new();
        raw.reader.read_line(&mut line).expect("an answer");
        assert!(line.contains(&format!("\"id\":{id},")), "{id}: {line}");
    }
    for notification in [
        r#"{"jsonrpc":"2.0","method":"hello"}"#,
        r#"{"jsonrpc":"2.0","method":"nope"}"#,
        r#"{"jsonrpc":"2.0","method":"decide","params":{"session":"none"}}"#,
    ] {
        raw.send(format!("{notification}\n"));
    }
    assert_eq!(raw.say(hello("\"next\""))["id"], "next");
}

/// Answers may overtake each other; each belongs to its id.
#[test]
fn pipelined_requests_are_answered_each_under_its_own_id() {
    let (place, daemon) = small(|_| ());
    for i in 0..50 {
        place.write(&format!("f{i}"), "1");
        register(&daemon, &place, &format!("s{i}"), &json!([file(&format!("f{i}"), "1")]));
    }
    let mut raw = Raw::connect(&daemon);
    let mut lines = String::new();
    for i in 0..50 {
        for (id, method) in [(i * 3, "decide"), (i * 3 + 1, "context.get"), (i * 3 + 2, "hello")] {
            let params = if method == "hello" { json!({}) } else { json!({ "session": format!("s{i}") }) };
            lines += &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
            lines.push('\n');
        }
    }
    // In pieces that respect nothing.
    lines.as_bytes().chunks(777).for_each(|piece| raw.send(piece));
    let mut seen = HashSet::new();
    for _ in 0..150 {
        let answer = raw.answer().expect("an answer");
        let id = answer["id"].as_u64().expect("an id");
        assert!(seen.insert(id), "{id} twice");
        match id % 3 {
            2 => assert_eq!(answer["result"]["name"], "staled"),
            _ => assert_eq!(answer["result"]["session"], format!("s{}", id / 3)),
        }
    }
}

#[test]
fn a_line_over_the_bound_is_answered_and_the_connection_closed() {
    for ends in [true, false] {
        let (_place, daemon) = small(|config| config.server.request_bytes_max = 2_000);
        let mut raw = Raw::connect(&daemon);
        let fits = format!("{}{}", hello("1"), " ".repeat(2_000 - hello("1").len()));
        assert_eq!(raw.say(&fits)["id"], 1);
        raw.send(hello("2") + "\n");
        raw.send(fits + if ends { " \n" } else { " " });
        let (first, second) = (raw.answer().expect("an answer"), raw.answer().expect("an answer"));
        assert_eq!((&first["id"], &second["id"]), (&json!(2), &Value::Null));
        assert_eq!(second["error"]["data"]["code"], "too_large", "{second}");
        assert!(
            second["error"]["message"].as_str().expect("a sentence").contains("server.request_bytes_max")
        );
        assert_eq!(raw.answer(), None);
    }
}

/// A client that is still sending when it is refused learns why, although its own writing fails.
#[test]
fn the_client_learns_that_its_line_was_too_long() {
    let (place, daemon) = small(|config| config.server.request_bytes_max = 2_000);
    let context = json!({ "session": "s", "root": place.root, "decisions": ["x".repeat(8_000_000)] });
    for _ in 0..5 {
        assert_eq!(crate::harness::refusal(&mut daemon.client(), "context.register", &context), "too_large");
    }
}

#[test]
fn a_half_closed_client_still_gets_its_answers() {
    let (place, daemon) = small(|_| ());
    place.write("a", "1");
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let mut raw = Raw::connect(&daemon);
    for id in 0..200 {
        raw.send(
            json!({ "jsonrpc": "2.0", "id": id, "method": "decide", "params": { "session": "s" } })
                .to_string()
                + "\n",
        );
    }
    raw.stream().shutdown(Shutdown::Write).expect("half a connection");
    let ids: HashSet<u64> =
        (0..200).map(|_| raw.answer().expect("an answer")["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), 200);
    assert_eq!(raw.answer(), None);
}

#[test]
fn the_silent_and_the_slow_are_closed() {
    let (_place, daemon) = small(|config| {
        config.server.idle_timeout_ms = 50;
        config.server.line_timeout_ms = 60_000;
    });
    let mut silent = Raw::connect(&daemon);
    assert_eq!(silent.answer(), None, "said nothing");
    let mut done = Raw::connect(&daemon);
    done.say(hello("1"));
    assert_eq!(done.answer(), None, "said nothing more");
    let (_place, daemon) = small(|config| config.server.line_timeout_ms = 50);
    for begun in ["{", "\n{\"jsonrpc\""] {
        let mut slow = Raw::connect(&daemon);
        slow.send(begun);
        let mut last = None;
        while let Some(answer) = slow.answer() {
            last = Some(answer);
        }
        let last = last.expect("a word of goodbye");
        assert!(
            last["error"]["message"].as_str().expect("a sentence").contains("server.line_timeout_ms"),
            "{last}"
        );
    }
    assert_eq!(Raw::connect(&daemon).say(hello("1"))["id"], 1);
}

#[test]
fn connections_over_the_bound_are_told_so_and_the_others_live() {
    let (_place, daemon) = small(|config| config.server.connections_max = 4);
    let served = |raw: &mut Raw| raw.say(hello("1"))["id"] == 1;
    // The connection that the harness itself made may still be closing.
    let mut held: Vec<Raw> = Vec::new();
    wait_until("four are served", || {
        let mut raw = Raw::connect(&daemon);
        raw.send(hello("1") + "\n");
        if raw.answer().is_some_and(|answer| answer["id"] == 1) {
            held.push(raw);
        }
        held.len() == 4
    });
    let refused = |raw: &mut Raw| {
        let answer = raw.answer().expect("a word");
        assert_eq!(answer["error"]["data"]["code"], "overloaded", "{answer}");
        assert!(answer["error"]["message"].as_str().expect("a sentence").contains("server.connections_max"));
        assert_eq!(raw.answer(), None);
    };
    let mut more: Vec<Raw> = (0..296).map(|_| Raw::connect(&daemon)).collect();
    more.iter_mut().for_each(refused);
    assert!(held.iter_mut().all(served));
    // The library's client understands it too, though it may have been closed while it was writing.
    for _ in 0..20 {
        assert_eq!(crate::harness::refusal(&mut daemon.client(), "hello", &json!({})), "overloaded");
    }
    held.pop();
    wait_until("a place is free again", || {
        let mut raw = Raw::connect(&daemon);
        let _ = raw.stream().write_all((hello("1") + "\n").as_bytes());
        raw.answer().is_some_and(|answer| answer["id"] == 1)
    });
}

#[test]
fn ten_thousand_requests_are_answered_to_whoever_reads_late() {
    let (_place, daemon) = small(|config| config.server.write_timeout_ms = 60_000);
    let mut raw = Raw::connect(&daemon);
    let lines: String = (0..10_000).map(|id| hello(&id.to_string()) + "\n").collect();
    let mut writer = raw.stream().try_clone().expect("a second handle");
    // Until the daemon takes no more: it must push back before it has read everything.
    let mut sent = 0;
    writer.set_nonblocking(true).expect("a mode");
    while let Ok(len) = writer.write(&lines.as_bytes()[sent..]) {
        sent += len;
        if sent == lines.len() {
            break;
        }
    }
    writer.set_nonblocking(false).expect("a mode");
    let rest = lines.as_bytes()[sent..].to_vec();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&rest).expect("the daemon reads on"));
        // Somebody else is served meanwhile.
        assert_eq!(Raw::connect(&daemon).say(hello("1"))["id"], 1);
        let ids: HashSet<u64> =
            (0..10_000).map(|_| raw.answer().expect("an answer")["id"].as_u64().expect("an id")).collect();
        assert_eq!(ids.len(), 10_000);
    });
}

#[test]
fn whoever_never_reads_is_pushed_back_and_then_closed() {
    let (_place, daemon) = small(|config| config.server.write_timeout_ms = 50);
    let raw = Raw::connect(&daemon);
    let lines = (hello("1") + "\n").repeat(1_000);
    let sent = (0..1_000).take_while(|_| raw.stream().write_all(lines.as_bytes()).is_ok()).count();
    assert!(sent < 1_000, "everything was taken in");
    assert_eq!(Raw::connect(&daemon).say(hello("1"))["id"], 1);
}

/// Garbage from a seed, whole and cut: an answer or an end, and the daemon lives.
#[test]
fn garbage_never_takes_the_daemon_down() {
    let (place, daemon) = small(|config| config.server.request_bytes_max = 4_096);
    place.write("a", "1");
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let model = json!({ "jsonrpc": "2.0", "id": 1, "method": "context.register", "params": { "session": "s", "root": "/x",
        "results": [{ "id": "a", "source": { "kind": "file", "path": "a" } }] } }).to_string();
    for _ in 0..300 {
        let mut line = model.clone().into_bytes();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..line.len());
            match random.u8(..3) {
                0 => line[at] = random.u8(..),
                1 => line.truncate(at.max(1)),
                _ => {
                    let piece = line[at..].to_vec();
                    line.extend(piece);
                }
            }
        }
        let raw = Raw::connect(&daemon);
        let _ = raw.stream().write_all(&line);
        let _ = raw.stream().shutdown(Shutdown::Write);
        let mut all = Vec::new();
        let _ = raw.stream().read_to_end(&mut all);
    }
    assert_eq!(daemon.ask("hello", &json!({}))["name"], "staled", "seed {seed}");
}

#[test]
fn a_name_that_is_not_utf_8_is_watched_and_told_as_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let names: [&[u8]; 2] = [b"caf\xe9", b"caf\xe8"];
    let path = |name: &[u8]| place.root.join(std::ffi::OsStr::from_bytes(name));
    let wire = |name: &[u8]| json!({ "bytes": base64::engine::general_purpose::STANDARD.encode(name) });
    let mut daemon = Daemon::start(&place.home);
    names.iter().enumerate().for_each(|(i, name)| std::fs::write(path(name), i.to_string()).expect("a file"));
    place.write("plain", "1");
    let mut result = file("r", "0");
    result["source"]["path"] = wire(names[0]);
    let facts = json!([{ "id": "f0", "statement": "zero", "sources": [wire(names[0])] },
        { "id": "f1", "statement": "one", "sources": [wire(names[1])] },
        { "id": "p", "statement": "plain", "sources": ["plain"] }]);
    let context = json!({ "session": "s", "root": place.root, "results": [result], "facts": facts });
    daemon.ask("context.register", &context);
    // Two tracked paths whose readable forms are the same.
    let both =
        json!({ "session": "both", "root": place.root, "results": [file("plain", "1")], "facts": facts });
    daemon.ask("context.register", &both);
    for restarted in [false, true] {
        if restarted {
            daemon.stop();
            std::fs::remove_dir_all(place.home.join("state/index")).expect("an index");
            daemon = Daemon::start(&place.home);
        }
        assert_eq!(decide(&daemon, "s")["transition"], "resume");
        let report = decide(&daemon, "both");
        assert_eq!(
            report["counts"],
            json!({ "results": 3, "fresh": 3, "stale": 0, "unknown": 0 }),
            "{report}"
        );
        std::fs::write(path(names[0]), "other").expect("a file");
        let report = decide(&daemon, "s");
        assert_eq!(report["staleness_results"][0]["source"], wire(names[0]));
        let summary = &report["typed_summary"];
        assert_eq!(summary["stale_dropped"], json!([wire(names[0])]), "{report}");
        assert_eq!(summary["reload"], json!([wire(names[0])]));
        let facts: Vec<_> = summary["verified_facts"]
            .as_array()
            .expect("facts")
            .iter()
            .map(|fact| &fact["statement"])
            .collect();
        assert_eq!(facts, ["one", "plain"]);
        assert_eq!(decide(&daemon, "both")["drop"], json!([wire(names[0])]));
        assert_eq!(
            daemon.ask("context.get", &json!({ "session": "s" }))["results"][0]["source"]["path"],
            wire(names[0])
        );
        let ack = json!({ "session": "s", "path": wire(names[0]), "digest": digest("other") });
        daemon.ask("touch_ack", &ack);
        assert_eq!(decide(&daemon, "s")["transition"], "resume");
        std::fs::write(path(names[0]), "0").expect("a file");
        daemon.ask("touch_ack", &json!({ "session": "s", "path": wire(names[0]), "digest": digest("0") }));
    }
    // The root too.
    let odd = path(b"r\xff\xfft");
    std::fs::create_dir(&odd).expect("a folder");
    std::fs::write(odd.join("a"), "1").expect("a file");
    let root =
        json!({ "bytes": base64::engine::general_purpose::STANDARD.encode(odd.as_os_str().as_bytes()) });
    daemon.ask("context.register", &json!({ "session": "odd", "root": root, "results": [file("a", "1")] }));
    assert_eq!(decide(&daemon, "odd")["transition"], "resume");
    std::fs::write(odd.join("a"), "2").expect("a file");
    assert_eq!(decide(&daemon, "odd")["transition"], "fresh");
}

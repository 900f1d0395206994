//! `staled mcp` against a daemon of its own: every tool, the resources, what goes wrong, and a client that is not ours.

mod calls;
mod down;
mod input;
mod reads;
mod resources;
mod sdk;
mod table;

use crate::harness::{Daemon, PATIENCE, Place, digest};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// The version of the protocol that our own client speaks.
const VERSION: &str = "2025-06-18";

/// A server, and the client at its pipes.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
}

impl Server {
    /// Starts it as an agent does, and does not say anything yet.
    fn silent(place: &Place, socket: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_staled"));
        command.arg("mcp").env_clear().env("HOME", &place.home).env("STALED_SOCKET", socket);
        command.current_dir(&place.root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let stdout = child.stdout.take().expect("it was piped");
        let (told, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| told.send(line))
        });
        Self { stdin: child.stdin.take(), child, lines, next_id: 0 }
    }

    /// The same after the handshake.
    fn start(place: &Place, socket: &Path) -> Self {
        let mut server = Self::silent(place, socket);
        let hello = server.begin();
        assert_eq!(hello["serverInfo"]["name"], "staled");
        server
    }

    fn begin(&mut self) -> Value {
        let client = json!({ "name": "test", "version": "0" });
        let hello = self.ask(
            "initialize",
            &json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client }),
        );
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        hello
    }

    /// One line, whatever it is.
    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush()).expect("it reads");
    }

    /// The next line; whatever stands on stdout is one JSON object.
    fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Asks, and hears the answer to just that.
    fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.hear();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    /// Calls a tool that answers; both forms of the answer say the same.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        let text = text(&result);
        if text.is_object() {
            assert_eq!(text, result["structuredContent"], "{tool}");
        } else {
            assert!(result.get("structuredContent").is_none(), "only objects may stand there: {result}");
        }
        text
    }

    /// Calls a tool that fails, and gives its code and its sentence.
    fn refused(&mut self, tool: &str, arguments: &Value) -> (String, String) {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let what = text(&result);
        assert_eq!(what, result["structuredContent"]);
        let word = |name: &str| what[name].as_str().expect("a text").to_owned();
        (word("code"), word("message"))
    }

    fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Closes its input, and waits for its end: how it ended, and what it said on stderr.
    fn end(mut self) -> (ExitStatus, String) {
        self.stdin = None;
        crate::harness::wait_until("the server ends", || self.child.try_wait().expect("a child").is_some());
        let mut said = String::new();
        self.child.stderr.take().expect("it was piped").read_to_string(&mut said).expect("UTF-8");
        let ended = self.child.wait().expect("it ends");
        let rest: Vec<String> = self.lines.try_iter().collect();
        assert!(rest.is_empty(), "nothing was left to be said: {rest:?}");
        (ended, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The one text of a tool's answer, which is JSON.
fn text(result: &Value) -> Value {
    let content = result["content"].as_array().expect("content");
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
    serde_json::from_str(content[0]["text"].as_str().expect("a text")).expect("JSON")
}

/// A place with a daemon, a session `s-01` that rests on `a.txt` and `b.txt`, and a server.
struct Scene {
    server: Server,
    daemon: Daemon,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("a.txt", "one\n");
        place.write("b.txt", "two\n");
        let daemon = Daemon::start(&place.home);
        let row = |path: &str, content: &str| json!({ "id": path, "source": { "kind": "file", "path": path }, "digest": digest(content) });
        let context = json!({
            "session": "s-01", "root": place.root, "results": [row("a.txt", "one\n"), row("b.txt", "two\n")],
            "goal": { "statement": "Try", "branchable": true, "hypotheses": ["First way", "Second way"] },
        });
        daemon.ask("context.register", &context);
        let server = Server::start(&place, &daemon.folders.socket);
        Self { server, daemon, place }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.server.call(tool, arguments)
    }

    fn refused(&mut self, tool: &str, arguments: &Value) -> (String, String) {
        self.server.refused(tool, arguments)
    }
}

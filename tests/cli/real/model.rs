//! A model that says what a test has it say, behind the door at which Claude Code asks.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What happens while it thinks.
type Meanwhile = Option<Box<dyn FnOnce() + Send>>;

/// Answers for as long as the test runs.
pub(super) struct Model {
    port: u16,
    mind: Arc<Mutex<Mind>>,
}

#[derive(Default)]
struct Mind {
    /// What it says next, one answer each, and what happens before; `done` when there is nothing left.
    plan: VecDeque<(Value, Meanwhile)>,
    /// The conversations that it was asked to go on with.
    asked: Vec<Value>,
}

impl Model {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = Self { port: listener.local_addr().unwrap().port(), mind: Arc::default() };
        let mind = model.mind.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mind = mind.clone();
                std::thread::spawn(move || answer(stream, &mind));
            }
        });
        model
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it says next.
    pub(super) fn says(&self, content: Value) {
        self.mind.lock().unwrap().plan.push_back((content, None));
    }

    /// The same, after something has happened.
    pub(super) fn says_after(&self, meanwhile: impl FnOnce() + Send + 'static, content: Value) {
        self.mind.lock().unwrap().plan.push_back((content, Some(Box::new(meanwhile))));
    }

    /// The conversations that it was asked to go on with since the last time this was called.
    pub(super) fn heard(&self) -> Vec<Value> {
        std::mem::take(&mut self.mind.lock().unwrap().asked)
    }
}

/// One request, one answer, and the connection is closed. A client that went away is no concern of ours.
fn answer(mut stream: TcpStream, mind: &Mutex<Mind>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let ask: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let (kind, text) = match path.as_str() {
        "/v1/messages" => ("text/event-stream", events(&said(&ask, mind))),
        _ => ("application/json", "{\"input_tokens\":1}".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

/// What it says to a conversation. One without tools is a chore beside the work, and is not counted.
fn said(ask: &Value, mind: &Mutex<Mind>) -> Value {
    let done = json!([{ "type": "text", "text": "done" }]);
    if ask["tools"].as_array().is_none_or(Vec::is_empty) {
        return done;
    }
    let mut mind = mind.lock().unwrap();
    mind.asked.push(json!({"system": ask["system"], "messages": ask["messages"]}));
    let Some((content, meanwhile)) = mind.plan.pop_front() else { return done };
    if let Some(meanwhile) = meanwhile {
        meanwhile();
    }
    content
}

/// An answer as it is streamed.
fn events(content: &Value) -> String {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    }})];
    let mut stop = "end_turn";
    for (index, block) in content.as_array().unwrap().iter().enumerate() {
        let (mut begun, delta) = (
            block.clone(),
            if block["type"] == "tool_use" {
                stop = "tool_use";
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
            } else {
                json!({"type": "text_delta", "text": block["text"]})
            },
        );
        if stop == "tool_use" {
            begun["input"] = json!({});
        } else {
            begun["text"] = json!("");
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 1}}));
    events.push(json!({"type": "message_stop"}));
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

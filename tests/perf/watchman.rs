//! The peer that is closest to what we do, as Debian installs it: a server of its own, pinned like everything else, asked
//! in JSON over one persistent connection.

use super::yard::Yard;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A connection to a watchman that watches the yard.
pub(crate) struct Watchman {
    root: Value,
    clock: Value,
    reader: BufReader<UnixStream>,
    answer: String,
    server: std::process::Child,
}

impl Watchman {
    /// Starts one and has it crawl the yard; or says why there is none.
    pub(crate) fn watch(yard: &Yard) -> Result<Self, String> {
        let home = yard.home("watchman");
        std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        let socket = home.join("sock");
        let mut command = Command::new("watchman");
        command.arg("--foreground").arg("--sockname").arg(&socket);
        command.arg("--statefile").arg(home.join("state")).arg("--logfile").arg(home.join("log"));
        command.arg("--pidfile").arg(home.join("pid"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().map_err(|error| format!("it cannot be started ({error})"))?;
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > Duration::from_secs(10) => {
                    return Err(format!("it does not answer ({error})"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let root = json!(yard.root);
        let reader = BufReader::with_capacity(1 << 20, stream);
        let mut watchman = Self { root, clock: Value::Null, reader, answer: String::new(), server };
        let watched = watchman.ask(&json!(["watch", watchman.root]));
        if watched.get("error").is_some() {
            return Err(format!("it does not watch ({watched})"));
        }
        watchman.clock =
            watchman.ask(&json!(["clock", watchman.root, { "sync_timeout": 30_000 }]))["clock"].clone();
        Ok(watchman)
    }

    /// What changed since now: nothing. It makes a cookie first.
    pub(crate) fn since(&self) -> String {
        line(&json!(["since", self.root, self.clock]))
    }

    /// The state of these paths, with a cookie too.
    pub(crate) fn named(&self, paths: impl Iterator<Item = String>) -> String {
        let paths: Vec<Value> = paths.map(|path| json!({ "path": path, "depth": 0 })).collect();
        let fields = ["name", "exists", "size", "mtime_ns"];
        line(&json!(["query", self.root, { "path": paths, "fields": fields, "expression": ["type", "f"] }]))
    }

    pub(crate) fn call(&mut self, request: &str) -> &str {
        self.reader.get_mut().write_all(request.as_bytes()).expect("it reads");
        self.answer.clear();
        self.reader.read_line(&mut self.answer).expect("it answers");
        assert!(!self.answer.contains("\"error\""), "{:.400}", self.answer);
        &self.answer
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.reader.get_mut().write_all(line(request).as_bytes()).expect("it reads");
        self.answer.clear();
        self.reader.read_line(&mut self.answer).expect("it answers");
        serde_json::from_str(&self.answer).expect("it speaks JSON")
    }

    pub(crate) fn end(mut self, root: &Path) {
        self.ask(&json!(["watch-del", root]));
        self.server.kill().expect("it is ours");
        self.server.wait().expect("it is ours");
    }
}

fn line(request: &Value) -> String {
    format!("{request}\n")
}

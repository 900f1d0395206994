//! A daemon in process, in a folder that vanishes, spoken to over its real socket.

use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::config::Config;
use staled::daemon::{self, Command, Fatal, Folders, Start};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;

/// Longest wait for anything: generous, for it is only ever reached by a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running daemon.
pub(crate) struct Daemon {
    pub(crate) folders: Folders,
    stop: watch::Sender<Command>,
    thread: Option<JoinHandle<Result<(), Fatal>>>,
}

impl Daemon {
    /// Starts a daemon whose state and socket are below `home`, and waits until it answers.
    pub(crate) fn start(home: &Path) -> Self {
        let mut config = Config::default();
        // A loaded machine verifies late; no test is about how late.
        config.decision.deadline_ms = config.decision.deadline_ms_max;
        Self::start_with(home, config)
    }

    pub(crate) fn start_with(home: &Path, mut config: Config) -> Self {
        // No test writes in the journal of the machine.
        config.log.anchor_lines = 0;
        let folders = Folders::below(home);
        let (stop, _) = watch::channel(Command::Run);
        let start = Start { config, config_file: None, folders: folders.clone() };
        let theirs = stop.clone();
        let thread = std::thread::spawn(move || daemon::run(start, theirs, None));
        let mut daemon = Self { folders, stop, thread: Some(thread) };
        wait_until("the daemon answers", || {
            let running = daemon.thread.as_ref().is_some_and(|thread| !thread.is_finished());
            !running || Client::connect(&daemon.folders.socket).is_ok()
        });
        assert!(
            !daemon.thread.as_ref().is_none_or(JoinHandle::is_finished),
            "the daemon did not start: {:?}",
            daemon.thread.take().map(JoinHandle::join)
        );
        daemon
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.folders.socket).expect("the daemon answers")
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        ask(&mut self.client(), method, params)
    }

    /// Stops the daemon and waits for its end, and until nobody holds its locks: a process that another test was just
    /// starting has copies of them between its fork and the end of its exec.
    pub(crate) fn stop(mut self) {
        self.end();
        let (state, runtime) = (&self.folders.state, &self.folders.runtime);
        for lock in [state.join("lock"), state.join("index/db"), runtime.join("staled.lock")] {
            wait_until("nobody holds the lock", || is_free(&lock));
        }
    }

    fn end(&mut self) {
        self.stop.send_replace(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                let ended = ended.expect("the daemon did not panic");
                // One whose place was removed before it ends by itself, and says so.
                assert!(ended.is_ok() || !self.folders.runtime.exists(), "the daemon ended well: {ended:?}");
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_free(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return true };
    // Unlocked by name, which frees it for every copy of the handle.
    file.try_lock().is_ok() && file.unlock().is_ok()
}

/// Asks, and takes the answer apart; a refusal fails the test. Every report passes the gate.
pub(crate) fn ask(client: &mut Client, method: &str, params: &Value) -> Value {
    let answer = client.ask(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error}"));
    let answer: Value = serde_json::from_str(&answer).expect("answers are JSON");
    if method == "decide" {
        let faults = staled::protocol::gate::check(&answer);
        assert!(faults.is_empty(), "the gate refuses {answer}: {faults:?}");
    }
    answer
}

/// Asks what must be refused, and returns the application's code, or the JSON-RPC code as text.
pub(crate) fn refusal(client: &mut Client, method: &str, params: &Value) -> String {
    match client.ask(method, params) {
        Err(ClientError::Refused(refusal)) => {
            refusal.word().map_or_else(|| refusal.code.to_string(), str::to_owned)
        }
        other => panic!("{method} {params} should have been refused, and gave {other:?}"),
    }
}

/// Polls a condition; the only wait there is.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A folder for a daemon and a folder for the world it watches.
pub(crate) struct Place {
    _temp: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) root: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("staled-").tempdir().expect("a temporary folder");
        let base = temp.path().canonicalize().expect("it exists");
        let (home, root) = (base.join("home"), base.join("root"));
        std::fs::create_dir_all(&root).expect("a root");
        Self { _temp: temp, home, root }
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }
}

/// Says it to whoever runs the tests, in one piece. What a test prints by a macro is shown only if it fails.
pub(crate) fn say(text: &str) {
    // Nobody may be listening.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Says that a case was left out, and why.
pub(crate) fn skipped(why: &str) {
    say(&format!("skipped: {why}"));
}

/// Whether strace is there and may trace; where not, that is said.
pub(crate) fn can_trace() -> bool {
    let mut tried = std::process::Command::new("strace");
    tried.args(["-f", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    let traced = tried.status().is_ok_and(|status| status.success());
    if !traced {
        skipped("strace is missing, or may not trace here");
    }
    traced
}

/// The digest of a text, as the wire writes it.
pub(crate) fn digest(content: &str) -> String {
    staled::world::digest::blake3(content.as_bytes()).to_string()
}

/// A result that saw `content` at `path`.
pub(crate) fn file(path: &str, content: &str) -> Value {
    json!({ "id": path, "source": { "kind": "file", "path": path }, "digest": digest(content) })
}

/// The same, but not critical: only of such a file is a stat believed after a restart.
pub(crate) fn lax(path: &str, content: &str) -> Value {
    let mut result = file(path, content);
    result["critical"] = json!(false);
    result
}

//! A daemon that gives prepared answers, and a parent with one fork, for what the command line does by itself.

use super::super::{Run, program, run_of};
use crate::fork::git;
use crate::harness::Place;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// What was asked, in order.
pub(super) type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers at this socket for as long as the test runs.
pub(super) fn serve(socket: &Path, answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Heard {
    serve_each(socket, usize::MAX, answer)
}

/// The same with so many answers a connection, after which it is closed. Connections do not wait for each other, as they do
/// not at a daemon.
pub(super) fn serve_each(
    socket: &Path,
    answers: usize,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> Heard {
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    let (heard, answer) = (Heard::default(), Arc::new(answer));
    let told = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, told, answer) = (stream.unwrap(), told.clone(), Arc::clone(&answer));
            std::thread::spawn(move || converse(stream, answers, &told, answer.as_ref()));
        }
    });
    heard
}

fn converse(stream: UnixStream, answers: usize, told: &Heard, answer: &impl Fn(&str, &Value) -> Value) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok).take(answers) {
        let asked: Value = serde_json::from_str(&line).unwrap();
        let method = asked["method"].as_str().unwrap();
        told.lock().unwrap().push((method.to_owned(), asked["params"].clone()));
        let result = answer(method, &asked["params"]);
        let _ = writeln!(writer, "{}", json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    }
}

/// Kind, mode and bytes of every file.
pub(super) type Everything = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub(super) fn everything(trees: &[&Path]) -> Everything {
    let mut seen = BTreeMap::new();
    let mut folders: Vec<PathBuf> = trees.iter().map(|tree| tree.to_path_buf()).collect();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            folders.extend(found.is_dir().then(|| path.clone()));
            seen.insert(path, (found.mode(), bytes));
        }
    }
    seen
}

/// A parent on `main` with one commit, and a fork of it with one more.
pub(super) struct Scene {
    pub(super) place: Place,
    pub(super) parent: PathBuf,
    pub(super) workspace: PathBuf,
}

pub(super) const BRANCH: &str = "staled/s/try";

impl Scene {
    pub(super) fn new() -> Self {
        Self::with("sha1")
    }

    pub(super) fn with(format: &str) -> Self {
        let place = Place::new();
        let parent = place.root.join("parent");
        fs::create_dir_all(&parent).unwrap();
        git(&parent, &["init", "-q", "--object-format", format]);
        let scene = Self { workspace: place.home.join("forks/s/try/workspace"), parent, place };
        for (name, content) in
            [("a", "one\ntwo\nthree\n"), ("b", "b\n"), ("gone", "x\n"), ("run.sh", "#!/bin/sh\n")]
        {
            fs::write(scene.parent.join(name), content).unwrap();
        }
        fs::write(scene.parent.join(".gitignore"), "*.env\n").unwrap();
        scene.commit(&scene.parent, "first");
        fs::create_dir_all(&scene.place.home).unwrap();
        let me = "[user]\n\tname = Me Myself\n\temail = me@example.org\n";
        fs::write(scene.place.home.join(".gitconfig"), me).unwrap();
        scene
    }

    /// The fork begins where the parent stands.
    pub(super) fn fork(&self) {
        fs::create_dir_all(self.workspace.parent().unwrap()).unwrap();
        let (from, to) = (self.parent.to_str().unwrap(), self.workspace.to_str().unwrap());
        git(&self.place.root, &["clone", "-q", "--shared", from, to]);
        git(&self.workspace, &["checkout", "-q", "-B", BRANCH]);
    }

    /// A fork that changed the first line.
    pub(super) fn forked() -> Self {
        let scene = Self::new();
        scene.fork();
        scene.works("a", "ONE\ntwo\nthree\n");
        scene
    }

    pub(super) fn works(&self, path: &str, content: &str) {
        fs::write(self.workspace.join(path), content).unwrap();
        self.commit(&self.workspace, "work");
    }

    /// The parent goes on.
    pub(super) fn moves(&self, path: &str, content: &str) {
        fs::write(self.parent.join(path), content).unwrap();
        self.commit(&self.parent, "meanwhile");
    }

    #[expect(clippy::unused_self, reason = "it reads as what the scene does")]
    pub(super) fn commit(&self, tree: &Path, message: &str) {
        git(tree, &["add", "-A"]);
        git(tree, &["commit", "-q", "--allow-empty", "-m", message]);
    }

    pub(super) fn head(&self) -> String {
        git(&self.parent, &["rev-parse", "HEAD"])
    }

    pub(super) fn tip(&self) -> String {
        git(&self.workspace, &["rev-parse", BRANCH])
    }

    /// What the daemon would say now.
    pub(super) fn judgement(&self) -> Value {
        let head = |tree: &Path| {
            let asked = Command::new("git")
                .arg("-C")
                .arg(tree)
                .args(["rev-parse", "-q", "--verify", "HEAD"])
                .output();
            let head = String::from_utf8(asked.unwrap().stdout).unwrap().trim().to_owned();
            (!head.is_empty()).then_some(head)
        };
        json!({
            "fork": "s/try", "session": "s", "hypothesis": "Shout", "mode": "git", "may_merge": true,
            "transition": "resume", "reason": { "code": "all_fresh", "text": "nothing moved", "evidence": [] },
            "decision": "d-1", "commits": 1, "tip": head(&self.workspace), "merged": false, "uncommitted": [],
            "isolation_broken": false, "isolation": { "state": "intact" }, "parent": self.parent,
            "parent_branch": "main", "parent_head": head(&self.parent), "base": head(&self.parent),
            "workspace": self.workspace, "branch": BRANCH, "base_moved": null, "changed": [], "both_changed": [],
        })
    }

    /// Merges what is judged now.
    pub(super) fn merge(&self) -> Run {
        self.merge_by(self.judgement(), &[])
    }

    /// Merges what was judged.
    pub(super) fn merge_by(&self, judgement: Value, more: &[&str]) -> Run {
        let socket = self.socket(judgement);
        run_of(
            self.command(&socket, &[&["fork", "merge", "s/try", "--apply"], more].concat()).output().unwrap(),
        )
    }

    /// Where a daemon judges so.
    pub(super) fn socket(&self, judgement: Value) -> PathBuf {
        let folder = tempfile::Builder::new().prefix("stub").tempdir_in(&self.place.home).unwrap().keep();
        let socket = folder.join("socket");
        serve(&socket, move |method, asked| match method {
            "fork.merge" => judgement.clone(),
            "fork.list" => json!({ "forks": [{ "fork": "s/other" }, { "fork": "s/try" }] }),
            "fork.discard" => json!({ "fork": asked["fork"], "discarded": true,
                "kept": { "path": "/kept", "commit": "c0ffee", "fetch": "git fetch /kept c0ffee" } }),
            _ => panic!("nobody asks {method}"),
        });
        socket
    }

    pub(super) fn command(&self, socket: &Path, args: &[&str]) -> Command {
        let mut command = program(&self.place);
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("STALED_SOCKET", socket).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Every file of the parent and of the fork, repositories and all: kind, mode and bytes.
    pub(super) fn everything(&self) -> Everything {
        everything(&[&self.parent, &self.workspace])
    }

    /// The parent has nothing uncommitted, no lock, and nothing that was set aside.
    pub(super) fn is_at_rest(&self) -> bool {
        let status = git(&self.parent, &["status", "--porcelain", "--untracked-files=no"]);
        status.is_empty() && self.leftovers().is_empty()
    }

    pub(super) fn leftovers(&self) -> Vec<PathBuf> {
        let odd = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            path.extension().is_some_and(|end| end == "lock")
                || name.starts_with("tmp_")
                || name.contains("staled-")
        };
        self.everything().into_keys().filter(|path| path.starts_with(&self.parent)).filter(odd).collect()
    }
}

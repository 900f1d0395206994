//! FIFOs, devices, sockets and folders wherever something reads a regular file: never a hang, never fresh, and no memory
//! for a device that has no end. One daemon is asked about all of them, in a process of its own.

use crate::cli::serve::Serving;
use crate::daemon::{cause, git};
use crate::harness::{Place, ask, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// What no look may ever need, however long what it reads.
const MEMORY_KB_MAX: u64 = 64 * 1024;

/// What comes to stand where a file was.
const STRANGE: [(&str, fn(&Path)); 6] = [
    ("fifo", mkfifo),
    ("zero", |path| symlink("/dev/zero", path).expect("a link")),
    ("tty", |path| symlink("/dev/ptmx", path).expect("a link")),
    ("socket", |path| drop(UnixListener::bind(path).expect("a socket"))),
    ("folder", |path| fs::create_dir(path).expect("a folder")),
    ("link-to-fifo", link_to_fifo),
];

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success(), "{}", path.display());
}

/// The one beside the root.
fn link_to_fifo(path: &Path) {
    let root = path.ancestors().find(|folder| folder.ends_with("root")).expect("it is below the root");
    symlink(root.with_file_name("pipe"), path).expect("a link");
}

/// A source, what it reads, and the causes that may be given when that is no regular file; none where the answer does not
/// rest on it.
struct Case {
    source: Value,
    reads: &'static str,
    causes: &'static [&'static str],
}

const KIND: &[&str] = &["kind_changed"];
const REPOSITORY: &[&str] = &["unreadable", "repository_missing"];
/// An empty folder where a branch was is, to git too, a branch without a commit.
const BRANCH: &[&str] = &["unreadable", "head_moved"];

fn cases() -> Vec<Case> {
    let of = |kind: &str, path: &str| json!({ "kind": kind, "path": path });
    let case = |source: Value, reads, causes| Case { source, reads, causes };
    let range = json!({ "kind": "file", "path": "f", "range": { "start_line": 1, "lines": 1 } });
    let command = json!({ "kind": "command", "command": "./f", "inputs": [of("file", "f")] });
    let names = json!({ "kind": "tree", "path": "t", "contents": false });
    vec![
        case(of("file", "f"), "f", KIND),
        case(of("file", ".env"), ".env", KIND),
        case(range, "f", KIND),
        case(of("lockfile", "Cargo.lock"), "Cargo.lock", KIND),
        case(of("absent", "none"), "none", &["appeared"]),
        case(command, "f", &["input"]),
        case(json!({ "kind": "command", "command": "make" }), "t/f", &["input"]),
        case(of("sqlite_schema", "d.db"), "d.db", KIND),
        case(of("sqlite_schema", "d.db"), "d.db-wal", &["unreadable", "kind_changed"]),
        case(of("sqlite_schema", "d.db"), "d.db-journal", &["unreadable", "kind_changed"]),
        case(of("tree", "t"), "t/f", &["content", "names", "kind_changed"]),
        case(of("tree", "t"), "t/.gitignore", &["content", "names", "kind_changed"]),
        case(names, "t/.gitignore", &["content", "names", "kind_changed"]),
        case(of("git_head", "loose"), "loose/.git/HEAD", REPOSITORY),
        case(of("git_head", "loose"), "loose/.git/refs/heads/main", BRANCH),
        case(of("git_head", "loose"), "loose/.git/config", REPOSITORY),
        case(of("git_head", "loose"), "loose/.git/index", &[]),
        case(of("git_head", "loose"), "loose/.git/commondir", REPOSITORY),
        case(of("git_head", "loose"), "loose/.git/objects/info/alternates", &[]),
        case(of("git_head", "packed"), "packed/.git/packed-refs", REPOSITORY),
        case(of("git_head", "linked"), "linked/.git", REPOSITORY),
        case(of("git_head", "linked"), "packed/.git/worktrees/linked/HEAD", REPOSITORY),
        case(of("git_head", "linked"), "packed/.git/worktrees/linked/commondir", REPOSITORY),
    ]
}

/// A world in which every case is fresh.
fn world() -> Place {
    let place = Place::new();
    for path in ["f", ".env", "Cargo.lock", "t/f"] {
        place.write(path, "one\n");
    }
    place.write("t/.gitignore", "*.o\n");
    mkfifo(&place.root.with_file_name("pipe"));
    let database = rusqlite::Connection::open(place.root.join("d.db")).expect("a database");
    database.execute_batch("CREATE TABLE t(a)").expect("a table");
    for name in ["loose", "packed"] {
        let root = place.root.join(name);
        fs::create_dir(&root).expect("a folder");
        git(&root, &["init", "-q"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "c"]);
    }
    git(&place.root.join("packed"), &["pack-refs", "--all"]);
    git(&place.root.join("packed"), &["worktree", "add", "-q", "../linked"]);
    place
}

struct Asking {
    place: Place,
    daemon: Serving,
}

impl Asking {
    fn ask(&self, method: &str, params: &Value) -> Value {
        ask(&mut Client::connect(&self.daemon.socket).expect("it serves"), method, params)
    }

    fn register(&self, session: &str, source: &Value) {
        let results = json!([{ "id": "r", "source": source }]);
        let context =
            json!({ "session": session, "root": self.place.root, "results": results, "replace": true });
        self.ask("context.register", &context);
    }

    fn word(&self, session: &str) -> String {
        cause(&self.ask("decide", &json!({ "session": session, "deadline_ms": 10_000 })), "r")
    }

    /// The most memory that it ever had.
    fn peak_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemon.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is counted");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

#[test]
fn what_is_no_regular_file_is_never_fresh_and_never_waited_for() {
    let place = world();
    let daemon = Serving::start(&place, &[]);
    let asking = Asking { place, daemon };
    let before = asking.peak_kb();
    for (number, case) in cases().iter().enumerate() {
        let path = asking.place.root.join(case.reads);
        let away = asking.place.root.with_file_name("away");
        let was_there = path.symlink_metadata().is_ok();
        for (strange, put) in STRANGE {
            let story = format!("{} {strange} at {}", case.source, case.reads);
            let session = format!("s{number}");
            asking.register(&session, &case.source);
            wait_until("it is fresh", || asking.word(&session) == "fresh");
            if was_there {
                fs::rename(&path, &away).expect("it is moved away");
            }
            put(&path);
            let told = |word: &str| {
                if case.causes.is_empty() { word == "fresh" } else { case.causes.contains(&word) }
            };
            let swapped = asking.word(&session);
            assert!(told(&swapped), "swapped in, {story}: {swapped}");
            // Nobody saw what had been there before. A tree has names of every kind, and a branch may have no commit: what
            // it has now is what is seen.
            asking.register("born", &case.source);
            let word = asking.word("born");
            let may_be_fresh = case.causes.is_empty() || is_of_names(&case.source) || swapped == "head_moved";
            assert!(word != "unsettled" && (may_be_fresh || word != "fresh"), "found, {story}: {word}");
            remove(&path);
            if was_there {
                fs::rename(&away, &path).expect("it is moved back");
            }
            wait_until("it is fresh again", || asking.word(&session) == "fresh");
        }
    }
    let grown = asking.peak_kb() - before;
    assert!(grown < MEMORY_KB_MAX, "{grown} KiB more than before");
    // Nobody is left behind in an open that never ends.
    asking.ask("shutdown", &json!({}));
}

fn is_of_names(source: &Value) -> bool {
    source["kind"] == "tree" || source["kind"] == "command" && source["inputs"].is_null()
}

fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir(path).expect("it is empty");
    } else {
        fs::remove_file(path).expect("it is there");
    }
}

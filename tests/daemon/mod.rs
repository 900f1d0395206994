//! The verbs, one file each, through the socket; and what holds for all of them.

mod check;
mod compaction;
mod decide;
mod doubt;
mod eol;
mod hello;
mod log_read;
mod metrics;
mod record;
mod refute;
mod register;
mod ranges;
mod reload;
mod restart;
mod rotate;
mod schema;
mod scrub;
mod sessions;
mod shutdown;
mod status;
pub(crate) mod subscribe;
mod touch_ack;
mod tree;
mod truth;
pub(crate) mod wire;

use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Registers results under a session's name.
pub(crate) fn register(daemon: &Daemon, place: &Place, session: &str, results: &Value) -> Value {
    let context = json!({ "session": session, "root": place.root, "results": results });
    daemon.ask("context.register", &context)
}

/// Decides, with all the time that verification may need. Other tests start processes, and each has a copy of every open
/// file between its fork and its exec, which makes a file that was just written one that is held open.
pub(crate) fn decide(daemon: &Daemon, session: &str) -> Value {
    let mut report = decide_at_once(daemon, session);
    let begun = Instant::now();
    while report.to_string().contains("\"live_writer\"") && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
        report = decide_at_once(daemon, session);
    }
    report
}

/// Decides, whoever holds what.
pub(crate) fn decide_at_once(daemon: &Daemon, session: &str) -> Value {
    daemon.ask("decide", &json!({ "session": session, "deadline_ms": 10_000 }))
}

/// The row of a report that goes by this id.
pub(crate) fn row<'report>(report: &'report Value, id: &str) -> &'report Value {
    let rows = report["staleness_results"].as_array().expect("rows");
    rows.iter().find(|row| row["result_id"] == id).unwrap_or_else(|| panic!("no row {id} in {report}"))
}

/// `fresh`, or the cause why a row is not.
pub(crate) fn cause(report: &Value, id: &str) -> String {
    let row = row(report, id);
    row["cause"].as_str().unwrap_or(row["status"].as_str().expect("a status")).to_owned()
}

/// What two reports about the same world must agree on: all but names, times and clocks.
pub(crate) fn essence(mut report: Value) -> Value {
    for name in ["decision", "decided_at", "clock", "took_us", "receipt", "supersedes"] {
        report.as_object_mut().expect("a report").remove(name);
    }
    if let Some(summary) = report["typed_summary"].as_object_mut() {
        summary.remove("as_of");
    }
    for row in report["staleness_results"].as_array_mut().expect("rows") {
        row.as_object_mut().expect("a row").remove("since");
    }
    report
}

/// Every file below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

/// Writes the same text to each of these paths.
pub(crate) fn write_each(place: &Place, paths: &[&str], text: &str) {
    for path in paths {
        place.write(path, text);
    }
}

/// Runs git, away from whatever configuration this machine has.
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    git.current_dir(folder).args([
        "-c",
        "init.defaultBranch=main",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
    ]);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(args);
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes a repository of the root, with everything in it committed.
pub(crate) fn commit_all(place: &Place) -> String {
    if !place.root.join(".git").exists() {
        git(&place.root, &["init", "-q"]);
    }
    git(&place.root, &["add", "-A"]);
    git(&place.root, &["commit", "-q", "--allow-empty", "-m", "c"]);
    git(&place.root, &["rev-parse", "HEAD"])
}

//! The real daemon, killed inside a rotation of its decision log, or while it heals one that was cut short: every decision
//! that was answered stands in the chain, and no half of a rotation is left.

use super::log::receipt;
use super::points::{Answered, assert_kept};
use super::traced::Traced;
use crate::harness::{Daemon, Place, file, say};
use serde_json::{Value, json};
use staled::client::Client;
use staled::config::Config;
use staled::daemon::Folders;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a start and its rotations do to the files of the log, and to which call of each the kill comes. strace counts each
/// call by itself, and anew in every thread; of those that stand together a machine has one.
const POINTS: [(&str, &[u32]); 7] = [
    ("openat", &[1, 4, 8, 12, 16, 20]),
    ("write", &[1, 2, 3, 4, 5, 6]),
    ("fsync", &[1, 2]),
    ("fdatasync", &[1, 2, 3]),
    ("link,linkat", &[1, 2]),
    ("rename,renameat,renameat2", &[1, 2]),
    ("unlink,unlinkat", &[1, 2, 3, 4, 5, 6]),
];

const SMALL: u64 = 4_096;

/// Fewer are kept than there are, so that a rotation removes some; the script's own stay.
const KEPT: usize = 4;

/// Some rotated files, and the two halves of a rotation that a crash cut short. Returns every name of the log.
fn prepare(place: &Place) -> Vec<PathBuf> {
    let mut config = Config::default();
    config.log.file_bytes_max = SMALL;
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    let daemon = Daemon::start_with(&place.home, config);
    let context = json!({ "session": "k", "root": place.root, "results": [file("a", "1"), file("b", "1")] });
    daemon.ask("context.register", &context);
    let state = Folders::below(&place.home).state;
    while names(&state).len() < KEPT + 2 {
        daemon.ask("decide", &json!({ "session": "k" }));
    }
    daemon.stop();
    let log = state.join("decisions.jsonl");
    std::fs::hard_link(&log, state.join("decisions-20000101T000000Z.jsonl")).expect("a second name");
    std::fs::write(state.join("decisions.jsonl.new"), "{\"half\":").expect("a file");
    names(&state)
}

fn names(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.display().to_string().contains("/decisions")).collect()
}

/// Decides until a few files are full, or the daemon is gone.
fn live(client: &mut Client, answered: &mut Answered) {
    for _ in 0..8 {
        let Ok(report) = client.ask("decide", &json!({ "session": "k" })) else { return };
        let report: Value = serde_json::from_str(&report).expect("JSON");
        answered.receipts.push(receipt(&report));
    }
    // Some points are in the shutdown, which is then not answered.
    let _ = client.ask("shutdown", &json!({}));
}

#[test]
fn a_daemon_killed_inside_a_rotation_has_kept_what_it_answered() {
    let config = format!("[log]\nfile_bytes_max = {SMALL}\nfiles_max = {KEPT}\n");
    let (mut tried, mut killed, mut cut_short) = (0, 0, 0);
    for (calls, at) in POINTS.into_iter().flat_map(|(calls, points)| points.iter().map(move |at| (calls, at)))
    {
        let place = Place::new();
        ["a", "b"].iter().for_each(|name| place.write(name, "1"));
        let paths =
            prepare(&place).into_iter().flat_map(|path| ["-P".to_owned(), path.display().to_string()]);
        let inject = [format!("-etrace={calls}"), format!("-einject={calls}:signal=SIGKILL:when={at}")];
        let inject: Vec<String> = paths.chain(inject).collect();
        let Some(mut traced) = Traced::start(&place, &config, &inject) else { return };
        let seen = BTreeMap::from([("a".to_owned(), "1"), ("b".to_owned(), "1")]);
        let mut answered =
            Answered { sessions: BTreeMap::from([("k".to_owned(), seen)]), ..Answered::default() };
        let folders = Folders::below(&place.home);
        if let Some(mut client) = traced.client(&folders.socket) {
            live(&mut client, &mut answered);
        }
        let died = traced.was_killed();
        (tried, killed) = (tried + 1, killed + usize::from(died));
        cut_short += usize::from(has_halves(&folders.state));
        let point = format!("{calls} {at} (answered {} decisions)", answered.receipts.len());
        assert!(died || *at > 1, "nothing called the first of {calls}");
        assert_kept(&place, &answered, &point);
        assert!(!has_halves(&folders.state), "after {point}: {:?}", names(&folders.state));
    }
    say(&format!("killed at {killed} of {tried} points of a rotation: {cut_short} were cut short"));
    assert!(killed + 3 >= tried && cut_short > 4, "the kills missed: {killed} of {tried}, {cut_short}");
}

/// Whether a file has not got its name yet, or has two.
fn has_halves(state: &Path) -> bool {
    let names = names(state);
    let inodes: BTreeSet<u64> =
        names.iter().map(|path| std::fs::metadata(path).expect("a file").ino()).collect();
    inodes.len() < names.len() || state.join("decisions.jsonl.new").exists()
}

//! What no restart mends ends the daemon with a code that systemd does not try again, and says where and what to do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::serve::{Serving, refused_by, state};
use super::{program, staled};
use crate::harness::{Place, file};
use serde_json::json;
use staled::client::Client;
use staled::store::journal::Journal;
use staled::world::digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A state in which one session was registered and acknowledged.
fn begun(place: &Place) -> PathBuf {
    place.write("a", "1");
    let daemon = Serving::start(place, &[]);
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")] });
    Client::connect(&daemon.socket).unwrap().ask("context.register", &context).unwrap();
    staled(place, &daemon.socket, &["stop"]).ok();
    state(place).join("journal")
}

fn append(journal: &Path, record: &str) {
    let (mut journal, _) = Journal::open(journal, [0; 16], &mut |_| Ok(())).unwrap();
    journal.append(record.as_bytes()).unwrap();
}

fn segments(journal: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    segments.sort();
    segments
}

/// Started, it ends with 78, naming the segment, and leaves the journal as it is, however often it is tried.
fn ends_for_good(place: &Place, journal: &Path, says: &[&str]) {
    let before = segments(journal);
    for _ in 0..3 {
        let mut command = program(place);
        command.args(["serve", "--state"]).arg(state(place));
        let run = refused_by(command);
        run.fails(78, before[0].0.to_str().unwrap());
        for says in says {
            assert!(run.err.contains(says), "{says:?} is not in {run:?}");
        }
        assert_eq!(segments(journal), before);
        assert_eq!(run.err.matches("staled: ").count(), 1, "one error: {run:?}");
    }
}

#[test]
fn a_record_that_cannot_be_applied_ends_it_for_good() {
    let records = [
        // Of a kind that only a later version knows.
        r#"{"pinned":{"session":"s"}}"#,
        // Known by its kind, and refused for what it says.
        r#"{"acknowledged":{"session":"s","path":"a","digest":"md5:00","at":0}}"#,
        // No session has two roots: refused by the index, which may be wrong itself, and is made anew first.
        r#"{"told":{"at":0,"context":{"session":"s","root":"/elsewhere"}}}"#,
    ];
    for record in records {
        let place = Place::new();
        let journal = begun(&place);
        let at_byte = segments(&journal)[0].1.len();
        append(&journal, record);
        let remedy = format!("truncate -s {at_byte} '{}'", segments(&journal)[0].0.display());
        ends_for_good(&place, &journal, &[&format!("at byte {at_byte}"), &remedy]);
        // What it says to do helps: what was acknowledged before is there.
        assert!(Command::new("sh").args(["-c", &remedy]).status().unwrap().success());
        let daemon = Serving::start(&place, &[]);
        assert!(staled(&place, &daemon.socket, &["list"]).ok().out.contains('s'), "{record}");
    }
}

#[test]
fn a_journal_of_a_newer_format_ends_it_for_good() {
    let place = Place::new();
    let journal = begun(&place);
    let (path, mut bytes) = segments(&journal).remove(0);
    bytes[8] = 9;
    let sum = digest::blake3(&bytes[..36]);
    bytes[36..52].copy_from_slice(&sum.as_bytes()[..16]);
    fs::write(path, bytes).unwrap();
    ends_for_good(&place, &journal, &["format 9", "newer version"]);
}

//! The decision log in many files: small ones here, so that a few decisions fill them.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place, file, wait_until};
use serde_json::{Value, json};
use staled::config::Config;
use staled::store::decision_log::{Outcome, verify_files};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

#[test]
fn tail_sees_every_line_while_the_log_rotates_and_so_does_log_read() {
    let place = Place::new();
    place.write("a", "1");
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.log.file_bytes_max = 4_096;
    let daemon = Daemon::start_with(&place.home, config);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let path = daemon.folders.state.join("decisions.jsonl");
    let mut tail = Command::new("tail")
        .args(["-n", "+1", "-F"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tail runs");
    let seen = Arc::new(Mutex::new(Vec::<u64>::new()));
    let theirs = Arc::clone(&seen);
    let lines = BufReader::new(tail.stdout.take().expect("a pipe")).lines();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).expect("a whole line");
            theirs.lock().unwrap_or_else(PoisonError::into_inner).push(line["seq"].as_u64().expect("a seq"));
        }
    });
    let last = || seen.lock().unwrap_or_else(PoisonError::into_inner).last().copied().unwrap_or(0);
    for _ in 0..60 {
        let seq = decide(&daemon, "s")["receipt"]["seq"].as_u64().expect("a seq");
        // tail loses lines of a log that rotates faster than it looks.
        wait_until("tail has seen it", || last() >= seq);
    }
    let verdict = verify_files(&path, &[], &[]).expect("a log");
    assert!(verdict.files > 10, "it did not rotate: {verdict:?}");
    assert_eq!(verdict.outcome, Outcome::Verified { anchored: false });
    wait_until("tail has seen the last line", || last() == verdict.lines);
    let all: Vec<u64> = (1..=verdict.lines).collect();
    let read = daemon.ask("log.read", &json!({ "limit": 1_000 }));
    let read: Vec<u64> =
        read["lines"].as_array().expect("lines").iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(read, all);
    tail.kill().expect("tail ends");
    tail.wait().expect("tail ended");
    reader.join().expect("every line was whole");
    assert_eq!(*seen.lock().unwrap_or_else(PoisonError::into_inner), all);
}

#[test]
fn a_log_that_somebody_cut_goes_on_and_says_so() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    decide(&daemon, "s");
    let path = daemon.folders.state.join("decisions.jsonl");
    std::fs::write(&path, "").expect("cut");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    let text = std::fs::read_to_string(&path).expect("a log");
    assert!(text.contains("somebody else changed it") && text.contains("\"healed\""), "{text}");
    assert_eq!(daemon.ask("status", &json!({}))["problems"], json!([]));
    // Damaged while nobody ran: the next daemon starts, and says it too.
    daemon.stop();
    let text = std::fs::read_to_string(&path).expect("a log");
    let (before, _) = text.rsplit_once("\"hash\":\"").expect("a last line");
    std::fs::write(&path, format!("{before}\"hash\":\"{}\"}}\n", "0".repeat(64))).expect("damaged");
    let daemon = Daemon::start(&place.home);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    let text = std::fs::read_to_string(&path).expect("a log");
    assert!(text.contains("is damaged"), "{text}");
}

//! What tracking costs in memory: the daemon's resident memory with N tracked files, less what it has without any, a file.
//! And how much of that comes back, or is added, by churn: each round rewrites a tenth of the files.
//!
//! `cargo bench --bench memory`

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use yard::{Line, Peer, yard};

const FILES: usize = 20_000;
const ROUNDS: usize = 5;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let yard = yard("memory", files);
    let daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    let empty = daemon.resident();
    yard.register(&mut line, files);
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    let full = daemon.resident();
    println!("{:.1} MB without files, {:.1} MB with {files}", empty / 1e6, full / 1e6);
    yard::judge("resident bytes a named file", vec![(full - empty) / files as f64], Some(200.0));
    let mut grown = Vec::new();
    for _ in 0..ROUNDS {
        for n in (0..files).step_by(10) {
            std::fs::write(yard.file(n), yard::content(n)).expect("it can be written");
        }
        let ask = json!({ "session": "all-0", "rows": "stale", "deadline_ms": 10_000 });
        assert!(line.ask("decide", &ask).contains("\"resume\""), "the bytes are the same");
        grown.push(daemon.resident() / full);
    }
    println!("under churn, round by round: {grown:.3?}");
    yard::judge("resident under churn / before", grown, Some(1.1));
}

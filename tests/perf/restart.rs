//! What a restart costs: from the start of the process until every tracked file is known to be fresh again, none of them
//! changed and none critical, against a stat pass over them and against arming alone. And how soon a decision about
//! one small session is answered, asked as soon as the socket is served.
//!
//! `cargo bench --bench restart`, `STALED_BENCH_FILES=100000` for the whole size.

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 20_000;
const SMALL: usize = 40;
const ROUNDS: usize = 9;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let rounds = yard::number("STALED_BENCH_ROUNDS", ROUNDS);
    let mut yard = yard("restart", files);
    yard.critical = false;
    let mut daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    yard.register(&mut line, files);
    line.call(&yard.context("small", files - SMALL..files));
    // Files that changed just before they were looked at are not trusted by their stat, and none of these is one.
    std::thread::sleep(Duration::from_millis(700));
    let named: Vec<PathBuf> = (0..files).map(|n| yard.file(n)).collect();
    let twins = yard.twins(files);
    let ask = |session: &str| {
        yard::request("decide", &json!({ "session": session, "rows": "stale", "deadline_ms": 10_000 }))
    };
    let sessions: Vec<String> =
        (0..files).step_by(10_000).map(|begin| ask(&format!("all-{begin}"))).collect();
    let mut table =
        Table::new(&["stat pass", "stat+blake3", "arming", "restart", "of it until served", "small session"]);
    for _ in 0..rounds {
        let mut round: [Samples; 6] = Default::default();
        round[0].time(|| yard::stat(&named));
        round[1].time(|| yard::stat_and_hash(&twins));
        round[2].time(|| yard::arm(&named));
        drop(daemon);
        let [.., until_all, until_served, until_small] = &mut round;
        daemon = until_all.time(|| {
            let daemon = until_served.time(|| Peer::daemon(&yard));
            let mut line = Line::to(&daemon);
            until_small.time(|| assert_resumes(line.call(&ask("small"))));
            sessions.iter().for_each(|session| assert_resumes(line.call(session)));
            daemon
        });
        table.add(round);
    }
    table.print();
    table.ratio_of("(restart - arming) / stat pass", |p50| (p50(3) - p50(2)) / p50(0), Some(2.0));
    table.ratio("restart / stat + blake3", 3, 1, None);
    table.ratio("small session / whole restart", 5, 3, None);
}

fn assert_resumes(answer: &str) {
    assert!(answer.contains("\"transition\":\"resume\""), "{answer:.400}");
}

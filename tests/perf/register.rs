//! What a registration costs: 10,000 results, each with the digest that the agent saw, against stat + blake3 of the same
//! files and against arming alone (notify asked to watch every file and folder, one by one, as the daemon must).
//! Each round drops the session again, so that every registration begins with nothing known and nothing armed.
//!
//! `cargo bench --bench register`

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::path::PathBuf;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const ROUNDS: usize = 9;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let yard = yard("register", files);
    let daemon = Peer::daemon(&yard);
    let mut asking = Line::to(&daemon);
    let named: Vec<PathBuf> = (0..files).map(|n| yard.file(n)).collect();
    let context = yard.context("all", 0..files);
    let mut table = Table::new(&["stat+blake3", "arming", "register", "drop"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 4] = Default::default();
        round[0].time(|| yard::stat_and_hash(&named));
        round[1].time(|| yard::arm(&named));
        round[2].time(|| assert_fresh(asking.call(&context), files));
        round[3].time(|| asking.ask("context.drop", &json!({ "session": "all" })));
        table.add(round);
    }
    table.print();
    table.ratio_of("(register - arming) / stat + blake3", |p50| (p50(2) - p50(1)) / p50(0), Some(1.5));
    table.ratio("register / stat + blake3", 2, 0, None);
}

fn assert_fresh(answer: &str, files: usize) {
    assert_eq!(answer.matches("\"status\":\"fresh\"").count(), files, "{answer:.400}");
}

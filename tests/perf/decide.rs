//! What a decision costs: 40 results of a session among 10,000 tracked files, against a bare echo server, against stat
//! of the same files, and against stat + blake3 of them. Everything in one run, on one processor, interleaved call by
//! call; the figures to quote are the medians of the per-round ratios.
//!
//! `cargo bench --bench decide`

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::time::Instant;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const RESULTS: usize = 40;
const ROUNDS: usize = 11;
const CALLS: usize = 1_000;
/// Looking at the files themselves is slow and steady: fewer calls a round are enough.
const LOOKS: usize = 20;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let yard = yard("decide", FILES);
    let echo = Peer::echo(&yard);
    let daemon = Peer::daemon(&yard);
    let mut asking = Line::to(&daemon);
    let results = |range: std::ops::Range<usize>| range.map(|n| yard.result(n)).collect::<Vec<_>>();
    let context = |name: &str, count: usize| json!({ "session": name, "root": yard.root, "results": results(0..count) });
    for (name, count) in [("all", FILES), ("forty", RESULTS)] {
        let begun = Instant::now();
        asking.ask("context.register", &context(name, count));
        println!("registered {count} results in {} ms", begun.elapsed().as_millis());
    }
    let ask = |rows: &str| yard::request("decide", &json!({ "session": "forty", "rows": rows }));
    let (stale, all) = (ask("stale"), ask("all"));
    assert!(asking.call(&stale).contains("\"transition\":\"resume\""), "nothing is stale");
    let mut echoing = Line::to(&echo);
    let named: Vec<_> = (0..RESULTS).map(|n| yard.file(n)).collect();
    let tracked: Vec<_> = (0..FILES).map(|n| yard.file(n)).collect();
    let mut table = Table::new(&[
        "echo",
        "decide",
        "decide, all rows",
        "stat 40",
        "stat+blake3 40",
        "stat 10k",
        "stat+blake3 10k",
        "echo beside all rows",
    ]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 8] = Default::default();
        for _ in 0..CALLS {
            round[0].time(|| echoing.call(&stale));
            round[1].time(|| asking.call(&stale));
        }
        for _ in 0..CALLS {
            round[7].time(|| echoing.call(&stale));
            round[2].time(|| asking.call(&all));
        }
        for _ in 0..LOOKS {
            round[3].time(|| yard::stat(&named));
            round[4].time(|| yard::stat_and_hash(&named));
        }
        round[5].time(|| yard::stat(&tracked));
        round[6].time(|| yard::stat_and_hash(&tracked));
        table.add(round);
    }
    table.print();
    table.ratio("decide / echo", 1, 0, Some(3.0));
    table.ratio("decide, all rows / echo", 2, 7, Some(5.0));
    table.ratio("decide / stat of its 40 files", 1, 3, None);
    table.ratio("decide / stat + blake3 of its 40 files", 1, 4, None);
    table.ratio("decide / stat of the 10,000 tracked files", 1, 5, Some(1.0 / 300.0));
    table.ratio("decide / stat + blake3 of the 10,000 tracked files", 1, 6, Some(1.0 / 2_500.0));
}

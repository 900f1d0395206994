//! What a decision costs: 40 results of a session among N tracked files, against a bare echo server, against the same
//! daemon with 1,000 tracked files, against one that syncs its log before each answer, against stat passes, and against
//! watchman where it is installed. Everything in one run, on one processor, interleaved call by call; the figures to
//! quote are the medians of the per-round ratios.
//!
//! `cargo bench --bench decide`, `STALED_BENCH_FILES=100000` for the whole size.

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "watchman.rs"]
mod watchman;
#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use watchman::Watchman;
use yard::{Line, Peer, Samples, Table, Yard, yard};

const FILES: usize = 10_000;
const FEW: usize = 1_000;
const RESULTS: usize = 40;
const ROUNDS: usize = 11;
const CALLS: usize = 500;
/// Looking at the files themselves, and syncing, is slow and steady: fewer calls a round are enough.
const LOOKS: usize = 20;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let yard = yard("decide", files);
    let echo = Peer::echo(&yard);
    let [daemon, small, always] = ["daemon", "small", "always"].map(|name| Peer::daemon_named(&yard, name));
    let [mut asking, mut asking_small, mut asking_always] = [&daemon, &small, &always].map(Line::to);
    for (line, tracked) in
        [(&mut asking, files), (&mut asking_small, FEW.min(files)), (&mut asking_always, 100)]
    {
        yard.register(line, tracked);
        for (name, results) in [("forty", RESULTS), ("hundred", 100)] {
            assert!(line.call(&yard.context(name, 0..results)).contains("\"fresh\""));
        }
    }
    decisions(&yard, files, &echo, &mut asking, &mut asking_small);
    synced(&yard, &mut asking_always, &mut asking);
    match Watchman::watch(&yard) {
        Ok(watchman) => beside_watchman(&yard, watchman, &mut asking),
        Err(why) => println!("watchman: skipped, {why}"),
    }
}

fn ask(session: &str, rows: &str) -> String {
    yard::request("decide", &json!({ "session": session, "rows": rows }))
}

fn decisions(yard: &Yard, files: usize, echo: &Peer, asking: &mut Line, asking_small: &mut Line) {
    let (stale, all, hundred) = (ask("forty", "stale"), ask("forty", "all"), ask("hundred", "stale"));
    assert!(asking.call(&stale).contains("\"transition\":\"resume\""), "nothing is stale");
    let mut echoing = Line::to(echo);
    let tracked: Vec<PathBuf> = (0..files).map(|n| yard.file(n)).collect();
    let (few, twins) = (FEW.min(files), yard.twins(files));
    let mut table = Table::new(&[
        "echo",
        "decide",
        "decide, few tracked",
        "decide, all rows",
        "decide, 100 results",
        "stat 100",
        "stat of all tracked",
        "stat+blake3 of them",
        "echo beside all rows",
    ]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 9] = Default::default();
        for _ in 0..CALLS {
            round[0].time(|| echoing.call(&stale).len());
            round[1].time(|| asking.call(&stale).len());
        }
        for _ in 0..CALLS {
            round[8].time(|| echoing.call(&stale).len());
            round[3].time(|| asking.call(&all).len());
        }
        for _ in 0..CALLS {
            round[2].time(|| asking_small.call(&stale).len());
        }
        for _ in 0..LOOKS {
            round[4].time(|| asking.call(&hundred).len());
            round[5].time(|| yard::stat(&tracked[..100.min(files)]));
        }
        round[6].time(|| yard::stat(&tracked));
        round[7].time(|| yard::stat_and_hash(&twins));
        table.add(round);
    }
    table.print();
    table.ratio("decide / echo", 1, 0, Some(3.0));
    table.ratio("decide, all rows / echo", 3, 8, Some(5.0));
    table.ratio(&format!("decide with {files} tracked / with {few}"), 1, 2, Some(1.2));
    table.ratio("decide about 100 results / stat of them", 4, 5, Some(0.5));
    // The bounds are those for ten thousand files, and a pass grows with their number.
    let share = 10_000.0 / files as f64;
    table.ratio(&format!("decide / stat of {files} tracked files"), 1, 6, Some(share / 300.0));
    table.ratio(&format!("decide / stat + blake3 of {files} tracked files"), 1, 7, Some(share / 2_500.0));
}

fn synced(yard: &Yard, asking_always: &mut Line, asking: &mut Line) {
    let stale = ask("forty", "stale");
    let mut file = std::fs::File::create(yard.home("synced-line")).expect("a file");
    let line = asking.call(&stale).to_owned();
    let mut table = Table::new(&["decide, synced", "decide", "write + fdatasync of a line"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 3] = Default::default();
        for _ in 0..LOOKS {
            round[0].time(|| asking_always.call(&stale).len());
            round[1].time(|| asking.call(&stale).len());
            let synced = round[2].time(|| file.write_all(line.as_bytes()).and_then(|()| file.sync_data()));
            synced.expect("a line can be synced");
        }
        table.add(round);
    }
    table.print();
    table.ratio_of("decide, synced / (decide + fdatasync)", |p50| p50(0) / (p50(1) + p50(2)), Some(1.3));
}

fn beside_watchman(yard: &Yard, mut watchman: Watchman, asking: &mut Line) {
    let stale = ask("forty", "stale");
    let (since, named) = (watchman.since(), watchman.named((0..RESULTS).map(Yard::relative)));
    let mut table = Table::new(&["decide", "watchman since, cookie", "watchman 40 paths, cookie"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 3] = Default::default();
        for _ in 0..CALLS / 5 {
            round[0].time(|| asking.call(&stale).len());
            round[1].time(|| watchman.call(&since).len());
            round[2].time(|| watchman.call(&named).len());
        }
        table.add(round);
    }
    table.print();
    table.ratio("decide / watchman's since", 0, 1, Some(0.4));
    table.ratio("decide / watchman's 40 named paths", 0, 2, Some(0.2));
    watchman.end(&yard.root);
}

//! What a tree costs: registered, asked about, changed by a storm, looked at again after a restart, and held in memory;
//! against a bare echo, a stat pass, and stat + blake3 of as many files that nobody watches.
//!
//! `cargo bench --bench tree`, `STALED_BENCH_FILES=1000000` for the whole size.

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use yard::{Line, Peer, Samples, Table, Yard, yard};

const FILES: usize = 50_000;
const STORM: usize = 10_000;
const ASKED: usize = 1_000;
const ROUNDS: usize = 9;
const CALLS: usize = 400;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let yard = yard("tree", files);
    let named: Vec<PathBuf> = (0..files).map(|n| yard.file(n)).collect();
    let twins = yard.twins(files);
    let (mut stat, mut hash) = (Samples::default(), Samples::default());
    stat.time(|| yard::stat(&named));
    hash.time(|| yard::stat_and_hash(&twins));
    let (stat, hash) = (stat.percentile(50), hash.percentile(50));
    let daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    let empty = daemon.resident();
    let begun = Instant::now();
    register(&yard, &mut line);
    let registered = begun.elapsed();
    println!("registered in {} ms; stat + blake3 takes {:.0} ms", registered.as_millis(), hash / 1e6);
    yard::judge("register / stat + blake3", vec![registered.as_nanos() as f64 / hash], None);
    // sled writes what it holds in the background.
    std::thread::sleep(Duration::from_millis(1_500));
    yard::judge("resident bytes a file", vec![(daemon.resident() - empty) / files as f64], Some(200.0));
    ask(&yard, &mut line, (stat, hash));
    storm(&yard, &daemon, &mut line, files.min(STORM));
    yard::judge(
        "resident bytes a file, after it",
        vec![(daemon.resident() - empty) / files as f64],
        Some(200.0),
    );
    drop(daemon);
    let begun = Instant::now();
    let daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    while !line.call(&decide("tree", 10_000)).contains("\"resume\"") {}
    let restarted = begun.elapsed();
    println!("restarted in {} ms; a stat pass takes {:.0} ms", restarted.as_millis(), stat / 1e6);
    yard::judge("restart / stat pass", vec![restarted.as_nanos() as f64 / stat], None);
}

fn register(yard: &Yard, line: &mut Line) {
    let tree = json!([{ "id": "tree", "critical": false, "source": { "kind": "tree", "path": "." } }]);
    let told = json!({ "session": "tree", "root": yard.root, "results": tree });
    while !line.ask("context.register", &told).contains("\"fresh\"") {}
    let other = json!({ "session": "other", "root": yard.root, "results": [yard.result(0), yard.result(1)] });
    line.ask("context.register", &other);
}

fn decide(session: &str, deadline_ms: u64) -> String {
    yard::request("decide", &json!({ "session": session, "rows": "stale", "deadline_ms": deadline_ms }))
}

/// Nothing changed: the size of the tree does not matter.
fn ask(yard: &Yard, line: &mut Line, (stat, hash): (f64, f64)) {
    let echo = Peer::echo(yard);
    let mut echoing = Line::to(&echo);
    let request = decide("tree", 10_000);
    let mut table = Table::new(&["echo", "decide"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 2] = Default::default();
        for _ in 0..CALLS {
            round[0].time(|| echoing.call(&request).len());
            round[1].time(|| assert!(line.call(&request).contains("\"resume\"")));
        }
        table.add(round);
    }
    table.print();
    table.ratio("decide / echo", 1, 0, Some(3.0));
    // The bounds are given for ten thousand files.
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let scaled = |times_at_10k: f64| Some(10_000.0 / files as f64 / times_at_10k);
    let decided = table.percentiles(1, 50);
    yard::judge(
        "decide / stat pass of the tree",
        decided.iter().map(|p50| p50 / stat).collect(),
        scaled(300.0),
    );
    yard::judge(
        "decide / stat + blake3 of it",
        decided.iter().map(|p50| p50 / hash).collect(),
        scaled(2_500.0),
    );
}

/// Many files of the tree are written anew, while another session asks whether two others are what it saw.
fn storm(yard: &Yard, daemon: &Peer, line: &mut Line, files: usize) {
    let (root, last) = (yard.root.clone(), files);
    let writer = std::thread::spawn(move || {
        for n in 2..last {
            std::fs::write(root.join(Yard::relative(n)), format!("other {n}\n")).expect("it can be written");
        }
    });
    let mut asking = Line::to(daemon);
    let (mut asked, mut wrong) = (Samples::default(), 0);
    for _ in 0..ASKED {
        let answer = asked.time(|| asking.call(&decide("other", 10_000)).contains("\"resume\""));
        wrong += usize::from(!answer);
    }
    writer.join().expect("it wrote all");
    let begun = Instant::now();
    let answer = line.call(&decide("tree", 10_000)).to_owned();
    let settled = begun.elapsed();
    let changed = format!("\"number\":{}", files - 2);
    assert!(answer.contains(&changed), "all of them changed: {answer:.600}");
    println!("{} files written; told {} ms after the last", files - 2, settled.as_millis());
    println!("{ASKED} decisions of another session meanwhile: {wrong} wrong");
    let p99_ms = asked.percentile(99) / 1e6;
    yard::judge("p99 of them, in ms", vec![p99_ms], Some(50.0));
    for n in 2..files {
        std::fs::write(yard.file(n), yard::content(n)).expect("it can be written");
    }
    let begun = Instant::now();
    assert!(line.call(&decide("tree", 10_000)).contains("\"resume\""), "all is as it was");
    println!("written back; told {} ms after the last", begun.elapsed().as_millis());
}

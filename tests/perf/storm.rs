//! A storm of events: 10,000 tracked files are replaced as a checkout does it (unlinked and written anew) while somebody
//! asks about another session. How long those answers take, how many are wrong, and how long after the last write
//! everything is verified again, against stat + blake3 of the same files.
//!
//! `cargo bench --bench storm`

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::path::PathBuf;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const OTHERS: usize = 40;
const ROUNDS: usize = 7;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let rounds = yard::number("STALED_BENCH_ROUNDS", ROUNDS);
    let yard = yard("storm", files + OTHERS);
    let daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    line.call(&yard.context("other", files..files + OTHERS));
    yard.register(&mut line, files);
    let named: Vec<PathBuf> = (0..files).map(|n| yard.file(n)).collect();
    let twins = yard.twins(files);
    let ask = |session: &str| {
        yard::request("decide", &json!({ "session": session, "rows": "stale", "deadline_ms": 10_000 }))
    };
    let (other, all) = (ask("other"), ask("all-0"));
    let mut table =
        Table::new(&["stat+blake3", "checkout", "re-verified after it", "decide meanwhile", "decide before"]);
    let (mut wrong, mut asked) = (0, 0);
    for number in 0..rounds {
        let changed = number % 2 == 0;
        let mut round: [Samples; 5] = Default::default();
        round[0].time(|| yard::stat_and_hash(&twins));
        (0..500).for_each(|_| round[4].time(|| assert!(line.call(&other).contains("\"resume\""))));
        std::thread::scope(|scope| {
            let checkout = scope.spawn(|| {
                let mut checkout = Samples::default();
                checkout.time(|| named.iter().enumerate().for_each(|(n, file)| replace(file, n, changed)));
                checkout
            });
            while !checkout.is_finished() {
                let resumed = round[3].time(|| line.call(&other).contains("\"transition\":\"resume\""));
                wrong += usize::from(!resumed);
                asked += 1;
            }
            round[1] = checkout.join().expect("the files can be written");
        });
        let answer = round[2].time(|| line.call(&all).to_owned());
        let expected = if changed { "\"transition\":\"fresh\"" } else { "\"transition\":\"resume\"" };
        wrong += usize::from(!answer.contains(expected) || answer.contains("unsettled"));
        table.add(round);
    }
    table.print();
    table.ratio("re-verified after it / stat + blake3", 2, 0, Some(2.0));
    println!("wrong answers: {wrong} of {}", asked + rounds);
    let p99s: Vec<f64> = table.percentiles(3, 99).into_iter().map(|ns| ns / 1e6).collect();
    yard::judge("p99 of a decide meanwhile, in ms", p99s, Some(50.0));
}

fn replace(file: &PathBuf, n: usize, changed: bool) {
    let content = if changed { format!("{n} changed\n").repeat(400) } else { yard::content(n) };
    std::fs::remove_file(file).expect("it is there");
    std::fs::write(file, content).expect("it can be written");
}

//! What being told costs: from the write of a watched file to the notification, beside the write and a decide that sees
//! it, and beside a bare echo. Everything in one run, on one processor, interleaved call by call; the figure to quote is
//! the p50 of write → notification, which must be 2 ms or less.
//!
//! `cargo bench --bench push`

#![expect(clippy::unwrap_used, reason = "a bench fails where it stands")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const RESULTS: usize = 40;
/// Each with a change and its revert.
const ROUNDS: usize = 300;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let yard = yard("push", FILES);
    let echo = Peer::echo(&yard);
    let daemon = Peer::daemon(&yard);
    let (mut asking, mut echoing) = (Line::to(&daemon), Line::to(&echo));
    let results = |range: std::ops::Range<usize>| range.map(|n| yard.result(n)).collect::<Vec<_>>();
    for (name, range) in [("all", 0..FILES), ("told", 0..RESULTS), ("asked", RESULTS..2 * RESULTS)] {
        let context = json!({ "session": name, "root": yard.root, "results": results(range) });
        asking.ask("context.register", &context);
    }
    let mut told = Line::to(&daemon);
    told.ask("subscribe", &json!({ "topics": ["staleness"], "session": "told" }));
    let decide = yard::request("decide", &json!({ "session": "asked", "rows": "stale" }));
    // Opened for each write: one that stays open is a writer who may store at any time.
    let write = |n: usize, byte: u8| {
        let file = File::options().write(true).open(yard.file(n)).unwrap();
        file.write_all_at(&[byte], 0).unwrap();
    };
    let (watched, other) = (0, RESULTS);
    let first = std::fs::read(yard.file(0)).unwrap()[0];
    let mut table = Table::new(&["echo", "write, notification", "write, decide", "write"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 4] = Default::default();
        for (byte, status, stale) in [(b'x', "stale", 1), (first, "fresh", 0)] {
            round[0].time(|| echoing.call(&decide));
            round[1].time(|| {
                write(watched, byte);
                told.next();
            });
            assert!(told.last().contains(&format!("\"status\":\"{status}\"")), "{}", told.last());
            round[2].time(|| {
                write(other, byte);
                asking.call(&decide);
            });
            assert!(asking.last().contains(&format!("\"stale\":{stale},")), "{}", asking.last());
            round[3].time(|| write(other, byte));
            // What was written last is looked at before the next round begins.
            asking.call(&decide);
        }
        table.add(round);
    }
    table.print();
    table.ratio("write to notification / echo", 1, 0, None);
    table.ratio("write + decide / echo", 2, 0, None);
    table.ratio("write to notification / write + decide", 1, 2, None);
    table.within(1, 2_000.0);
}

//! What doing nothing costs: how often the daemon is put on a processor, and for how long, while nothing happens and
//! N files are tracked.
//!
//! `cargo bench --bench idle`

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use std::time::{Duration, Instant};
use yard::{Line, Peer, yard};

const FILES: usize = 10_000;
const SECONDS: usize = 20;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let seconds = yard::number("STALED_BENCH_SECONDS", SECONDS);
    let yard = yard("idle", files);
    let daemon = Peer::daemon(&yard);
    let mut line = Line::to(&daemon);
    yard.register(&mut line, files);
    // The store flushes what the registration left.
    std::thread::sleep(Duration::from_secs(2));
    let (begun, (ran, woken)) = (Instant::now(), daemon.scheduled());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let (ran_after, woken_after) = daemon.scheduled();
    let passed = begun.elapsed().as_secs_f64();
    println!("{files} files tracked, {passed:.1} s, of which it ran {:.2} ms", (ran_after - ran) * 1e3);
    yard::judge("share of a processor", vec![(ran_after - ran) / passed], Some(0.001));
    yard::judge("wake-ups a second, all threads", vec![(woken_after - woken) as f64 / passed], None);
}

//! How many decisions a second: 32 connections, one request in flight on each and then eight, against the echo server's
//! rate for the same lines. One thread asks on all connections, so that asking costs both the same.
//!
//! `cargo bench --bench throughput`

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::time::Instant;
use yard::{Line, Peer, yard};

const FILES: usize = 40;
const CONNECTIONS: usize = 32;
const ROUNDS: usize = 9;
const TURNS: usize = 60;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let yard = yard("throughput", FILES);
    let (echo, daemon) = (Peer::echo(&yard), Peer::daemon(&yard));
    yard.register(&mut Line::to(&daemon), FILES);
    let ask = yard::request("decide", &json!({ "session": "all-0", "rows": "stale", "deadline_ms": 10_000 }));
    let open = |peer: &Peer| (0..CONNECTIONS).map(|_| Line::to(peer)).collect::<Vec<_>>();
    let (mut echoing, mut asking) = (open(&echo), open(&daemon));
    for (depth, at_least) in [(1, 0.5), (8, 0.35)] {
        let mut ratios = Vec::new();
        let (mut echoes, mut decisions) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let echoed = rate(&mut echoing, &ask, depth);
            let decided = rate(&mut asking, &ask, depth);
            ratios.push(echoed / decided);
            echoes.push(echoed);
            decisions.push(decided);
        }
        let (echoes, decisions) = (yard::median(echoes), yard::median(decisions));
        println!("depth {depth}: {echoes:.0} echoes/s, {decisions:.0} decisions/s (medians)");
        let name = format!("echoes / decisions, {CONNECTIONS} connections, depth {depth}");
        yard::judge(&name, ratios, Some(1.0 / at_least));
    }
}

/// Answers a second over all connections, each with `depth` requests in flight.
fn rate(lines: &mut [Line], ask: &str, depth: usize) -> f64 {
    let burst = ask.repeat(depth);
    let begun = Instant::now();
    for line in &mut *lines {
        line.send(&burst);
    }
    for turn in 1..=TURNS {
        for line in &mut *lines {
            for _ in 0..depth {
                assert!(line.next().len() > 10);
            }
            if turn < TURNS {
                line.send(&burst);
            }
        }
    }
    (lines.len() * depth * TURNS) as f64 / begun.elapsed().as_secs_f64()
}

//! Whatever arrives: bytes become the same lines however they are split, and every line gets its one answer.
//!
//! Each round has its own seed. `STALED_FUZZ_S=n` runs for n seconds, `STALED_FUZZ_SEED=n` runs one round again.

pub(crate) mod corpus;
mod framing;
mod methods;
mod tree;

use crate::harness::say;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Seconds, when nobody says otherwise.
const SECONDS: u64 = 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs rounds, each with a seed of its own, for a share of the time. Says how many there were.
fn rounds(test: &str, share: u32, mut round: impl FnMut(u64)) -> u64 {
    let mut round = |seed| {
        let run = catch_unwind(AssertUnwindSafe(|| round(seed)));
        run.unwrap_or_else(|panic| {
            say(&format!("again: STALED_FUZZ_SEED={seed} cargo test --test staled -- {test}"));
            resume_unwind(panic)
        });
    };
    if let Some(seed) = number("STALED_FUZZ_SEED") {
        round(seed);
        return 1;
    }
    let time = Duration::from_secs(number("STALED_FUZZ_S").unwrap_or(SECONDS)) / share;
    let (begun, first) = (Instant::now(), fastrand::u64(..u64::MAX / 2));
    let seeds = (first..).take_while(|_| begun.elapsed() < time);
    seeds.map(&mut round).count() as u64
}

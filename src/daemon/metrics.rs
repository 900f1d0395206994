//! What is counted while the daemon lives: relaxed atomics, so that counting costs a decision nothing.
//!
//! Each number is exact by itself; two of them read at the same moment may be one event apart. What can be read from the
//! index or the disk at the moment of the question is not counted here.

use super::clock;
use crate::decision::Transition;
use crate::decision::reason::Code;
use crate::index::Change;
use crate::index::freshness::Freshness;
use crate::protocol::exposition::{Buckets, Exposition};
use crate::protocol::refusal::Refusal;
use crate::protocol::request::METHODS;
use crate::session::moment::Moment;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From 10 us to 10 s, in seconds.
const BOUNDS: [f64; 19] = [
    0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
    0.5, 1.0, 2.0, 5.0, 10.0,
];

/// The counts of one daemon.
#[derive(Debug)]
pub(super) struct Metrics {
    /// When the daemon was started.
    pub(super) started: Moment,
    decisions: [[AtomicU64; Code::ALL.len()]; Transition::ALL.len()],
    requests: [AtomicU64; METHODS.len()],
    /// Kept off the path of a decision: refusals and changes are rare, and their words are few and our own.
    refusals: Words,
    changes: Words,
    pub(super) barrier: Histogram,
    pub(super) decide: Histogram,
    pub(super) connections: Level,
    pub(super) connections_refused: AtomicU64,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self {
            started: clock::now(),
            decisions: Default::default(),
            requests: std::array::from_fn(|_| AtomicU64::default()),
            refusals: Words::default(),
            changes: Words::default(),
            barrier: Histogram::default(),
            decide: Histogram::default(),
            connections: Level::default(),
            connections_refused: AtomicU64::new(0),
        }
    }

    /// A decision was logged, and took so long from its request on.
    pub(super) fn decided(&self, transition: Transition, code: Code, took: Duration) {
        let row = Transition::ALL.iter().position(|known| *known == transition);
        let column = Code::ALL.iter().position(|known| *known == code);
        if let (Some(row), Some(column)) = (row, column) {
            add_one(&self.decisions[row][column]);
        }
        self.decide.observe(took);
    }

    /// A request came.
    pub(super) fn asked(&self, method: &str) {
        if let Some(place) = METHODS.iter().position(|known| *known == method) {
            add_one(&self.requests[place]);
        }
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        self.refusals.add_one("", refusal.outcome());
    }

    /// Rows were judged anew; those that are fresh now are not counted.
    pub(super) fn changed(&self, changes: &[Change]) {
        for change in changes {
            if let (Freshness::Stale(_) | Freshness::Unknown(_), Some(cause)) = (change.to, change.to.cause())
            {
                self.changes.add_one(change.to.word(), cause);
            }
        }
    }

    /// Everything that is counted here.
    pub(super) fn tell(&self, out: &mut Exposition) {
        out.counter("staled_decisions", "Decisions that were logged.", self.decisions());
        let requests = METHODS.iter().zip(&self.requests);
        let requests = requests.map(|(method, count)| (vec![("method", *method)], read(count)));
        out.counter("staled_requests", "Requests that could be read, answered or refused.", requests);
        let refusals = self.refusals.all();
        let refusals = refusals.iter().map(|((_, code), count)| (vec![("code", code.as_str())], *count));
        out.counter("staled_refusals", "Requests that were refused.", refusals);
        let changes = self.changes.all();
        let changes = changes
            .iter()
            .map(|((to, cause), count)| (vec![("to", to.as_str()), ("cause", cause.as_str())], *count));
        out.counter("staled_changes", "Rows that a look found to be stale or unknown from then on.", changes);
        out.histogram(
            "staled_barrier_seconds",
            "How long a cookie took to come back.",
            &self.barrier.read().buckets(),
        );
        out.histogram(
            "staled_decide_seconds",
            "From a request to its logged decision.",
            &self.decide.read().buckets(),
        );
        out.gauge("staled_connections", "Connections that are open.", read(&self.connections.count));
        let refused = read(&self.connections_refused);
        out.count("staled_connections_refused", "Connections beyond server.connections_max.", refused);
    }

    fn decisions(&self) -> Vec<(Vec<(&'static str, &'static str)>, u64)> {
        let cells = Transition::ALL.iter().zip(&self.decisions).flat_map(|(transition, row)| {
            Code::ALL.iter().zip(row).map(move |(code, count)| {
                (vec![("transition", transition.word()), ("reason", code.word())], read(count))
            })
        });
        // Most pairs cannot be: a resume has no stale reason.
        cells.filter(|(_, count)| *count > 0).collect()
    }
}

fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Counts by two words.
#[derive(Debug, Default)]
struct Words {
    counts: Mutex<BTreeMap<(String, String), u64>>,
}

impl Words {
    fn add_one(&self, first: &str, second: &str) {
        *self.lock().entry((first.to_owned(), second.to_owned())).or_default() += 1;
    }

    fn all(&self) -> BTreeMap<(String, String), u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many there are now.
#[derive(Debug, Default)]
pub(super) struct Level {
    count: Arc<AtomicU64>,
}

/// One of them, as long as it lives.
#[derive(Debug)]
pub(super) struct Present(Arc<AtomicU64>);

impl Level {
    pub(super) fn enter(&self) -> Present {
        add_one(&self.count);
        Present(Arc::clone(&self.count))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How often something took how long.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, took: Duration) {
        let place = BOUNDS.partition_point(|bound| *bound < took.as_secs_f64());
        add_one(&self.counts[place]);
        self.sum_nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self) -> Seen {
        Seen {
            counts: self.counts.each_ref().map(read),
            sum: Duration::from_nanos(read(&self.sum_nanos)).as_secs_f64(),
        }
    }
}

struct Seen {
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Seen {
    fn buckets(&self) -> Buckets<'_> {
        Buckets { bounds: &BOUNDS, counts: &self.counts, sum: self.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS, Histogram, Metrics};
    use std::time::Duration;

    #[test]
    fn what_took_exactly_as_long_as_a_bound_is_within_it() {
        let histogram = Histogram::default();
        for micros in [0, 10, 11, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let seen = histogram.read();
        assert_eq!((seen.counts[0], seen.counts[1]), (2, 1), "{:?}", seen.counts);
        assert_eq!((seen.counts[BOUNDS.len() - 1], seen.counts[BOUNDS.len()]), (1, 1), "{:?}", seen.counts);
        assert!((seen.sum - 20.000_022).abs() < 1e-9);
    }

    #[test]
    fn who_left_is_not_counted_any_more() {
        let metrics = Metrics::new();
        let (first, second) = (metrics.connections.enter(), metrics.connections.enter());
        drop(first);
        assert_eq!(super::read(&metrics.connections.count), 1);
        drop(second);
        assert_eq!(super::read(&metrics.connections.count), 0);
    }
}

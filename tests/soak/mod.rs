//! The real program under load for a long time: eight clients, a churner and git, restarts in between; no row may be
//! wrong, and at the end nothing may be left that was not there before.
//!
//! `STALED_SOAK_S=n` is how long it takes, 15 seconds unless it says otherwise. The first half is many lives, ended by
//! SIGTERM and by SIGKILL in turn; the second half is one life, in whose middle and at whose end memory is measured.
//! Interleavings are chance, so a seed does not repeat a run; what failed tells what happened before it.

mod agent;
mod churn;
pub(crate) mod gauge;
mod stage;

use crate::adversary::process::Operator;
use crate::adversary::{head, layout};
use crate::cli::serve::Serving;
use crate::harness::{Place, ask, say, wait_until};
use agent::{Agent, Asker, check_exactly};
use fastrand::Rng;
use gauge::Gauge;
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::Stage;
use staled::client::Client;
use staled::store::decision_log::{Outcome, verify_files};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Watches that may be left of folders that changed places; seen once in three runs of ten minutes.
const STRAY_WATCHES_MAX: usize = 3;

const SECONDS: u64 = 15;
const CLIENTS: usize = 8;

/// What sled may keep of the index in memory.
const CACHE_KIB: usize = 16 * 1024;

/// Exact checks in the last life, half of them before its middle.
const CHECKS: u32 = 16;

#[test]
fn a_long_life_under_load() {
    let seconds = std::env::var("STALED_SOAK_S").map_or(SECONDS, |text| text.parse().expect("a number"));
    let half = Duration::from_secs(seconds) / 2;
    let mut chance = Rng::new();
    let place = Place::new();
    head::seed(&place.root);
    layout::build(&place.root).expect("the world can be built");
    churn::seed(&place.root);
    let mut daemon = serve(&place);
    let empty = Gauge::of(daemon.pid());
    let operator = Operator::start(&place.root);
    let places = stage::places(&place.root);
    let stage = Stage::new(place.root.clone(), daemon.socket.clone(), places, CLIENTS, operator.pid());
    let stage = &stage;
    let mut said = format!("empty: {empty}\n");
    let (mut lives, mut measured) = (1, Vec::new());
    let daemon = std::thread::scope(|scope| {
        let _ending = stage.ending();
        for number in 0..CLIENTS {
            let chance = chance.fork();
            scope.spawn(move || Agent::new(stage, number, chance).live());
        }
        let churning = chance.fork();
        let asker = Asker::new(stage, chance.fork());
        scope.spawn(move || churn::churn(stage, operator, asker, churning));
        let begun = Instant::now();
        let many = seconds.div_ceil(5).max(2);
        for life in 0..many {
            let part = |share: f64| half.mul_f64((life as f64 + share) / many as f64);
            pass(stage, begun + part(0.4));
            check_exactly(stage, &mut chance);
            pass(stage, begun + part(1.0));
            daemon = restart(daemon, &place, life % 2 == 0);
            lives += 1;
        }
        let begun = Instant::now();
        for check in 1..=CHECKS {
            pass(stage, begun + half * check / CHECKS);
            check_exactly(stage, &mut chance);
            if check == CHECKS / 2 || check == CHECKS {
                let _resting = stage.calm.write().expect("nobody failed");
                measured.push(Gauge::of(daemon.pid()));
            }
        }
        daemon
    });
    assert_eq!(measured.len(), 2, "a client failed");
    writeln!(said, "middle: {}\nend: {}", measured[0], measured[1]).expect("text");
    end(&place, daemon, stage, &empty, &measured, said, lives);
}

/// Lets everybody work until then, and a little even if that has passed; a failure of anybody ends it.
fn pass(stage: &Stage, until: Instant) {
    let until = until.max(Instant::now() + Duration::from_millis(200));
    while Instant::now() < until {
        assert!(!stage.is_over(), "somebody failed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn serve(place: &Place) -> Serving {
    // Of what is confined nobody but root may count the descriptors.
    let confine = if rustix::process::geteuid().is_root() { "auto" } else { "off" };
    let config = place.home.with_file_name("soak.toml");
    let text = format!(
        "[decision]\ndeadline_ms = 10_000\n[verify]\nscrub_pass_s = 20\n[server]\nconfine = \"{confine}\"\n[log]\n\
         file_bytes_max = 4_000_000\n"
    );
    std::fs::write(&config, text).expect("a file");
    let daemon = Serving::start(place, &["--config", config.to_str().expect("UTF-8")]);
    wait_until("every watch is armed", || daemon.said().contains("every watch is armed"));
    daemon
}

/// In the middle of everything.
fn restart(mut daemon: Serving, place: &Place, politely: bool) -> Serving {
    if politely {
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0, "{}", daemon.said());
    }
    drop(daemon);
    serve(place)
}

/// Takes back everything that was asked for: what is left is what an empty daemon has.
fn end(
    place: &Place,
    mut daemon: Serving,
    stage: &Stage,
    empty: &Gauge,
    measured: &[Gauge],
    mut said: String,
    lives: u32,
) {
    let mut client = Client::connect(&daemon.socket).expect("it runs");
    let listed = ask(&mut client, "context.list", &json!({}));
    let names: Vec<&Value> =
        listed["sessions"].as_array().expect("a list").iter().map(|s| &s["session"]).collect();
    for name in &names {
        ask(&mut client, "context.drop", &json!({ "session": name }));
    }
    let health = ask(&mut client, "status", &json!({}));
    drop(client);
    let begun = Instant::now();
    let after = loop {
        let after = Gauge::of(daemon.pid());
        if after.held() == empty.held() || begun.elapsed() > Duration::from_secs(40) {
            break after;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let counts = &stage.counts;
    let number = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    writeln!(
        said,
        "dropped: {after}\n{lives} lives, {} requests, {} fresh claims checked, {} stale, {} unknown, {} requests lost, {} \
         connections died, {} events heard, {} operations, {} checkouts, {} sessions at the end; gaps {}, missed events {}",
        number(&counts.requests), number(&counts.claims), number(&counts.stale), number(&counts.unknown),
        number(&counts.lost), number(&counts.died), number(&counts.events), number(&counts.operations),
        number(&counts.checkouts), names.len(), health["gaps"], health["missed_events"],
    )
    .expect("text");
    say(&said);
    // Sled's cache may still be filling; beyond that a twentieth more in half of a life under the same load is a leak.
    let (middle, late) = (measured[0].anonymous_kib, measured[1].anonymous_kib);
    let filling = CACHE_KIB.saturating_sub(middle.saturating_sub(empty.anonymous_kib));
    let bound = middle + middle / 20 + filling;
    assert!(
        late <= bound,
        "{late} KiB at the end, {middle} KiB in the middle, and {bound} KiB would be flat"
    );
    assert_eq!(after.held(), empty.held(), "descriptors and own threads of an empty daemon");
    // notify remembers one watch for a path: where another folder came to stand there before the event of it was read, the
    // earlier inode's stays in the kernel for as long as that inode lives, and to take it away would drop what is queued.
    assert!(after.watches <= empty.watches + STRAY_WATCHES_MAX, "{} watches are left", after.watches);
    assert_eq!((&health["problems"], &health["missed_events"]), (&json!([]), &json!(0)), "{health}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    let log = place.home.join("state/decisions.jsonl");
    let verdict = verify_files(&log, &[], &stage.receipts()).expect("a log");
    assert!(matches!(verdict.outcome, Outcome::Verified { .. }), "{verdict:?}");
}

//! Seeded worlds against a rescan oracle: the index may say suspect, never a wrong fresh, and never cries wolf for long.
//!
//! Delivery is the evil twin of a watcher: word of a change comes late, out of order, twice, folded together, or never,
//! and then as a gap. Looks read the world some time after they were ordered; answers come in any order, late and twice.
//! Before anything is judged, all word of earlier changes has been delivered in one of these ways: that is the barrier.
//!
//! `STALED_SIM_WORLDS=n` runs more worlds, `STALED_SIM_SEED=n` runs one again.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a simulation may fail as a test does"
)]

mod client;
mod failing;
mod judge;
mod oracle;
mod trees;
mod twin;
mod world;

use client::{any_digest, any_update, told};
use fastrand::Rng;
use judge::judge;
use oracle::{Oracle, Saw};
use staled::decision::policy::Policy;
use staled::index::found::Found;
use staled::index::row::SessionNo;
use staled::index::storage::Memory;
use staled::index::{Check, Depth, Index, Settled, SourceId};
use staled::session::moment::Moment;
use staled::session::source::{Source, absolute};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use world::{Event, OBJECTS, Thing, World, spelling};

const WORLDS: u64 = 2_000;
const STEPS: usize = 70;

#[test]
fn no_seeded_world_makes_the_index_wrong() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (first, worlds) = match number("STALED_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("STALED_SIM_WORLDS").unwrap_or(WORLDS)),
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    std::thread::scope(|scope| {
        for start in first..first + threads.min(worlds) {
            scope.spawn(move || (start..first + worlds).step_by(threads as usize).for_each(run_world));
        }
    });
}

fn run_world(seed: u64) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed).run())) {
        let again = format!("STALED_SIM_SEED={seed} cargo test --test staled sim::no_seeded_world");
        std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("world {seed} failed: {again}\n").as_bytes(),
        )
        .expect("stderr is open");
        resume_unwind(panic);
    }
}

/// An ordered look, and what it read when it has.
struct Flight {
    check: Check,
    read: Option<(Found, Thing)>,
}

struct Simulation {
    rng: Rng,
    world: World,
    index: Index<Memory>,
    oracle: Oracle,
    policy: Policy,
    undelivered: Vec<Event>,
    lost: bool,
    flights: Vec<Flight>,
    epochs: u32,
    at: Moment,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let world = World::new(&mut rng);
        let mut index = Index::open(Memory::default(), "epoch-0").unwrap();
        assert_eq!(index.wake().unwrap(), []);
        let policy = Policy { scratchpad_bytes_max: rng.u64(..3) * 9, ..Policy::default() };
        let (undelivered, flights, oracle) = (Vec::new(), Vec::new(), Oracle::default());
        let at = Moment::from_micros(0);
        Self { rng, world, index, oracle, policy, undelivered, lost: false, flights, epochs: 0, at }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.world.pass_time();
            self.at.micros += 1;
            match self.rng.u8(..40) {
                0..=13 => self.change(),
                14..=18 => self.deliver_some(),
                19..=20 => self.lose_some(),
                21..=30 => self.answer_some(),
                31..=33 => self.register(),
                34..=36 => self.say(),
                37 => self.restart(),
                _ => self.barrier(),
            }
            if self.rng.u16(..300) == 0 {
                self.doubt();
            }
            if self.rng.u8(..4) == 0 {
                self.barrier();
                judge(&self.index, &self.oracle, &self.world, &self.policy);
            }
        }
        self.barrier();
        self.drain();
        judge(&self.index, &self.oracle, &self.world, &self.policy);
        assert_eq!(self.index.pending_len(), 0);
    }

    fn change(&mut self) {
        let told = self.world.change(&mut self.rng);
        self.undelivered.extend(told);
    }

    fn lose_some(&mut self) {
        if !self.undelivered.is_empty() {
            let lost = self.rng.usize(..self.undelivered.len());
            self.undelivered.swap_remove(lost);
            self.lost = true;
        }
    }

    /// Some of the word that is due, in any order, some of it twice, in one batch.
    fn deliver_some(&mut self) {
        self.rng.shuffle(&mut self.undelivered);
        let kept = if self.undelivered.is_empty() { 0 } else { self.rng.usize(..self.undelivered.len()) };
        let batch = self.undelivered.split_off(kept);
        self.deliver(batch);
    }

    fn deliver(&mut self, batch: Vec<Event>) {
        if self.rng.bool()
            && let Some(&again) = batch.first()
        {
            self.undelivered.push(again);
        }
        let moved = batch.into_iter().map(|event| (event.source, event.depth));
        let checks = self.index.touch(moved).unwrap();
        self.order(checks);
    }

    /// Everything that happened before now has been told, one way or the other.
    fn barrier(&mut self) {
        if self.lost {
            self.lost = false;
            self.epochs += 1;
            let checks = self.index.lose_sync(&format!("epoch-{}", self.epochs)).unwrap();
            self.order(checks);
        }
        while !self.undelivered.is_empty() {
            self.deliver_some();
        }
    }

    fn order(&mut self, checks: Vec<Check>) {
        for check in checks {
            self.oracle.ordered(&check);
            self.flights.push(Flight { check, read: None });
        }
    }

    /// Some looks read the world; some that have read it answer, one batch, some of them twice.
    fn answer_some(&mut self) {
        let rng = &mut self.rng;
        rng.shuffle(&mut self.flights);
        let overtaken = |flight: &Flight| !self.oracle.is_latest(flight.check.source, flight.check.stamp);
        self.flights.retain(|flight| !overtaken(flight) || rng.bool());
        if let Some(flight) = rng.choice(&self.flights)
            && let Some(check) = self.index.ask_again(flight.check.source).unwrap()
        {
            self.flights.push(Flight { check, read: None });
        }
        for flight in self.flights.iter_mut().filter(|flight| flight.read.is_none()) {
            if rng.bool() {
                flight.read = Some(self.world.look(&flight.check));
            }
        }
        let (mut batch, mut later) = (Vec::new(), Vec::new());
        for flight in self.flights.drain(..) {
            let Some((found, thing)) = flight.read.clone().filter(|_| rng.bool()) else {
                later.push(flight);
                continue;
            };
            let Check { source, stamp, .. } = flight.check;
            batch.push((Settled { source, stamp, found: found.into() }, thing));
            if rng.u8(..4) == 0 {
                later.push(flight);
            }
        }
        self.flights = later;
        self.settle(batch);
    }

    fn settle(&mut self, batch: Vec<(Settled, Thing)>) {
        let (mut overtaken, mut adopted) = (0, 0);
        for (answer, thing) in &batch {
            if self.oracle.is_latest(answer.source, answer.stamp) {
                adopted += self.oracle.applied(answer.source, *thing);
            } else {
                overtaken += 1;
            }
        }
        let answers = batch.into_iter().map(|(answer, _)| answer).collect();
        let outcome = self.index.settle(answers, self.at).unwrap();
        assert_eq!((outcome.overtaken, outcome.adopted.len()), (overtaken, adopted));
    }

    fn drain(&mut self) {
        while let Some(&source) = self.oracle.outstanding().first() {
            let latest = |flight: &Flight| {
                flight.check.source == source && self.oracle.is_latest(source, flight.check.stamp)
            };
            let flight =
                self.flights.iter_mut().find(|flight| latest(flight)).expect("every suspect has its look");
            let (found, thing) = flight.read.clone().unwrap_or_else(|| self.world.look(&flight.check));
            let stamp = flight.check.stamp;
            self.settle(vec![(Settled { source, stamp, found: found.into() }, thing)]);
        }
    }

    fn register(&mut self) {
        self.barrier();
        let update = any_update(&mut self.rng);
        let registered = self.index.register(&update, 1_000, self.at).unwrap();
        self.order(registered.checks);
        let session = registered.session;
        if update.replace {
            self.oracle.sessions.remove(&session.0);
        }
        let rows = self.index.rows(session).unwrap();
        self.oracle.renumber(session.0, &rows, &told(&update), &self.world);
        self.oracle.tell_facts(session.0, &update.remove, &update.facts);
        self.release(registered.released);
    }

    fn release(&mut self, released: Vec<SourceId>) {
        for source in released {
            self.world.forget(source);
            self.oracle.released(source);
        }
    }

    /// A client says something about a session that it registered before.
    fn say(&mut self) {
        let sessions: Vec<u32> = self.oracle.sessions.keys().copied().collect();
        let Some(no) = self.rng.choice(sessions) else { return };
        match self.rng.u8(..8) {
            0 => {
                self.oracle.sessions.remove(&no);
                let released = self.index.drop_session(SessionNo(no)).unwrap();
                self.release(released);
            }
            1 => {
                self.index.give_up_awaiting(SessionNo(no)).unwrap();
                let rows = self.oracle.sessions.get_mut(&no).expect("it was chosen").rows.values_mut();
                rows.filter(|row| row.saw == Saw::NextLook).for_each(|row| row.saw = Saw::Unknown);
            }
            2..=4 => self.acknowledge(no),
            _ => self.refute(no),
        }
    }

    fn acknowledge(&mut self, no: u32) {
        let path = spelling(self.rng.usize(..OBJECTS), &mut self.rng);
        let digest = any_digest(&mut self.rng);
        let checks = self.index.acknowledge(SessionNo(no), &path, digest, self.at).unwrap();
        let key = absolute(Path::new(oracle::ROOT), &path);
        let mut about = false;
        for row in self.oracle.sessions.get_mut(&no).expect("it was chosen").rows.values_mut() {
            let bytes = matches!(row.source, Source::File { .. } | Source::Lockfile { .. });
            if bytes && row.source.path().is_some_and(|path| absolute(Path::new(oracle::ROOT), path) == key) {
                let version = digest.as_bytes()[..4].try_into().map(u32::from_be_bytes).expect("four bytes");
                row.saw = Saw::This(Thing::Bytes(version));
                (row.refuted, row.once_equal, about) = (false, true, true);
            }
        }
        assert_eq!(checks.is_some(), about, "acknowledged {}", path.display());
        self.order(checks.unwrap_or_default());
    }

    fn refute(&mut self, no: u32) {
        let target = PathBuf::from(format!("r{}", self.rng.u8(..8)));
        let hit = self.index.refute(SessionNo(no), &target, self.at).unwrap();
        let mut ids = Vec::new();
        for row in self.oracle.sessions.get_mut(&no).expect("it was chosen").rows.values_mut() {
            if Path::new(&row.id) == target {
                row.refuted = true;
                ids.push(row.id.clone());
            }
        }
        assert_eq!(hit.map(|hit| hit.ids).unwrap_or_default(), ids, "refuted {}", target.display());
    }

    /// Records are lost that may have said otherwise of any session that there is.
    fn doubt(&mut self) {
        self.index.doubt_all().unwrap();
        self.oracle.sessions.values_mut().for_each(|session| session.doubted = true);
    }

    /// The process ends between two steps and another one opens what it left.
    fn restart(&mut self) {
        self.flights.clear();
        self.undelivered.clear();
        self.lost = false;
        self.oracle.restarted();
        self.world.restart();
        self.epochs += 1;
        let storage = self.index.storage_mut().clone();
        self.index = Index::open(storage, &format!("epoch-{}", self.epochs)).unwrap();
        let checks = self.index.wake().unwrap();
        assert_eq!(checks.len(), self.index.sources_len(), "after a start everything is suspect");
        assert!(checks.iter().all(|check| check.depth == Depth::Names), "nothing is armed after a start");
        self.order(checks);
    }
}

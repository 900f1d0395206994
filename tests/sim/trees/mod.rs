//! Seeded worlds of folders: trees and commands over them, against a walk that keeps a copy of everything.
//!
//! Word of a change comes late, out of order, twice, folded together or never; looks read the world at one time and
//! answer at another; the process ends between two steps or between two writes. When all word has come, whatever is
//! called fresh is; when all looks have answered, everything that is said is exact, and nothing is kept for nobody.
//!
//! `STALED_SIM_WORLDS=n` runs more worlds, `STALED_SIM_SEED=n` runs one again.

mod reference;
mod rows;
mod world;

use super::twin::Twin;
use fastrand::Rng;
use rows::{Held, VERIFYING, belief, of_inputs};
use staled::index::freshness::Freshness;
use staled::index::row::{Role, Row, SessionNo};
use staled::index::storage::{Storage, StorageError, Table};
use staled::index::tree::{Entry, Names};
use staled::index::view::{Line, Listed};
use staled::index::{Check, Index, Looked, RegisterError, Settled};
use staled::session::SessionId;
use staled::session::context::Update;
use staled::session::moment::Moment;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use world::{Event, TOP, World};

const WORLDS: u64 = 1_000;
const STEPS: usize = 60;
const AT: Moment = Moment { micros: 7 };

#[test]
fn no_seeded_world_of_folders_makes_a_tree_wrong() {
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
    if let Err(panic) = catch_unwind(|| Simulation::new(seed, None).run()) {
        // The same once more, and this time every step is told.
        let mut tale = Vec::new();
        let _ = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, Some(&mut tale)).run()));
        let again = format!("STALED_SIM_SEED={seed} cargo test --test staled sim::trees");
        let text = format!("{}\nworld {seed} failed: {again}\n", tale.join("\n"));
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).expect("stderr is open");
        resume_unwind(panic);
    }
}

/// An ordered look, and what it read when it has.
struct Flight {
    check: Check,
    read: Option<Looked>,
}

/// Session → result's id → its row, or the rows of its inputs.
type Sessions = BTreeMap<u32, BTreeMap<String, Vec<Held>>>;

struct Simulation<'tale> {
    rng: Rng,
    world: World,
    index: Index<Twin>,
    sessions: Sessions,
    undelivered: Vec<Event>,
    lost: bool,
    flights: Vec<Flight>,
    epochs: u32,
    tale: Option<&'tale mut Vec<String>>,
}

impl<'tale> Simulation<'tale> {
    fn new(seed: u64, tale: Option<&'tale mut Vec<String>>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let world = World::new(&mut rng);
        let mut index = Index::open(Twin::default(), "epoch-0").unwrap();
        assert_eq!(index.wake().unwrap(), []);
        let (sessions, undelivered, flights) = Default::default();
        Self { rng, world, index, sessions, undelivered, lost: false, flights, epochs: 0, tale }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.world.pass_time();
            match self.rng.u8(..40) {
                0..=13 => self.change(),
                14..=18 => self.deliver_some(),
                19 => self.lose_some(),
                20..=28 => self.answer_some(),
                29..=33 => self.register(),
                34 => self.drop_session(),
                35 => self.restart(false),
                _ => self.barrier(),
            }
            if self.rng.u8(..3) > 0 {
                self.collect();
            }
            match self.rng.u8(..12) {
                0..=2 => self.barrier_and_check(),
                3 => self.settle_and_judge(),
                _ => {}
            }
        }
        self.settle_and_judge();
        self.leave_nothing();
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(tale) = &mut self.tale {
            tale.push(line());
        }
    }

    /// One step of the index. The process may end half-way; whoever comes after finds what was written until then.
    fn step<T>(
        &mut self,
        journaled: bool,
        step: impl FnOnce(&mut Index<Twin>) -> Result<T, StorageError>,
    ) -> Option<T> {
        if self.rng.u8(..100) == 0 {
            self.index.storage_mut().fail_after(self.rng.u32(1..60));
        }
        let done = step(&mut self.index);
        self.index.storage_mut().fail_after(0);
        match done {
            Ok(done) => Some(done),
            Err(error) => {
                self.tell(|| format!("the process ended: {error}"));
                self.restart(true);
                if journaled {
                    self.begin_anew();
                }
                None
            }
        }
    }

    fn change(&mut self) {
        let rules = self.world.rules();
        let deed = self.world.change(&mut self.rng);
        let rules = rules != self.world.rules();
        for held in all_held(&mut self.sessions) {
            held.world_changed(&self.world, deed.at_once, rules);
        }
        self.tell(|| format!("{} -> {:?}", deed.what, deed.told));
        self.undelivered.extend(deed.told);
    }

    fn lose_some(&mut self) {
        if !self.undelivered.is_empty() {
            let lost = self.rng.usize(..self.undelivered.len());
            let lost = self.undelivered.swap_remove(lost);
            self.tell(|| format!("lost {lost:?}"));
            self.lost = true;
        }
    }

    fn deliver_some(&mut self) {
        self.rng.shuffle(&mut self.undelivered);
        let kept = if self.undelivered.is_empty() { 0 } else { self.rng.usize(..self.undelivered.len()) };
        let batch = self.undelivered.split_off(kept);
        self.deliver(batch);
    }

    fn deliver(&mut self, batch: Vec<Event>) {
        if self.rng.bool()
            && let Some(again) = batch.first()
        {
            self.undelivered.push(again.clone());
        }
        self.tell(|| format!("deliver {batch:?}"));
        let (mut moved, mut stirred) = (BTreeMap::new(), BTreeMap::<_, Names>::new());
        for event in batch {
            match event {
                Event::Touch(source, depth) => {
                    let held = moved.entry(source).or_insert(depth);
                    *held = depth.max(*held);
                }
                Event::Stir(folder, names) => stirred.entry(folder).or_default().merge(names),
            }
        }
        // One batch is applied before anything else is, so what a restart in the middle forgets is suspect anyway.
        let Some(checks) = self.step(false, |index| index.touch(moved)) else { return };
        self.order(checks);
        self.step(false, |index| index.stir(stirred));
    }

    /// Everything that happened before now has been told, one way or the other.
    fn barrier(&mut self) {
        if self.lost {
            self.lost = false;
            self.epochs += 1;
            let epoch = format!("epoch-{}", self.epochs);
            self.tell(|| "gap".to_owned());
            if let Some(checks) = self.step(false, |index| index.lose_sync(&epoch)) {
                self.order(checks);
            }
        }
        while !self.undelivered.is_empty() {
            self.deliver_some();
        }
    }

    fn order(&mut self, checks: Vec<Check>) {
        let mut checks = checks;
        checks.sort_by_key(|check| (check.source, check.stamp));
        self.flights.extend(checks.into_iter().map(|check| Flight { check, read: None }));
    }

    /// Asks for what is due, as the engine does after every step, but not always at once.
    fn collect(&mut self) {
        for released in self.index.take_released() {
            self.world.forget(released);
        }
        if let Some((&session, _)) = self.sessions.iter().next()
            && self.rng.u8(..4) == 0
        {
            self.step(false, |index| index.hurry_trees(SessionNo(session)));
        }
        if let Some(checks) = self.step(false, Index::orders) {
            self.order(checks);
        }
    }

    /// Some looks read the world; some that have read it answer, in any order, some of them twice.
    fn answer_some(&mut self) {
        self.rng.shuffle(&mut self.flights);
        let (mut batch, mut later) = (Vec::new(), Vec::new());
        for mut flight in std::mem::take(&mut self.flights) {
            if flight.read.is_none() && self.rng.bool() {
                let rng = &mut self.rng;
                flight.read = Some(self.world.look(&flight.check, &mut || rng.u8(..30) == 0));
            }
            let Some(found) = flight.read.clone().filter(|_| self.rng.bool()) else {
                later.push(flight);
                continue;
            };
            let Check { source, stamp, .. } = flight.check;
            batch.push(Settled { source, stamp, found });
            if self.rng.u8(..4) == 0 {
                later.push(flight);
            }
        }
        self.flights = later;
        self.settle(batch);
    }

    fn settle(&mut self, batch: Vec<Settled>) {
        for answer in &batch {
            self.tell(|| format!("answer {:?} {:?} {}", answer.source, answer.stamp, brief(&answer.found)));
        }
        if batch.iter().any(|answer| answer.found.is_unsure()) {
            all_held(&mut self.sessions).for_each(Held::look_failed);
        }
        self.step(false, |index| index.settle(batch, AT));
    }

    fn settle_all(&mut self) {
        for round in 0.. {
            assert!(round < 200, "it never comes to rest");
            self.barrier();
            self.collect();
            let flights = std::mem::take(&mut self.flights);
            let answers: Vec<Settled> = flights
                .into_iter()
                .map(|Flight { check, read }| {
                    let found = read.unwrap_or_else(|| self.world.look(&check, &mut || false));
                    Settled { source: check.source, stamp: check.stamp, found }
                })
                .collect();
            let quiet = answers.is_empty();
            self.settle(answers);
            if !quiet || self.index.pending_len() > 0 || !self.undelivered.is_empty() || self.lost {
                continue;
            }
            let undecided = self.index.undecided().unwrap();
            if undecided.is_empty() {
                return;
            }
            let undecided = undecided.into_iter().map(|source| (source, staled::index::Depth::Names));
            if let Some(checks) = self.step(false, |index| index.touch(undecided)) {
                self.order(checks);
            }
        }
    }

    fn register(&mut self) {
        self.barrier();
        let name = format!("s-{}", self.rng.u8(..3));
        let mut update = Update::of(SessionId::new(&name).expect("a legal name"));
        update.root = Some(PathBuf::from(TOP));
        update.replace = self.rng.u8(..6) == 0;
        update.remove = (0..self.rng.usize(..3)).map(|_| format!("r{}", self.rng.u8(..6))).collect();
        let told: Vec<_> = (0..self.rng.usize(..4)).map(|_| belief(&mut self.rng, &self.world)).collect();
        update.results = told.iter().map(|(belief, _)| belief.clone()).collect();
        self.tell(|| format!("register {update:?}"));
        let registered = self.step(true, |index| match index.register(&update, 1_000, AT) {
            Ok(registered) => Ok(registered),
            Err(RegisterError::Storage(error)) => Err(error),
            Err(refusal) => panic!("{refusal}"),
        });
        let Some(registered) = registered else { return };
        let session = self.sessions.entry(registered.session.0).or_default();
        session.retain(|id, _| !update.replace && !update.remove.contains(id));
        session.extend(told.into_iter().map(|(belief, held)| (belief.id, held)));
        registered.released.iter().for_each(|&source| self.world.forget(source));
        self.order(registered.checks);
    }

    fn drop_session(&mut self) {
        let sessions: Vec<u32> = self.sessions.keys().copied().collect();
        let Some(session) = self.rng.choice(sessions) else { return };
        self.tell(|| format!("drop {session}"));
        let released = self.step(true, |index| index.drop_session(SessionNo(session)));
        if let Some(released) = released {
            released.into_iter().for_each(|source| self.world.forget(source));
            self.sessions.remove(&session);
        }
    }

    /// The process ends, and another one opens what it left. Half a step may have made that worthless.
    fn restart(&mut self, half: bool) {
        self.tell(|| "restart".to_owned());
        // One that ends before all has been looked at again may forget what was there before others looked.
        let growing = self.index.pending_len() > 0;
        self.flights.clear();
        self.undelivered.clear();
        self.lost = false;
        self.world.restart();
        self.epochs += 1;
        let storage = self.index.storage_mut().after_the_end();
        self.index = Index::open(storage, &format!("epoch-{}", self.epochs)).unwrap();
        for held in all_held(&mut self.sessions) {
            held.excused |= half || growing;
        }
        match self.index.wake() {
            Ok(checks) => self.order(checks),
            Err(error) => {
                assert!(half, "{error}");
                self.begin_anew();
            }
        }
    }

    fn begin_anew(&mut self) {
        self.tell(|| "an empty index".to_owned());
        self.flights.clear();
        self.sessions.clear();
        self.index = Index::open(Twin::default(), "epoch-anew").unwrap();
        assert_eq!(self.index.wake().unwrap(), []);
    }

    fn lines(&self, session: u32) -> (BTreeMap<String, Line>, BTreeMap<String, Row>) {
        let view = self.index.view(SessionNo(session), Listed::AllUpTo(100), None).unwrap().unwrap();
        let rows = self.index.rows(SessionNo(session)).unwrap();
        let lines = view.lines.into_iter().map(|line| (line.id.clone(), line)).collect();
        (lines, rows.into_iter().map(|row| (row.id.clone(), row)).collect())
    }

    /// All word has come, and not every look has answered: what is told for certain is true.
    fn barrier_and_check(&mut self) {
        self.barrier();
        let mut sessions = std::mem::take(&mut self.sessions);
        for (&session, results) in &mut sessions {
            let (lines, rows) = self.lines(session);
            assert!(lines.keys().eq(results.keys()), "{:?} {:?}", lines.keys(), results.keys());
            for (id, held) in results {
                let rows = rows_of(&rows, id);
                held.iter_mut().zip(&rows).for_each(|(held, row)| held.learn(row));
                let truths: Vec<_> =
                    held.iter().zip(&rows).map(|(held, row)| held.is_true(row, &self.world)).collect();
                let freshness = lines[id].freshness;
                match freshness {
                    Freshness::Unknown(_) => {}
                    Freshness::Fresh => assert!(!truths.contains(&Some(false)), "false fresh: {held:#?}"),
                    Freshness::Stale(_) => assert!(
                        truths.iter().any(|truth| *truth != Some(true)),
                        "false stale: {:?} {held:#?}",
                        lines[id]
                    ),
                }
                let suspect = rows.iter().any(|row| self.index.is_pending(row.source_id.unwrap()));
                assert!(!suspect || freshness == VERIFYING, "{id} is being verified: {freshness:?}");
            }
        }
        self.sessions = sessions;
    }

    fn settle_and_judge(&mut self) {
        self.settle_all();
        self.tell(|| "settled".to_owned());
        assert_eq!(self.index.pending_len(), 0);
        super::judge::judge_tally(&self.index);
        let mut sessions = std::mem::take(&mut self.sessions);
        let mut all_fresh = true;
        for (&session, results) in &mut sessions {
            assert_eq!(self.index.suspects(SessionNo(session)), 0, "suspects of {session}");
            let (lines, rows) = self.lines(session);
            let mut counts = (0, 0);
            for (id, held) in results {
                let line = &lines[id];
                counts.0 += u32::from(matches!(line.freshness, Freshness::Stale(_)));
                counts.1 += u32::from(matches!(line.freshness, Freshness::Unknown(_)));
                all_fresh &= line.freshness == Freshness::Fresh;
                let rows = rows_of(&rows, id);
                held.iter_mut().zip(&rows).for_each(|(held, row)| held.learn(row));
                if rows[0].role == Role::Result {
                    held[0].judge(rows[0], line.freshness, line.detail.changed.as_ref(), &self.world);
                    continue;
                }
                let inputs: Vec<Line> = self
                    .index
                    .lines_of(SessionNo(session), &rows.iter().map(|&row| row.clone()).collect::<Vec<_>>())
                    .unwrap();
                let truths: Vec<_> =
                    held.iter().zip(&rows).map(|(held, row)| held.is_true(row, &self.world)).collect();
                if let Some(said) = of_inputs(&truths) {
                    assert_eq!(line.freshness, said, "{held:#?}");
                }
                for ((held, row), input) in held.iter_mut().zip(&rows).zip(&inputs) {
                    held.judge(row, input.freshness, input.detail.changed.as_ref(), &self.world);
                }
                let first = inputs.iter().find(|input| input.freshness != Freshness::Fresh);
                assert_eq!(line.detail.changed, first.and_then(|input| input.detail.changed.clone()));
            }
            let summary = self.index.summary(SessionNo(session)).unwrap();
            assert_eq!(
                (summary.rows as usize, summary.stale, summary.unknown),
                (lines.len(), counts.0, counts.1)
            );
        }
        self.sessions = sessions;
        if all_fresh {
            assert_eq!(self.index.storage_mut().len(Table::Changes), 0, "nobody is stale");
        }
    }

    /// When the last session is gone, so is everything that was kept for it.
    fn leave_nothing(&mut self) {
        self.index.storage_mut().fail_after(0);
        for session in std::mem::take(&mut self.sessions).into_keys() {
            self.index.drop_session(SessionNo(session)).unwrap();
        }
        assert_eq!(self.index.pending_len(), 0);
        let twin = self.index.storage_mut();
        for table in [
            Table::Names,
            Table::Summaries,
            Table::Heads,
            Table::Rows,
            Table::Marks,
            Table::Sources,
            Table::Keys,
            Table::Entries,
            Table::Changes,
        ] {
            let mut left = Vec::new();
            twin.scan(table, &[], &mut |key, _| left.push(key.to_vec())).unwrap();
            assert!(left.is_empty(), "{table:?} still holds {left:?}");
        }
    }
}

fn all_held(sessions: &mut Sessions) -> impl Iterator<Item = &mut Held> {
    sessions.values_mut().flat_map(BTreeMap::values_mut).flatten()
}

/// What a look found, in few words.
fn brief(looked: &Looked) -> String {
    let Looked::Listing(listing) = looked else { return format!("{looked:?}") };
    let entry = |entry: &Entry| {
        let digest = entry.digest.map(|digest| digest.short());
        format!("{:?} {} {digest:?} {:?}", entry.kind, entry.inode.ino, entry.doubt)
    };
    let entries = listing.entries.iter();
    let entries = entries.map(|(name, held)| format!("{}: {:?}", name.display(), held.as_ref().map(entry)));
    let entries: Vec<String> = entries.collect();
    format!("inode {} whole {} {}", listing.inode.ino, listing.whole, entries.join(", "))
}

/// The row of a result, or the rows of its inputs.
fn rows_of<'rows>(rows: &'rows BTreeMap<String, Row>, id: &str) -> Vec<&'rows Row> {
    let row = &rows[id];
    if row.inputs.is_empty() {
        return vec![row];
    }
    (0..row.inputs.len()).map(|number| &rows[&format!("{id}#{number}")]).collect()
}

//! One run: a daemon, an operator, sessions, and the tale of what happened for when something is wrong.

use super::head;
use super::layout::{self, Place};
use super::operations::Operation;
use super::oracle::{Compared, Rescan};
use super::process::Operator;
use super::sessions::Session;
use super::trees;
use crate::harness::{Daemon, PATIENCE, ask};
use fastrand::Rng;
use serde_json::{Value, json};
use staled::client::Client;
use staled::config::Config;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SESSIONS: usize = 4;
/// Operations told when something is wrong.
const TOLD: usize = 20;

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Files,
    Trees,
}

pub(super) struct Run {
    about: About,
    pub(super) chance: Rng,
    name: &'static str,
    seed: u64,
    left: u64,
    begun: Instant,
    daemon: Option<Daemon>,
    client: Client,
    operator: Operator,
    world: PathBuf,
    places: Vec<Place>,
    commits: Vec<String>,
    sessions: Vec<Session>,
    told: VecDeque<String>,
    counts: Counts,
    // Last: everything above lives in it.
    place: crate::harness::Place,
}

#[derive(Debug, Default)]
struct Counts {
    operations: u64,
    done: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    answers: u64,
    fresh: u64,
    stale: u64,
    unknown: u64,
    patience: u64,
}

impl Run {
    pub(super) fn begin(name: &'static str, operations: u64, about: About) -> Self {
        let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
        let seed = number("STALED_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
        let mut chance = Rng::with_seed(seed);
        let place = crate::harness::Place::new();
        let world = place.root.clone();
        head::seed(&world);
        layout::build(&world).expect("the world can be built");
        let daemon = Daemon::start_with(&place.home, config(about));
        let mut client = daemon.client();
        let places = if about == About::Trees { trees::places() } else { layout::places(&world) };
        let commits = head::commits(&world);
        let mut rescan = Rescan::of(&world.join("r"));
        let names = (0..SESSIONS).map(|number| format!("session-{number}"));
        let imagine = |name: String| Session::imagine(&name, &places, &mut rescan, &commits, &mut chance);
        let mut sessions: Vec<Session> = names.map(imagine).collect();
        for session in &mut sessions {
            session.register(&mut client, &world.join("r"));
        }
        Self {
            about,
            chance,
            name,
            seed,
            left: number("STALED_FUZZ_OPS").unwrap_or(operations),
            begun: Instant::now(),
            client,
            operator: Operator::start(&world),
            daemon: Some(daemon),
            world,
            places,
            commits,
            sessions,
            told: VecDeque::new(),
            counts: Counts::default(),
            place,
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Now and then a session begins anew with other beliefs, so that watches come and go.
    pub(super) fn perturb(&mut self) {
        if self.chance.u8(..12) > 0 {
            return;
        }
        let index = self.chance.usize(..SESSIONS);
        let name = self.sessions[index].name.clone();
        let mut rescan = Rescan::of(&self.world.join("r"));
        let mut session = Session::imagine(&name, &self.places, &mut rescan, &self.commits, &mut self.chance);
        if self.chance.bool() {
            self.ask("context.drop", &json!({ "session": name }));
        }
        session.register(&mut self.client, &self.world.join("r"));
        self.note(format!("{name} began anew"));
        self.sessions[index] = session;
    }

    /// Has operations performed back to back. Returns when the last system call of the last one has returned.
    pub(super) fn operate(&mut self, burst: usize) {
        let operations: Vec<Operation> = (0..burst).map(|_| self.choose()).collect();
        self.operator.send(&operations);
        if burst > 1 && self.chance.bool() {
            // Somebody who asks in the middle makes the verifiers hurry.
            let session = self.chance.usize(..SESSIONS);
            self.decide(session, 1);
        }
        self.await_done(operations);
    }

    fn choose(&mut self) -> Operation {
        match self.about {
            About::Files => Operation::choose(&mut self.chance),
            About::Trees => Operation::choose_for_trees(&mut self.chance),
        }
    }

    /// Writes that touch no name, and so give a watch that was lost no chance to be made again.
    pub(super) fn probe(&mut self) {
        for _ in 0..self.chance.u8(..4) {
            let operation = Operation::choose_write(&mut self.chance);
            if self.about == About::Trees && operation.is_by_another_name() {
                continue;
            }
            self.operator.send(std::slice::from_ref(&operation));
            self.await_done(vec![operation]);
            self.check_exactly();
        }
    }

    /// The daemon goes away, things happen, and it comes back on the same state.
    pub(super) fn restart_around(&mut self, burst: usize) {
        self.note("the daemon stopped".to_owned());
        if let Some(daemon) = self.daemon.take() {
            daemon.stop();
        }
        let sly = self.chance.bool();
        let choose = |run: &mut Self| if sly { Operation::choose_sly(&mut run.chance) } else { run.choose() };
        let operations: Vec<Operation> = (0..burst).map(|_| choose(self)).collect();
        self.operator.send(&operations);
        self.await_done(operations);
        let daemon = Daemon::start_with(&self.place.home, config(self.about));
        self.client = daemon.client();
        self.daemon = Some(daemon);
        self.note("the daemon started".to_owned());
    }

    fn await_done(&mut self, operations: Vec<Operation>) {
        for operation in operations {
            let acknowledged = self.operator.acknowledgement();
            self.counts.operations += 1;
            self.left = self.left.saturating_sub(1);
            let outcome =
                if acknowledged == "done" { &mut self.counts.done } else { &mut self.counts.refused };
            *outcome.entry(operation.kind()).or_default() += 1;
            self.note(format!("#{} {operation:?} {acknowledged}", self.counts.operations));
        }
    }

    fn note(&mut self, line: String) {
        self.told.push_back(line);
        if self.told.len() > TOLD {
            self.told.pop_front();
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.client.ask(method, params).unwrap_or_else(|error| panic!("{method}: {error}"));
        serde_json::from_str(&answer).expect("answers are JSON")
    }

    fn decide(&mut self, session: usize, deadline_ms: u64) -> Value {
        let name = self.sessions[session].name.clone();
        self.ask("decide", &json!({ "session": name, "rows": "stale", "deadline_ms": deadline_ms }))
    }

    fn status(&mut self, session: usize) -> Value {
        let name = self.sessions[session].name.clone();
        self.ask("status", &json!({ "session": name }))
    }

    /// One answer, soon; what it calls fresh must be. What is not verified yet may be unknown.
    pub(super) fn check_hastily(&mut self) {
        let session = self.chance.usize(..SESSIONS);
        let deadline_ms = [1, 5, 50, 1_000][self.chance.usize(..4)];
        let answer = self.decide(session, deadline_ms);
        let mut rescan = Rescan::of(&self.world.join("r"));
        self.compare(session, &answer, &mut rescan, false);
    }

    /// Every session, when all is verified: every row must be exactly right, in a `decide` or in a `status`.
    pub(super) fn check_exactly(&mut self) {
        let mut rescan = Rescan::of(&self.world.join("r"));
        let decided = self.chance.usize(..SESSIONS);
        for session in 0..SESSIONS {
            let begun = Instant::now();
            loop {
                let answer =
                    if session == decided { self.decide(session, 10_000) } else { self.status(session) };
                let patient = begun.elapsed() < PATIENCE / 3;
                if self.compare(session, &answer, &mut rescan, !patient) {
                    break;
                }
                self.counts.patience += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Whether every row was decided. `last` says that it must be.
    fn compare(&mut self, session: usize, answer: &Value, rescan: &mut Rescan, last: bool) -> bool {
        let operator = self.operator.pid();
        let compared = Compared::of(&self.sessions[session].beliefs, answer, rescan, operator);
        self.counts.answers += 1;
        self.counts.fresh += compared.fresh;
        self.counts.stale += compared.stale;
        self.counts.unknown += compared.unknown;
        let undecided = compared.undecided.as_ref().filter(|_| last);
        if let Some(wrong) = compared.wrong.as_ref().or(undecided) {
            self.fail(session, wrong, answer);
        }
        compared.undecided.is_none()
    }

    fn fail(&self, session: usize, wrong: &str, answer: &Value) -> ! {
        let Self { seed, name, counts, .. } = self;
        let operations = counts.operations;
        let told: Vec<&str> = self.told.iter().map(String::as_str).collect();
        panic!(
            "{wrong}\nin {} after operation {operations}, seed {seed}; the last of them:\n{}\n{}\nrun again: \
             STALED_FUZZ_SEED={seed} STALED_FUZZ_OPS={} cargo test --test staled adversary::{name} -- --exact --nocapture",
            self.sessions[session].name,
            told.join("\n"),
            answer["clock"],
            operations + self.left,
        );
    }

    /// What the daemon's own cross-check says of index and disk, from its log.
    fn paranoid_lines(&self) -> String {
        let log = std::fs::read_to_string(self.place.home.join("state/decisions.jsonl")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("paranoid_difference")).collect();
        lines.join("\n")
    }

    /// Says how much was checked.
    pub(super) fn end(mut self) {
        if self.about == About::Trees {
            let status = ask(&mut self.client, "status", &json!({}));
            let paranoid = &status["paranoid"];
            let differing = self.paranoid_lines();
            assert_eq!(
                paranoid["differences"], 0,
                "index and disk differ: {differing}\nseed {}: {status}",
                self.seed
            );
            assert!(paranoid["made"].as_u64() > Some(0), "nothing was cross-checked: {status}");
        }
        let Self { name, seed, begun, counts, .. } = self;
        let seconds = begun.elapsed().as_secs_f32();
        let Counts { operations, answers, fresh, stale, unknown, patience, .. } = counts;
        let said = format!(
            "{name}: seed {seed}, {operations} operations in {seconds:.1} s, {answers} answers, {fresh} fresh claims \
             checked, {stale} stale, {unknown} unknown, {patience} answers asked for again\n  done {:?}\n  refused {:?}\n",
            counts.done, counts.refused,
        );
        std::io::stderr().write_all(said.as_bytes()).expect("stderr is there");
        if operations >= 10_000 {
            let kinds = counts.done.len();
            assert!(kinds >= 30, "only {kinds} kinds of operations were ever done: {:?}", counts.done);
        }
    }
}

/// The deadline of `status` is the configured one. Decisions about trees are cross-checked by a rescan of their own.
fn config(about: About) -> Config {
    let mut config = Config::default();
    config.decision.deadline_ms = 10_000;
    config.verify.paranoid = about == About::Trees;
    config
}

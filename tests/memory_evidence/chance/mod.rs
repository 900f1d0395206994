//! A seeded adversary of the evidence: files are written, renamed, exchanged, linked and reverted, observations saved, saved
//! anew and forgotten, the daemon restarted, and every answer is held against a naive rescan of the bytes. Nothing may be
//! fresh that is not, and at rest nothing stale or unknown that is fresh.
//!
//! `STALED_FUZZ_OPS` is how many operations there are, `STALED_FUZZ_SEED` which; both are printed when something is wrong.

mod world;

use super::{USER, calmly, word};
use crate::harness::{Daemon, Place, ask, say};
use fastrand::Rng;
use serde_json::{Value, json};
use staled::client::Client;
use std::collections::{BTreeMap, VecDeque};
use world::{Seen, Source, World};

const OPERATIONS: u64 = 1_200;
/// Topics that observations are saved under.
const TOPICS: usize = 10;
/// Operations told when something is wrong.
const TOLD: usize = 25;

/// What an observation rests on, and what was there when it was saved.
type Grounds = Vec<(Source, Seen)>;

struct Run {
    seed: u64,
    chance: Rng,
    world: World,
    daemon: Option<Daemon>,
    client: Client,
    held: BTreeMap<u64, (String, Option<Grounds>)>,
    told: VecDeque<String>,
    operations: u64,
    answers: u64,
    words: BTreeMap<String, u64>,
    place: Place,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

impl Run {
    fn begin() -> Self {
        let seed = number("STALED_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
        let place = Place::new();
        let world = World::build(&place.root);
        let daemon = Daemon::start(&place.home);
        Self {
            seed,
            chance: Rng::with_seed(seed),
            world,
            client: daemon.client(),
            daemon: Some(daemon),
            held: BTreeMap::new(),
            told: VecDeque::new(),
            operations: 0,
            answers: 0,
            words: BTreeMap::new(),
            place,
        }
    }

    fn note(&mut self, what: String) {
        self.told.push_back(what);
        if self.told.len() > TOLD {
            self.told.pop_front();
        }
    }

    fn step(&mut self) {
        self.operations += 1;
        match self.chance.u8(..20) {
            0..12 => {
                let deed = self.world.change(&mut self.chance);
                self.note(deed);
            }
            12..17 => self.save(),
            17 => self.forget(),
            18 => {}
            _ => {
                if self.chance.u8(..15) == 0 {
                    self.restart();
                }
            }
        }
        self.judge();
    }

    /// A save with sources, without, or with none; under a topic of its own or one that is there.
    fn save(&mut self) {
        let title = format!("topic{}", self.chance.usize(..TOPICS));
        let content = format!("common {}", ["this", "that"][self.chance.usize(..2)]);
        let mut params = json!({ "user_id": USER, "type": "discovery", "title": title, "topic_key": title, "content": content });
        let grounds: Option<Vec<Source>> = match self.chance.u8(..6) {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some((0..self.chance.usize(1..4)).map(|_| World::source(&mut self.chance)).collect()),
        };
        if let Some(grounds) = &grounds {
            params["sources"] = grounds.iter().map(|source| self.world.told(source)).collect();
        }
        // Nothing moves between the look of the daemon and ours. One that was held open has no baseline: it is told again.
        let client = &mut self.client;
        let saved =
            calmly(|| ask(client, "mem_save", &params), |saved| saved.to_string().contains("live_writer"));
        let id = saved["id"].as_u64().expect("a number");
        let (_, held) = self.held.entry(id).or_insert((title.clone(), None));
        if let Some(grounds) = grounds {
            let seen = |source: Source| {
                let seen = self.world.seen(&source);
                (source, seen)
            };
            *held = (!grounds.is_empty()).then(|| grounds.into_iter().map(seen).collect());
        }
        let told =
            held.as_ref().map(|grounds| grounds.iter().map(|(source, _)| source.clone()).collect::<Vec<_>>());
        self.note(format!("{title} is saved as {id}, and rests on {told:?}"));
    }

    fn forget(&mut self) {
        let ids: Vec<u64> = self.held.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.chance.usize(..ids.len())];
        ask(&mut self.client, "mem_forget", &json!({ "user_id": USER, "id": id }));
        self.held.remove(&id);
        self.note(format!("{id} is forgotten"));
    }

    /// Now and then the world moves while nobody looks, and now and then the index is gone.
    fn restart(&mut self) {
        self.daemon.take().expect("it runs").stop();
        for _ in 0..self.chance.usize(..4) {
            let deed = self.world.change(&mut self.chance);
            self.note(format!("{deed}, while the daemon is down"));
        }
        let anew = self.chance.bool();
        if anew {
            std::fs::remove_dir_all(self.place.home.join("state/index")).expect("it is made again");
        }
        let daemon = Daemon::start(&self.place.home);
        self.client = daemon.client();
        self.daemon = Some(daemon);
        self.note(format!("a restart, {}", if anew { "without its index" } else { "with its index" }));
    }

    /// What a rescan says.
    fn expected(&self, grounds: Option<&Grounds>) -> &'static str {
        let Some(grounds) = grounds else { return "none" };
        let fresh =
            grounds.iter().all(|(source, seen)| World::is_fresh(source, seen, &self.world.seen(source)));
        if fresh { "fresh" } else { "stale" }
    }

    fn judge(&mut self) {
        let search = json!({ "user_id": USER, "query": "common", "limit": 100 });
        let client = &mut self.client;
        let answer = calmly(
            || ask(client, "mem_search", &search),
            |answer| answer.to_string().contains("live_writer"),
        );
        let found: BTreeMap<u64, Value> = answer["results"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| (entry["id"].as_u64().expect("a number"), entry.clone()))
            .collect();
        let ids: Vec<&u64> = found.keys().collect();
        let story = || {
            let (seed, operations, name) = (self.seed, self.operations, "memory_evidence::chance");
            let told: Vec<&String> = self.told.iter().collect();
            format!(
                "{told:#?}\nagain: STALED_FUZZ_SEED={seed} STALED_FUZZ_OPS={operations} cargo test --test staled -- {name}"
            )
        };
        assert_eq!(ids, self.held.keys().collect::<Vec<_>>(), "{}", story());
        for (id, entry) in &found {
            let (title, grounds) = &self.held[id];
            let (said, expected) = (word(entry), self.expected(grounds.as_ref()));
            assert_eq!(entry["title"], *title, "{}", story());
            assert_eq!(
                entry["evidence"],
                expected,
                "{id} is said to be {said}: {entry} {grounds:#?}\n{}",
                story()
            );
            *self.words.entry(said).or_default() += 1;
            self.answers += 1;
        }
    }
}

#[test]
fn every_answer_is_what_a_rescan_of_the_bytes_says() {
    let mut run = Run::begin();
    for _ in 0..number("STALED_FUZZ_OPS").unwrap_or(OPERATIONS) {
        run.step();
    }
    let Run { seed, operations, answers, words, .. } = &run;
    say(&format!("evidence by chance: seed {seed}, {operations} operations, {answers} answers, {words:?}"));
    assert!(*operations < OPERATIONS || words.len() > 4, "it was no adversary: {words:?}");
}

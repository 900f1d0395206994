//! One client of the daemon: it registers, records, decides, acknowledges, drops, listens and breaks off, and knows
//! what it was told is kept. What it is told while files stand still is compared with them.

use super::stage::{Held, Stage, count};
use crate::adversary::layout::{VERSIONS, content};
use crate::adversary::oracle::{Compared, Content, Rescan};
use crate::adversary::sessions::Session;
use crate::harness::{digest, wait_until};
use fastrand::Rng;
use serde_json::{Value, json};
use staled::client::{Client, ClientError, Subscription};
use staled::protocol::request::Subscribe;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Sessions of one client.
pub(super) const SESSIONS: usize = 3;

/// How long a client asks again while rows are not decided and nothing moves.
const UNDECIDED_MAX: Duration = Duration::from_secs(30);

/// The connection broke, or the daemon was about to end.
#[derive(Debug)]
pub(super) struct Lost;

pub(super) struct Agent<'stage> {
    stage: &'stage Stage,
    number: usize,
    chance: Rng,
    client: Client,
    told: Option<Subscription>,
}

impl<'stage> Agent<'stage> {
    pub(super) fn new(stage: &'stage Stage, number: usize, mut chance: Rng) -> Self {
        let client = connected(stage);
        let _still = stage.still.read().unwrap_or_else(PoisonError::into_inner);
        *stage.held(number) = (0..SESSIONS)
            .map(|session| {
                let name = format!("soak-{number}-{session}");
                Held { session: imagine(stage, &name, &mut chance), open: true }
            })
            .collect();
        Self { stage, number, chance, client, told: None }
    }

    /// Does one thing after another until it is over.
    pub(super) fn live(mut self) {
        let _ending = self.stage.ending();
        while !self.stage.is_over() {
            let lost = {
                let _busy = self.stage.calm.read().unwrap_or_else(PoisonError::into_inner);
                self.next_deed().is_err()
            };
            if lost {
                count(&self.stage.counts.lost, 1);
                self.client = connected(self.stage);
                self.told = None;
            }
        }
    }

    fn next_deed(&mut self) -> Result<(), Lost> {
        let stage = self.stage;
        let mut held = stage.held(self.number);
        if let Some(open) = held.iter_mut().find(|held| held.open) {
            return self.begin_anew(open);
        }
        let one = self.chance.usize(..held.len());
        let held = &mut held[one];
        match self.chance.u8(..24) {
            0..7 => self.ask_hastily(held),
            7..10 => self.ask_in_the_storm(held),
            10..13 => self.record(held),
            13..15 => self.acknowledge(held),
            15 => self.remove(held),
            16 => self.drop_and_begin(held),
            17 => self.begin_anew(held),
            18..20 => self.listen(held),
            20..22 => {
                self.break_off(&held.session.name);
                Ok(())
            }
            _ => {
                std::thread::sleep(Duration::from_millis(self.chance.u64(..20)));
                Ok(())
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Lost> {
        count(&self.stage.counts.requests, 1);
        let answer = ask(&mut self.client, method, params)?;
        if let (Some(seq), Some(hash)) =
            (answer["receipt"]["seq"].as_u64(), answer["receipt"]["hash"].as_str())
        {
            self.stage.keep(format!("{seq}:{hash}").parse().expect("a receipt"));
        }
        Ok(answer)
    }

    /// Registers it with other beliefs. What the daemon's own look stands in for must not move meanwhile.
    fn begin_anew(&mut self, held: &mut Held) -> Result<(), Lost> {
        let _still = self.stage.still.read().unwrap_or_else(PoisonError::into_inner);
        self.register(held)
    }

    fn register(&mut self, held: &mut Held) -> Result<(), Lost> {
        held.open = true;
        let name = held.session.name.clone();
        let mut session = imagine(self.stage, &name, &mut self.chance);
        let answer = self.ask("context.register", &session.context(&self.stage.root()))?;
        session.registered(&answer);
        self.stage.note(format!("{name} began anew"));
        *held = Held { session, open: false };
        Ok(())
    }

    fn drop_and_begin(&mut self, held: &mut Held) -> Result<(), Lost> {
        held.open = true;
        self.ask("context.drop", &json!({ "session": held.session.name }))?;
        self.begin_anew(held)
    }

    /// Another belief about a place, or about one that it had none of.
    fn record(&mut self, held: &mut Held) -> Result<(), Lost> {
        let stage = self.stage;
        let place = &stage.places[self.chance.usize(..stage.places.len())];
        let _still = stage.still.read().unwrap_or_else(PoisonError::into_inner);
        let mut rescan = Rescan::of(&stage.root());
        let places = std::slice::from_ref(place);
        let mut imagined = Session::imagine("one", places, &mut rescan, &stage.commits, &mut self.chance);
        let belief = imagined.beliefs.pop().expect("there is always one");
        let name = held.session.name.clone();
        let (list, told) = match place.kind {
            "git_head" => ("invariants", belief.told("name")),
            _ => ("results", belief.told("id")),
        };
        held.open = true;
        let answer = self.ask("context.record", &json!({ "session": name, list: [told] }))?;
        held.session.beliefs.retain(|old| old.place.id() != belief.place.id());
        held.session.beliefs.push(belief);
        held.session.registered(&answer);
        held.open = false;
        stage.note(format!("{name} recorded {}", place.id()));
        Ok(())
    }

    fn remove(&mut self, held: &mut Held) -> Result<(), Lost> {
        if held.session.beliefs.len() < 4 {
            return Ok(());
        }
        let index = self.chance.usize(..held.session.beliefs.len());
        let (name, id) = (held.session.name.clone(), held.session.beliefs[index].place.id());
        held.open = true;
        self.ask("context.record", &json!({ "session": name, "remove": [id] }))?;
        held.session.beliefs.remove(index);
        held.open = false;
        self.stage.note(format!("{name} removed {id}"));
        Ok(())
    }

    /// Says that it wrote a file itself: what stands there, or what does not. Only of files that no other row of a
    /// session goes by, under whatever spelling.
    fn acknowledge(&mut self, held: &mut Held) -> Result<(), Lost> {
        let name = held.session.name.clone();
        let once = ["deep/", "real/", "targets/", "../project/"];
        let mut known = held.session.beliefs.iter_mut().filter(|belief| {
            let place = &belief.place;
            place.kind == "file"
                && place.wide.is_none()
                && once.iter().any(|folder| place.path.starts_with(folder))
        });
        let Some(belief) = known.nth(self.chance.usize(..8)) else { return Ok(()) };
        let written = String::from_utf8(content(self.chance.u8(..VERSIONS))).expect("text");
        let path = belief.place.path.clone();
        let params = json!({ "session": name, "path": path, "digest": digest(&written) });
        belief.seen = Content::Bytes(digest(&written));
        held.open = true;
        self.ask("touch_ack", &params)?;
        held.open = false;
        self.stage.note(format!("{name} acknowledged {path}"));
        Ok(())
    }

    /// One answer, soon, while files stand still: what it calls fresh must be, and what it calls stale too.
    fn ask_hastily(&mut self, held: &Held) -> Result<(), Lost> {
        let _still = self.stage.still.read().unwrap_or_else(PoisonError::into_inner);
        self.compare_soon(held)
    }

    fn compare_soon(&mut self, held: &Held) -> Result<(), Lost> {
        let deadline_ms = [1, 5, 50, 1_000][self.chance.usize(..4)];
        let rows = if self.chance.bool() { "stale" } else { "all" };
        let params = json!({ "session": held.session.name, "rows": rows, "deadline_ms": deadline_ms });
        let answer = self.ask("decide", &params)?;
        let mut rescan = Rescan::of(&self.stage.root());
        compare(self.stage, &held.session, &answer, &mut rescan, false);
        Ok(())
    }

    /// Answers while everything moves, which are true of no moment that anybody could name.
    fn ask_in_the_storm(&mut self, held: &Held) -> Result<(), Lost> {
        let name = &held.session.name;
        for _ in 0..self.chance.u8(1..16) {
            let (method, params) = match self.chance.u8(..5) {
                0 => ("status", json!({ "session": name })),
                1 => ("status", json!({})),
                2 => ("context.get", json!({ "session": name })),
                _ => ("decide", json!({ "session": name, "deadline_ms": self.chance.u64(..200) })),
            };
            self.ask(method, &params)?;
        }
        Ok(())
    }

    /// Hears what happens for a while, reads some of it or none, and is gone without a word.
    fn listen(&mut self, held: &Held) -> Result<(), Lost> {
        let Some(told) = &mut self.told else {
            let topics = ["staleness", "decision", "gap"].map(str::to_owned).to_vec();
            let session = self.chance.bool().then(|| held.session.name.clone());
            let client = Client::connect(&self.stage.socket).map_err(|_| Lost)?;
            self.told = Some(client.subscribe(&Subscribe { topics, session }).map_err(|_| Lost)?);
            return Ok(());
        };
        if self.chance.u8(..4) == 0 {
            self.told = None;
            return Ok(());
        }
        for _ in 0..self.chance.usize(..200) {
            match told.next(Duration::from_millis(1)) {
                Ok(Some(_)) => count(&self.stage.counts.events, 1),
                Ok(None) => break,
                Err(_) => return Err(Lost),
            }
        }
        Ok(())
    }

    /// A connection that dies in the middle of something.
    fn break_off(&mut self, session: &str) {
        let Ok(mut stream) = UnixStream::connect(&self.stage.socket) else { return };
        count(&self.stage.counts.died, 1);
        let request = |method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string() + "\n"
        };
        let doomed = json!({
            "session": format!("doomed-{}", self.number), "root": self.stage.root(),
            "results": [{ "id": "a", "source": { "kind": "tree", "path": "../project" } }]
        });
        let line = match self.chance.u8(..5) {
            0 => request("decide", json!({ "session": session, "deadline_ms": 5_000 })),
            1 => request("context.register", doomed),
            2 => request("subscribe", json!({ "topics": ["staleness"] })),
            3 => request("status", json!({ "session": session })).repeat(40),
            _ => request("context.register", json!({ "session": "x".repeat(100_000) })),
        };
        let whole = if self.chance.bool() { line.len() } else { self.chance.usize(..line.len()) };
        // Whether anybody still reads is the daemon's affair.
        let _ = stream.write_all(&line.as_bytes()[..whole]);
        if self.chance.bool() {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

/// A client with one session, that only compares, and is called while nothing moves.
pub(super) struct Asker<'stage> {
    agent: Agent<'stage>,
    held: Held,
}

impl<'stage> Asker<'stage> {
    pub(super) fn new(stage: &'stage Stage, mut chance: Rng) -> Self {
        let session = imagine(stage, "soak-asker", &mut chance);
        let agent = Agent { stage, number: usize::MAX, client: connected(stage), chance, told: None };
        Self { agent, held: Held { session, open: true } }
    }

    pub(super) fn ask_at_once(&mut self) {
        let asked = if self.held.open || self.agent.chance.u8(..40) == 0 {
            self.agent.register(&mut self.held)
        } else {
            self.agent.compare_soon(&self.held)
        };
        if asked.is_err() {
            // Not waited for: whoever asks here lets nobody else ask.
            let Ok(client) = Client::connect(&self.agent.stage.socket) else { return };
            self.agent.client = client;
        }
    }
}

/// All sessions of all clients, while everybody rests: every row must be exactly right.
pub(super) fn check_exactly(stage: &Stage, chance: &mut Rng) {
    let _resting = stage.calm.write().expect("nobody failed");
    let mut client = connected(stage);
    let mut rescan = Rescan::of(&stage.root());
    for number in 0..stage.clients.len() {
        for held in stage.held(number).iter().filter(|held| !held.open) {
            let begun = Instant::now();
            loop {
                let name = &held.session.name;
                let answer = if chance.bool() {
                    ask(&mut client, "decide", &json!({ "session": name, "deadline_ms": 10_000 }))
                } else {
                    ask(&mut client, "status", &json!({ "session": name }))
                };
                let answer = answer.expect("the daemon runs");
                if compare(stage, &held.session, &answer, &mut rescan, begun.elapsed() > UNDECIDED_MAX) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Whether every row is decided. `last` says that it must be.
fn compare(stage: &Stage, session: &Session, answer: &Value, rescan: &mut Rescan, last: bool) -> bool {
    let compared = Compared::of(&session.beliefs, answer, rescan, stage.operator);
    count(&stage.counts.claims, compared.fresh);
    count(&stage.counts.stale, compared.stale);
    count(&stage.counts.unknown, compared.unknown);
    let undecided = compared.undecided.as_ref().filter(|_| last);
    if let Some(wrong) = compared.wrong.as_ref().or(undecided) {
        panic!("{wrong}\nin {}\n{}\n{}", session.name, stage.tale(), answer["clock"]);
    }
    compared.undecided.is_none()
}

pub(super) fn connected(stage: &Stage) -> Client {
    let mut client = None;
    wait_until("the daemon is there", || {
        client = Client::connect(&stage.socket).ok();
        client.is_some() || stage.is_over()
    });
    client.expect("it is there, or something failed before")
}

/// Asks; every report passes the gate.
pub(super) fn ask(client: &mut Client, method: &str, params: &Value) -> Result<Value, Lost> {
    let answer = match client.ask(method, params) {
        Ok(answer) => answer,
        Err(ClientError::Refused(refusal)) if refusal.word() == Some("shutting_down") => return Err(Lost),
        Err(error @ (ClientError::Refused(_) | ClientError::Late { .. })) => {
            panic!("{method} {params}: {error}")
        }
        Err(_) => return Err(Lost),
    };
    let answer: Value = serde_json::from_str(&answer).expect("answers are JSON");
    if method == "decide" {
        let faults = staled::protocol::gate::check(&answer);
        assert!(faults.is_empty(), "the gate refuses {answer}: {faults:?}");
    }
    Ok(answer)
}

fn imagine(stage: &Stage, name: &str, chance: &mut Rng) -> Session {
    let mut rescan = Rescan::of(&stage.root());
    Session::imagine(name, &stage.places, &mut rescan, &stage.commits, chance)
}

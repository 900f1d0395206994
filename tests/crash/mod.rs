//! A daemon in a child process, killed right behind an acknowledgement, again and again: everything acknowledged is
//! there, and the decision is what a plain rescan says.

mod compaction;
mod index;
mod log;
mod opening;
mod points;
mod rotation;
pub(crate) mod traced;

use crate::harness::{PATIENCE, Place, digest, wait_until};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::config::Config;
use staled::daemon::{self, Command, Folders, Start};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Stdio};

const HOME: &str = "STALED_TEST_CRASH_HOME";
const KILLS: usize = 36;
const WRITERS: usize = 3;

/// The child's side: no test, unless somebody says where the daemon should live.
#[test]
fn a_daemon_to_be_killed() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let folders = Folders::below(Path::new(&home));
    let (stop, _) = tokio::sync::watch::channel(Command::Run);
    let mut config = Config::default();
    // A kill is as likely to hit a compaction as anything else.
    config.journal.compact_bytes = 4_096;
    // No test writes in the journal of the machine.
    config.log.anchor_lines = 0;
    daemon::run(Start { config, config_file: None, folders }, stop, None).expect("a daemon");
}

pub(crate) struct Victim(Child);

impl Victim {
    pub(crate) fn start(home: &Path) -> Self {
        let program = std::env::current_exe().expect("we run");
        let mut child = std::process::Command::new(program);
        child.args(["--exact", "crash::a_daemon_to_be_killed", "--nocapture"]).env(HOME, home);
        let mut victim = Self(child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child"));
        wait_until("the child answers", || {
            assert!(victim.0.try_wait().expect("a child").is_none(), "the daemon did not start again");
            Client::connect(&Folders::below(home).socket)
                .is_ok_and(|mut client| client.ask("hello", &json!({})).is_ok())
        });
        victim
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("a signal");
        self.0.wait().expect("an end");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Killed already, most of the time.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a client was told is kept: digest by id, and what was refuted.
#[derive(Debug, Clone, Default, PartialEq)]
struct Session {
    seen: BTreeMap<String, String>,
    refuted: BTreeSet<String>,
}

/// One writer's sessions, and the one that its last, unanswered request may have changed.
#[derive(Default)]
struct Model {
    sessions: BTreeMap<String, Session>,
    open: Option<(String, Option<Session>)>,
}

/// Files that all sessions rest on; nobody changes them while a daemon runs.
const FILES: usize = 8;

fn content(place: &Place, path: &str) -> String {
    std::fs::read_to_string(place.root.join(path)).expect("a file")
}

/// One request, and what it makes of the session if it is answered. `None` is a session that is gone.
fn next_deed(
    place: &Place,
    model: &Model,
    writer: usize,
    random: &mut fastrand::Rng,
) -> (&'static str, Value, String, Option<Session>) {
    let known: Vec<&String> = model.sessions.keys().collect();
    let name = match known.len() {
        0..3 => format!("w{writer}-{}", random.u32(..)),
        len => known[random.usize(..len)].clone(),
    };
    let held = model.sessions.get(&name);
    let path = format!("f{}", random.usize(..FILES));
    let text = if random.bool() { content(place, &path) } else { "another".to_owned() };
    let result = json!({ "id": path, "source": { "kind": "file", "path": path }, "digest": digest(&text) });
    let Some(held) = held else {
        let mut new = Session::default();
        new.seen.insert(path, digest(&text));
        return (
            "context.register",
            json!({ "session": name, "root": place.root, "results": [result] }),
            name,
            Some(new),
        );
    };
    let mut new = held.clone();
    match random.u8(..10) {
        0..4 => {
            new.seen.insert(path.clone(), digest(&text));
            new.refuted.remove(&path);
            ("context.record", json!({ "session": name, "results": [result] }), name, Some(new))
        }
        4 if held.seen.len() > 1 => {
            let gone = held.seen.keys().next().expect("more than one").clone();
            new.seen.remove(&gone);
            new.refuted.remove(&gone);
            ("context.record", json!({ "session": name, "remove": [gone] }), name, Some(new))
        }
        5 => ("context.drop", json!({ "session": name }), name, None),
        6 => {
            let target = held.seen.keys().last().expect("at least one").clone();
            new.refuted.insert(target.clone());
            ("fact.refute", json!({ "session": name, "source": target }), name, Some(new))
        }
        7 => {
            // No digest: the daemon's own look is the baseline, and the world stands still.
            let now = digest(&content(place, &path));
            new.seen.insert(path.clone(), now);
            new.refuted.remove(&path);
            let result = json!({ "id": path, "source": { "kind": "file", "path": path } });
            ("context.record", json!({ "session": name, "results": [result] }), name, Some(new))
        }
        _ => {
            let target = held.seen.keys().next().expect("at least one").clone();
            new.seen.insert(target.clone(), digest("own"));
            new.refuted.remove(&target);
            (
                "touch_ack",
                json!({ "session": name, "path": target, "digest": digest("own") }),
                name,
                Some(new),
            )
        }
    }
}

/// Talks until the daemon is gone.
fn talk(
    place: &Place,
    socket: &Path,
    model: &mut Model,
    writer: usize,
    seed: u64,
    acknowledged: &std::sync::atomic::AtomicUsize,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    let Ok(mut client) = Client::connect(socket) else { return };
    loop {
        let (method, params, name, after) = next_deed(place, model, writer, &mut random);
        match client.ask(method, &params) {
            Ok(_) => {
                match after {
                    Some(session) => model.sessions.insert(name, session),
                    None => model.sessions.remove(&name),
                };
                acknowledged.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            Err(ClientError::Refused(refusal)) => panic!("{method} {params}: {refusal}"),
            Err(_) => {
                model.open = Some((name, after));
                return;
            }
        }
    }
}

/// What the daemon says a session is; `None` when there is none.
fn asked(client: &mut Client, name: &str) -> Option<Session> {
    let got = match client.ask("context.get", &json!({ "session": name })) {
        Ok(got) => serde_json::from_str::<Value>(&got).expect("JSON"),
        Err(ClientError::Refused(refusal)) if refusal.word() == Some("no_session_context") => return None,
        Err(error) => panic!("{name}: {error}"),
    };
    let mut session = Session::default();
    for result in got["results"].as_array().expect("results") {
        // A baseline that no look could take before the end is missing; its request was never answered.
        let digest = result["digest"].as_str().unwrap_or("missed");
        session.seen.insert(result["id"].as_str().expect("an id").to_owned(), digest.to_owned());
    }
    let report =
        client.ask("decide", &json!({ "session": name, "deadline_ms": 10_000 })).expect("a decision");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    for row in report["staleness_results"].as_array().expect("rows") {
        if row["cause"] == "refuted" {
            session.refuted.insert(row["result_id"].as_str().expect("an id").to_owned());
        }
    }
    Some(session)
}

/// The decision against a rescan by hand.
fn assert_true_to_the_world(place: &Place, client: &mut Client, name: &str, session: &Session, story: &str) {
    let stale: BTreeSet<&str> = session
        .seen
        .iter()
        .filter(|(path, seen)| session.refuted.contains(*path) || **seen != digest(&content(place, path)))
        .map(|(path, _)| path.as_str())
        .collect();
    let report =
        client.ask("decide", &json!({ "session": name, "deadline_ms": 10_000 })).expect("a decision");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let said: BTreeSet<&str> =
        report["stale"].as_array().expect("ids").iter().map(|id| id.as_str().expect("an id")).collect();
    assert_eq!(said, stale, "{name}, {story}: {report}");
    assert_eq!(report["transition"], if stale.is_empty() { "resume" } else { "fresh" }, "{name}, {story}");
}

#[test]
fn everything_acknowledged_survives_every_kill() {
    let place = Place::new();
    (0..FILES).for_each(|i| place.write(&format!("f{i}"), "first"));
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let socket = Folders::below(&place.home).socket;
    let mut models: Vec<Model> = (0..WRITERS).map(|_| Model::default()).collect();
    for kill in 0..KILLS {
        let story = format!("seed {seed}, kill {kill}");
        let mut victim = Victim::start(&place.home);
        let acknowledged = std::sync::atomic::AtomicUsize::new(0);
        let enough = random.usize(1..25);
        std::thread::scope(|scope| {
            for (writer, model) in models.iter_mut().enumerate() {
                let (place, socket, acknowledged, seed) = (&place, &socket, &acknowledged, random.u64(..));
                scope.spawn(move || talk(place, socket, model, writer, seed, acknowledged));
            }
            let begun = std::time::Instant::now();
            while acknowledged.load(std::sync::atomic::Ordering::SeqCst) < enough {
                assert!(begun.elapsed() < PATIENCE, "nothing is acknowledged, {story}");
                std::thread::yield_now();
            }
            victim.kill();
        });
        // The world goes on while nobody looks.
        if random.bool() {
            place.write(
                &format!("f{}", random.usize(..FILES)),
                ["first", "another", "own"][random.usize(..3)],
            );
        }
        let mut victim = Victim::start(&place.home);
        let client = &mut Client::connect(&socket).expect("the daemon answers");
        for model in &mut models {
            if let Some((name, after)) = model.open.take() {
                let (found, before) = (asked(client, &name), model.sessions.get(&name).cloned());
                let as_asked = found == after || missed_only(found.as_ref(), after.as_ref());
                assert!(
                    found == before || as_asked,
                    "{name}, {story}: {found:?} is neither {before:?} nor {after:?}"
                );
                match found {
                    Some(session) => model.sessions.insert(name, session),
                    None => model.sessions.remove(&name),
                };
            }
            for (name, session) in &model.sessions {
                let found = asked(client, name);
                assert_eq!(found.as_ref(), Some(session), "{name}, {story}");
                assert_true_to_the_world(&place, client, name, session, &story);
            }
        }
        victim.kill();
    }
    let log = Folders::below(&place.home).state.join("decisions.jsonl");
    let verdict = staled::store::decision_log::verify(&log, None).expect("a log");
    assert!(!matches!(verdict.outcome, staled::store::decision_log::Outcome::Broken { .. }), "{verdict:?}");
}

/// An unanswered registration without a digest may have lost its baseline, and nothing else.
fn missed_only(found: Option<&Session>, after: Option<&Session>) -> bool {
    let (Some(found), Some(after)) = (found, after) else { return false };
    let same = |(path, seen): (&String, &String)| after.seen.get(path) == Some(seen) || seen == "missed";
    found.refuted == after.refuted && found.seen.keys().eq(after.seen.keys()) && found.seen.iter().all(same)
}

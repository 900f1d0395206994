//! A decision log on a disk that fails to sync, or takes its time: nothing is answered that is not logged, what was
//! answered stands, and whoever needs no sync is not held up.

use super::traced::Traced;
use crate::harness::{PATIENCE, Place, file, say, wait_until};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::daemon::Folders;
use staled::store::decision_log::{Outcome, Receipt, verify_files};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a slow disk lets one sync take: longer than anything else here, and than three meals of the watchdog.
const LINGER: Duration = Duration::from_secs(3);

/// A daemon whose log's syncs strace meddles with, and what it was heard to say.
struct Scene {
    place: Place,
    folders: Folders,
    traced: Traced,
    client: Client,
    receipts: Vec<Receipt>,
}

impl Scene {
    /// With one session that is fresh. `None` without strace.
    fn start(config: &str, inject: impl Fn(&Folders) -> Vec<String>, notify: Option<&Path>) -> Option<Self> {
        let place = Place::new();
        place.write("a", "1");
        let folders = Folders::below(&place.home);
        let watchdog = PathBuf::from((LINGER / 10).as_micros().to_string());
        let variables = notify
            .map(|path| vec![("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", watchdog.as_path())])
            .unwrap_or_default();
        let mut traced = Traced::start_under(&place, config, &inject(&folders), &variables)?;
        let client = traced.client(&folders.socket).expect("it serves");
        let mut scene = Self { place, folders, traced, client, receipts: Vec::new() };
        scene.register("s").expect("it is registered");
        Some(scene)
    }

    fn register(&mut self, name: &str) -> Result<String, ClientError> {
        let context = json!({ "session": name, "root": self.place.root, "results": [file("a", "1")] });
        self.client.ask("context.register", &context)
    }

    /// The transition, or the word of the refusal.
    fn decide(&mut self) -> String {
        match self.client.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 })) {
            Ok(report) => {
                let report: Value = serde_json::from_str(&report).expect("JSON");
                self.receipts.push(receipt(&report));
                report["transition"].as_str().expect("a transition").to_owned()
            }
            Err(ClientError::Refused(refusal)) => refusal.word().expect("a word").to_owned(),
            Err(error) => panic!("{error}"),
        }
    }

    fn status(&mut self) -> Value {
        serde_json::from_str(&self.client.ask("status", &json!({})).expect("a status")).expect("JSON")
    }

    fn log_files(&self) -> usize {
        let names = std::fs::read_dir(&self.folders.state).expect("a folder");
        let is_log = |name: &str| name.starts_with("decisions") && name.strip_suffix(".jsonl").is_some();
        names
            .filter(|entry| entry.as_ref().is_ok_and(|entry| is_log(&entry.file_name().to_string_lossy())))
            .count()
    }

    /// How often a file that had proven nothing was tried anew.
    fn renewals(&self) -> u32 {
        let log = std::fs::read_to_string(self.folders.state.join("decisions.jsonl")).expect("a log");
        u32::try_from(log.matches("\"log_renewed\"").count()).expect("few")
    }

    /// It ends by itself, and every receipt that it gave stands in its log.
    fn ends(mut self) {
        self.client.ask("shutdown", &json!({})).expect("an answer");
        wait_until("it is gone", || self.traced.has_ended());
        assert_eq!(self.traced.ended().and_then(|status| status.code()), Some(0));
        self.verify();
    }

    fn verify(&self) {
        let log = self.folders.state.join("decisions.jsonl");
        let verdict = verify_files(&log, &[], &self.receipts).expect("a log");
        assert!(matches!(verdict.outcome, Outcome::Verified { .. }), "{verdict:?}");
    }
}

pub(super) fn receipt(report: &Value) -> Receipt {
    let receipt = &report["receipt"];
    let (seq, hash) = (receipt["seq"].as_u64().expect("a seq"), receipt["hash"].as_str().expect("a hash"));
    format!("{seq}:{hash}").parse().expect("a receipt")
}

/// Syncs of the log, under its name and under that which a new file of it has at first: the syncer's, and those of whoever
/// begins a new file. The two count on their own.
fn syncs_of_the_log(folders: &Folders, file: &str, new_file: &str) -> Vec<String> {
    let log = folders.state.join("decisions.jsonl").display().to_string();
    let mut traced =
        ["-etrace=fsync,fdatasync", "-P", &log, "-P", &format!("{log}.new")].map(str::to_owned).to_vec();
    let injected = [("fdatasync", file), ("fsync", new_file)].map(|(call, when)| match when {
        "" => None,
        when => Some(format!("-einject={call}:error=EIO:when={when}")),
    });
    traced.extend(injected.into_iter().flatten());
    traced
}

/// Mode "off" syncs for its anchors only.
const MODES: [&str; 3] = [
    "[log]\nsync = \"always\"\n",
    "[log]\nsync = \"interval\"\nsync_interval_ms = 10\n",
    "[log]\nsync = \"off\"\nanchor_lines = 2\n",
];

#[test]
fn a_log_that_could_not_be_synced_goes_on_in_a_new_file() {
    for mode in MODES {
        let once = |folders: &Folders| syncs_of_the_log(folders, "3", "");
        let Some(mut scene) = Scene::start(mode, once, None) else { return };
        let mut refused = Vec::new();
        wait_until("a sync has failed, and it decides as before", || {
            let word = scene.decide();
            if word != "resume" {
                refused.push(word);
            }
            scene.log_files() == 2 && scene.decide() == "resume"
        });
        // Who waited for that very sync is told; in the other modes nobody waits.
        let told: &[&str] = if mode.contains("always") { &["log_failed"] } else { &[] };
        assert_eq!(refused, told, "{mode}");
        let health = scene.status();
        assert_eq!(health["problems"], json!([]), "{mode}: {health}");
        assert_eq!(health["gaps"], 1, "everything was looked at again, {mode}: {health}");
        assert!(
            health["last_gap"].as_str().is_some_and(|why| why.contains("could not be synced")),
            "{health}"
        );
        let log = std::fs::read_to_string(scene.folders.state.join("decisions.jsonl")).expect("a log");
        assert!(log.contains("\"healed\"") && log.contains("could not be synced"), "{mode}: {log}");
        scene.ends();
    }
}

#[test]
fn while_no_sync_of_the_log_succeeds_nothing_is_decided() {
    for mode in MODES {
        let often = |folders: &Folders| syncs_of_the_log(folders, "3..4", "1..4");
        let Some(mut scene) = Scene::start(mode, often, None) else { return };
        let mut refused = 0;
        wait_until("it decides no more", || {
            let word = scene.decide();
            refused += usize::from(word == "log_failed");
            assert!(word == "resume" || word == "log_failed", "{mode}: {word}");
            refused > 1
        });
        let health = scene.status();
        let problems = health["problems"].to_string();
        assert!(problems.contains("the decision log failed"), "{mode}: {health}");
        // To ask how it is has it tried again, and a question that decides is not needed.
        wait_until("it is mended", || scene.status()["problems"] == json!([]));
        wait_until("it decides again", || scene.decide() == "resume");
        assert_eq!(scene.status()["problems"], json!([]), "{mode}");
        scene.ends();
    }
}

/// Files can be made, and no line in them reaches the disk.
#[test]
fn a_log_whose_syncs_keep_failing_is_one_failure_and_few_files() {
    for mode in MODES {
        let begun = Instant::now();
        let Some(mut scene) = Scene::start(mode, |folders| syncs_of_the_log(folders, "3+", ""), None) else {
            return;
        };
        wait_until("it decides no more", || scene.decide() == "log_failed");
        wait_until("new files were tried", || {
            assert_eq!(scene.decide(), "log_failed", "{mode}");
            scene.renewals() >= 3
        });
        let (renewals, elapsed) = (scene.renewals(), begun.elapsed());
        // The second file is begun at once, and renewed 100 ms after that, and 200 ms after that, and so on.
        let least = Duration::from_millis(100) * (2_u32.saturating_pow(renewals) - 1);
        assert!(elapsed >= least, "{mode}: renewed {renewals} times in {elapsed:?}");
        assert_eq!(scene.log_files(), 2, "{mode}");
        let health = scene.status();
        assert_eq!(health["gaps"], 1, "{mode}: {health}");
        assert!(health["problems"].to_string().contains("the decision log failed"), "{mode}: {health}");
        scene.verify();
    }
}

/// A request that is under way, and whose answer nobody has read.
struct Asked(BufReader<UnixStream>);

impl Asked {
    fn ask(scene: &Scene, method: &str, params: &Value) -> Self {
        let mut stream = UnixStream::connect(&scene.folders.socket).expect("it serves");
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        stream.write_all(format!("{line}\n").as_bytes()).expect("it reads");
        Self(BufReader::new(stream))
    }

    fn is_answered(&mut self) -> bool {
        self.0.get_ref().set_nonblocking(true).expect("ours");
        match self.0.fill_buf() {
            Ok(bytes) => !bytes.is_empty(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }

    fn answer(mut self) -> Value {
        self.0.get_ref().set_nonblocking(false).expect("ours");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }
}

/// systemd, which counts how often its watchdog is fed. It reads all the time: a daemon that tells it something waits for it.
struct Watchdog {
    socket: PathBuf,
    fed: Arc<AtomicUsize>,
    _place: Place,
}

impl Watchdog {
    fn start() -> Self {
        let place = Place::new();
        let socket = place.root.join("notify");
        let systemd = UnixDatagram::bind(&socket).expect("a datagram socket");
        systemd.set_read_timeout(Some(PATIENCE)).expect("a bound");
        let fed = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&fed);
        std::thread::spawn(move || {
            let mut message = [0; 1024];
            while let Ok(len) = systemd.recv(&mut message) {
                counted.fetch_add(usize::from(message[..len].starts_with(b"WATCHDOG=1")), Ordering::SeqCst);
            }
        });
        Self { socket, fed, _place: place }
    }
}

/// Whoever waits for this sync waits; who does not is answered meanwhile, and the watchdog is fed. It stops in time.
fn is_not_held_up(config: &str, slow: impl Fn(&Folders) -> Vec<String>, method: &str, own: &[&str]) {
    let watchdog = Watchdog::start();
    let Some(mut scene) = Scene::start(config, slow, Some(&watchdog.socket)) else { return };
    let root = scene.place.root.clone();
    let params = |number: usize| match method {
        "decide" => json!({ "session": "s", "deadline_ms": 10_000 }),
        _ => {
            json!({ "session": format!("t{number}"), "root": root, "results": [file("a", "1")] })
        }
    };
    let mut waits = Asked::ask(&scene, method, &params(0));
    let before = watchdog.fed.load(Ordering::SeqCst);
    for word in own {
        match *word {
            "decide" => assert_eq!(scene.decide(), "resume"),
            method => drop(scene.client.ask(method, &json!({})).expect("an answer")),
        }
    }
    wait_until("the watchdog is fed three times", || watchdog.fed.load(Ordering::SeqCst) >= before + 3);
    assert!(!waits.is_answered(), "{method} waits for its sync");
    let answer = waits.answer();
    assert!(answer["error"].is_null(), "{answer}");
    if method == "decide" {
        scene.receipts.push(receipt(&answer["result"]));
    }

    // One more is under way when it is told to stop: it is answered, and the end comes within the bound.
    let last = Asked::ask(&scene, method, &params(1));
    scene.client.ask("hello", &json!({})).expect("an answer");
    let begun = Instant::now();
    kill_process(scene.traced.pid().expect("it runs"), Signal::TERM).expect("ours");
    let answer = last.answer();
    assert!(answer["error"].is_null(), "{answer}");
    wait_until("it is gone", || scene.traced.has_ended());
    assert_eq!(scene.traced.ended().and_then(|status| status.code()), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10) + LINGER, "{:?}", begun.elapsed());
    scene.verify();
    say(&format!("{method} waited for a slow sync, and nobody else did"));
}

fn lingering(path: PathBuf) -> Vec<String> {
    let linger = format!("-einject=fdatasync:delay_exit={}", LINGER.as_micros());
    ["-etrace=fdatasync", "-P", &path.display().to_string(), &linger].map(str::to_owned).to_vec()
}

#[test]
fn a_slow_sync_of_the_log_holds_up_nobody_who_does_not_wait_for_it() {
    let slow = |folders: &Folders| lingering(folders.state.join("decisions.jsonl"));
    is_not_held_up(MODES[0], slow, "decide", &["hello", "status", "context.list", "metrics"]);
}

#[test]
fn a_slow_sync_of_the_journal_holds_up_nobody_who_does_not_wait_for_it() {
    let slow = |folders: &Folders| lingering(folders.state.join("journal/00000000000000000001.seg"));
    is_not_held_up(
        MODES[1],
        slow,
        "context.register",
        &["hello", "status", "context.list", "decide", "decide"],
    );
}

#[test]
fn in_the_background_a_slow_sync_of_the_log_holds_up_no_decision() {
    let slow = |folders: &Folders| lingering(folders.state.join("decisions.jsonl"));
    let Some(mut scene) = Scene::start(MODES[1], slow, None) else { return };
    let begun = Instant::now();
    let mut decided = 0;
    while begun.elapsed() < LINGER / 2 {
        assert_eq!(scene.decide(), "resume");
        decided += 1;
    }
    assert!(decided > 10, "{decided} decisions while one sync was under way");
    scene.ends();
}

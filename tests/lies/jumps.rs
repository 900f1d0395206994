//! The wall clock jumps by hours and by centuries, forth and back, under the real program: it names moments, and decides
//! nothing. Needs libfaketime, which moves the clock of one process; the machine's stays as it is.

use crate::cli::serve::Serving;
use crate::cli::staled;
use crate::daemon::cause;
use crate::harness::{PATIENCE, Place, ask, digest, file, skipped};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::{Client, Subscription};
use staled::protocol::request::Subscribe;
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the clock jumps to, as libfaketime reads it, and the years that it then may show.
const JUMPS: [(&str, std::ops::RangeInclusive<i64>); 8] = [
    ("+1h", 2020..=2200),
    ("-1h", 2020..=2200),
    ("+3650d", 2030..=2210),
    ("@1970-01-01 00:00:01", 1969..=1970),
    ("@2240-02-29 23:59:59", 2240..=2240),
    ("@1999-12-31 23:59:59", 1999..=2000),
    ("-2d", 2020..=2200),
    ("+0", 2020..=2200),
];

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    if found.is_none() {
        skipped("libfaketime is not installed");
    }
    found
}

/// A clock that everything started with its variables goes by.
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    pub(crate) fn beside(place: &Place) -> Option<Self> {
        let clock = Self { library: library()?, file: place.home.with_file_name("clock") };
        clock.jump("+0");
        Some(clock)
    }

    pub(crate) fn jump(&self, to: &str) {
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{to}\n")).expect("a file");
        fs::rename(new, &self.file).expect("ours");
    }

    /// Waiting is by the monotonic clock, which nobody can set, and file times are the kernel's.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 5] {
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", &self.file),
            ("FAKETIME_NO_CACHE", Path::new("1")),
            ("DONT_FAKE_MONOTONIC", Path::new("1")),
            ("NO_FAKE_STAT", Path::new("1")),
        ]
    }
}

struct Jumping {
    place: Place,
    clock: Clock,
    notified: UnixDatagram,
    notify: PathBuf,
    config: String,
}

impl Jumping {
    fn begin() -> Option<Self> {
        let place = Place::new();
        let clock = Clock::beside(&place)?;
        ["a", "b"].iter().for_each(|name| place.write(name, "one\n"));
        let notify = place.home.with_file_name("notify");
        let notified = UnixDatagram::bind(&notify).expect("a datagram socket");
        let config = place.home.with_file_name("config.toml");
        // Rotation names files by the clock; every jump has some.
        fs::write(&config, "[log]\nfile_bytes_max = 4096\n[verify]\nscrub_pass_s = 1\n").expect("a file");
        let config = config.to_str().expect("UTF-8").to_owned();
        Some(Self { place, clock, notified, notify, config })
    }

    fn start(&self) -> Serving {
        let mut variables = self.clock.variables().to_vec();
        variables.extend([("NOTIFY_SOCKET", self.notify.as_path()), ("WATCHDOG_USEC", Path::new("300000"))]);
        Serving::start_under(&self.place, &["--config", &self.config], &variables)
    }

    /// Whether a cookie still comes back, and systemd is told so: everything told before is thrown away first.
    fn assert_fed(&self, when: &str) {
        let mut message = [0; 1_024];
        self.notified.set_nonblocking(true).expect("it can");
        while self.notified.recv(&mut message).is_ok() {}
        self.notified.set_nonblocking(false).expect("it can");
        self.notified.set_read_timeout(Some(PATIENCE)).expect("a bound");
        loop {
            let len = self.notified.recv(&mut message).unwrap_or_else(|error| panic!("{when}: {error}"));
            if message[..len].starts_with(b"WATCHDOG=1") {
                return;
            }
        }
    }

    /// The command line under the same clock.
    fn run(&self, daemon: &Serving, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_staled"));
        command.env_clear().env("HOME", &self.place.home).env("STALED_SOCKET", &daemon.socket);
        let output = command
            .current_dir(&self.place.root)
            .envs(self.clock.variables())
            .args(args)
            .output()
            .expect("it runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    }
}

fn decide(client: &mut Client, session: &str) -> Value {
    ask(client, "decide", &json!({ "session": session, "deadline_ms": 10_000 }))
}

/// A request that comes in pieces, the first of them before a jump.
struct Slow(UnixStream);

impl Slow {
    fn begin(daemon: &Serving) -> Self {
        let mut slow = Self(UnixStream::connect(&daemon.socket).expect("it serves"));
        slow.goes_on("{\"jsonrpc\":\"2.0\",\"id\":1,", "the beginning");
        slow
    }

    fn goes_on(&mut self, piece: &str, when: &str) {
        self.0.write_all(piece.as_bytes()).unwrap_or_else(|error| panic!("{when}: closed, {error}"));
    }

    fn ends(mut self, when: &str) {
        self.goes_on("\"hello\"}\n", when);
        self.0.set_read_timeout(Some(PATIENCE)).expect("a bound");
        let mut line = String::new();
        BufReader::new(self.0).read_line(&mut line).expect("an answer");
        assert!(line.contains("\"result\""), "{when}: {line}");
    }
}

fn year(moment: &Value) -> i64 {
    let moment = moment.as_str().expect("a moment");
    moment.split('-').next().and_then(|year| year.parse().ok()).unwrap_or_else(|| panic!("{moment}"))
}

/// Whether the subscriber is told of a row that went this way.
fn hears(told: &mut Subscription, when: &str) {
    let what = told.next(PATIENCE).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(what.is_some_and(|what| what.contains("\"event\"")), "{when}");
    // Whatever else there is has to do with the same change.
    while told.next(Duration::from_millis(20)).expect("it goes on").is_some() {}
}

#[test]
fn no_jump_of_the_wall_clock_changes_an_answer_or_ends_a_wait() {
    let Some(jumping) = Jumping::begin() else { return };
    let Jumping { place, clock, .. } = &jumping;
    let mut daemon = jumping.start();
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = |session: &str| json!({ "session": session, "root": place.root, "results": [file("a", "one\n"), file("b", "one\n")] });
    ask(&mut client, "context.register", &context("s"));
    let subscribe = Subscribe { topics: vec!["staleness".to_owned()], session: None };
    let mut told = Client::connect(&daemon.socket).expect("it serves").subscribe(&subscribe).expect("it may");
    for (turn, (to, years)) in JUMPS.into_iter().enumerate() {
        let mut slow = Slow::begin(&daemon);
        clock.jump(to);
        // Whoever is in the middle of a line is looked at again with every piece of it.
        slow.goes_on("\"method\":", to);
        let report = decide(&mut client, "s");
        assert_eq!(report["transition"], "resume", "{to}: {report}");
        assert!(years.contains(&year(&report["decided_at"])), "the clock did not jump to {to}: {report}");
        slow.ends(to);
        jumping.assert_fed(to);
        place.write("a", "two\n");
        hears(&mut told, to);
        let report = decide(&mut client, "s");
        assert_eq!(
            (cause(&report, "a").as_str(), cause(&report, "b").as_str()),
            ("content", "fresh"),
            "{to}"
        );
        let new = format!("s{turn}");
        let answer = ask(&mut client, "context.register", &context(&new));
        assert_eq!(answer["results"][0]["cause"], "born_stale", "{to}: {answer}");
        ask(&mut client, "touch_ack", &json!({ "session": new, "path": "a", "digest": digest("two\n") }));
        assert_eq!(decide(&mut client, &new)["transition"], "resume", "{to}");
        for (args, code) in [
            (&["decide", "s"][..], 11),
            (&["status", "s"], 0),
            (&["status"], 0),
            (&["tail", "-n", "3"], 0),
            (&["why", "a"], 0),
        ] {
            let (ended, said) = jumping.run(&daemon, args);
            assert_eq!(ended, Some(code), "{args:?} at {to}: {said}");
        }
        place.write("a", "one\n");
        hears(&mut told, to);
        assert_eq!(decide(&mut client, "s")["transition"], "resume", "{to}");
        assert_eq!(decide(&mut client, &new)["transition"], "fresh", "{to}");
        if turn % 3 == 2 {
            daemon = restarted(&jumping, daemon, turn % 2 == 0);
            client = Client::connect(&daemon.socket).expect("it serves");
            told = Client::connect(&daemon.socket).expect("it serves").subscribe(&subscribe).expect("it may");
        }
    }
    let health = ask(&mut client, "status", &json!({}));
    assert_eq!(
        (&health["problems"], &health["missed_events"], &health["gaps"]),
        (&json!([]), &json!(0), &json!(0)),
        "{health}"
    );
    assert!(health["uptime_s"].as_u64().is_some_and(|seconds| seconds < 600), "{health}");
    assert_log_whole(place, &daemon);
}

fn restarted(jumping: &Jumping, mut daemon: Serving, politely: bool) -> Serving {
    if politely {
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0, "{}", daemon.said());
    }
    drop(daemon);
    // What stood there while nobody looked is what is judged, whatever the clock says at the next start.
    jumping.place.write("b", "two\n");
    let daemon = jumping.start();
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    assert_eq!(cause(&decide(&mut client, "s"), "b"), "content");
    jumping.place.write("b", "one\n");
    assert_eq!(decide(&mut client, "s")["transition"], "resume");
    daemon
}

/// The chain holds over all files, every decision is judged again alike, and no name was given twice.
fn assert_log_whole(place: &Place, daemon: &Serving) {
    let log = place.home.join("state/decisions.jsonl");
    let log = log.to_str().expect("UTF-8");
    let verified = staled(place, &daemon.socket, &["log", "verify", "--log", log]);
    verified.ends(3);
    let replayed = staled(place, &daemon.socket, &["log", "replay", "--log", log]);
    replayed.ends(0);
    let files: Vec<PathBuf> = fs::read_dir(place.home.join("state"))
        .expect("ours")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("decisions")))
        .collect();
    assert!(files.len() > JUMPS.len(), "it was rotated at every jump: {files:?}");
    let (mut decisions, mut epochs, mut lines) = (HashSet::new(), HashSet::new(), HashSet::new());
    for line in files.iter().flat_map(|path| {
        fs::read_to_string(path).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()
    }) {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert!(lines.insert(line["seq"].as_u64()), "two lines with one number: {line}");
        if line["event"] == "epoch" {
            assert!(epochs.insert(line["epoch"].clone()), "an epoch twice: {line}");
        }
        if let Some(decision) = line["decision"].as_str().filter(|_| line["event"].is_null()) {
            assert!(decisions.insert(decision.to_owned()), "a decision twice: {line}");
        }
    }
    assert!(decisions.len() > 4 * JUMPS.len() && epochs.len() >= 3, "{} and {epochs:?}", decisions.len());
    staled(place, &daemon.socket, &["status"]).ends(0);
}

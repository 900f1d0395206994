//! The decision log and systemd's journal: what is told it, and what it tells about a log that somebody changed.

use super::journald::{Entry, parse, socket};
use super::offline::{NOWHERE, decided};
use super::serve::{Serving, state};
use super::{Run, program, run_of, staled};
use crate::harness::{PATIENCE, Place, ask, file};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use staled::store::decision_log::{DecisionLog, Receipt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Somewhere in 2026, in microseconds, and as a moment.
const THEN: &str = "1796032800000000";
const THEN_AS_TEXT: &str = "2026-11-30T10:00:00.000000Z";

/// A journald that only listens.
struct Journald {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journald {
    fn start(place: &Place) -> Self {
        let path = socket(place);
        let socket = UnixDatagram::bind(&path).expect("a datagram socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a bound");
        Self { socket, path }
    }

    /// The next anchor, each field once.
    fn anchor(&self) -> Entry {
        let mut bytes = [0; 4_096];
        let len = self.socket.recv(&mut bytes).expect("an anchor");
        let anchor = parse(&bytes[..len]);
        let lines = bytes[..len].split_inclusive(|byte| *byte == b'\n').count();
        assert_eq!(anchor.len(), lines, "each field is one line: {anchor:?}");
        let names: Vec<&str> = anchor.keys().map(String::as_str).collect();
        let expected = ["MESSAGE", "MESSAGE_ID", "PRIORITY", "STALED_ANCHOR_HASH", "STALED_ANCHOR_SEQ"];
        assert_eq!(names, [&expected[..], &["STALED_LOG", "SYSLOG_IDENTIFIER"]].concat());
        assert_eq!((anchor["PRIORITY"].as_str(), anchor["SYSLOG_IDENTIFIER"].as_str()), ("6", "staled"));
        assert_eq!(anchor["MESSAGE_ID"], "da8a5f30e3b54f60accffa84d7bd8ca1");
        anchor
    }

    fn is_quiet(&self) -> bool {
        self.socket.set_nonblocking(true).expect("a socket");
        let nothing = self.socket.recv(&mut [0; 16]).is_err();
        self.socket.set_nonblocking(false).expect("a socket");
        nothing
    }
}

/// The line of the log that an anchor names.
fn line_of(place: &Place, anchor: &Entry) -> Value {
    let seq: u64 = anchor["STALED_ANCHOR_SEQ"].parse().expect("a number");
    let log = state(place).join("decisions.jsonl");
    let read = staled::store::decision_log::read(&log, Some(seq - 1), 1).expect("a log");
    let line: Value = serde_json::from_str(&read[0]).expect("a line");
    assert_eq!((&line["seq"], &line["hash"]), (&json!(seq), &json!(anchor["STALED_ANCHOR_HASH"])));
    line
}

#[test]
fn the_journal_is_told_the_head_at_the_start_on_the_way_at_a_rotation_and_at_the_end() {
    let place = Place::new();
    place.write("a", "1");
    let journald = Journald::start(&place);
    let config = place.home.with_file_name("config.toml");
    let configure = |text: &str| std::fs::write(&config, format!("[log]\n{text}")).expect("a file");
    configure("anchor_lines = 5\n");
    let start = || {
        let args = ["--config", config.to_str().expect("UTF-8")];
        Serving::start_under(&place, &args, &[("STALED_JOURNAL_SOCKET", &journald.path)])
    };
    let mut all = Vec::new();
    let mut next = || {
        let anchor = journald.anchor();
        all.push(anchor.clone());
        (line_of(&place, &anchor), anchor["STALED_ANCHOR_SEQ"].parse::<u64>().expect("a number"))
    };
    let mut daemon = start();
    let id = {
        let (line, seq) = next();
        assert_eq!((line["event"].as_str(), seq), (Some("epoch"), 1));
        line["hash"].clone()
    };
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")] });
    ask(&mut client, "context.register", &context);
    let mut decide = |times: u64| -> u64 {
        let mut last = 0;
        for _ in 0..times {
            let report = ask(&mut client, "decide", &json!({ "session": "s" }));
            last = report["receipt"]["seq"].as_u64().expect("a seq");
        }
        last
    };
    assert_eq!(decide(12), 13);
    assert_eq!((next().1, next().1), (6, 11), "after every five lines");
    let status = |field: &str| {
        let socket = state(&place).join("run/staled.sock");
        staled(&place, &socket, &["status", "--json"]).ok().json()[field].clone()
    };
    assert_eq!((status("anchored_in"), status("anchors_lost")), (json!("journald"), json!(0)));
    configure("anchor_lines = 0\n");
    staled(&place, &daemon.socket, &["reload"]).ok();
    assert_eq!(status("anchored_in"), "nothing");
    assert_eq!(decide(10), 23);
    configure("anchor_lines = 1_000\nfile_bytes_max = 8_192\n");
    staled(&place, &daemon.socket, &["reload"]).ok();
    decide(1);
    assert_eq!(next().1, 24, "none while they were off, and one with the first line after");
    let (line, seq) = next();
    assert_eq!(line["event"], "log_continued", "{line}");
    let last = decide(1);
    assert!(last > seq && journald.is_quiet());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    assert_eq!(next().1, last);
    let mut daemon = start();
    let (line, seq) = next();
    assert_eq!((line["event"].as_str(), seq), (Some("epoch"), last + 1));
    daemon.signal(Signal::TERM);
    assert_eq!((daemon.ends(), next().1), (0, last + 1));
    assert!(all.iter().all(|anchor| anchor["STALED_LOG"] == id), "{all:?}");
    // What it was told is what it is asked for.
    let told: Vec<Value> = all.iter().map(|anchor| entry(&json!(anchor))).collect();
    let run = verify(&place, &state(&place).join("decisions.jsonl"), &told).ok();
    assert!(run.out.contains("; 8 anchors in the journal are among them, the newest of"), "{run:?}");
}

#[test]
fn without_a_journal_nothing_happens() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    let status = staled(&place, &daemon.socket, &["status", "--json"]).ok().json();
    assert_eq!((&status["anchored_in"], &status["anchors_lost"]), (&json!("nothing"), &json!(0)));
    assert_eq!(status["health"], "ok");
    let status = staled(&place, &daemon.socket, &["status"]).ok();
    assert!(status.out.lines().any(|line| line.trim() == "anchored in  nothing"), "{status:?}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    assert!(!daemon.said().contains("anchor"), "{}", daemon.said());
}

/// An entry as journald keeps it: what it was told, and what it knows of who told it.
fn entry(told: &Value) -> Value {
    let mut entry = told.clone();
    entry["_UID"] = rustix::process::geteuid().as_raw().to_string().into();
    entry["__REALTIME_TIMESTAMP"] = THEN.into();
    entry
}

fn anchor(log: &str, receipt: &Receipt) -> Value {
    entry(&json!({ "STALED_LOG": log, "STALED_ANCHOR_SEQ": receipt.seq.to_string(),
        "STALED_ANCHOR_HASH": receipt.hash }))
}

/// `log verify --journal` over a `journalctl` that prints these entries.
fn verify(place: &Place, log: &Path, entries: &[Value]) -> Run {
    let entries: Vec<String> = entries.iter().map(Value::to_string).collect();
    std::fs::write(place.root.join("entries"), entries.join("\n") + "\n").expect("a file");
    verify_with(place, log, "printf '%s\n' \"$@\" >asked; echo '-- No entries --'; cat entries")
}

/// The script is copied by another process: a file that one of ours had open to write may be busy when it is run.
fn verify_with(place: &Place, log: &Path, script: &str) -> Run {
    let (text, runs) = (place.root.join("text"), place.root.join("journalctl"));
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a file");
    let copied = std::process::Command::new("install").arg(&text).arg(&runs).status().expect("it runs");
    assert!(copied.success());
    let mut command = program(place);
    command.env("STALED_JOURNALCTL", &runs).env("PATH", "/usr/bin:/bin");
    command.args(["log", "verify", "--journal", "--log"]).arg(log);
    run_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs"))
}

#[test]
fn a_log_that_was_cut_or_written_anew_is_not_what_the_journal_knows() {
    let place = Place::new();
    let (_, log) = decided(&place);
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let id = lines[0]["hash"].as_str().expect("a hash");
    let receipts: Vec<Receipt> = lines
        .iter()
        .map(|line| Receipt {
            seq: line["seq"].as_u64().expect("a seq"),
            hash: line["hash"].as_str().expect("a hash").to_owned(),
        })
        .collect();
    let ours: Vec<Value> = receipts.iter().map(|receipt| anchor(id, receipt)).collect();
    let run = verify(&place, &log, &ours).ok();
    let says = format!("; 3 anchors in the journal are among them, the newest of {THEN_AS_TEXT}.\n");
    assert!(run.out.starts_with("verified  3 lines") && run.out.ends_with(&says), "{run:?}");
    let asked = std::fs::read_to_string(place.root.join("asked")).expect("it was run");
    let expected = format!("--output=json\n--no-pager\nSYSLOG_IDENTIFIER=staled\nSTALED_LOG={id}\n");
    assert_eq!(asked, expected);
    let run = verify(&place, &log, &[]).ends(3);
    assert!(run.out.contains("the journal has no anchor of them, so lines missing at the end"), "{run:?}");

    // Another user may write what he likes, and so may another log's daemon.
    let wrong = Receipt { seq: 2, hash: "0".repeat(64) };
    let mut foreign = anchor(id, &wrong);
    foreign["_UID"] = (rustix::process::geteuid().as_raw() + 1).to_string().into();
    let other = anchor(&wrong.hash, &wrong);
    verify(&place, &log, &[foreign.clone(), other.clone()]).ends(3);
    verify(&place, &log, &[foreign, ours[1].clone(), other]).ends(0);
    let run = verify(&place, &log, &[anchor(id, &wrong)]).ends(1);
    assert!(run.out.contains("the receipt for seq 2 names another line"), "{run:?}");

    // The last line is cut off.
    let cut = place.root.join("cut.jsonl");
    std::fs::write(&cut, text.lines().take(2).flat_map(|line| [line, "\n"]).collect::<String>())
        .expect("a file");
    verify(&place, &cut, &ours[..2]).ends(0);
    let run = verify(&place, &cut, &ours).ends(1);
    assert!(
        run.out.contains("no line has seq 3") && run.out.contains(&format!("of seq 3 since {THEN_AS_TEXT}.")),
        "{run:?}"
    );

    // Everything behind the first line is written anew, and seals well.
    let anew = place.root.join("anew.jsonl");
    std::fs::write(&anew, text.lines().take(1).flat_map(|line| [line, "\n"]).collect::<String>())
        .expect("a file");
    let (mut writer, _) = DecisionLog::open(&anew).expect("a log");
    for _ in 0..2 {
        writer.append("{\"transition\":\"resume\"}").expect("a line");
    }
    verify(&place, &anew, &ours[..1]).ends(0);
    let run = verify(&place, &anew, &ours).ends(1);
    assert!(
        run.out.starts_with("broken  Line 2 ")
            && run.out.contains(&format!("of seq 2 since {THEN_AS_TEXT}.")),
        "{run:?}"
    );
}

#[test]
fn anchors_of_removed_files_are_told_and_break_nothing() {
    let place = Place::new();
    let log = place.root.join("decisions.jsonl");
    let (mut writer, _) = DecisionLog::open(&log).expect("a log");
    let old: Vec<Receipt> = (0..3).map(|_| writer.append("{}").expect("a line")).collect();
    let id = writer.id().to_owned();
    let aside = place.root.join("decisions-1.jsonl");
    writer.rotate(&aside, None).expect("a rotation");
    let new = writer.append("{}").expect("a line");
    std::fs::remove_file(aside).expect("it was there");
    let anchors: Vec<Value> = old.iter().chain([&new]).map(|receipt| anchor(&id, receipt)).collect();
    let run = verify(&place, &log, &anchors).ends(0);
    // The third is the one that the file that is here says it follows.
    assert!(run.out.contains("; 2 anchors in the journal are among them"), "{run:?}");
    assert!(run.out.contains(" 2 anchors in the journal: of lines before the oldest file"), "{run:?}");
    let run = verify(&place, &log, &anchors[..2]).ends(3);
    assert!(run.out.contains(" 2 anchors in the journal: of lines before the oldest file"), "{run:?}");
}

#[test]
fn a_journal_that_cannot_be_asked_is_no_verdict() {
    let place = Place::new();
    let (_, log) = decided(&place);
    verify_with(&place, &log, "echo no permission >&2; exit 3").fails(2, "no permission");
    verify_with(&place, &log, "echo '{\"_UID\"'").fails(2, "it printed no JSON");
    // More complaints than a pipe holds.
    let run = verify_with(&place, &log, "seq 100000 >&2; exit 1");
    run.fails(2, "the journal cannot be asked");
    assert!(run.err.len() < 8_192, "{} bytes", run.err.len());
    let mut command = program(&place);
    command.env("STALED_JOURNALCTL", "/nowhere/journalctl").args(["log", "verify", "--journal", "--log"]);
    let run =
        run_of(command.arg(&log).stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs"));
    run.fails(2, "/nowhere/journalctl cannot be run");
    staled(&place, Path::new(NOWHERE), &["log", "verify", "--journal", "some.jsonl"]).fails(2, "--journal");
}

//! A journal that compacts itself beside the requests: what was told is what a restart finds, and no more of it is kept.

use super::{cause, decide, files_below};
use crate::harness::{Daemon, Place, file, wait_until};
use serde_json::{Value, json};
use staled::config::Config;
use std::fs;
use std::path::{Path, PathBuf};

fn start(place: &Place) -> Daemon {
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    // The least that it may be.
    config.journal.compact_bytes = 4_096;
    Daemon::start_with(&place.home, config)
}

/// Tells one of three sessions anew, in a record of some length.
fn tell(daemon: &Daemon, place: &Place, number: usize) {
    let context = json!({
        "session": format!("s{}", number % 3), "root": place.root, "replace": true,
        "open_questions": [format!("{number} {}", "?".repeat(900))],
        "results": [file("a", ["0", "1"][number % 2]), file("b", "1")],
    });
    daemon.ask("context.register", &context);
}

fn status(daemon: &Daemon) -> Value {
    daemon.ask("status", &json!({}))
}

fn compactions(daemon: &Daemon) -> u64 {
    status(daemon)["compactions"].as_u64().expect("a number")
}

fn journal(place: &Place) -> PathBuf {
    place.home.join("state/journal")
}

fn ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = files_below(folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    found.sort();
    found
}

/// What each session was told last: `a` as it is, or not.
fn assert_told(daemon: &Daemon, last: &[usize; 3]) {
    for (session, number) in last.iter().enumerate() {
        let report = decide(daemon, &format!("s{session}"));
        assert_eq!(cause(&report, "a"), ["born_stale", "fresh"][number % 2], "s{session}: {report}");
        assert_eq!(cause(&report, "b"), "fresh", "s{session}: {report}");
        let got = daemon.ask("context.get", &json!({ "session": format!("s{session}") }));
        let question = got["open_questions"][0].as_str().expect("a question");
        assert!(question.starts_with(&format!("{number} ")), "s{session}: {question}");
    }
}

#[test]
fn a_journal_that_grows_is_compacted_and_nothing_told_is_lost() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let mut last = [0; 3];
    let mut told = 0;
    for round in 0..3 {
        let daemon = start(&place);
        let before = compactions(&daemon);
        for _ in 0..40 {
            tell(&daemon, &place, told);
            last[told % 3] = told;
            told += 1;
        }
        wait_until("it is compacted twice, and at rest", || {
            let status = status(&daemon);
            status["compacting"] == false && status["compactions"].as_u64() >= Some(before + 2)
        });
        let status = status(&daemon);
        assert_eq!(status["problems"], json!([]), "{status}");
        let on_disk: u64 =
            files_below(&journal(&place)).iter().map(|file| file.metadata().unwrap().len()).sum();
        assert_eq!(status["journal_bytes"], on_disk);
        // Forty times a kilobyte were told in every round; what is left is three, twice, and what comes until it is due.
        assert!(on_disk < 30_000, "{on_disk} bytes after {told} records");
        assert_eq!(ending(&journal(&place), "snap").len(), 1);
        assert_told(&daemon, &last);
        daemon.stop();
        if round == 1 {
            // Nothing but the journal is left to tell it from.
            fs::remove_dir_all(place.home.join("state/index")).expect("an index");
        }
        let daemon = start(&place);
        assert_told(&daemon, &last);
        daemon.stop();
    }
    let log = fs::read_to_string(place.home.join("state/decisions.jsonl")).expect("a log");
    assert!(!log.contains("\"healed\""), "the index goes on where it stood: {log}");
}

/// What cannot be read is not thrown away; when it can be read again, it is done.
#[test]
fn a_compaction_that_fails_is_said_and_tried_again() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let daemon = start(&place);
    tell(&daemon, &place, 0);
    let first = ending(&journal(&place), "seg").remove(0);
    let mut last = [0; 3];
    // It is still the current one, and its end is appended to: the byte that is hurt stands before that.
    let hurt = |first: &Path| {
        let file = fs::OpenOptions::new().read(true).write(true).open(first).expect("a segment");
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 100).expect("a byte");
        std::os::unix::fs::FileExt::write_all_at(&file, &[byte[0] ^ 1], 100).expect("a byte");
    };
    hurt(&first);
    for number in 1..12 {
        tell(&daemon, &place, number);
        last[number % 3] = number;
    }
    let problems = |daemon: &Daemon| status(daemon)["problems"].to_string();
    wait_until("it is said", || problems(&daemon).contains("could not be compacted"));
    assert_eq!((compactions(&daemon), ending(&journal(&place), "new")), (0, vec![]));
    assert_told(&daemon, &last);
    hurt(&first);
    // Nobody has to ask for it.
    wait_until("it is done", || ending(&journal(&place), "snap").len() == 1 && !first.exists());
    wait_until("nothing is wrong any more", || problems(&daemon) == "[]");
    daemon.stop();
    fs::remove_dir_all(place.home.join("state/index")).expect("an index");
    let daemon = start(&place);
    assert_told(&daemon, &last);
}

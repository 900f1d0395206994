//! The real daemon, killed inside a compaction or slowed down in it: nothing that was answered is lost, and nobody waits.

use super::points::{Answered, BUSY, assert_kept};
use super::traced::Traced;
use crate::harness::{Daemon, Place, ask, file, say, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use staled::config::Config;
use staled::daemon::Folders;
use staled::store::journal::{Journal, Piece, peek_id};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a compaction does to a snapshot, and to a segment, which nobody else removes. strace counts each call by itself, and
/// anew in every thread, which every compaction is.
const POINTS: [(&str, &str, u32); 10] = [
    ("snap", "openat", 1),
    ("snap", "write", 1),
    ("snap", "write", 2),
    ("snap", "fsync", 1),
    ("snap", "openat", 2),
    ("snap", "rename,renameat,renameat2", 1),
    ("snap", "openat", 3),
    ("snap", "unlink,unlinkat", 1),
    ("seg", "unlink,unlinkat", 1),
    ("seg", "unlink,unlinkat", 2),
];

/// The names that files of the journal may have in the script.
fn paths(journal: &Path, ending: &str) -> Vec<String> {
    let path = |seq: u64| journal.join(format!("{seq:020}.{ending}")).display().to_string();
    let paths = (1..100).flat_map(|seq| [path(seq), format!("{}.new", path(seq))]);
    paths.flat_map(|path| ["-P".to_owned(), path]).collect()
}

/// Three sessions are told again and again, in records of some length.
fn live(place: &Place, client: &mut Client, answered: &mut Answered) -> bool {
    for number in 0..36 {
        let name = format!("k{}", number % 3);
        let seen = ["0", "1"][number % 2];
        let context = json!({
            "session": name, "root": place.root, "replace": true,
            "results": [file("a", "1"), file("b", seen)], "open_questions": ["?".repeat(900)],
        });
        answered.open = Some(name.clone());
        if client.ask("context.register", &context).is_err() {
            return false;
        }
        answered.sessions.insert(name, BTreeMap::from([("a".to_owned(), "1"), ("b".to_owned(), seen)]));
        answered.open = None;
        // On a slow machine there would otherwise be one long compaction instead of several.
        loop {
            let Ok(status) = client.ask("status", &json!({})) else { return false };
            if status.contains("\"compacting\":false") {
                break;
            }
        }
    }
    client.ask("shutdown", &json!({})).is_ok()
}

#[test]
fn a_daemon_killed_inside_a_compaction_has_kept_what_it_answered() {
    let (mut killed, mut half_made, mut in_place) = (0, 0, 0);
    for (point, (kind, calls, at)) in POINTS.into_iter().enumerate() {
        let place = Place::new();
        ["a", "b"].iter().for_each(|name| place.write(name, "1"));
        let journal = Folders::below(&place.home).state.join("journal");
        let inject = [format!("-etrace={calls}"), format!("-einject={calls}:signal=SIGKILL:when={at}")];
        let Some(mut traced) = Traced::start(&place, BUSY, &[&paths(&journal, kind)[..], &inject].concat())
        else {
            return;
        };
        let mut answered = Answered::default();
        let mut client = traced.client(&Folders::below(&place.home).socket).expect("it serves");
        live(&place, &mut client, &mut answered);
        killed += usize::from(traced.was_killed());
        half_made += ending(&journal, "new").len();
        in_place += ending(&journal, "snap").len();
        if point % 2 == 1 {
            // Everything has to be in the journal; the index alone could hide what is not.
            let _ = std::fs::remove_dir_all(place.home.join("state/index"));
        }
        assert_kept(&place, &answered, &format!("{calls} {at} of a {kind}"));
        assert_eq!(ending(&journal, "new"), Vec::<PathBuf>::new(), "what was half made is swept away");
    }
    say(&format!(
        "killed at {killed} of {} points of a compaction: {half_made} snapshots were half made, {in_place} in place",
        POINTS.len()
    ));
    assert!(killed + 1 >= POINTS.len() && half_made > 1 && in_place > 1, "the kills missed: {killed}");
}

fn ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect()
}

/// No filesystem promises to keep a name that was given, without a sync, before names that were taken away.
#[test]
fn nothing_is_removed_before_the_name_of_its_snapshot_is_on_disk() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    daemon
        .ask("context.register", &json!({ "session": "s", "root": place.root, "results": [file("a", "1")] }));
    daemon.stop();
    let folder = place.home.join("state/journal");
    let open = |told: &mut Vec<Vec<u8>>| {
        let id = peek_id(&folder).expect("a folder").expect("a journal");
        let each = &mut |piece: Piece<'_>| {
            if let Piece::Record(_, payload) = piece {
                told.push(payload.to_vec());
            }
            Ok(())
        };
        Journal::open(&folder, id, each).expect("a journal").0
    };
    let mut told = Vec::new();
    open(&mut told).roll().expect("a segment");
    // What a kill leaves between the two: nobody knows whether the snapshot's name was synced.
    open(&mut Vec::new()).closed().expect("the first segment").write(&told).expect("a snapshot");
    let trace = place.home.with_file_name("trace");
    let calls = ["-etrace=fsync,unlink,unlinkat", "-y", "-o", trace.to_str().expect("UTF-8")];
    let Some(mut traced) = Traced::start(&place, BUSY, &calls.map(ToOwned::to_owned)) else { return };
    let mut client = traced.client(&Folders::below(&place.home).socket).expect("it serves");
    assert_eq!(ask(&mut client, "decide", &json!({ "session": "s" }))["transition"], "resume");
    assert!(client.ask("shutdown", &json!({})).is_ok());
    wait_until("it is gone", || traced.has_ended());
    let trace = std::fs::read_to_string(&trace).expect("a trace");
    let calls: Vec<&str> = trace.lines().filter(|line| line.contains("state/journal")).collect();
    let removed = calls.iter().position(|call| call.contains("unlink") && call.contains("1.seg"));
    let before = &calls[..removed.expect("the first segment is removed")];
    assert!(
        before.iter().any(|call| call.contains("fsync(") && call.contains("state/journal>")),
        "{calls:?}"
    );
}

const SESSIONS: usize = 100;
const RECORDS: usize = 10_000;

/// A journal of many records in many segments, as a daemon that never compacted would have left it. Tells how it ends.
fn grow(place: &Place) -> u64 {
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1"), file("b", "0")] });
    daemon.ask("context.register", &context);
    daemon.stop();
    let folder = place.home.join("state/journal");
    let id = peek_id(&folder).expect("a folder").expect("a journal");
    let mut told = Vec::new();
    let (mut journal, _) = Journal::open(&folder, id, &mut |piece| {
        if let Piece::Record(_, payload) = piece {
            told.push(serde_json::from_slice::<Value>(payload).expect("JSON"));
        }
        Ok(())
    })
    .expect("a journal");
    journal.set_segment_bytes_max(64 * 1024);
    for number in 0..RECORDS {
        let name = json!(format!("s{}", number % SESSIONS));
        let record = if number < SESSIONS {
            let mut record = told[0].clone();
            record["told"]["context"]["session"] = name;
            record
        } else {
            // The last of them is what is there.
            let digest = crate::harness::digest(if number + SESSIONS < RECORDS { "0" } else { "1" });
            json!({ "acknowledged": { "session": name, "path": place.root.join("b"), "digest": digest, "at": number } })
        };
        journal.append(record.to_string().as_bytes()).expect("a record");
    }
    journal.roll().expect("a segment");
    journal.last_seq()
}

#[test]
fn a_large_journal_is_compacted_while_everybody_is_answered() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let last_seq = grow(&place);
    // The index has applied all of it.
    Daemon::start(&place.home).stop();
    let folders = Folders::below(&place.home);
    let journal = folders.state.join("journal");
    let aside = journal.join(format!("{last_seq:020}.snap.new"));
    let inject = ["-etrace=fsync", "-P", aside.to_str().expect("UTF-8")].map(ToOwned::to_owned);
    let delay = ["-einject=fsync:delay_enter=120000000".to_owned()];
    let Some(mut traced) = Traced::start(&place, BUSY, &[&inject[..], &delay].concat()) else { return };
    traced.client(&folders.socket).expect("it serves");
    wait_until("the snapshot is written and hangs in its sync", || {
        std::fs::metadata(&aside).is_ok_and(|found| found.len() > 10_000)
    });
    let client = &mut traced.client(&folders.socket).expect("it serves");
    let compacting = |client: &mut Client| ask(client, "status", &json!({}))["compacting"].clone();
    assert_eq!(compacting(client), true);
    for number in 0..30 {
        let name = format!("new{number}");
        let context =
            json!({ "session": name, "root": place.root, "results": [file("a", "1"), file("b", "1")] });
        ask(client, "context.register", &context);
        let old = format!("s{number}");
        let report = ask(client, "decide", &json!({ "session": old, "deadline_ms": 10_000 }));
        assert_eq!(report["transition"], "resume", "{old}: {report}");
    }
    assert_eq!((compacting(client), aside.exists()), (true.into(), true), "nobody has waited for it");
    drop(traced);
    wait_until("it is gone", || Client::connect(&folders.socket).is_err());
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.journal.compact_bytes = 4_096;
    let daemon = Daemon::start_with(&place.home, config);
    wait_until("it is done", || {
        let status = daemon.ask("status", &json!({}));
        status["compacting"] == false && status["compactions"].as_u64() > Some(0)
    });
    daemon.stop();
    let bytes: u64 = std::fs::read_dir(&journal)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().expect("a file").len())
        .sum();
    assert!(bytes < 300_000, "{RECORDS} records of {SESSIONS} sessions left {bytes} bytes");
    std::fs::remove_dir_all(place.home.join("state/index")).expect("an index");
    let daemon = Daemon::start(&place.home);
    let names = (0..SESSIONS).map(|number| format!("s{number}"));
    for name in names.chain((0..30).map(|number| format!("new{number}"))) {
        let report = daemon.ask("decide", &json!({ "session": name }));
        assert_eq!(
            (&report["transition"], &report["counts"]["results"]),
            (&json!("resume"), &json!(2)),
            "{name}"
        );
    }
    daemon.stop();
}

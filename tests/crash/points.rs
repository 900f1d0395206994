//! The real daemon, killed or failed at a system call of our choice by strace: what was answered is there.
//!
//! `STALED_POINTS` is about the number of crash points, 60 unless it says otherwise; they are spread over the calls, and
//! over the whole life of a daemon, from its first write to the last of its shutdown.

use super::log::receipt;
use super::traced::Traced;
use crate::harness::{Daemon, Place, ask, digest, file, say, wait_until};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::daemon::Folders;
use staled::store::decision_log::{Outcome, Receipt, verify_files};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;

/// The calls by which something gets onto a disk, or a name of it changes, and about how often the busiest thread of the
/// daemon makes them in the script. strace counts each call by itself, and anew in every thread; of those that stand
/// together a machine has one.
const CALLS: [(&str, usize); 10] = [
    ("write", 76),
    ("pwrite64", 24),
    ("fsync", 8),
    ("fdatasync", 40),
    ("sync_file_range", 2),
    ("ftruncate", 1),
    ("rename,renameat,renameat2", 3),
    ("link,linkat", 1),
    ("unlink,unlinkat", 5),
    ("mkdir,mkdirat", 8),
];

/// So many of each call, its first one among them; all of those that are made less often.
fn points(many: usize) -> impl Iterator<Item = (&'static str, usize)> {
    let each = many.div_ceil(6);
    CALLS.into_iter().flat_map(move |(calls, made)| {
        let tried = each.min(made);
        (0..tried).map(move |number| (calls, 1 + number * made / tried))
    })
}

/// Rotation and compaction are part of the life.
pub(super) const BUSY: &str = "[log]\nfile_bytes_max = 4096\n[journal]\ncompact_bytes = 4096\n";

/// What was answered: sessions with what each file was seen as, and the receipts of decisions. `open` is the session whose
/// last request was not answered, and may be either way.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) sessions: BTreeMap<String, BTreeMap<String, &'static str>>,
    pub(super) receipts: Vec<Receipt>,
    pub(super) open: Option<String>,
}

/// One life: registrations, acknowledgements, drops and decisions, and a shutdown at its end. True when it got so far.
fn live(place: &Place, client: &mut Client, answered: &mut Answered) -> bool {
    for number in 0..9 {
        let name = format!("s{number}");
        let results = json!([file("a", "1"), file("b", ["0", "1"][number % 2])]);
        let context = json!({ "session": name, "root": place.root, "results": results });
        let seen = BTreeMap::from([("a".to_owned(), "1"), ("b".to_owned(), ["0", "1"][number % 2])]);
        answered.open = Some(name.clone());
        if client.ask("context.register", &context).is_err() {
            return false;
        }
        answered.sessions.insert(name.clone(), seen);
        let (method, params) = match number % 3 {
            0 => ("touch_ack", json!({ "session": name, "path": "b", "digest": digest("1") })),
            1 => ("context.drop", json!({ "session": name })),
            _ => ("decide", json!({ "session": name })),
        };
        let Ok(answer) = client.ask(method, &params) else { return false };
        match number % 3 {
            0 => drop(answered.sessions.get_mut(&name).expect("registered").insert("b".to_owned(), "1")),
            1 => drop(answered.sessions.remove(&name)),
            _ => {
                let report: Value = serde_json::from_str(&answer).expect("JSON");
                answered.receipts.push(receipt(&report));
            }
        }
    }
    answered.open = None;
    client.ask("shutdown", &json!({})).is_ok()
}

pub(super) fn assert_kept(place: &Place, answered: &Answered, point: &str) {
    let daemon = Daemon::start(&place.home);
    let client = &mut daemon.client();
    for (name, seen) in answered.sessions.iter().filter(|(name, _)| answered.open.as_ref() != Some(name)) {
        let report = ask(client, "decide", &json!({ "session": name }));
        let expected = if seen.values().all(|seen| *seen == "1") { "resume" } else { "fresh" };
        assert_eq!(report["transition"], expected, "{name} after {point}: {report}");
        assert_eq!(report["counts"]["results"], 2, "{name} after {point}");
    }
    for number in (0..9).filter(|number| number % 3 == 1) {
        let name = format!("s{number}");
        if !answered.sessions.contains_key(&name) && answered.open.as_ref() != Some(&name) {
            let asked = client.ask("decide", &json!({ "session": name }));
            assert!(matches!(asked, Err(ClientError::Refused(_))), "{name} after {point}: {asked:?}");
        }
    }
    daemon.stop();
    let log = Folders::below(&place.home).state.join("decisions.jsonl");
    let verdict = verify_files(&log, &[], &answered.receipts).expect("a log");
    let whole = matches!(verdict.outcome, Outcome::Verified { .. });
    assert!(whole, "after {point}: {verdict:?}, receipts {:?}", answered.receipts);
}

#[test]
fn a_daemon_killed_at_any_call_has_kept_what_it_answered() {
    let many: usize = std::env::var("STALED_POINTS").map_or(60, |text| text.parse().expect("a number"));
    let (mut tried, mut killed, mut lived) = (0, 0, 0);
    for (calls, at) in points(many) {
        let place = Place::new();
        ["a", "b"].iter().for_each(|name| place.write(name, "1"));
        tear(&place);
        let inject = [format!("-etrace={calls}"), format!("-einject={calls}:signal=SIGKILL:when={at}")];
        let Some(mut traced) = Traced::start(&place, BUSY, &inject) else { return };
        let mut answered = Answered::default();
        let whole = traced
            .client(&Folders::below(&place.home).socket)
            .is_some_and(|mut client| live(&place, &mut client, &mut answered));
        let died = traced.was_killed();
        // How often the others are made is chance.
        assert!(died || at > 1, "nothing called the first of {calls}");
        if tried % 2 == 1 {
            // Everything has to be in the journal; the index alone could hide what is not.
            let _ = std::fs::remove_dir_all(place.home.join("state/index"));
        }
        (tried, killed, lived) = (tried + 1, killed + usize::from(died), lived + usize::from(whole));
        assert_kept(
            &place,
            &answered,
            &format!("{calls} {at} (answered {} sessions)", answered.sessions.len()),
        );
    }
    say(&format!(
        "killed at {killed} of {tried} points, {lived} of them in or behind the shutdown: nothing lost"
    ));
    assert!(killed * 4 > tried * 3, "the kills missed: {killed} of {tried}");
}

/// What an earlier crash left of a decision log: there is something to be cut back.
fn tear(place: &Place) {
    let state = Folders::below(&place.home).state;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).expect("a folder");
    std::fs::write(state.join("decisions.jsonl"), "{\"half\":").expect("a file");
}

/// `fdatasync` of the journal fails once: whoever waited is told, and the journal goes on in a new segment.
#[test]
fn a_journal_that_could_not_be_synced_goes_on_in_a_new_segment() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let folders = Folders::below(&place.home);
    let segment = folders.state.join("journal/00000000000000000001.seg");
    let trace = ["-etrace=fdatasync".to_owned(), "-P".to_owned(), segment.display().to_string()];
    // The first is the start's own, on another thread; then one for each registration.
    let inject = ["-einject=fdatasync:error=EIO:when=3".to_owned()];
    let Some(mut traced) = Traced::start(&place, "", &[&trace[..], &inject[..]].concat()) else { return };
    let mut client = traced.client(&folders.socket).expect("it serves");
    let (mut kept, mut refused) = (Vec::new(), 0);
    for number in 0..8 {
        let name = format!("s{number}");
        let context =
            json!({ "session": name, "root": place.root, "results": [file("a", "1"), file("b", "1")] });
        match client.ask("context.register", &context) {
            Ok(_) => kept.push(name),
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"), "{refusal}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        wait_until("the journal takes and decides again", || {
            let decided = client.ask("decide", &json!({ "session": "s0", "deadline_ms": 10_000 }));
            // Whoever is let through has waited for the looks that follow.
            assert!(decided.as_ref().map_or(true, |report| report.contains("\"resume\"")), "{decided:?}");
            decided.is_ok()
        });
    }
    // Whether somebody waited for the sync that failed is chance; nobody was told what is not so.
    assert!(kept.len() + refused == 8 && refused <= 1, "{kept:?}");
    let health: Value =
        serde_json::from_str(&client.ask("status", &json!({})).expect("a status")).expect("JSON");
    assert_eq!(health["problems"], json!([]), "{health}");
    assert_eq!(health["gaps"], 1, "everything was looked at again: {health}");
    client.ask("shutdown", &json!({})).expect("an answer");
    wait_until("it is gone", || traced.has_ended());
    let segments = std::fs::read_dir(folders.state.join("journal")).expect("a folder").count();
    assert_eq!(segments, 2);
    let daemon = Daemon::start(&place.home);
    for name in &kept {
        assert_eq!(daemon.ask("decide", &json!({ "session": name }))["transition"], "resume", "{name}");
    }
    daemon.stop();
}

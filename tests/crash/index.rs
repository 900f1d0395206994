//! A disk that fails while sled reads or writes the index: whoever asks meanwhile is told, the store comes back by itself,
//! and what was acknowledged is there and judged truly.

use super::traced::Traced;
use crate::harness::{Daemon, Place, digest, file, say, wait_until};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::daemon::Folders;
use std::collections::BTreeSet;

/// The calls by which sled reads and writes, and how many of the first ones of a thread fail, one in each life. Its threads
/// count on their own, so each of them fails once, and the store is often tried again in vain.
const FAULTS: [(&str, usize); 4] = [("pwrite64", 4), ("sync_file_range", 2), ("fsync", 2), ("pread64", 3)];

const SESSIONS: usize = 6;

struct Life {
    client: Client,
    place: Place,
    acknowledged: BTreeSet<String>,
    refused: usize,
}

impl Life {
    /// Asks until it is answered. Nothing but the store may refuse.
    fn ask(&mut self, method: &str, params: &Value, story: &str) -> Value {
        let mut answer = Value::Null;
        wait_until("the store is back", || match self.client.ask(method, params) {
            Ok(given) => {
                answer = serde_json::from_str(&given).expect("JSON");
                true
            }
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"), "{story}: {refusal}");
                self.refused += 1;
                false
            }
            Err(error) => panic!("{story}: {error}"),
        });
        answer
    }

    fn register(&mut self, story: &str) {
        for number in 0..SESSIONS {
            let session = format!("s{number}");
            let results = json!([file("a", "1"), file("b", "1")]);
            let context = json!({ "session": session, "root": self.place.root, "results": results });
            self.ask("context.register", &context, story);
            self.ask("touch_ack", &json!({ "session": session, "path": "b", "digest": digest("2") }), story);
            self.acknowledged.insert(session);
        }
    }

    /// Every session is as it was told, and what a change makes of it is seen.
    fn is_true(&mut self, story: &str) {
        for (text, transition) in [("2", "resume"), ("3", "fresh"), ("2", "resume")] {
            self.place.write("b", text);
            for session in self.acknowledged.clone() {
                let decided = json!({ "session": session, "deadline_ms": 10_000 });
                // After a gap everything is looked at again, and until then it is unknown.
                wait_until("it decides truly", || {
                    let report = self.ask("decide", &decided, story);
                    assert!(text == "2" || report["transition"] == "fresh", "{story}: {report}");
                    report["transition"] == transition
                });
            }
        }
    }
}

/// Whether it was felt: somebody was refused, or the index was made again.
fn fails_at(call: &str, at: usize) -> Option<usize> {
    let story = format!("{call} {at}");
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let folders = Folders::below(&place.home);
    // There is something to be read.
    let daemon = Daemon::start(&place.home);
    let context =
        json!({ "session": "old", "root": place.root, "results": [file("a", "1"), file("b", "2")] });
    daemon.ask("context.register", &context);
    daemon.stop();
    let db = folders.state.join("index/db").display().to_string();
    let when = format!("-einject={call}:error=EIO:when={at}");
    let inject = [format!("-etrace={call}"), "-P".to_owned(), db, when];
    let mut traced = Traced::start(&place, "", &inject)?;
    let acknowledged = BTreeSet::from(["old".to_owned()]);
    let Some(client) = traced.client(&folders.socket) else {
        // Neither the old index could be opened nor a new one made: systemd starts it again.
        assert_eq!(traced.ended().and_then(|status| status.code()), Some(2), "{story}");
        starts_again(&place, &acknowledged, &story);
        return Some(1);
    };
    let mut life = Life { client, place, acknowledged, refused: 0 };
    life.register(&story);
    life.is_true(&story);
    let health = life.ask("status", &json!({}), &story);
    assert_eq!(health["problems"], json!([]), "{story}: {health}");
    life.ask("shutdown", &json!({}), &story);
    wait_until("it is gone", || traced.has_ended());
    assert_eq!(traced.ended().and_then(|status| status.code()), Some(0), "{story}");
    starts_again(&life.place, &life.acknowledged, &story);
    let names = std::fs::read_dir(&folders.state).expect("a folder");
    let set_aside = names.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("index."))
    });
    Some(usize::from(life.refused > 0 || set_aside.count() > 0))
}

/// On a disk that does not fail everything is there.
fn starts_again(place: &Place, acknowledged: &BTreeSet<String>, story: &str) {
    place.write("b", "2");
    let daemon = Daemon::start(&place.home);
    for session in acknowledged {
        let report = daemon.ask("decide", &json!({ "session": session }));
        assert_eq!(report["transition"], "resume", "{story}, {session}: {report}");
    }
    daemon.stop();
}

#[test]
fn an_index_whose_disk_fails_comes_back_by_itself() {
    let (mut tried, mut felt) = (0, 0);
    for (call, firsts) in FAULTS {
        for at in 1..=firsts {
            let Some(failed) = fails_at(call, at) else { return };
            (tried, felt) = (tried + 1, felt + failed);
        }
    }
    say(&format!("the index's disk failed {tried} times, {felt} of them felt: nothing lost"));
    assert!(felt * 4 > tried, "{felt} of {tried} were felt");
}

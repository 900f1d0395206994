//! `mem_forget`: what was said is in no file of the state any more, whatever came between.

use super::{audit, busy, files_with, get, save, save_under, search};
use crate::cli::serve::{Serving, state};
use crate::harness::{Daemon, Place, ask, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::path::PathBuf;

/// What is said once and then forgotten, each in another place.
const SECRETS: [&str; 7] = [
    "Zq1TitleOne",
    "Zq2ContentOne",
    "Zq3TitleTwo",
    "Zq4ContentTwo",
    "Zq5TopicKey",
    "Zq6TitleThree",
    "Zq7ContentThree",
];
const KEPT: &str = "Zq8StaysHere";

/// One observation of three revisions that has them all, among others of the same user. Its number.
fn tell(client: &mut Client) -> Value {
    save(client, "u", KEPT, KEPT);
    let [title_one, content_one, title_two, content_two, topic_key, title_three, content_three] = SECRETS;
    let first = save_under(client, "u", topic_key, title_one, content_one);
    save_under(client, "u", topic_key, title_two, content_two);
    save(client, "u", "another", &format!("{KEPT} and more"));
    let last = save_under(client, "u", topic_key, title_three, content_three);
    assert_eq!((&last["id"], &last["revision_count"]), (&first["id"], &json!(3)));
    // What is derived is made too.
    assert_eq!(search(client, "u", content_three)[0]["id"], first["id"]);
    first["id"].clone()
}

fn held(place: &Place) -> Vec<(String, PathBuf)> {
    files_with(&state(place), &SECRETS)
}

/// Waits until no file has any of it; files may go away while they are read.
fn assert_gone(place: &Place) {
    wait_until("it is in no file", || held(place).is_empty());
    assert!(!files_with(&state(place), &[KEPT]).is_empty(), "the files are searched");
}

/// Nobody can be told of it, and of the rest everybody.
fn assert_unknown(client: &mut Client, id: &Value) {
    assert_eq!(get(client, "u", id), Value::Null);
    for query in SECRETS.into_iter().chain(["Zq", "zq6titlethree"]) {
        assert!(search(client, "u", query).iter().all(|found| found["id"] != *id), "{query}");
    }
    assert_eq!(search(client, "u", KEPT).len(), 2);
    let stats = ask(client, "mem_stats", &json!({ "user_id": "u" }));
    assert_eq!(stats["observations"], 2, "{stats}");
}

#[test]
fn what_is_forgotten_is_gone_with_its_history_and_stays_so() {
    let place = Place::new();
    // Nothing is compacted for its length: it is the forgetting that asks for it.
    let daemon = Daemon::start(&place.home);
    let client = &mut daemon.client();
    let id = tell(client);
    let before = held(&place);
    for secret in SECRETS {
        assert!(
            before
                .iter()
                .any(|(held, file)| *held == secret && file.starts_with(state(&place).join("journal"))),
            "{secret}"
        );
    }
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": id }));
    assert_unknown(client, &id);
    assert_gone(&place);
    // The key is free, and what comes next is not the same thing.
    let again = save_under(client, "u", "another key", "t", "c");
    assert!(again["id"].as_u64() > id.as_u64(), "{again}");
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": again["id"] }));
    daemon.stop();
    audit(&place);
    for _ in 0..2 {
        let daemon = Daemon::start(&place.home);
        assert_unknown(&mut daemon.client(), &id);
        daemon.stop();
        assert_eq!(held(&place), []);
        let _ = std::fs::remove_dir_all(place.home.join("state/index"));
    }
}

#[test]
fn a_key_that_was_forgotten_begins_anew() {
    let place = Place::new();
    let daemon = Daemon::start_with(&place.home, busy());
    let client = &mut daemon.client();
    let first = save_under(client, "u", "k", "t", "one");
    save_under(client, "u", "k", "t", "two");
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": first["id"] }));
    let again = save_under(client, "u", "k", "t", "two");
    assert_eq!((&again["outcome"], &again["revision_count"]), (&json!("created"), &json!(1)));
    assert_ne!(again["id"], first["id"]);
    assert_eq!(get(client, "u", &again["id"])["history"], json!([]));
}

/// Killed at any moment behind the answer: before the compaction, in it, behind it.
#[test]
fn a_kill_behind_the_answer_does_not_bring_it_back() {
    for round in 0..4 {
        let place = Place::new();
        let mut daemon = Serving::start(&place, &[]);
        let client = &mut Client::connect(&daemon.socket).expect("it serves");
        let id = tell(client);
        // Something to be compacted, so that it takes a while.
        for number in 0..60 {
            save(client, "u2", "title", &format!("{number} {}", "long ".repeat(2_000)));
        }
        ask(client, "mem_forget", &json!({ "user_id": "u", "id": id }));
        std::thread::sleep(std::time::Duration::from_millis([0, 2, 10, 40][round]));
        daemon.signal(Signal::KILL);
        daemon.is_dead();
        drop(daemon);
        daemon = Serving::start(&place, &[]);
        let client = &mut Client::connect(&daemon.socket).expect("it serves");
        assert_unknown(client, &id);
        assert_gone(&place);
        assert_unknown(client, &id);
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0);
        assert_eq!(held(&place), []);
        audit(&place);
    }
}

/// Many of one user, one after the other and at once: each compaction has the next one behind it.
#[test]
fn many_may_be_forgotten_at_once() {
    let place = Place::new();
    let daemon = Daemon::start_with(&place.home, busy());
    let client = &mut daemon.client();
    save(client, "u", KEPT, KEPT);
    let secret = |number: usize| format!("Zq9Secret{number:03}x");
    let ids: Vec<Value> = (0..40)
        .map(|number| {
            save_under(client, "u", &secret(number), &secret(number), &secret(number))["id"].clone()
        })
        .collect();
    std::thread::scope(|scope| {
        for ids in ids.chunks(10) {
            let mut client = daemon.client();
            scope.spawn(move || {
                for id in ids {
                    ask(&mut client, "mem_forget", &json!({ "user_id": "u", "id": id }));
                }
            });
        }
    });
    wait_until("they are in no file", || files_with(&state(&place), &["Zq9Secret"]).is_empty());
    assert!(!files_with(&state(&place), &[KEPT]).is_empty());
    assert!(search(client, "u", "Zq9").iter().all(|found| found["title"] == KEPT));
    daemon.stop();
    audit(&place);
}

/// What it rested on is in the index, which keeps old pages: it is gone once a daemon has begun again.
#[test]
fn what_a_forgotten_observation_rested_on_is_gone_after_the_next_start() {
    let place = Place::new();
    let daemon = Daemon::start_with(&place.home, busy());
    let client = &mut daemon.client();
    let (file, glob) = (place.root.join("Zq10Path"), "Zq11Glob*");
    place.write("Zq10Path", "1");
    let tree = json!({ "kind": "tree", "path": place.root, "include": [glob] });
    let grounded =
        json!({ "user_id": "u", "type": "pattern", "title": "t", "content": "c", "sources": [file, tree] });
    let saved = ask(client, "mem_save", &grounded);
    save(client, "u", KEPT, KEPT);
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": saved["id"] }));
    let secrets = ["Zq10Path", "Zq11Glob"];
    let journal = state(&place).join("journal");
    wait_until("it has left the journal", || files_with(&journal, &secrets).is_empty());
    assert!(!files_with(&state(&place), &secrets).is_empty(), "sled keeps old pages");
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    assert_eq!(files_with(&state(&place), &secrets), []);
    assert_eq!(search(&mut daemon.client(), "u", KEPT).len(), 1);
    daemon.stop();
    let log = std::fs::read_to_string(state(&place).join("decisions.jsonl")).expect("a log");
    assert!(log.contains("something was forgotten"), "{log}");
    assert_eq!(files_with(&state(&place), &secrets), []);
    audit(&place);
}

/// A decision that carried it on named it only: its line stands for ever.
#[test]
fn what_a_decision_carried_on_is_forgotten_too() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let daemon = Daemon::start_with(&place.home, busy());
    let client = &mut daemon.client();
    let stale = json!([{ "id": "b", "source": { "kind": "file", "path": "b" }, "digest": crate::harness::digest("2") }]);
    let context = json!({ "session": "s", "user": "u", "root": place.root, "results": stale });
    ask(client, "context.register", &context);
    let said = "Zq12Carried on";
    let grounded = json!({ "user_id": "u", "type": "pattern", "title": said, "content": said, "sources": [place.root.join("a")] });
    let saved = ask(client, "mem_save", &grounded);
    let report = ask(client, "decide", &json!({ "session": "s", "memory": true, "deadline_ms": 10_000 }));
    let fact = &report["typed_summary"]["verified_facts"][0];
    assert_eq!((&fact["statement"], &fact["observation"]), (&json!(said), &saved["id"]), "{report}");
    let log = std::fs::read_to_string(state(&place).join("decisions.jsonl")).expect("a log");
    let line = log.lines().find(|line| line.contains("verified_facts")).expect("the decision");
    assert!(line.contains("(observation 1 of the memory)") && !line.contains(said), "{line}");
    assert!(line.contains(report["receipt"]["hash"].as_str().expect("a hash")), "{line}");
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": saved["id"] }));
    wait_until("it is in no file", || files_with(&state(&place), &[said]).is_empty());
    daemon.stop();
}

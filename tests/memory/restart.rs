//! What was told is there after a restart, and after everything that can be made again was taken away.

use super::{all_of, audit, busy, get, results, save, save_under};
use crate::harness::{Daemon, Place, ask};
use serde_json::{Value, json};
use std::fs;

pub(super) const USERS: [&str; 3] = ["ann", "bob", "cid"];
const QUERIES: [&str; 6] = ["so far", "words", "topic", "number 7", "re", "🚀"];

/// Some of everything: keys, revisions, sources, summaries, sessions that ended, what was forgotten.
pub(super) fn tell(daemon: &Daemon, place: &Place) {
    place.write("a", "1");
    place.write("b", "1");
    let client = &mut daemon.client();
    for user in USERS {
        for number in 0..12 {
            save(client, user, &format!("title {number}"), &format!("words of {user}, number {number} 🚀"));
            if number % 4 == 1 {
                ask(
                    client,
                    "mem_session_summary",
                    &json!({ "user_id": user, "summary": format!("so far {number}") }),
                );
                ask(
                    client,
                    "mem_session_end",
                    &json!({ "user_id": user, "summary": format!("end {number}") }),
                );
            }
        }
        for number in 0..9 {
            save_under(
                client,
                user,
                &format!("key {}", number % 3),
                "topic",
                &format!("topic revision {number}"),
            );
        }
        let sources =
            json!([place.root.join("a"), { "kind": "tree", "path": place.root }, place.root.join("gone")]);
        let params = json!({ "user_id": user, "type": "pattern", "title": "grounded", "content": "words on a file", "sources": sources });
        ask(client, "mem_save", &params);
        let gone = save(client, user, "gone", "words that are forgotten");
        ask(client, "mem_forget", &json!({ "user_id": user, "id": gone["id"] }));
    }
}

pub(super) fn told(daemon: &Daemon) -> Vec<Value> {
    let client = &mut daemon.client();
    let told: Vec<Value> = USERS.iter().map(|user| all_of(client, user, &QUERIES)).collect();
    // Not all of it is words that were never there.
    let text = Value::from(told.clone()).to_string();
    for word in ["topic revision 8", "topic revision 0", "so far 9", "end 9", "grounded", "\"active\""] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    assert!(!text.contains("words that are forgotten"));
    told
}

#[test]
fn a_restart_and_a_deleted_index_change_nothing() {
    let place = Place::new();
    let daemon = Daemon::start_with(&place.home, busy());
    tell(&daemon, &place);
    let before = told(&daemon);
    daemon.stop();
    audit(&place);
    for round in 0..3 {
        match round {
            0 => {}
            1 => fs::remove_dir_all(place.home.join("state/index")).expect("an index"),
            _ => fs::remove_dir_all(place.home.join("state/index/words")).expect("its words"),
        }
        let daemon = Daemon::start_with(&place.home, busy());
        assert_eq!(told(&daemon), before, "round {round}");
        daemon.stop();
        audit(&place);
    }
    // It goes on as if nothing had been: numbers are never given twice, and sessions go on.
    let daemon = Daemon::start(&place.home);
    let client = &mut daemon.client();
    let active = results(&ask(client, "mem_list_sessions", &json!({ "user_id": "ann" })))[0].clone();
    let last = save(client, "ann", "new", "new words");
    assert_eq!((&last["outcome"], &last["session_id"]), (&json!("created"), &active["id"]));
    assert!(last["session_opened"].is_null());
    let numbers = |value: &Value| value["id"].as_u64().expect("a number");
    let most = before
        .iter()
        .flat_map(|told| told[2].as_object().expect("observations").keys())
        .map(|id| id.parse::<u64>().expect("a number"))
        .max();
    assert!(numbers(&last) > most.expect("some"), "{last} after {most:?}");
    assert_eq!(save(client, "ann", "again", "new words")["outcome"], "deduped");
    assert_eq!(save_under(client, "ann", "key 2", "topic", "topic revision 8")["outcome"], "deduped");
    assert_eq!(save_under(client, "ann", "key 2", "topic", "topic revision 9")["revision_count"], 4);
}

#[test]
fn evidence_is_judged_anew_by_a_restart() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let params = json!({ "user_id": "u", "type": "decision", "title": "t", "content": "c", "sources": [place.root.join("a")] });
    let saved = daemon.ask("mem_save", &params);
    assert_eq!(saved["evidence"], "fresh");
    for (text, evidence) in [("2", "stale"), ("1", "fresh"), ("3", "stale")] {
        place.write("a", text);
        let now = get(&mut daemon.client(), "u", &saved["id"]);
        assert_eq!(now["evidence"], evidence, "{now}");
    }
    daemon.stop();
    for (text, evidence) in [("3", "stale"), ("1", "fresh"), ("2", "stale")] {
        place.write("a", text);
        let daemon = Daemon::start(&place.home);
        let now = get(&mut daemon.client(), "u", &saved["id"]);
        assert_eq!(now["evidence"], evidence, "{text}: {now}");
        let stale = daemon.ask("mem_stats", &json!({ "user_id": "u" }))["stale"].clone();
        assert_eq!(stale, u64::from(evidence == "stale"));
        daemon.stop();
    }
}

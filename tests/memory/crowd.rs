//! Many who tell, ask and forget at the same time, of one user: everybody is answered, and what is left adds up.

use super::{LIMIT, audit, busy, refused, results, save, save_under, search};
use crate::harness::{Daemon, Place, ask};
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use std::collections::BTreeSet;
use std::sync::Mutex;

const ROUNDS: usize = 60;
const FILES: usize = 3;

/// What is told, in a random order; the numbers of what was saved and may be forgotten.
fn tell(
    client: &mut Client,
    place: &Place,
    name: &str,
    saved: &Mutex<BTreeSet<u64>>,
    random: &mut fastrand::Rng,
) {
    for round in 0..ROUNDS {
        let number = |answer: &Value| answer["id"].as_u64().expect("a number");
        match random.u8(..8) {
            0..3 => {
                let sources = json!([place.root.join(format!("f{}", random.usize(..FILES)))]);
                let params = json!({ "user_id": "u", "type": "pattern", "title": "on a file",
                    "content": format!("common {name} {round}"), "sources": sources });
                let id = number(&ask(client, "mem_save", &params));
                saved.lock().expect("nobody panicked").insert(id);
            }
            3 => {
                let id = number(&save(client, "u", "plain", &format!("common words {name} {round}")));
                saved.lock().expect("nobody panicked").insert(id);
            }
            // Who is forgotten may come back at once, under the same key and another number.
            4 => drop(save_under(
                client,
                "u",
                &format!("key {}", round % 3),
                "keyed",
                &format!("common {}", random.u8(..4)),
            )),
            5 => {
                let _ = client.ask("mem_session_end", &json!({ "user_id": "u", "summary": "s" }));
            }
            6 => place.write(&format!("f{}", random.usize(..FILES)), ["1", "2"][random.usize(..2)]),
            _ => {
                let id = saved.lock().expect("nobody panicked").pop_first();
                if let Some(id) = id {
                    ask(client, "mem_forget", &json!({ "user_id": "u", "id": id }));
                    let again = refused(client, "mem_forget", &json!({ "user_id": "u", "id": id }));
                    assert_eq!(again.0, "not_found");
                }
            }
        }
    }
}

/// Nothing that is asked fails, whatever is forgotten meanwhile.
fn asks(client: &mut Client, random: &mut fastrand::Rng) {
    for _ in 0..ROUNDS {
        let stale = ["include", "demote", "exclude"][random.usize(..3)];
        let query = ["common", "on", "file words"][random.usize(..3)];
        let found =
            results(&ask(client, "mem_search", &json!({ "user_id": "u", "query": query, "stale": stale })));
        let stats = ask(client, "mem_stats", &json!({ "user_id": "u" }));
        let by_type: u64 =
            stats["by_type"].as_object().expect("types").values().filter_map(Value::as_u64).sum();
        assert_eq!(stats["observations"], by_type, "{stats}");
        for found in found.iter().take(2) {
            let of = json!({ "user_id": "u", "observation_id": found["id"] });
            ask(client, "mem_get_observation", &of);
            let around = results(&ask(client, "mem_timeline", &of));
            // All or nothing: an anchor that is gone has no timeline.
            let anchors = around.iter().filter(|entry| entry["is_anchor"] == true).count();
            assert_eq!(anchors, usize::from(!around.is_empty()), "{around:?}");
        }
        ask(client, "mem_session_start", &json!({ "user_id": "u", "stale": stale }));
    }
}

#[test]
fn a_crowd_is_answered_and_what_is_left_adds_up() {
    let place = Place::new();
    (0..FILES).for_each(|number| place.write(&format!("f{number}"), "1"));
    let mut config = busy();
    // What is at hand of one user is let go all the time for another.
    config.memory.search_cache_bytes = 0;
    let daemon = Daemon::start_with(&place.home, config);
    let saved = Mutex::new(BTreeSet::new());
    let seed = fastrand::u64(..);
    crate::harness::say(&format!("SEED={seed}"));
    std::thread::scope(|scope| {
        for teller in 0..3 {
            let (mut client, place, saved) = (daemon.client(), &place, &saved);
            let mut random = fastrand::Rng::with_seed(seed + teller);
            scope.spawn(move || tell(&mut client, place, &format!("t{teller}"), saved, &mut random));
        }
        for asker in 0..2 {
            let (mut client, mut random) = (daemon.client(), fastrand::Rng::with_seed(seed ^ asker));
            scope.spawn(move || asks(&mut client, &mut random));
        }
        let mut client = daemon.client();
        scope.spawn(move || {
            for number in 0..ROUNDS {
                save(&mut client, "v", "t", &format!("another's {number}"));
                search(&mut client, "v", "another's");
            }
        });
    });
    let client = &mut daemon.client();
    let stats = ask(client, "mem_stats", &json!({ "user_id": "u" }));
    let listed = results(&ask(client, "mem_list_sessions", &json!({ "user_id": "u", "limit": LIMIT })));
    assert!(listed.iter().filter(|session| session["status"] == "active").count() <= 1);
    for id in saved.into_inner().expect("nobody panicked") {
        let of = json!({ "user_id": "u", "observation_id": id });
        assert!(!ask(client, "mem_get_observation", &of).is_null(), "{id} was not forgotten");
    }
    let health = ask(client, "status", &json!({}));
    assert_eq!((&health["problems"], &health["gaps"]), (&json!([]), &json!(0)), "{health}");
    daemon.stop();
    audit(&place);
    let log = std::fs::read_to_string(place.home.join("state/decisions.jsonl")).expect("a log");
    assert!(!log.contains("healed") && !log.contains("opened again"), "the store was never in doubt: {log}");
    let daemon = Daemon::start(&place.home);
    let again = daemon.ask("mem_stats", &json!({ "user_id": "u" }));
    for count in ["observations", "sessions", "by_type"] {
        assert_eq!(again[count], stats[count], "{count}");
    }
}

/// Who has read the last revision writes the next one: one of many at once, and each in turn.
#[test]
fn of_many_who_save_over_the_same_revision_one_does() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    for revision in 0..6 {
        let outcomes: Vec<bool> = std::thread::scope(|scope| {
            let saving: Vec<_> = (0..8)
                .map(|writer| {
                    let mut client = daemon.client();
                    scope.spawn(move || {
                        let params = json!({ "user_id": "u", "type": "decision", "title": "t", "topic_key": "k",
                            "content": format!("{revision} by {writer}"), "if_revision": revision });
                        match client.ask("mem_save", &params) {
                            Ok(_) => true,
                            Err(ClientError::Refused(refusal)) if refusal.word() == Some("revision_conflict") => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            saving.into_iter().map(|saving| saving.join().expect("an answer")).collect()
        });
        assert_eq!(outcomes.iter().filter(|saved| **saved).count(), 1, "revision {revision}");
    }
    let whole = super::get(&mut daemon.client(), "u", &json!(1));
    assert_eq!((&whole["revision_count"], whole["history"].as_array().map(Vec::len)), (&json!(6), Some(5)));
}

//! Memory that knows when it is stale: what an observation rests on is watched like any session's sources, every answer
//! that speaks of it says the same, and nothing but a save takes it anew.

mod barrier;
mod chance;
mod crash;
mod doubt;
mod facts;
mod kept;
mod kinds;
mod labels;
mod order;
mod own;
mod races;
mod told;

use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whose memory it is where it does not matter.
pub(crate) const USER: &str = "ann";

/// A place with a daemon that has the time it needs.
pub(crate) fn scene() -> (Place, Daemon) {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    (place, daemon)
}

/// The parameters of a save; every word of it is found by `common`, and the observation by its title.
pub(crate) fn observed(title: &str, sources: &Value) -> Value {
    json!({ "user_id": USER, "type": "discovery", "title": title, "topic_key": title,
        "content": format!("common {title}"), "sources": sources })
}

/// Saves an observation that rests on these, and says its number.
pub(crate) fn save(daemon: &Daemon, title: &str, sources: &Value) -> u64 {
    daemon.ask("mem_save", &observed(title, sources))["id"].as_u64().expect("a number")
}

/// Asks again while something is held open: other tests start processes, and each has a copy of every open file between
/// its fork and its exec.
pub(crate) fn calmly<T>(mut ask: impl FnMut() -> T, held: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let answer = ask();
        if !held(&answer) || begun.elapsed() > Duration::from_secs(5) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The answer to a question, when nothing is held open any more.
pub(crate) fn asked(daemon: &Daemon, method: &str, params: &Value) -> Value {
    calmly(|| daemon.ask(method, params), |answer| answer.to_string().contains("\"live_writer\""))
}

/// `fresh`, `none`, or what is the matter and why: `stale content`.
pub(crate) fn word(told: &Value) -> String {
    let evidence = told["evidence"].as_str().unwrap_or_else(|| panic!("no evidence in {told}"));
    let changed = told["changed"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(matches!(evidence, "stale" | "unknown"), !changed.is_empty(), "{told}");
    let said: Vec<&str> = changed.iter().map(|changed| changed["status"].as_str().expect("a word")).collect();
    assert_eq!(evidence == "stale", said.contains(&"stale"), "{told}");
    let worst = changed.iter().find(|changed| changed["status"] == evidence);
    worst.map_or(evidence.to_owned(), |changed| {
        format!("{evidence} {}", changed["cause"].as_str().expect("a cause"))
    })
}

/// What is said of an observation, which every method must say alike.
pub(crate) fn evidence(daemon: &Daemon, id: u64) -> Value {
    let got = asked(daemon, "mem_get_observation", &json!({ "user_id": USER, "observation_id": id }));
    assert_eq!(got["id"], id, "{got}");
    let query = json!({ "user_id": USER, "query": got["title"], "limit": 100 });
    let lists = [
        ("mem_search", query, "results"),
        ("mem_timeline", json!({ "user_id": USER, "observation_id": id }), "results"),
        ("mem_session_start", json!({ "user_id": USER }), "memories"),
    ];
    for (method, params, list) in lists {
        let answer = asked(daemon, method, &params);
        let entries = answer[list].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["id"] == id);
        let entry = entry.unwrap_or_else(|| panic!("{method} has no {id}: {answer}"));
        assert_eq!((&entry["evidence"], &entry["changed"]), (&got["evidence"], &got["changed"]), "{method}");
    }
    got
}

/// Every method says this of an observation.
pub(crate) fn is(daemon: &Daemon, id: u64, expected: &str, deed: &str) -> Value {
    let told = evidence(daemon, id);
    assert_eq!(word(&told), expected, "{deed}: {told}");
    told
}

/// The numbers of a list, in its order.
pub(crate) fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|entry| entry["id"].as_u64().expect("a number")).collect()
}

/// How many watches the daemon has.
pub(crate) fn watches(daemon: &Daemon) -> u64 {
    daemon.ask("status", &json!({}))["watches"].as_u64().expect("a number")
}

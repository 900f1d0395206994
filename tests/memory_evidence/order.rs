//! What becomes of observations whose evidence is not fresh: they are there with their label, come last, or are left out,
//! and whoever leaves them out looks past them for more.

use super::{USER, asked, numbers, observed, save, scene, word};
use crate::harness::refusal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MANY: usize = 14;

/// Every third rests on nothing.
fn rests(n: usize) -> bool {
    n % 3 != 2
}

#[test]
fn stale_observations_are_included_demoted_or_left_out_up_to_any_limit() {
    let (place, daemon) = scene();
    let mut random = fastrand::Rng::with_seed(9);
    let ids: Vec<u64> = (0..MANY)
        .map(|n| {
            place.write(&format!("f{n}"), "one\n");
            let sources = if rests(n) { json!([place.root.join(format!("f{n}"))]) } else { json!([]) };
            save(&daemon, &format!("obs{n}"), &sources)
        })
        .collect();
    for turn in 0..6 {
        let changed: BTreeSet<usize> = match turn {
            0 => BTreeSet::new(),
            1 => (0..MANY).collect(),
            _ => (0..MANY).filter(|_| random.bool()).collect(),
        };
        for n in 0..MANY {
            place.write(&format!("f{n}"), if changed.contains(&n) { "two\n" } else { "one\n" });
        }
        let stale: BTreeSet<u64> = changed.iter().filter(|n| rests(**n)).map(|n| ids[*n]).collect();
        let search = |stale: &str, limit: usize, query: &str| {
            asked(
                &daemon,
                "mem_search",
                &json!({ "user_id": USER, "query": query, "limit": limit, "stale": stale }),
            )
        };
        // A query of two characters takes another way.
        for query in ["common", "co"] {
            let all = search("include", 100, query);
            let best = numbers(&all["results"]);
            assert_eq!(best.len(), MANY, "{query}");
            for entry in all["results"].as_array().expect("a list") {
                let id = entry["id"].as_u64().expect("a number");
                let n = ids.iter().position(|one| *one == id).expect("ours");
                let expected = if stale.contains(&id) {
                    "stale content"
                } else {
                    ["none", "fresh"][usize::from(rests(n))]
                };
                assert_eq!(word(entry), expected, "turn {turn}: {entry}");
            }
            let sound: Vec<u64> = best.iter().copied().filter(|id| !stale.contains(id)).collect();
            let demoted: Vec<u64> =
                sound.iter().copied().chain(best.iter().copied().filter(|id| stale.contains(id))).collect();
            for limit in [1, 2, 3, MANY / 2, MANY - 1, MANY, 100] {
                for (way, expected) in [("include", &best), ("demote", &demoted), ("exclude", &sound)] {
                    let found = numbers(&search(way, limit, query)["results"]);
                    assert_eq!(
                        found,
                        expected[..limit.min(expected.len())],
                        "turn {turn}, {query}, {way} {limit}"
                    );
                }
            }
        }
        at_the_start_of_a_session(&daemon, &stale, turn);
    }
}

/// Ten at most, and the same three ways.
fn at_the_start_of_a_session(daemon: &crate::harness::Daemon, stale: &BTreeSet<u64>, turn: usize) {
    let start = |way: Value| {
        let mut params = json!({ "user_id": USER });
        if !way.is_null() {
            params["stale"] = way;
        }
        asked(daemon, "mem_session_start", &params)["memories"].clone()
    };
    let (usual, included) = (start(Value::Null), numbers(&start(json!("include"))));
    assert_eq!((numbers(&usual), included.len()), (included.clone(), 10), "turn {turn}");
    let (demoted, left) = (numbers(&start(json!("demote"))), numbers(&start(json!("exclude"))));
    assert!(left.iter().all(|id| !stale.contains(id)), "turn {turn}: {left:?}");
    assert_eq!(left.len(), 10.min(MANY - stale.len()), "turn {turn}: it looks past stale ones");
    assert_eq!(demoted[..left.len()], left, "turn {turn}");
    assert!(demoted[left.len()..].iter().all(|id| stale.contains(id)), "turn {turn}: {demoted:?}");
    assert_eq!(demoted.len(), 10, "turn {turn}");
    let kept: Vec<u64> = included.iter().copied().filter(|id| !stale.contains(id)).collect();
    assert_eq!(left[..kept.len()], kept, "turn {turn}: the order stays");
}

/// How many barriers there have been.
fn barriers(daemon: &crate::harness::Daemon) -> u64 {
    let metrics = daemon.ask("metrics", &json!({}));
    let lines = metrics.as_str().expect("text").lines();
    let mut count = lines.filter_map(|line| line.strip_prefix("staled_barrier_seconds_count "));
    count.next().and_then(|count| count.parse().ok()).expect("they are counted")
}

/// A look for each ten of them would not be done by any deadline.
#[test]
fn however_many_stale_ones_are_looked_past_the_waits_are_few() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    place.write("g", "one\n");
    let sound: Vec<u64> =
        (0..3).map(|n| save(&daemon, &format!("sound{n}"), &json!([place.root.join("g")]))).collect();
    for n in 0..250 {
        save(&daemon, &format!("stale{n}"), &json!([place.root.join("f")]));
    }
    place.write("f", "two\n");
    for (way, limit, found) in [("exclude", 3, 3), ("exclude", 10, 3), ("demote", 3, 3), ("demote", 10, 10)] {
        let before = barriers(&daemon);
        let params = json!({ "user_id": USER, "query": "common", "stale": way, "limit": limit });
        let answer = numbers(&asked(&daemon, "mem_search", &params)["results"]);
        let waits = barriers(&daemon) - before;
        assert!(answer.len() == found && sound.iter().rev().eq(&answer[..3]), "{way} {limit}: {answer:?}");
        assert!(waits < 15, "{way} {limit}: {waits} waits");
    }
}

#[test]
fn the_unknown_are_demoted_and_left_out_like_the_stale() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let fresh = save(&daemon, "fresh", &json!([place.root.join("f")]));
    let unknown = save(&daemon, "unknown", &json!(["/proc/version"]));
    let search = |way: &str| {
        let params = json!({ "user_id": USER, "query": "common", "stale": way });
        numbers(&asked(&daemon, "mem_search", &params)["results"])
    };
    assert_eq!(search("include"), [unknown, fresh], "the newer first");
    assert_eq!(search("demote"), [fresh, unknown]);
    assert_eq!(search("exclude"), [fresh]);
}

#[test]
fn there_are_three_ways_and_no_other() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    daemon.ask("mem_save", &observed("t", &json!([])));
    for way in [json!("drop"), json!(""), json!(true), json!(["include"])] {
        let search = json!({ "user_id": USER, "query": "common", "stale": way });
        assert_eq!(refusal(client, "mem_search", &search), "-32602", "{way}");
        assert_eq!(
            refusal(client, "mem_session_start", &json!({ "user_id": USER, "stale": way })),
            "-32602",
            "{way}"
        );
    }
}

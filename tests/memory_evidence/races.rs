//! Saves while the world moves and while others save: whatever an observation was found to rest on, it is fresh on that and
//! on nothing else.

use super::{USER, asked, observed, save, scene, word};
use crate::harness::{Place, ask, refusal};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

const SAVES: usize = 40;
const FLIPS: usize = 40;

/// By a rename, so that no moment has any third content.
fn over(place: &Place, name: &str, text: &str) {
    let beside = format!("{name}.beside");
    place.write(&beside, text);
    std::fs::rename(place.root.join(beside), place.root.join(name)).expect("ours");
}

#[test]
fn what_is_saved_while_it_changes_is_fresh_on_one_of_both_and_on_nothing_else() {
    let (place, daemon) = scene();
    let mut with_a_baseline = 0;
    for turn in 0..SAVES {
        over(&place, "f", "one\n");
        let done = AtomicBool::new(false);
        let title = format!("turn{turn}");
        let saved = std::thread::scope(|scope| {
            scope.spawn(|| {
                for flip in 0.. {
                    over(&place, "f", ["two\n", "one\n"][flip % 2]);
                    if done.load(Ordering::SeqCst) {
                        return;
                    }
                }
            });
            let saved = daemon.ask("mem_save", &observed(&title, &json!([place.root.join("f")])));
            done.store(true, Ordering::SeqCst);
            saved
        });
        let words = ["one\n", "two\n", "six\n"].map(|text| {
            over(&place, "f", text);
            let told = asked(&daemon, "mem_search", &json!({ "user_id": USER, "query": title }));
            word(&told["results"][0])
        });
        let fresh = words.iter().filter(|word| *word == "fresh").count();
        // One that never held still while it was looked at has nothing to be compared with.
        assert!(fresh == 1 || fresh == 0 && word(&saved) != "fresh", "turn {turn}: {saved} {words:?}");
        assert_ne!(words[2], "fresh", "turn {turn}: it was never that");
        with_a_baseline += fresh;
    }
    assert!(with_a_baseline > 0, "none held still");
}

#[test]
fn of_saves_at_once_under_one_key_one_is_what_the_observation_rests_on() {
    let (place, daemon) = scene();
    let names = ["a", "b", "c", "d", "e", "f"];
    // Of different lengths, so that what is left of a longer one shows.
    let lists = [&names[..1], &names[1..3], &names[3..]];
    let paths = |names: &[&str]| json!(names.iter().map(|name| place.root.join(name)).collect::<Vec<_>>());
    for turn in 0..8 {
        names.iter().for_each(|name| place.write(name, "one\n"));
        std::thread::scope(|scope| {
            for list in lists {
                let (mut client, params) = (daemon.client(), observed("shared", &paths(list)));
                scope.spawn(move || {
                    for _ in 0..4 {
                        ask(&mut client, "mem_save", &params);
                    }
                });
            }
        });
        let get = || asked(&daemon, "mem_get_observation", &json!({ "user_id": USER, "observation_id": 1 }));
        let told = get();
        let list = lists.iter().find(|list| told["sources"] == paths(list));
        let list = list.unwrap_or_else(|| panic!("turn {turn}: what nobody told: {told}"));
        if word(&told) != "fresh" {
            // Its last save may have been answered while a child of another test held a file.
            continue;
        }
        for name in names {
            place.write(name, "two\n");
            let expected = if list.contains(&name) { "stale content" } else { "fresh" };
            assert_eq!(word(&get()), expected, "turn {turn}, {name}: {told}");
            place.write(name, "one\n");
        }
    }
}

/// Each method alone, so that none has another one's wait to thank for its truth.
#[test]
fn every_method_waits_for_what_happened_before_it_was_asked() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let id = save(&daemon, "alone", &json!([place.root.join("f")]));
    let user = json!({ "user_id": USER });
    let one = json!({ "user_id": USER, "observation_id": id });
    let cases = [
        ("mem_search", json!({ "user_id": USER, "query": "alone" }), "/results/0"),
        ("mem_search", json!({ "user_id": USER, "query": "al" }), "/results/0"),
        ("mem_get_observation", one.clone(), ""),
        ("mem_timeline", one, "/results/0"),
        ("mem_session_start", user.clone(), "/memories/0"),
        ("mem_stats", user, ""),
    ];
    for (method, params, at) in cases {
        for flip in 0..FLIPS {
            let is_stale = flip % 2 == 0;
            place.write("f", if is_stale { "two\n" } else { "one\n" });
            let told = super::calmly(
                || daemon.ask(method, &params),
                |told| told.to_string().contains("live_writer") || told["unknown"] == 1,
            );
            let said = match told["stale"].as_u64() {
                Some(stale) => stale == 1,
                None => word(told.pointer(at).expect("it is there")) == "stale content",
            };
            assert_eq!(said, is_stale, "{method}, flip {flip}: {told}");
        }
    }
}

#[test]
fn what_is_forgotten_while_it_is_looked_at_leaves_nothing_behind() {
    let (place, daemon) = scene();
    let before = super::watches(&daemon);
    (0..30).for_each(|n| place.write(&format!("d/f{n}"), "one\n"));
    let tree = json!([{ "kind": "tree", "path": place.root.join("d") }]);
    for turn in 1..=20 {
        std::thread::scope(|scope| {
            let mut saving = daemon.client();
            let params = observed("short", &tree);
            scope.spawn(move || ask(&mut saving, "mem_save", &params));
            let mut client = daemon.client();
            // As soon as it is there.
            while client.ask("mem_forget", &json!({ "user_id": USER, "id": turn })).is_err() {}
        });
        let stats: Value = daemon.ask("mem_stats", &json!({ "user_id": USER }));
        assert_eq!(stats["observations"], 0, "turn {turn}: {stats}");
    }
    crate::harness::wait_until("nothing is watched any more", || super::watches(&daemon) == before);
    assert_eq!(
        refusal(&mut daemon.client(), "mem_forget", &json!({ "user_id": USER, "id": 1 })),
        "not_found"
    );
}

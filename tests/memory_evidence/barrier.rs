//! A change whose system call returned before the question is in its answer, whatever else happens meanwhile, and also
//! when the daemon has only just begun.

use super::{USER, asked, observed, save, scene, word};
use crate::daemon::files_below;
use crate::harness::{Daemon, Place};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const FLIPS: usize = 60;
const NOISY: usize = 2;

/// Writers that do not stop before this is dropped.
struct Noise<'run>(&'run AtomicBool);

impl Drop for Noise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_change_is_seen_at_once_while_thousands_of_others_are_on_their_way() {
    let (place, daemon) = scene();
    place.write("quiet/f", "one\n");
    (0..NOISY).for_each(|thread| place.write(&format!("loud{thread}/f"), "0"));
    let path = place.root.join("quiet/f");
    let id = save(&daemon, "quiet", &json!([path]));
    for thread in 0..NOISY {
        let folder = place.root.join(format!("loud{thread}"));
        // Of somebody else: a question about what never comes to rest waits for it.
        let mut loud = observed("loud", &json!([{ "kind": "tree", "path": folder }, folder.join("f")]));
        loud["user_id"] = json!(format!("loud{thread}"));
        daemon.ask("mem_save", &loud);
    }
    let (done, events) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..NOISY {
            let (place, done, events) = (&place, &done, &events);
            scope.spawn(move || {
                for turn in 0_u64.. {
                    if done.load(Ordering::SeqCst) {
                        return;
                    }
                    place.write(&format!("loud{thread}/f{}", turn % 50), &turn.to_string());
                    events.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _noise = Noise(&done);
        for flip in 0..FLIPS {
            let text = ["two\n", "one\n"][flip % 2];
            if flip % 3 == 0 {
                place.write("beside", text);
                std::fs::rename(place.root.join("beside"), &path).expect("ours");
            } else {
                place.write("quiet/f", text);
            }
            let expected = ["stale content", "fresh"][flip % 2];
            let (method, params, at) = match flip % 4 {
                0 => ("mem_search", json!({ "user_id": USER, "query": "quiet" }), "/results/0"),
                1 => ("mem_get_observation", json!({ "user_id": USER, "observation_id": id }), ""),
                2 => ("mem_timeline", json!({ "user_id": USER, "observation_id": id }), "/results/0"),
                _ => ("mem_session_start", json!({ "user_id": USER }), "/memories"),
            };
            let answer = super::calmly(
                || daemon.ask(method, &params),
                |answer| answer.to_string().contains(&format!("{}\",\"status\":\"unknown", path.display())),
            );
            let told = match answer.pointer(at).expect("there") {
                serde_json::Value::Array(all) => {
                    all.iter().find(|entry| entry["id"] == id).expect("it is among them")
                }
                one => one,
            };
            assert_eq!(word(told), expected, "flip {flip}, {method}: {told}");
        }
    });
    let events = events.into_inner();
    assert!(events > 1_000, "only {events} writes beside it");
}

#[test]
fn the_first_question_after_a_start_is_answered_from_the_world_as_it_is() {
    let place = Place::new();
    (0..40).for_each(|n| place.write(&format!("f{n}"), "one\n"));
    let mut daemon = Daemon::start(&place.home);
    for n in 0..40 {
        save(&daemon, &format!("obs{n}"), &json!([place.root.join(format!("f{n}"))]));
    }
    for turn in 0..6 {
        daemon.stop();
        let text = ["two\n", "one\n"][turn % 2];
        (0..40).filter(|n| n % 3 == 0).for_each(|n| place.write(&format!("f{n}"), text));
        daemon = Daemon::start(&place.home);
        let query = json!({ "user_id": USER, "query": "common", "limit": 100 });
        let answer = match turn % 3 {
            0 => asked(&daemon, "mem_search", &query),
            // Written behind the back of the start.
            1 => {
                place.write("f0", "two\n");
                let answer = asked(&daemon, "mem_search", &query);
                place.write("f0", "one\n");
                answer
            }
            _ => asked(&daemon, "mem_search", &query),
        };
        let found = answer["results"].as_array().expect("a list");
        assert_eq!(found.len(), 40);
        for entry in found {
            let n: usize = entry["title"]
                .as_str()
                .and_then(|title| title.strip_prefix("obs")?.parse().ok())
                .expect("a number");
            let stale = n.is_multiple_of(3) && turn.is_multiple_of(2) || n == 0 && turn % 3 == 1;
            assert_eq!(word(entry), if stale { "stale content" } else { "fresh" }, "turn {turn}: {entry}");
        }
    }
}

/// The look for a save and the change that follows it: whichever the daemon hears first, the change is after the answer.
#[test]
fn what_changes_right_after_a_save_was_answered_is_stale() {
    let (place, daemon) = scene();
    let mut client = daemon.client();
    for turn in 0..150 {
        place.write("f", &format!("before {turn}"));
        let saved =
            crate::harness::ask(&mut client, "mem_save", &observed("turn", &json!([place.root.join("f")])));
        place.write("f", &format!("after! {turn}"));
        let told = asked(&daemon, "mem_search", &json!({ "user_id": USER, "query": "turn" }));
        let said = word(&told["results"][0]);
        // One that was held open when it was looked at has no baseline, and is as stale.
        let held = word(&saved) != "fresh";
        assert!(said == "stale content" || held && said == "stale born_stale", "turn {turn}: {saved} {told}");
    }
    assert!(files_below(&place.root).len() == 1);
}

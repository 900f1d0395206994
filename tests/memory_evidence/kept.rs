//! Reading never takes evidence anew; a save that names sources does, one that names none leaves it, and an empty list ends
//! it. What nobody rests on any more is not watched any more.

use super::{USER, asked, evidence, is, observed, save, scene, watches, word};
use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, file, wait_until};
use serde_json::{Value, json};

/// A save that says nothing of sources.
fn without(daemon: &Daemon, title: &str, content: &str) -> Value {
    let mut params = observed(title, &json!([]));
    params.as_object_mut().expect("parameters").remove("sources");
    params["content"] = json!(content);
    daemon.ask("mem_save", &params)
}

fn sources(daemon: &Daemon, id: u64) -> Value {
    daemon.ask("mem_get_observation", &json!({ "user_id": USER, "observation_id": id }))["sources"].clone()
}

#[test]
fn no_question_takes_evidence_anew() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let id = save(&daemon, "read", &json!([place.root.join("f")]));
    place.write("f", "two\n");
    let first = is(&daemon, id, "stale content", "the first question");
    for stale in ["include", "demote", "exclude"] {
        for _ in 0..3 {
            asked(&daemon, "mem_search", &json!({ "user_id": USER, "query": "common", "stale": stale }));
            asked(&daemon, "mem_session_start", &json!({ "user_id": USER, "stale": stale }));
            asked(&daemon, "mem_stats", &json!({ "user_id": USER }));
        }
    }
    let again = is(&daemon, id, "stale content", "after many questions");
    assert_eq!(first, again);
    place.write("f", "one\n");
    is(&daemon, id, "fresh", "a revert is to what was saved");
}

#[test]
fn a_save_without_sources_leaves_what_it_rests_on() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let path = json!(place.root.join("f"));
    let id = save(&daemon, "left", &json!([path]));
    for (content, outcome) in [("common left", "deduped"), ("common left, said better", "updated")] {
        place.write("f", "two\n");
        let saved = without(&daemon, "left", content);
        assert_eq!((&saved["id"], &saved["outcome"]), (&json!(id), &json!(outcome)), "{saved}");
        is(&daemon, id, "stale content", outcome);
        assert_eq!(sources(&daemon, id), json!([path]));
        place.write("f", "one\n");
        is(&daemon, id, "fresh", outcome);
    }
    // The same without a key.
    let unkeyed = |sources: Option<Value>| {
        let mut params =
            json!({ "user_id": USER, "type": "pattern", "title": "unkeyed", "content": "no key at all" });
        if let Some(sources) = sources {
            params["sources"] = sources;
        }
        daemon.ask("mem_save", &params)
    };
    let id = unkeyed(Some(json!([path])))["id"].as_u64().expect("a number");
    place.write("f", "two\n");
    let again = unkeyed(None);
    assert_eq!((&again["id"], &again["outcome"]), (&json!(id), &json!("deduped")), "{again}");
    is(&daemon, id, "stale content", "said again");
    assert_eq!(unkeyed(Some(json!([path])))["outcome"], "deduped");
    is(&daemon, id, "fresh", "said again, with what it rests on");
}

#[test]
fn a_save_with_sources_takes_them_anew_and_an_empty_list_ends_them() {
    let (place, daemon) = scene();
    let before = watches(&daemon);
    place.write("a/f", "one\n");
    place.write("b/f", "one\n");
    let [a, b] = ["a/f", "b/f"].map(|name| json!(place.root.join(name)));
    let id = save(&daemon, "anew", &json!([a]));
    let one = watches(&daemon);
    assert!(one > before);
    place.write("a/f", "two\n");
    is(&daemon, id, "stale content", "a change");
    assert_eq!(save(&daemon, "anew", &json!([a])), id);
    is(&daemon, id, "fresh", "what is there now was told");
    place.write("a/f", "one\n");
    is(&daemon, id, "stale content", "what it was at first is a change now");
    save(&daemon, "anew", &json!([b]));
    is(&daemon, id, "fresh", "it rests on another");
    wait_until("the first is not watched any more", || watches(&daemon) == one);
    place.write("a/f", "six\n");
    is(&daemon, id, "fresh", "what it rested on changes");
    place.write("b/f", "six\n");
    is(&daemon, id, "stale content", "what it rests on changes");
    save(&daemon, "anew", &json!([]));
    is(&daemon, id, "none", "it rests on nothing");
    assert_eq!(sources(&daemon, id), json!([]));
    wait_until("nothing is watched any more", || watches(&daemon) == before);
    without(&daemon, "anew", "common anew, in other words");
    is(&daemon, id, "none", "and goes on to");
    save(&daemon, "anew", &json!([b]));
    is(&daemon, id, "fresh", "until it is told what it rests on");
}

#[test]
fn what_is_forgotten_is_not_watched_any_more() {
    let (place, daemon) = scene();
    let before = watches(&daemon);
    place.write("d/e/f", "one\n");
    place.write("t/s/g", "one\n");
    let all = json!([place.root.join("d/e/f"), { "kind": "tree", "path": place.root.join("t") },
        { "kind": "command", "command": "make", "inputs": [{ "kind": "file", "path": place.root.join("d/e/f") }] }]);
    let ids: Vec<u64> = ["first", "second"].iter().map(|title| save(&daemon, title, &all)).collect();
    let most = watches(&daemon);
    assert!(most > before + 2);
    daemon.ask("mem_forget", &json!({ "user_id": USER, "id": ids[0] }));
    assert_eq!(watches(&daemon), most, "somebody rests on it still");
    place.write("t/s/g", "two\n");
    is(&daemon, ids[1], "stale content", "and is told so");
    daemon.ask("mem_forget", &json!({ "user_id": USER, "id": ids[1] }));
    wait_until("nothing is watched any more", || watches(&daemon) == before);
    let id = save(&daemon, "first", &all);
    assert!(!ids.contains(&id), "a number is used once");
    is(&daemon, id, "fresh", "the same words again");
}

#[test]
fn each_of_two_observations_has_the_file_as_it_was_when_it_was_saved() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let path = json!([place.root.join("f")]);
    let first = save(&daemon, "first", &path);
    place.write("f", "two\n");
    let second = save(&daemon, "second", &path);
    for (text, words) in [
        ("two\n", ["stale content", "fresh"]),
        ("one\n", ["fresh", "stale content"]),
        ("six\n", ["stale content"; 2]),
    ] {
        place.write("f", text);
        assert_eq!([first, second].map(|id| word(&evidence(&daemon, id))), words, "{text}");
    }
    daemon.ask("mem_forget", &json!({ "user_id": USER, "id": first }));
    place.write("f", "two\n");
    is(&daemon, second, "fresh", "the other is gone");
}

#[test]
fn an_observation_and_a_session_on_one_file_do_not_touch_each_other() {
    let (place, daemon) = scene();
    let before = watches(&daemon);
    place.write("f", "one\n");
    register(&daemon, &place, "s", &json!([file("f", "one\n")]));
    place.write("f", "two\n");
    let id = save(&daemon, "beside", &json!([place.root.join("f")]));
    let both = |session: &str, memory: &str, deed: &str| {
        assert_eq!(cause(&decide(&daemon, "s"), "f"), session, "{deed}");
        is(&daemon, id, memory, deed);
    };
    both("content", "fresh", "saved after the change");
    place.write("f", "one\n");
    both("fresh", "stale content", "a revert for the session");
    // The agent's own write is known to the session, not to the memory.
    let own = json!({ "session": "s", "path": "f", "digest": crate::harness::digest("six\n") });
    place.write("f", "six\n");
    daemon.ask("touch_ack", &own);
    both("fresh", "stale content", "an own write");
    place.write("f", "two\n");
    daemon.ask("fact.refute", &json!({ "session": "s", "source": "f" }));
    both("refuted", "fresh", "what failed for the session");
    daemon.ask("context.drop", &json!({ "session": "s" }));
    is(&daemon, id, "fresh", "without the session");
    place.write("f", "one\n");
    is(&daemon, id, "stale content", "a change without the session");
    daemon.ask("mem_forget", &json!({ "user_id": USER, "id": id }));
    wait_until("nothing is watched any more", || watches(&daemon) == before);
}

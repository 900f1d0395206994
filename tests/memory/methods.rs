//! Every method, as SPEC 9's table has it: the shape of each answer, and the code of each refusal.

use super::{get, refused, results, save, save_under, scene, search};
use crate::harness::{Daemon, ask};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The names in an object.
fn names(object: &Value) -> BTreeSet<&str> {
    let object = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
    object.keys().map(String::as_str).collect()
}

fn assert_names(object: &Value, expected: &str) {
    assert_eq!(names(object), expected.split(' ').collect(), "{object}");
}

const SESSION: &str = "id user_id started_at ended_at last_activity_at summary status is_auto_generated";
const COMPACT: &str = "id type title excerpt topic_key revision_count updated_at evidence";
const WHOLE: &str = "id session_id user_id type title content topic_key revision_count created_at updated_at sources evidence";

#[test]
fn every_answer_has_the_shape_of_the_contract() {
    let (place, daemon) = scene();
    place.write("a", "1");
    let client = &mut daemon.client();
    let started = ask(client, "mem_session_start", &json!({ "user_id": "u" }));
    assert_names(&started, "session_id is_new sessions_context memories");
    assert_eq!(started["is_new"], true);
    assert_eq!((&started["sessions_context"], &started["memories"]), (&json!([]), &json!([])));
    let session = &started["session_id"];

    let created = save(client, "u", "a title", "a content");
    assert_names(&created, "id outcome session_id topic_key revision_count");
    let expected = json!({ "id": 1, "outcome": "created", "session_id": session, "topic_key": null, "revision_count": 1 });
    assert_eq!(created, expected);
    let grounded = ask(
        client,
        "mem_save",
        &json!({ "user_id": "u", "type": "decision", "title": "grounded", "content": "rests on a",
            "topic_key": "k", "sources": [place.root.join("a")] }),
    );
    assert_names(&grounded, "id outcome session_id topic_key revision_count evidence");
    assert_eq!((&grounded["topic_key"], &grounded["evidence"]), (&json!("k"), &json!("fresh")));

    let summarised =
        ask(client, "mem_session_summary", &json!({ "user_id": "u", "summary": "First line\nand more" }));
    assert_names(&summarised, "id outcome session_id topic_key revision_count");
    assert_eq!((&summarised["topic_key"], &summarised["session_id"]), (&Value::Null, session));
    let whole = get(client, "u", &summarised["id"]);
    assert_eq!((&whole["type"], &whole["title"]), (&json!("summary"), &json!("First line")));

    let found = search(client, "u", "rests");
    assert_names(&found[0], &format!("{COMPACT} score score_parts"));
    assert_names(&found[0]["score_parts"], "rank recency revision");
    let parts = |name: &str| found[0]["score_parts"][name].as_f64().expect("a number");
    let score = 0.6 * parts("rank") + 0.25 * parts("recency") + 0.15 * parts("revision");
    assert!((found[0]["score"].as_f64().expect("a number") - score).abs() < 1e-12, "{}", found[0]);

    let whole = ask(client, "mem_get_observation", &json!({ "user_id": "u", "observation_id": 2 }));
    assert_names(&whole, WHOLE);
    assert_eq!(whole["sources"], json!([place.root.join("a")]));
    assert_names(&get(client, "u", &json!(2)), &format!("{WHOLE} history"));

    let around = results(&ask(client, "mem_timeline", &json!({ "user_id": "u", "observation_id": 2 })));
    let ids: Vec<&Value> = around.iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_names(&around[0], COMPACT);
    assert_names(&around[1], &format!("{COMPACT} is_anchor"));
    assert_eq!(around[1]["is_anchor"], true);

    let stats = ask(client, "mem_stats", &json!({ "user_id": "u" }));
    let by_type = json!({ "decision": 1, "discovery": 1, "summary": 1 });
    let expected = json!({ "observations": 3, "sessions": 1, "by_type": by_type, "stale": 0, "unknown": 0 });
    assert_eq!(stats, expected);

    let listed = results(&ask(client, "mem_list_sessions", &json!({ "user_id": "u" })));
    assert_names(&listed[0], SESSION);
    assert_eq!((&listed[0]["status"], &listed[0]["ended_at"]), (&json!("active"), &Value::Null));
    let ended = ask(client, "mem_session_end", &json!({ "user_id": "u", "summary": "done" }));
    assert_names(&ended, SESSION);
    let expected = (&json!("completed"), &json!(false), &json!("done"), session);
    assert_eq!((&ended["status"], &ended["is_auto_generated"], &ended["summary"], &ended["id"]), expected);
    assert!(ended["ended_at"].is_string() && ended["ended_at"].as_str() >= ended["started_at"].as_str());

    let again = ask(client, "mem_session_start", &json!({ "user_id": "u" }));
    assert_names(&again["sessions_context"][0], "session_id date summary is_auto_generated");
    assert_eq!(again["sessions_context"][0]["date"], ended["ended_at"]);
    let memories = results(&json!({ "results": again["memories"] }));
    let ids: BTreeSet<u64> = memories.iter().filter_map(|memory| memory["id"].as_u64()).collect();
    assert_eq!(ids, BTreeSet::from([1, 2]), "summaries are left out");
    assert_names(&memories[0], &format!("{COMPACT} score score_parts"));
    assert_names(&memories[0]["score_parts"], "recency revision type");

    let forgotten = ask(client, "mem_forget", &json!({ "user_id": "u", "id": 2 }));
    assert_eq!(forgotten, json!({ "id": 2, "forgotten": true }));
    assert_eq!(get(client, "u", &json!(2)), Value::Null);
}

#[test]
fn lists_are_as_long_as_the_contract_says() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for number in 0..14 {
        save(client, "u", &format!("title {number}"), &format!("wording {number}"));
        if number < 7 {
            ask(client, "mem_session_end", &json!({ "user_id": "u", "summary": format!("end {number}") }));
        }
    }
    let started = ask(client, "mem_session_start", &json!({ "user_id": "u" }));
    let ends: Vec<&Value> = started["sessions_context"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|ended| &ended["summary"])
        .collect();
    assert_eq!(ends, ["end 6", "end 5", "end 4", "end 3", "end 2"]);
    assert_eq!(started["memories"].as_array().map(Vec::len), Some(10));
    let asked = |limit: Value| json!({ "user_id": "u", "query": "wording", "limit": limit });
    for (limit, len) in [(Value::Null, 10), (json!(1), 1), (json!(13), 13), (json!(100), 14)] {
        assert_eq!(results(&daemon.ask("mem_search", &asked(limit))).len(), len);
    }
    let around = |id: u64| {
        let around = daemon.ask("mem_timeline", &json!({ "user_id": "u", "observation_id": id }));
        results(&around).iter().map(|entry| entry["id"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    assert_eq!(around(1), (1..=6).collect::<Vec<_>>());
    assert_eq!(around(7), (2..=12).collect::<Vec<_>>());
    assert_eq!(around(14), (9..=14).collect::<Vec<_>>());
}

#[test]
fn types_choose_what_is_found() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for kind in ["profile", "preference", "decision", "pattern", "discovery"] {
        let params = json!({ "user_id": "u", "type": kind, "title": kind, "content": "the same words" });
        assert_eq!(ask(client, "mem_save", &params)["outcome"], "created", "another type is another thing");
    }
    let found = |filter: Value| {
        let mut params = json!({ "user_id": "u", "query": "words" });
        params.as_object_mut().expect("an object").extend(filter.as_object().expect("one").clone());
        let results = results(&daemon.ask("mem_search", &params));
        results
            .iter()
            .map(|result| result["type"].as_str().expect("a type").to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(found(json!({})).len(), 5);
    assert_eq!(found(json!({ "types": ["pattern", "nothing"] })), BTreeSet::from(["pattern".to_owned()]));
    assert_eq!(found(json!({ "types": [] })), BTreeSet::new());
    let rest = found(json!({ "types_exclude": ["pattern", "profile"] }));
    assert!(rest.len() == 3 && !rest.contains("pattern") && !rest.contains("profile"), "{rest:?}");
    assert_eq!(found(json!({ "types_exclude": [] })).len(), 5);
}

/// What is asked wrongly, how it is refused, and a word that the sentence has.
fn wrongs() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let (good, blank) = (json!({ "user_id": "u" }), " \n\t\u{a0}");
    let with = |fields: Value| {
        let mut params = good.clone();
        params.as_object_mut().expect("an object").extend(fields.as_object().expect("one").clone());
        params
    };
    let saved = |field: &str, value: Value| {
        let mut params = with(json!({ "type": "decision", "title": "t", "content": "c" }));
        params[field] = value;
        params
    };
    let long = |len: usize| "x".repeat(len);
    let many: Vec<String> = (0..101).map(|number| format!("/a/{number}")).collect();
    vec![
        ("mem_session_start", json!({}), "invalid_params", "user_id"),
        ("mem_session_start", json!({ "user_id": "" }), "invalid_params", "user_id"),
        ("mem_session_start", json!({ "user_id": blank }), "invalid_params", "user_id"),
        ("mem_session_start", json!({ "user_id": 7 }), "invalid_params", "a string"),
        ("mem_session_start", json!({ "user_id": "a\nb" }), "invalid_params", "control"),
        ("mem_session_start", json!({ "user_id": long(201) }), "too_large", "200"),
        ("mem_session_start", with(json!({ "stale": "forget" })), "invalid_params", "forget"),
        ("mem_save", saved("content", json!("")), "invalid_params", "content"),
        ("mem_save", saved("content", json!(blank)), "invalid_params", "content"),
        ("mem_save", saved("title", json!("")), "invalid_params", "title"),
        ("mem_save", saved("title", json!(blank)), "invalid_params", "title"),
        ("mem_save", saved("type", json!("")), "invalid_params", "type"),
        ("mem_save", saved("type", json!("summary")), "invalid_params", "mem_session_summary"),
        ("mem_save", saved("type", json!("Decision")), "invalid_params", "memory.observation_types"),
        ("mem_save", saved("topic_key", json!("")), "invalid_params", "topic_key"),
        ("mem_save", saved("topic_key", json!(blank)), "invalid_params", "topic_key"),
        ("mem_save", saved("topic_key", json!(long(201))), "too_large", "200"),
        ("mem_save", saved("content", json!(long(65_537))), "too_large", "memory.content_bytes_max"),
        ("mem_save", saved("sources", json!(many)), "too_large", "100"),
        ("mem_save", saved("sources", json!(["a"])), "invalid_params", "absolute"),
        ("mem_save", saved("sources", json!([""])), "invalid_params", ""),
        ("mem_save", saved("if_revision", json!(-1)), "invalid_params", ""),
        ("mem_save", saved("if_revision", json!(7)), "revision_conflict", "revision 0, not at 7"),
        (
            "mem_save",
            json!({ "user_id": "u", "type": "decision", "title": "t" }),
            "invalid_params",
            "content",
        ),
        ("mem_session_summary", with(json!({ "summary": blank })), "invalid_params", "summary"),
        ("mem_session_summary", with(json!({ "summary": long(65_537) })), "too_large", "65536"),
        ("mem_session_end", with(json!({ "summary": "" })), "invalid_params", "summary"),
        ("mem_session_end", with(json!({ "summary": blank })), "invalid_params", "summary"),
        ("mem_session_end", with(json!({ "summary": long(65_537) })), "too_large", "65536"),
        ("mem_session_end", json!({ "user_id": "nobody", "summary": "s" }), "not_found", "active"),
        ("mem_search", with(json!({ "query": "" })), "invalid_params", "query"),
        ("mem_search", with(json!({ "query": blank })), "invalid_params", "query"),
        ("mem_search", good.clone(), "invalid_params", "query"),
        ("mem_search", with(json!({ "query": "q", "limit": 0 })), "invalid_params", "limit"),
        ("mem_search", with(json!({ "query": "q", "limit": -1 })), "invalid_params", "limit"),
        ("mem_search", with(json!({ "query": "q", "limit": 101 })), "invalid_params", "limit"),
        ("mem_search", with(json!({ "query": "q", "limit": 1.5 })), "invalid_params", ""),
        (
            "mem_search",
            with(json!({ "query": "q", "types": [], "types_exclude": [] })),
            "invalid_params",
            "not both",
        ),
        ("mem_get_observation", with(json!({ "observation_id": 0 })), "invalid_params", "observation_id"),
        ("mem_get_observation", with(json!({ "observation_id": -3 })), "invalid_params", "observation_id"),
        ("mem_get_observation", with(json!({ "observation_id": "1" })), "invalid_params", ""),
        ("mem_get_observation", with(json!({ "observation_id": u64::MAX })), "invalid_params", ""),
        ("mem_timeline", with(json!({ "observation_id": 0 })), "invalid_params", "observation_id"),
        ("mem_timeline", good.clone(), "invalid_params", "observation_id"),
        ("mem_stats", json!({ "user_id": "" }), "invalid_params", "user_id"),
        ("mem_list_sessions", with(json!({ "limit": 0 })), "invalid_params", "limit"),
        ("mem_list_sessions", with(json!({ "limit": 101 })), "invalid_params", "limit"),
        ("mem_forget", with(json!({ "id": 0 })), "invalid_params", "id"),
        ("mem_forget", with(json!({ "id": 99 })), "not_found", "99"),
        ("mem_forget", json!({ "user_id": "nobody", "id": 1 }), "not_found", "1"),
    ]
}

#[test]
fn what_is_asked_wrongly_is_refused_with_its_code_and_changes_nothing() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    ask(client, "mem_session_start", &json!({ "user_id": "u" }));
    save_under(client, "u", "k", "kept", "kept words");
    let told = |daemon: &Daemon| super::all_of(&mut daemon.client(), "u", &["kept", "words"]);
    let before = told(&daemon);
    for (method, params, code, word) in wrongs() {
        let (outcome, says) = refused(client, method, &params);
        let mut shown = params.to_string();
        shown.truncate(200);
        assert_eq!(outcome, code, "{method} {shown}: {says}");
        assert!(says.contains(word), "{method} {shown}: {says}");
        assert!(says.len() < 400, "{method}: {says}");
    }
    assert_eq!(told(&daemon), before);
    assert_eq!(ask(client, "mem_stats", &json!({ "user_id": "nobody" }))["sessions"], 0);
}

#[test]
fn what_no_method_knows_is_refused() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for (method, params) in [
        ("mem_session_start", json!({})),
        ("mem_save", json!({ "type": "decision", "title": "t", "content": "c" })),
        ("mem_session_summary", json!({ "summary": "s" })),
        ("mem_session_end", json!({ "summary": "s" })),
        ("mem_search", json!({ "query": "q" })),
        ("mem_get_observation", json!({ "observation_id": 1 })),
        ("mem_timeline", json!({ "observation_id": 1 })),
        ("mem_stats", json!({})),
        ("mem_list_sessions", json!({})),
        ("mem_forget", json!({ "id": 1 })),
    ] {
        let mut params = params;
        params["user_id"] = json!("u");
        params["colour"] = json!("red");
        let (code, says) = refused(client, method, &params);
        assert_eq!(code, "invalid_params", "{method}");
        assert!(says.contains("colour"), "{method}: {says}");
    }
    assert_eq!(ask(client, "mem_stats", &json!({ "user_id": "u" }))["sessions"], 0, "nothing was done");
}

#[test]
fn bounds_are_met_to_the_byte() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let (user, key, content) = ("é".repeat(100), "k".repeat(200), "c".repeat(65_536));
    let saved = save_under(client, &user, &key, &"t".repeat(80), &content);
    let whole = get(client, &user, &saved["id"]);
    assert_eq!((&whole["title"], &whole["content"]), (&json!("t".repeat(80)), &json!(content)));
    // 79 bytes, and a character of four of which one would fit.
    let saved = save(client, "u", &format!("{}🦊 and more", "t".repeat(79)), "c");
    assert_eq!(get(client, "u", &saved["id"])["title"], json!("t".repeat(79)));
}

#[test]
fn a_topic_key_is_saved_over_with_its_history_and_by_whoever_has_read_the_last_revision() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let first = save_under(client, "u", "k", "one", "first words");
    assert_eq!(first["session_opened"], "implicit");
    ask(client, "mem_session_end", &json!({ "user_id": "u", "summary": "s" }));
    let same = save_under(client, "u", "k", "another title", "first words");
    assert_eq!((&same["outcome"], &same["revision_count"]), (&json!("deduped"), &json!(1)));
    assert_eq!(same["session_id"], first["session_id"], "it does not move");
    assert_eq!(same["session_opened"], "implicit", "the session that it touched is a new one");
    let second = save_under(client, "u", "k", "two", "second words");
    assert_eq!((&second["outcome"], &second["id"]), (&json!("updated"), &first["id"]));
    assert_eq!(second["revision_count"], 2);
    assert_ne!(second["session_id"], first["session_id"], "it moved");

    let over = |revision: u64, content: &str| {
        json!({ "user_id": "u", "type": "pattern", "title": "three", "content": content, "topic_key": "k",
            "if_revision": revision })
    };
    for wrong in [0, 1, 3] {
        let (code, says) = refused(client, "mem_save", &over(wrong, "third words"));
        assert_eq!(code, "revision_conflict", "{says}");
    }
    let whole = get(client, "u", &first["id"]);
    assert_eq!((&whole["content"], &whole["revision_count"]), (&json!("second words"), &json!(2)));
    assert_eq!(ask(client, "mem_save", &over(2, "third words"))["revision_count"], 3);
    let whole = get(client, "u", &first["id"]);
    assert_eq!((&whole["type"], &whole["content"]), (&json!("pattern"), &json!("third words")));
    let past: Vec<(&Value, &Value, &Value)> = whole["history"]
        .as_array()
        .expect("a history")
        .iter()
        .map(|past| (&past["revision_count"], &past["title"], &past["content"]))
        .collect();
    let (one, two) =
        ((json!(1), json!("one"), json!("first words")), (json!(2), json!("two"), json!("second words")));
    assert_eq!(past, [(&one.0, &one.1, &one.2), (&two.0, &two.1, &two.2)]);
    assert_names(&whole["history"][0], "revision_count type title content topic_key updated_at");
    assert_eq!(whole["history"][0]["updated_at"], whole["created_at"], "created_at is kept");
    assert!(search(client, "u", "second").is_empty(), "the past is not searched");
}

#[test]
fn what_is_there_without_a_key_gets_one_and_is_not_said_twice() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let unkeyed = save(client, "u", "a", "the same words");
    assert_eq!(save(client, "u", "b", "the same words")["outcome"], "deduped");
    let params = json!({ "user_id": "u", "type": "discovery", "title": "c", "content": "the same words", "topic_key": "k" });
    let attached = ask(client, "mem_save", &params);
    assert_eq!((&attached["outcome"], &attached["id"]), (&json!("updated"), &unkeyed["id"]));
    assert_eq!((&attached["topic_key"], &attached["revision_count"]), (&json!("k"), &json!(2)));
    let again = save(client, "u", "d", "the same words");
    assert_eq!((&again["outcome"], &again["topic_key"]), (&json!("deduped"), &json!("k")));
    assert_eq!(ask(client, "mem_stats", &json!({ "user_id": "u" }))["observations"], 1);
}

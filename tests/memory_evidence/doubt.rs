//! What cannot be told is unknown to the memory too, and never fresh: filesystems that do not report, a watcher that is not
//! there, looks that take too long, a journal that lost its end. What is mounted over a path is what is there.

use super::{USER, is, observed, save, scene, word};

use crate::harness::{Daemon, Place, ask, wait_until};
use crate::lies::limits::Confined;
use crate::lies::mounts::Mounted;
use serde_json::{Value, json};
use staled::client::Client;
use staled::config::Config;
use std::fs;

#[test]
fn a_source_that_does_not_report_its_changes_is_unknown() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let id = save(&daemon, "pseudo", &json!(["/proc/version"]));
    let told = is(&daemon, id, "unknown unwatchable_fs", "a pseudo filesystem");
    assert_eq!(told["changed"][0]["path"], "/proc/version");
    let stats = daemon.ask("mem_stats", &json!({ "user_id": USER }));
    assert_eq!((&stats["stale"], &stats["unknown"]), (&json!(0), &json!(1)), "{stats}");
    // Beside one that is stale, the observation is.
    let both = save(&daemon, "both", &json!(["/proc/version", place.root.join("f")]));
    is(&daemon, both, "unknown unwatchable_fs", "one of two");
    place.write("f", "two\n");
    let told = is(&daemon, both, "stale content", "the other changed");
    assert_eq!(told["changed"].as_array().map(Vec::len), Some(2), "{told}");
}

#[test]
fn what_is_mounted_over_a_source_is_what_is_there_now() {
    let (place, daemon) = scene();
    place.write("d/f", "one\n");
    place.write("other", "two\n");
    let path = place.root.join("d/f");
    let id = save(&daemon, "mounted", &json!([path]));
    is(&daemon, id, "fresh", "nothing");
    let Some(over) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &place.root.join("d")) else { return };
    is(&daemon, id, "stale deleted", "a mount over the folder");
    fs::write(&path, "one\n").expect("a file");
    is(&daemon, id, "fresh", "the same bytes in what is mounted");
    drop(over);
    is(&daemon, id, "fresh", "its end");
    let other = place.root.join("other");
    let bound = Mounted::new(&["--bind", other.to_str().expect("UTF-8")], &path).expect("a mount as before");
    is(&daemon, id, "stale content", "a mount over the file");
    drop(bound);
    is(&daemon, id, "fresh", "its end");
}

#[test]
fn without_a_watcher_everything_is_unknown_and_nothing_with_sources_is_saved() {
    let place = Place::new();
    place.write("f", "one\n");
    let Some(seeing) = Confined::start(&place, 1_000, 10) else { return };
    let saved = seeing.ask("mem_save", &observed("blind", &json!([place.root.join("f")])));
    let id = saved["id"].as_u64().expect("a number");
    drop(seeing);
    let Some(mut daemon) = Confined::start(&place, 1_000, 0) else { return };
    let questions = [
        ("mem_search", json!({ "user_id": USER, "query": "blind" }), "/results/0"),
        ("mem_session_start", json!({ "user_id": USER }), "/memories/0"),
        ("mem_timeline", json!({ "user_id": USER, "observation_id": id }), "/results/0"),
        ("mem_get_observation", json!({ "user_id": USER, "observation_id": id }), ""),
    ];
    let all_say = |expected: &str| {
        for (method, params, at) in &questions {
            let answer = daemon.ask(method, params);
            assert_eq!(word(answer.pointer(at).expect("an observation")), expected, "{method}: {answer}");
        }
        let stats = daemon.ask("mem_stats", &json!({ "user_id": USER }));
        assert_eq!(stats["unknown"], u64::from(expected.starts_with("unknown")), "{stats}");
    };
    all_say("unknown watcher_dead");
    place.write("f", "two\n");
    all_say("unknown watcher_dead");
    let excluded = json!({ "user_id": USER, "query": "blind", "stale": "exclude" });
    assert_eq!(daemon.ask("mem_search", &excluded)["results"], json!([]));
    // What rests on nothing needs no eyes.
    let words = json!({ "user_id": USER, "type": "discovery", "title": "words", "content": "blind or not" });
    daemon.ask("mem_save", &words);
    daemon.set("max_inotify_instances", 10);
    let content = || {
        let answer = daemon.ask("mem_search", &questions[0].1);
        let results = answer["results"].as_array().expect("a list");
        results.iter().any(|found| found["id"] == id && word(found) == "stale content")
    };
    wait_until("there is a watcher", content);
    place.write("f", "one\n");
    wait_until("it is as it was", || {
        let answer = daemon.ask("mem_get_observation", &questions[3].1);
        let word = word(&answer);
        assert!(word == "fresh" || word.starts_with("unknown"), "{answer}");
        word == "fresh"
    });
}

/// So long that no machine has read it before it is cut.
const LONG: u64 = 1 << 36;

fn set_len(path: &std::path::Path, len: u64) {
    fs::File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(len))
        .expect("a file with a hole");
}

/// One that has a second for everything.
fn hasty(place: &Place) -> Daemon {
    let mut config = Config::default();
    config.decision.deadline_ms = 1_000;
    config.context.register_deadline_ms = 1_000;
    Daemon::start_with(&place.home, config)
}

fn said(daemon: &Daemon, id: u64) -> String {
    word(&daemon.ask("mem_get_observation", &json!({ "user_id": USER, "observation_id": id })))
}

#[test]
fn what_is_not_verified_by_the_deadline_is_unknown() {
    let place = Place::new();
    let daemon = hasty(&place);
    place.write("f", "one\n");
    let path = place.root.join("f");
    let id = loop {
        // On a machine that is busy a second is not much.
        let saved = daemon.client().ask("mem_save", &observed("long", &json!([path])));
        let saved: Value = saved.map_or(Value::Null, |saved| serde_json::from_str(&saved).expect("JSON"));
        if saved["evidence"] == "fresh" {
            break saved["id"].as_u64().expect("a number");
        }
    };
    set_len(&path, LONG);
    let mut seen = std::collections::BTreeSet::new();
    wait_until("a look is waited for in vain", || {
        seen.insert(said(&daemon, id));
        seen.contains("unknown unsettled")
    });
    assert!(seen.iter().all(|word| word.starts_with("unknown")), "{seen:?}");
    let search = json!({ "user_id": USER, "query": "long", "stale": "exclude" });
    assert_eq!(daemon.ask("mem_search", &search)["results"], json!([]));
    set_len(&path, 4);
    wait_until("it is as it was", || said(&daemon, id) == "fresh");
}

#[test]
fn a_save_whose_looks_take_too_long_says_so_and_is_never_fresh_by_itself() {
    let place = Place::new();
    let daemon = hasty(&place);
    place.write("f", "one\n");
    let path = place.root.join("f");
    set_len(&path, LONG);
    let mut saved = Value::Null;
    wait_until("it is taken", || {
        let answer = daemon.client().ask("mem_save", &observed("long", &json!([path])));
        saved = answer.map_or(Value::Null, |saved| serde_json::from_str(&saved).expect("JSON"));
        saved["id"].is_u64()
    });
    assert!(word(&saved).starts_with("unknown"), "{saved}");
    let id = saved["id"].as_u64().expect("a number");
    set_len(&path, 4);
    wait_until("it was looked at", || !said(&daemon, id).starts_with("unknown"));
    assert_eq!(said(&daemon, id), "stale born_stale", "nobody knows what was there when it was saved");
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    is(&daemon, id, "stale born_stale", "after a restart");
    save(&daemon, "long", &json!([path]));
    is(&daemon, id, "fresh", "saved anew");
}

/// The last records are the observation's, and a record before them is damaged.
#[test]
fn a_damaged_journal_leaves_no_evidence_fresh_until_it_is_saved_anew() {
    let (place, daemon) = scene();
    place.write("f", "one\n");
    let id = save(&daemon, "doubted", &json!([place.root.join("f")]));
    save(&daemon, "after", &json!([]));
    daemon.stop();
    fs::write(place.home.join("state/journal/in-doubt"), "").expect("a file");
    let daemon = Daemon::start(&place.home);
    is(&daemon, id, "unknown gap", "the journal is in doubt");
    assert_eq!(save(&daemon, "doubted", &json!([place.root.join("f")])), id);
    is(&daemon, id, "fresh", "saved anew");
}

/// A daemon of its own user's namespace, whose watches run out.
#[test]
fn what_needs_more_watches_than_there_are_is_unknown() {
    let place = Place::new();
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let Some(daemon) = Confined::start(&place, 25, 10) else { return };
    for name in &names {
        daemon.ask("mem_save", &observed(name, &json!([place.root.join(name)])));
    }
    let client = &mut Client::connect(&daemon.socket).expect("the daemon answers");
    let search = |client: &mut Client| {
        let answer = ask(client, "mem_search", &json!({ "user_id": USER, "query": "common", "limit": 100 }));
        let found: Vec<Value> = answer["results"].as_array().expect("a list").clone();
        found
            .into_iter()
            .map(|found| (found["title"].as_str().expect("a title").to_owned(), word(&found)))
            .collect::<Vec<_>>()
    };
    let words = search(client);
    let with = |word: &str| words.iter().filter(|(_, held)| held == word).count();
    assert!(with("fresh") > 5 && with("unknown watch_limit") > 5, "{words:?}");
    assert_eq!(with("fresh") + with("unknown watch_limit"), names.len(), "{words:?}");
    // Those that are watched are heard, and the others go on to be unknown.
    names.iter().for_each(|name| place.write(name, "two\n"));
    for ((title, before), (again, after)) in words.iter().zip(search(client)) {
        assert_eq!(*title, again);
        let expected = if before == "fresh" { "stale content" } else { "unknown watch_limit" };
        assert_eq!(after, expected, "{title}");
    }
}

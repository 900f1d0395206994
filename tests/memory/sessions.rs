//! Sessions of users: one active at most, and one user's apart from every other's.

use super::{get, refused, results, save, save_under, scene, search};
use crate::harness::{Daemon, ask};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Barrier;

const STARTS: usize = 100;

fn start(daemon: &Daemon, user: &str) -> Value {
    daemon.ask("mem_session_start", &json!({ "user_id": user }))
}

fn listed(daemon: &Daemon, user: &str) -> Vec<Value> {
    results(&daemon.ask("mem_list_sessions", &json!({ "user_id": user, "limit": 100 })))
}

#[test]
fn a_hundred_starts_at_once_make_one_session() {
    let (_place, daemon) = scene();
    let clients: Vec<_> = (0..STARTS).map(|_| daemon.client()).collect();
    let at_once = Barrier::new(STARTS);
    let started: Vec<Value> = std::thread::scope(|scope| {
        let start = |mut client| {
            let at_once = &at_once;
            scope.spawn(move || {
                at_once.wait();
                ask(&mut client, "mem_session_start", &json!({ "user_id": "u" }))
            })
        };
        let starting: Vec<_> = clients.into_iter().map(start).collect();
        starting.into_iter().map(|starting| starting.join().expect("an answer")).collect()
    });
    let ids: BTreeSet<String> = started.iter().map(|started| started["session_id"].to_string()).collect();
    let new = started.iter().filter(|started| started["is_new"] == true).count();
    assert_eq!((ids.len(), new), (1, 1), "{ids:?}");
    assert_eq!(listed(&daemon, "u").len(), 1);
}

/// Half of them end the session that the others have just begun: they follow each other all the same.
#[test]
fn starts_and_ends_at_once_never_leave_two_sessions_active() {
    let (_place, daemon) = scene();
    let (mut ended, mut began) = (0, 0);
    std::thread::scope(|scope| {
        let doing: Vec<_> = (0..24)
            .map(|number| {
                let mut client = daemon.client();
                scope.spawn(move || match number % 3 {
                    0 => (0, u32::from(save(&mut client, "u", &format!("t{number}"), &format!("c{number}"))["session_opened"].is_string())),
                    1 => (0, u32::from(ask(&mut client, "mem_session_start", &json!({ "user_id": "u" }))["is_new"] == true)),
                    _ => (u32::from(client.ask("mem_session_end", &json!({ "user_id": "u", "summary": "s" })).is_ok()), 0),
                })
            })
            .collect();
        for done in doing {
            let (one_ended, one_began) = done.join().expect("an answer");
            (ended, began) = (ended + one_ended, began + one_began);
        }
    });
    let listed = listed(&daemon, "u");
    let active = listed.iter().filter(|session| session["status"] == "active").count();
    assert_eq!((listed.len(), active), (began as usize, (began - ended) as usize), "{listed:?}");
    assert!(active <= 1 && began >= 1, "{listed:?}");
}

#[test]
fn a_session_goes_on_until_it_is_ended_and_is_ended_once() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let first = start(&daemon, "u");
    let before = listed(&daemon, "u")[0].clone();
    let again = start(&daemon, "u");
    assert_eq!((&again["session_id"], &again["is_new"]), (&first["session_id"], &json!(false)));
    let touched = listed(&daemon, "u")[0].clone();
    assert!(touched["last_activity_at"].as_str() > before["last_activity_at"].as_str(), "{touched}");
    assert_eq!(touched["started_at"], before["started_at"]);

    // What is asked does not touch it; what is told does, and told again too.
    search(client, "u", "anything");
    ask(client, "mem_stats", &json!({ "user_id": "u" }));
    assert_eq!(listed(&daemon, "u")[0], touched);
    let mut last = touched["last_activity_at"].clone();
    for told in 0..4 {
        match told {
            0..2 => drop(save(client, "u", "title", "the same")),
            _ => drop(ask(client, "mem_session_summary", &json!({ "user_id": "u", "summary": "so far" }))),
        }
        let now = listed(&daemon, "u")[0]["last_activity_at"].clone();
        assert!(now.as_str() > last.as_str(), "{told}: {now} after {last}");
        last = now;
    }
    assert_eq!(listed(&daemon, "u")[0]["status"], "active", "a summary does not end it");

    ask(client, "mem_session_end", &json!({ "user_id": "u", "summary": "done" }));
    let ended = listed(&daemon, "u");
    let (code, _) = refused(client, "mem_session_end", &json!({ "user_id": "u", "summary": "once more" }));
    assert_eq!((code.as_str(), listed(&daemon, "u")), ("not_found", ended), "and nothing is changed");
    let new = start(&daemon, "u");
    assert_eq!(new["is_new"], true);
    assert_ne!(new["session_id"], first["session_id"]);
    let known = json!({ "session_id": first["session_id"], "summary": "done", "is_auto_generated": false });
    let mut told = new["sessions_context"][0].clone();
    told.as_object_mut().expect("an object").remove("date");
    assert_eq!(told, known);
}

#[test]
fn users_never_see_each_other() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    // Near to each other in every way that somebody could confuse.
    let users = ["ann", "Ann", "ann ", "ann/1", "ann\u{301}", "an", "*", "0"];
    let mut ids = Vec::new();
    for user in users {
        let saved = save_under(client, user, "shared", "title", "the same words");
        assert_eq!(
            (&saved["outcome"], &saved["session_opened"]),
            (&json!("created"), &json!("implicit")),
            "{user}"
        );
        ids.push(saved["id"].clone());
        save_under(client, user, "shared", "title", &format!("only of {}", ids.len()));
    }
    for (user, own) in users.iter().zip(&ids) {
        for (other, id) in users.iter().zip(&ids) {
            let (is_own, asked) = (user == other, json!({ "user_id": user, "observation_id": id }));
            assert_eq!(!get(client, user, id).is_null(), is_own, "{user} of {other}");
            assert_eq!(results(&ask(client, "mem_timeline", &asked)).len(), usize::from(is_own));
            if !is_own {
                let (code, says) = refused(client, "mem_forget", &json!({ "user_id": user, "id": id }));
                assert!(code == "not_found" && !says.contains(other), "{says}");
            }
        }
        for query in ["only", "of", "title", "t"] {
            let found: Vec<Value> =
                search(client, user, query).iter().map(|found| found["id"].clone()).collect();
            assert_eq!(found, std::slice::from_ref(own), "{query} of {user}");
        }
        let started = start(&daemon, user);
        assert_eq!((&started["is_new"], &started["memories"][0]["id"]), (&json!(false), own));
        assert_eq!(started["memories"].as_array().map(Vec::len), Some(1));
        let stats = ask(client, "mem_stats", &json!({ "user_id": user }));
        assert_eq!((&stats["observations"], &stats["sessions"]), (&json!(1), &json!(1)));
        assert_eq!(listed(&daemon, user).len(), 1);
    }
    let sessions: BTreeSet<String> =
        users.iter().map(|user| listed(&daemon, user)[0]["id"].to_string()).collect();
    assert_eq!(sessions.len(), users.len());
    // The last but one ends, and nobody else does.
    ask(client, "mem_session_end", &json!({ "user_id": "*", "summary": "s" }));
    ask(client, "mem_forget", &json!({ "user_id": "0", "id": ids[7] }));
    for user in &users[..6] {
        assert_eq!(listed(&daemon, user)[0]["status"], "active", "{user}");
        assert_eq!(search(client, user, "only").len(), 1, "{user}");
    }
}

#[test]
fn an_unknown_user_has_nothing_and_asking_makes_none() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for query in ["anything", "a"] {
        assert!(search(client, "nobody", query).is_empty());
    }
    assert!(get(client, "nobody", &json!(1)).is_null());
    assert!(listed(&daemon, "nobody").is_empty());
    let nothing = json!({ "observations": 0, "sessions": 0, "by_type": {}, "stale": 0, "unknown": 0 });
    assert_eq!(ask(client, "mem_stats", &json!({ "user_id": "nobody" })), nothing);
    assert_eq!(start(&daemon, "nobody")["is_new"], true);
}

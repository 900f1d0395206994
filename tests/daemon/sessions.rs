//! `context.get`, `context.list`, `context.drop`.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place, digest, file, refusal};
use serde_json::{Value, json};

#[test]
fn what_was_told_is_told_again() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let told = json!({
        "session": "s", "user": "alice", "agent": "probe", "root": place.root,
        "captured_at": "2026-11-29T10:00:00.000000Z",
        "goal": { "statement": "g", "branchable": true, "shares_mutable_state": true, "hypotheses": ["x", "y"] },
        "results": [
            { "id": "r1", "tool": "Read", "critical": true, "captured_at": "2026-11-29T10:00:00.000000Z",
              "source": { "kind": "file", "path": "a" }, "digest": digest("1") },
            { "id": "r2", "critical": false, "source": { "kind": "volatile", "what": "clock" } },
            { "id": "r3", "critical": true, "source": { "kind": "absent", "path": "none" } },
        ],
        "facts": [{ "id": "f1", "statement": "one", "evidence": "a:1", "sources": ["r1"] }],
        "decisions": ["d"], "open_questions": ["q"], "scratchpad_bytes": 7,
    });
    daemon.ask("context.register", &told);
    let got = daemon.ask("context.get", &json!({ "session": "s" }));
    assert_eq!(got, told);
    // Told again under another name, it means the same.
    let mut copy = got;
    copy["session"] = "t".into();
    daemon.ask("context.register", &copy);
    let (one, two) = (decide(&daemon, "s"), decide(&daemon, "t"));
    assert_eq!(
        one["staleness_results"].as_array().map(Vec::len),
        two["staleness_results"].as_array().map(Vec::len)
    );
    assert_eq!(one["transition"], two["transition"]);
}

#[test]
fn the_list_is_filtered_and_a_dropped_session_is_gone() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let other = place.root.join("other");
    std::fs::create_dir(&other).expect("a folder");
    for (session, user, root) in
        [("s1", "alice", &place.root), ("s2", "bob", &place.root), ("s3", "bob", &other)]
    {
        let context = json!({ "session": session, "user": user, "root": root, "results": [file("a", "1")] });
        daemon.ask("context.register", &context);
    }
    let listed = |filter: &Value| -> Vec<String> {
        let list = daemon.ask("context.list", filter);
        let sessions = list["sessions"].as_array().expect("a list");
        sessions.iter().map(|session| session["session"].as_str().expect("a name").to_owned()).collect()
    };
    for (filter, expected) in [
        (json!({}), vec!["s1", "s2", "s3"]),
        (json!({ "user": "bob" }), vec!["s2", "s3"]),
        (json!({ "root": place.root }), vec!["s1", "s2"]),
        (json!({ "root": other, "user": "bob" }), vec!["s3"]),
        (json!({ "user": "eve" }), vec![]),
    ] {
        assert_eq!(listed(&filter), expected, "{filter}");
    }
    let counts = &daemon.ask("context.list", &json!({ "root": other }))["sessions"][0]["counts"];
    assert_eq!(*counts, json!({ "results": 1, "fresh": 0, "stale": 1, "unknown": 0 }));
    daemon.ask("context.drop", &json!({ "session": "s2" }));
    assert_eq!(listed(&json!({})), ["s1", "s3"]);
    let client = &mut daemon.client();
    for method in ["decide", "context.get", "context.drop", "status"] {
        assert_eq!(refusal(client, method, &json!({ "session": "s2" })), "no_session_context", "{method}");
    }
    // Whoever else rests on the same file still hears of it.
    place.write("a", "2");
    assert_eq!(decide(&daemon, "s1")["transition"], "fresh");
    // The name may begin again, without a memory.
    register(&daemon, &place, "s2", &json!([file("a", "2")]));
    assert_eq!(decide(&daemon, "s2")["transition"], "resume");
}

/// A session that ends while its registration is being looked at: an answer, and no ghost.
#[test]
fn register_and_drop_race_to_a_clean_end() {
    let place = Place::new();
    (0..50).for_each(|i| place.write(&format!("f{i}"), "1"));
    let daemon = Daemon::start(&place.home);
    let results: Vec<Value> = (0..50).map(|i| file(&format!("f{i}"), "1")).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let client = &mut daemon.client();
                for _ in 0..30 {
                    let context = json!({ "session": "s", "root": place.root, "results": results });
                    let told = client.ask("context.register", &context);
                    if let Err(error) = told {
                        let staled::client::ClientError::Refused(refusal) = &error else { panic!("{error}") };
                        assert_eq!(refusal.word(), Some("no_session_context"), "{error}");
                    }
                }
            });
        }
        scope.spawn(|| {
            let client = &mut daemon.client();
            for _ in 0..60 {
                if let Err(error) = client.ask("context.drop", &json!({ "session": "s" })) {
                    let staled::client::ClientError::Refused(refusal) = &error else { panic!("{error}") };
                    assert_eq!(refusal.word(), Some("no_session_context"), "{error}");
                }
            }
        });
    });
    register(&daemon, &place, "s", &json!(results));
    assert_eq!(decide(&daemon, "s")["counts"]["fresh"], 50);
    daemon.ask("context.drop", &json!({ "session": "s" }));
    assert_eq!(daemon.ask("status", &json!({}))["sources"], 0);
}

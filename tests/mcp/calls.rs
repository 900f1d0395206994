//! Every tool, asked and answered.

use super::Scene;
use serde_json::{Value, json};
use staled::world::login_name;

#[test]
fn decide_answers_the_report_that_the_gate_takes() {
    let mut scene = Scene::new();
    let report = scene.call("decide", &json!({ "session": "s-01", "rows": "all" }));
    assert_eq!(report["transition"], "fork", "{report}");
    assert_eq!(report["staleness_results"].as_array().unwrap().len(), 2);
    assert!(scene.daemon.ask("fork.list", &json!({}))["forks"].as_array().unwrap().is_empty(), "only named");
    let goal = json!({ "statement": "Another" });
    let report = scene.call("decide", &json!({ "session": "s-01", "goal": goal }));
    assert_eq!((&report["transition"], &report["context"]["goal"]), (&json!("resume"), &json!("Another")));
    scene.place.write("a.txt", "changed\n");
    let report = scene.call("decide", &json!({ "session": "s-01" }));
    assert_eq!((&report["transition"], &report["reason"]["evidence"]), (&json!("fresh"), &json!(["a.txt"])));
    assert_eq!(report["staleness_results"].as_array().unwrap().len(), 1, "what is fresh is left out");
    assert!(staled::protocol::gate::check(&report).is_empty(), "{report}");
    let last = scene.daemon.ask("log.read", &json!({ "limit": 1, "tail": true }))["lines"][0].clone();
    assert_eq!(last["decision"], report["decision"], "it was logged");
}

#[test]
fn a_command_that_is_called_like_a_file_says_nothing_of_the_file() {
    let mut scene = Scene::new();
    scene.place.write("build.sh", "");
    let command = json!({ "kind": "command", "command": "./build.sh", "inputs": [{ "kind": "file", "path": "b.txt" }] });
    let seen = json!({ "id": "build", "source": command });
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "results": [seen] }));
    let answer = scene.call("stale_check", &json!({ "session": "s-01", "paths": ["build.sh"] }));
    assert_eq!(answer["paths"][0]["status"], "unregistered", "{answer}");
}

#[test]
fn stale_check_says_how_it_is_with_each_path_however_it_is_spelled() {
    let mut scene = Scene::new();
    std::os::unix::fs::symlink("a.txt", scene.place.root.join("link")).unwrap();
    scene.place.write("unknown.txt", "");
    scene.place.write("a.txt", "changed\n");
    let absolute = scene.place.root.join("b.txt");
    let paths = json!(["./a.txt", "link", absolute, "unknown.txt", "gone.txt", { "bytes": "/w==" }]);
    let answer = scene.call("stale_check", &json!({ "session": "s-01", "paths": paths }));
    let judged = answer["paths"].as_array().unwrap().iter();
    let judged: Vec<(&Value, &str)> =
        judged.map(|one| (&one["path"], one["status"].as_str().unwrap())).collect();
    let expected = ["stale", "stale", "fresh", "unregistered", "unregistered", "unregistered"];
    let expected: Vec<(&Value, &str)> = paths.as_array().unwrap().iter().zip(expected).collect();
    assert_eq!(judged, expected);
    assert_eq!(answer["counts"], json!({ "results": 2, "fresh": 1, "stale": 1, "unknown": 0 }));
    let stale = answer["stale"].as_array().unwrap();
    assert_eq!(
        (stale.len(), &stale[0]["result_id"], &stale[0]["cause"]),
        (1, &json!("a.txt"), &json!("content"))
    );
    assert_eq!(answer["paths"][0]["rows"][0], stale[0]);
    // Of two results about one file the worse counts.
    let seen =
        json!({ "id": "seen again", "source": { "kind": "file", "path": "b.txt" }, "content": "other\n" });
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "results": [seen] }));
    let answer = scene.call("stale_check", &json!({ "session": "s-01", "paths": ["b.txt"] }));
    assert_eq!(
        (&answer["paths"][0]["status"], answer["paths"][0]["rows"].as_array().unwrap().len()),
        (&json!("stale"), 2)
    );
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "remove": ["seen again"] }));
    scene.place.write("a.txt", "one\n");
    let answer = scene.call("stale_check", &json!({ "session": "s-01" }));
    assert_eq!((&answer["stale"], answer.get("paths")), (&json!([]), None));
    let before = scene.daemon.ask("log.read", &json!({}))["lines"].as_array().unwrap().len();
    scene.call("stale_check", &json!({ "session": "s-01" }));
    let after = scene.daemon.ask("log.read", &json!({}))["lines"].as_array().unwrap().len();
    assert_eq!(before, after, "nothing was decided");
}

#[test]
fn a_relative_path_is_below_the_sessions_root() {
    let mut scene = Scene::new();
    scene.place.write("sub/a.txt", "below\n");
    let root = scene.place.root.join("sub");
    let below =
        json!({ "session": "below", "root": root, "results": [crate::harness::file("a.txt", "seen\n")] });
    scene.daemon.ask("context.register", &below);
    let answer = scene.call("stale_check", &json!({ "session": "below", "paths": ["a.txt", "../a.txt"] }));
    let judged = ["stale", "unregistered"].map(Value::from);
    assert_eq!([&answer["paths"][0]["status"], &answer["paths"][1]["status"]], judged.each_ref());
    let story = scene.call("why", &json!({ "session": "below", "path": "a.txt" }));
    assert_eq!(
        (&story["path"], &story["sessions"][0]["session"]),
        (&json!(root.join("a.txt")), &json!("below"))
    );
}

/// A path of which nothing can be told is unknown, and never fresh.
#[test]
fn stale_check_says_unknown_where_nothing_can_be_told() {
    let mut scene = Scene::new();
    let row = json!({ "id": "p", "source": { "kind": "file", "path": "/proc/self/stat" } });
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "results": [row] }));
    let answer = scene.call("stale_check", &json!({ "session": "s-01", "paths": ["/proc/self/stat"] }));
    assert_eq!(answer["paths"][0]["status"], "unknown", "{answer}");
    assert_eq!(answer["stale"][0]["cause"], "unwatchable_fs");
}

#[test]
fn status_is_the_daemons() {
    let mut scene = Scene::new();
    let status = scene.call("status", &json!({ "session": "s-01" }));
    assert_eq!((&status["session"], status["rows"].as_array().unwrap().len()), (&json!("s-01"), 2));
    assert_eq!(scene.call("status", &json!({}))["health"], "ok");
    for index in 0..1_000 {
        scene.place.write(&format!("many/{index}"), "same\n");
    }
    let row = |index: u32| {
        let digest = crate::harness::digest(if index == 7 { "seen\n" } else { "same\n" });
        json!({ "id": index.to_string(), "source": { "kind": "file", "path": format!("many/{index}") }, "digest": digest })
    };
    let results: Vec<Value> = (0..1_000).map(row).collect();
    scene.daemon.ask("context.record", &json!({ "session": "s-01", "results": results }));
    let status = scene.call("status", &json!({ "session": "s-01" }));
    assert_eq!(status["counts"]["results"], 1_002);
    let rows = status["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["result_id"]), (1, &json!("7")), "of so many only what is not fresh");
}

#[test]
fn why_tells_the_story_of_a_decision() {
    let mut scene = Scene::new();
    let goal = json!({ "statement": "Go on" });
    let mut decided = Vec::new();
    for content in ["one\n", "changed\n", "one\n"] {
        scene.place.write("a.txt", content);
        let report = scene.call("decide", &json!({ "session": "s-01", "goal": goal }));
        decided.push(report["decision"].as_str().unwrap().to_owned());
    }
    let story = scene.call("why", &json!({ "decision": decided[1] }));
    assert_eq!(story["decision"]["transition"], "fresh");
    assert_eq!(story["before"]["decision"], decided[0]);
    assert_eq!(
        (&story["after"]["decision"], &story["after"]["transition"]),
        (&json!(decided[2]), &json!("resume"))
    );
    assert!(story["after"].get("staleness_results").is_none(), "in short");
    let beginning = &decided[1][..decided[1].len() - 1];
    scene.call("why", &json!({ "decision": beginning, "session": "s-01" }));
    for (told, code) in [
        (json!({ "decision": "d-ffffffff" }), "not_found"),
        (json!({ "decision": decided[1], "session": "other" }), "not_found"),
        (json!({ "decision": "d-0" }), "invalid_params"),
        (json!({ "decision": "nonsense" }), "invalid_params"),
        (json!({}), "invalid_params"),
        (json!({ "decision": decided[1], "path": "a.txt" }), "invalid_params"),
        (json!({ "path": "a.txt", "session": "other" }), "no_session_context"),
        (json!({ "path": "" }), "invalid_params"),
    ] {
        assert_eq!(scene.refused("why", &told).0, code, "{told}");
    }
}

#[test]
fn why_tells_the_story_of_a_path() {
    let mut scene = Scene::new();
    let other = json!({ "session": "s-02", "root": "/", "results": [
        { "id": "a", "source": { "kind": "file", "path": scene.place.root.join("a.txt") }, "digest": crate::harness::digest("one\n") },
    ] });
    scene.daemon.ask("context.register", &other);
    scene.place.write("a.txt", "changed\n");
    let decision = scene.call("decide", &json!({ "session": "s-02" }))["decision"].clone();
    // The server was started in the root, as an agent starts it.
    let story = scene.call("why", &json!({ "path": "a.txt" }));
    assert_eq!(story["path"], json!(scene.place.root.join("a.txt")));
    let sessions: Vec<&Value> =
        story["sessions"].as_array().unwrap().iter().map(|one| &one["session"]).collect();
    assert_eq!(sessions, ["s-01", "s-02"]);
    assert_eq!(story["sessions"][0]["row"]["cause"], "content");
    let decisions = story["decisions"].as_array().unwrap();
    assert_eq!((decisions.len(), &decisions[0]["decision"]), (1, &decision));
    assert_eq!(decisions[0]["row"]["result_id"], "a");
    let story = scene.call("why", &json!({ "path": "a.txt", "session": "s-01" }));
    assert_eq!((story["sessions"].as_array().unwrap().len(), &story["decisions"]), (1, &json!([])));
    let story = scene.call("why", &json!({ "path": "nowhere" }));
    assert_eq!((&story["sessions"], &story["decisions"]), (&json!([]), &json!([])));
}

#[test]
fn the_eight_memory_tools_are_the_daemons() {
    let mut scene = Scene::new();
    let session = scene.call("mem_session_start", &json!({}))["session_id"].clone();
    let source = scene.place.root.join("a.txt");
    let save = json!({ "content": "The expiry lives in <private>who</private> Token", "type": "decision",
        "title": "Where expiry lives", "topic_key": "expiry", "sources": [source], "if_revision": 0 });
    let saved = scene.call("mem_save", &save);
    assert_eq!(
        (&saved["id"], &saved["outcome"], &saved["session_id"]),
        (&json!(1), &json!("created"), &session)
    );
    let told =
        scene.daemon.ask("mem_get_observation", &json!({ "user_id": login_name(), "observation_id": 1 }));
    assert_eq!(told["content"], "The expiry lives in [REDACTED] Token", "it is the login's own");
    assert_eq!(
        scene.call("mem_get_observation", &json!({ "observation_id": 1, "history": true }))["content"],
        told["content"]
    );
    scene.place.write("a.txt", "changed\n");
    let found = scene.call("mem_search", &json!({ "query": "expiry", "limit": 1, "types": ["decision"] }));
    assert_eq!(found["results"][0]["evidence"], "stale", "{found}");
    let found = scene.call("mem_search", &json!({ "query": "expiry", "stale": "exclude" }));
    assert_eq!(found["results"], json!([]));
    let summary = scene.call("mem_session_summary", &json!({ "summary": "Half of it" }));
    assert_eq!(summary["id"], 2);
    let around = scene.call("mem_timeline", &json!({ "observation_id": 1 }));
    assert_eq!(
        (around["results"].as_array().unwrap().len(), &around["results"][0]["is_anchor"]),
        (2, &json!(true))
    );
    let stats = scene.call("mem_stats", &json!({}));
    assert_eq!((&stats["observations"], &stats["stale"]), (&json!(2), &json!(1)), "{stats}");
    let ended = scene.call("mem_session_end", &json!({ "summary": "All of it" }));
    assert_eq!((&ended["id"], &ended["status"]), (&session, &json!("completed")));
    // Somebody else's memory is another one.
    assert_eq!(scene.call("mem_stats", &json!({ "user_id": "other" }))["observations"], 0);
    assert_eq!(
        scene.call("mem_get_observation", &json!({ "user_id": "other", "observation_id": 1 })),
        Value::Null
    );
}

#[test]
fn forks_are_made_told_and_listed() {
    let mut scene = Scene::new();
    let made =
        scene.call("fork_create", &json!({ "session": "s-01", "mode": "copy", "hypotheses": ["A way"] }));
    let fork = made["forks"][0]["fork"].clone();
    assert_eq!(fork, "s-01/a-way");
    let status = scene.call("fork_status", &json!({ "fork": fork }));
    assert_eq!((&status["mode"], &status["isolation_broken"]), (&json!("copy"), &json!(false)));
    let listed = scene.call("fork_list", &json!({ "session": "s-01" }));
    assert_eq!(listed["forks"][0]["fork"], fork);
    let report = scene.call("decide", &json!({ "session": "s-01", "provision": true }));
    assert_eq!(report["transition"], "fork");
    assert_eq!(scene.call("fork_list", &json!({}))["forks"].as_array().unwrap().len(), 3);
}

/// What the daemon refuses is an answer that a model reads: its code and its sentence.
#[test]
fn a_refusal_is_an_answer() {
    let mut scene = Scene::new();
    for (tool, told, code, says) in [
        ("decide", json!({ "session": "nobody" }), "no_session_context", "there is no session \"nobody\""),
        ("decide", json!({}), "invalid_params", "the argument session is missing"),
        (
            "decide",
            json!({ "session": "s-01", "rows": "some" }),
            "invalid_params",
            "rows is \"all\" or \"stale\"",
        ),
        (
            "decide",
            json!({ "session": "s-01", "holder": { "pid": 1 } }),
            "invalid_params",
            "no argument \"holder\"",
        ),
        ("decide", json!({ "session": 7 }), "invalid_params", "invalid type"),
        ("stale_check", json!({ "session": "s-01", "paths": "a.txt" }), "invalid_params", "invalid type"),
        ("stale_check", json!({ "session": "nobody" }), "no_session_context", "nobody"),
        ("mem_session_end", json!({ "summary": "s" }), "not_found", "session"),
        ("mem_search", json!({ "query": " " }), "invalid_params", "query must not be blank"),
        ("mem_get_observation", json!({ "observation_id": 0 }), "invalid_params", "above 0"),
        (
            "mem_save",
            json!({ "content": "c", "type": "nonsense", "title": "t" }),
            "invalid_params",
            "memory.observation_types",
        ),
        (
            "mem_save",
            json!({ "content": "c", "type": "pattern", "title": "t", "sources": ["a.txt"] }),
            "invalid_params",
            "absolute path",
        ),
        ("fork_status", json!({ "fork": "none" }), "not_found", "none"),
    ] {
        let (found, sentence) = scene.refused(tool, &told);
        assert_eq!(found, code, "{tool} {told}: {sentence}");
        assert!(sentence.contains(says), "{tool} {told}: {sentence}");
    }
    // That there is no such tool is about the protocol.
    let answer = scene.server.answer("tools/call", &json!({ "name": "nonsense", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

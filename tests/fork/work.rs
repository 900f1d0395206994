//! What is done in a fork: by a command under `fork exec`, after asking, or by nobody knows whom.

use super::{Scene, at};
use serde_json::json;

#[test]
fn what_a_command_changed_must_be_read_again_and_may_go_home() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.work("s/cache-it", |workspace| {
        std::fs::write(workspace.join("src/token.rs"), "cached\n").unwrap();
        std::fs::remove_file(workspace.join("src/clock.rs")).unwrap();
    });
    // The agent has not seen what its command wrote.
    let report = scene.daemon.ask("decide", &json!({ "session": "s/cache-it", "deadline_ms": 10_000 }));
    assert_eq!(
        (report["transition"].as_str(), &report["stale"]),
        (Some("fresh"), &json!(["src/token.rs", "src/clock.rs"])),
        "{report}"
    );
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), merge["isolation"]["state"].as_str()),
        (Some(true), Some("intact")),
        "{merge}"
    );
    assert_eq!(scene.status("s/cache-it")["running"], 0);
}

#[test]
fn what_failed_in_use_or_was_never_so_keeps_a_fork_from_home() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.daemon.ask("fact.refute", &json!({ "session": "s/cache-it", "source": "src/clock.rs" }));
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), &merge["reason"]["evidence"]),
        (Some(false), &json!(["src/clock.rs"])),
        "{merge}"
    );
    let wrong = crate::harness::file("README", "never so");
    scene.daemon.ask("context.record", &json!({ "session": "s/check-twice", "results": [wrong] }));
    let merge = scene.merge("s/check-twice");
    assert_eq!(
        (merge["may_merge"].as_bool(), &merge["reason"]["evidence"]),
        (Some(false), &json!(["README"])),
        "{merge}"
    );
}

#[test]
fn what_a_fork_rests_on_elsewhere_keeps_it_from_home_when_it_changes() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let other = scene.place.home.join("elsewhere");
    std::fs::write(&other, "1").unwrap();
    let read = json!({ "session": "s/cache-it", "results": [{ "id": "else", "source": { "kind": "file", "path": other } }] });
    scene.daemon.ask("context.record", &read);
    assert_eq!(scene.merge("s/cache-it")["may_merge"], true);
    std::fs::write(&other, "2").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), &merge["reason"]["evidence"]),
        (Some(false), &json!(["else"])),
        "{merge}"
    );
}

#[test]
fn who_asks_first_may_write_and_who_does_not_is_seen() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let (own, other) = (at(&forks[0]["workspace"]), at(&forks[1]["workspace"]));
    let access = |path: &std::path::Path, mode: &str| {
        let ask = json!({ "fork": "s/cache-it", "path": path, "mode": mode });
        scene.daemon.ask("fork.access", &ask)["access"].as_str().unwrap().to_owned()
    };
    assert_eq!(access(&own.join("src/token.rs"), "write"), "allow");
    std::fs::write(own.join("src/token.rs"), "asked\n").unwrap();
    for (path, mode) in [
        (other.join("src/token.rs"), "write"),
        (other.join("src/token.rs"), "read"),
        (other.clone(), "list"),
        (scene.root().join("README"), "read"),
        (at(&forks[1]["scratchpad"]).join("notes"), "read"),
    ] {
        assert_eq!(access(&path, mode), "deny", "{mode} {}", path.display());
    }
    let status = scene.status("s/cache-it");
    assert_eq!(
        (status["isolation"]["state"].as_str(), status["denied"].as_u64()),
        (Some("intact"), Some(5)),
        "{status}"
    );
    std::fs::write(other.join("src/token.rs"), "not asked\n").unwrap();
    let status = scene.status("s/check-twice");
    assert_eq!(
        status["isolation"]["seen"][0]["path"],
        other.join("src/token.rs").to_str().unwrap(),
        "{status}"
    );
    assert_eq!(scene.status("s/cache-it")["isolation_broken"], false, "nobody knows who it was");
    let seen = scene.log().into_iter().filter(|line| line["what"] == "isolation_broken").count();
    assert_eq!(seen, 1);
}

#[test]
fn a_fork_that_says_it_saw_or_wrote_something_of_another_has_crossed_over() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let other = at(&forks[1]["workspace"]).join("src/token.rs");
    let read = json!({ "session": "s/cache-it", "results": [{ "id": "r", "source": { "kind": "file", "path": other } }] });
    scene.daemon.ask("context.record", &read);
    let status = scene.status("s/cache-it");
    assert_eq!(
        (status["isolation_broken"].as_bool(), status["isolation"]["seen"][0]["kind"].as_str()),
        (Some(true), Some("foreign_source")),
        "{status}"
    );
    assert_eq!(scene.status("s/check-twice")["isolation_broken"], false);
    // What is nobody's is none.
    let read = json!({ "session": "s/check-twice", "results": [{ "id": "r", "source": { "kind": "file", "path": "/etc/hosts" } }] });
    scene.daemon.ask("context.record", &read);
    assert_eq!(scene.status("s/check-twice")["isolation_broken"], false);
}

/// What was refused was never said, and marks nobody.
#[test]
fn what_is_refused_breaks_no_isolation() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let (own, other) = (at(&forks[0]["workspace"]), at(&forks[1]["workspace"]).join("src/token.rs"));
    let client = &mut scene.daemon.client();
    let results = json!([{ "id": "r", "source": { "kind": "file", "path": other } }]);
    let record = json!({ "session": "s/cache-it", "results": results });
    let elsewhere = json!({ "session": "s/cache-it", "root": own.join("src"), "results": results });
    let digest = crate::harness::digest("ttl\n");
    let wrote = json!({ "session": "s/cache-it", "path": other, "digest": digest });
    // Another root than it has; a file that it does not rest on.
    assert_eq!(crate::harness::refusal(client, "context.record", &elsewhere), "-32602");
    assert_eq!(crate::harness::refusal(client, "context.register", &elsewhere), "-32602");
    assert_eq!(crate::harness::refusal(client, "touch_ack", &wrote), "not_found");
    let isolation = json!({ "state": "intact" });
    assert_eq!(scene.status("s/cache-it")["isolation"], isolation);
    // The same once it is taken.
    scene.daemon.ask("context.record", &record);
    scene.daemon.ask("touch_ack", &wrote);
    let seen = scene.status("s/cache-it")["isolation"]["seen"].clone();
    let kinds: Vec<_> = seen.as_array().unwrap().iter().map(|seen| seen["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["foreign_source", "foreign_write"], "{seen}");
}

#[test]
fn the_parent_of_another_session_is_nobodys_secret() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let other = scene.place.home.join("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("lib"), "1").unwrap();
    let context = json!({ "session": "t", "root": other, "results": [{ "id": "lib", "source": { "kind": "file", "path": "lib" } }] });
    scene.daemon.ask("context.register", &context);
    scene.daemon.ask("fork.create", &json!({ "session": "t", "hypotheses": ["one"] }));
    let ask = json!({ "fork": "s/cache-it", "path": other.join("lib"), "mode": "read" });
    assert_eq!(scene.daemon.ask("fork.access", &ask)["access"], "allow");
    let ask = json!({ "fork": "t/one", "path": other.join("lib"), "mode": "read" });
    assert_eq!(scene.daemon.ask("fork.access", &ask)["access"], "deny");
}

#[test]
fn a_fact_that_rests_on_another_forks_file_crosses_over_too_and_an_id_does_not() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let parents = scene.root().join("src/token.rs");
    // The id of a row may look like a path of the parent, and a fact may name the row by it.
    let told = json!({ "session": "s/check-twice",
        "results": [{ "id": parents, "source": { "kind": "file", "path": "src/token.rs" } }],
        "facts": [{ "statement": "own", "sources": [parents] }] });
    scene.daemon.ask("context.record", &told);
    assert_eq!(scene.status("s/check-twice")["isolation_broken"], false);
    let again =
        json!({ "session": "s/check-twice", "facts": [{ "statement": "own too", "sources": [parents] }] });
    scene.daemon.ask("context.record", &again);
    assert_eq!(scene.status("s/check-twice")["isolation_broken"], false);
    let other = at(&forks[1]["workspace"]).join("README");
    let told = json!({ "session": "s/cache-it", "facts": [{ "statement": "other", "sources": [other] }] });
    scene.daemon.ask("context.record", &told);
    assert_eq!(scene.status("s/cache-it")["isolation"]["seen"][0]["kind"], "foreign_source");
}

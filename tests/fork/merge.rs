//! `fork.merge`: judged from what the fork rests on and from what its parent rests on.

use super::{Scene, git, paths};
use serde_json::json;

#[test]
fn a_fork_whose_world_stands_may_be_merged() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    // What the session does not rest on may move.
    std::fs::write(scene.root().join("README"), "parent\n").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), merge["transition"].as_str()),
        (Some(true), Some("resume")),
        "{merge}"
    );
    assert_eq!((merge["commits"].as_u64(), &merge["uncommitted"]), (Some(1), &json!([])), "{merge}");
    assert_eq!(merge["parent_branch"], "main");
    assert_eq!(paths(&merge["changed"]), ["src/token.rs"]);
    assert_eq!(paths(&merge["base_moved"]["changed"]), ["README"]);
    assert_eq!(paths(&merge["both_changed"]), [""; 0]);
}

#[test]
fn what_the_session_rested_on_must_still_be_so_in_the_parent() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    std::fs::write(scene.root().join("src/clock.rs"), "parent\n").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), merge["reason"]["code"].as_str()),
        (Some(false), Some("merge_stale")),
        "{merge}"
    );
    assert_eq!(merge["reason"]["evidence"], json!(["base/src/clock.rs"]));
    assert_eq!(merge["transition"], "fresh");
    // The session of the parent says the same of itself.
    let parent = scene.daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
    assert_eq!(parent["stale"], json!(["src/clock.rs"]));
}

#[test]
fn what_nobody_accounted_for_in_the_fork_makes_it_stale() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    std::fs::write(super::at(&forks[0]["workspace"]).join("src/clock.rs"), "who?\n").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), merge["reason"]["evidence"].clone()),
        (Some(false), json!(["src/clock.rs"])),
        "{merge}"
    );
    assert_eq!(
        (merge["isolation_broken"].as_bool(), merge["isolation"]["seen"][0]["kind"].as_str()),
        (Some(true), Some("undeclared_write")),
        "{merge}"
    );
}

#[test]
fn a_fork_that_may_not_be_merged_for_its_isolation_alone_says_so() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    std::fs::write(super::at(&forks[0]["workspace"]).join("unrelated"), "who?\n").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), merge["transition"].as_str()),
        (Some(false), Some("resume")),
        "{merge}"
    );
    assert_eq!(merge["isolation_broken"], true);
    assert_eq!(scene.merge("s/check-twice")["isolation_broken"], false);
}

#[test]
fn what_is_not_committed_is_named_and_what_came_along_is_not() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("README"), "dirty parent\n").unwrap();
    scene.create(&json!({}));
    let merge = scene.merge("s/cache-it");
    assert_eq!((merge["may_merge"].as_bool(), &merge["uncommitted"]), (Some(true), &json!([])), "{merge}");
    scene.work("s/cache-it", |workspace| std::fs::write(workspace.join("left"), "x").unwrap());
    assert_eq!(scene.merge("s/cache-it")["uncommitted"], json!(["left"]));
}

#[test]
fn the_judgement_stands_in_the_log_and_is_judged_the_same_again() {
    let scene = Scene::new();
    scene.create(&json!({}));
    std::fs::write(scene.root().join("src/clock.rs"), "parent\n").unwrap();
    let merge = scene.merge("s/cache-it");
    let log = scene.daemon.ask("log.read", &json!({ "limit": 100 }));
    let lines = log["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["decision"] == merge["decision"]).expect("it is logged");
    assert_eq!((line["merge"].as_str(), line["session"].as_str()), (Some("s/cache-it"), Some("s/cache-it")));
    assert!(staled::protocol::gate::check(line).is_empty());
    let read = staled::protocol::recorded::read(&line.to_string()).unwrap();
    let staled::protocol::recorded::Recorded::Whole(judgeable) = read else { panic!("{line}") };
    assert_eq!(judgeable.differences(), []);
}

#[test]
fn a_fork_in_a_sub_folder_of_the_tree_is_rooted_there() {
    let mut place = crate::harness::Place::new();
    place.write("app/src/token.rs", "ttl\n");
    place.write("app/src/clock.rs", "skew\n");
    place.write("beside", "x");
    git(&place.root, &["init", "-q"]);
    git(&place.root, &["add", "."]);
    git(&place.root, &["commit", "-qm", "first"]);
    place.root = place.root.join("app");
    let scene = Scene::on(place);
    let forks = scene.create(&json!({}));
    assert_eq!(super::at(&forks[0]["root"]), super::at(&forks[0]["workspace"]).join("app"));
    assert!(super::at(&forks[0]["workspace"]).join("beside").is_file());
    scene.commit("s/cache-it", "app/src/token.rs", "cached\n");
    let merge = scene.merge("s/cache-it");
    assert_eq!(merge["may_merge"], true, "{merge}");
}

/// What is read in the workspace through a symlink is not the fork's own work when it changes.
#[test]
fn what_lies_behind_a_symlink_out_of_the_fork_is_not_its_own() {
    let scene = Scene::new();
    let shared = scene.root().with_file_name("shared");
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::write(shared.join("api"), "one\n").unwrap();
    std::os::unix::fs::symlink(&shared, scene.root().join("vendor")).unwrap();
    scene.create(&json!({}));
    let api = json!({ "session": "s/cache-it", "results": [crate::harness::file("vendor/api", "one\n")] });
    scene.daemon.ask("context.record", &api);
    assert_eq!(scene.merge("s/cache-it")["may_merge"], true);
    std::fs::write(shared.join("api"), "two\n").unwrap();
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), &merge["reason"]["evidence"]),
        (Some(false), &json!(["vendor/api"])),
        "{merge}"
    );
}

#[test]
fn what_failed_for_the_session_has_failed_for_its_forks() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.daemon.ask("fact.refute", &json!({ "session": "s", "fact": "f1" }));
    let merge = scene.merge("s/cache-it");
    assert_eq!(
        (merge["may_merge"].as_bool(), &merge["reason"]["evidence"]),
        (Some(false), &json!(["base/src/token.rs"])),
        "{merge}"
    );
}

/// The watcher is well, and nobody makes it anew: there was no time to hear it.
#[test]
fn without_time_to_look_the_deadline_is_named() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let client = &mut scene.daemon.client();
    let mut refused = 0;
    for _ in 0..100 {
        let ask = json!({ "fork": "s/cache-it", "deadline_ms": 0 });
        // What was all seen nevertheless is judged.
        if let Err(error) = client.ask("fork.merge", &ask) {
            let said = error.to_string();
            assert!(said.contains("within deadline_ms") && !said.contains("made anew"), "{said}");
            refused += 1;
        }
    }
    assert!(refused > 0, "there was time for all of it");
    assert_eq!(scene.merge("s/cache-it")["may_merge"], true);
}

//! What moved since a fork was made: told at the event, and exactly.

use super::{Scene, git, paths};
use crate::daemon::subscribe::{subscribe, told};
use crate::harness::wait_until;
use serde_json::{Value, json};

#[test]
fn nothing_has_moved_when_a_fork_is_made() {
    let scene = Scene::new();
    for fork in scene.create(&json!({})) {
        let status = scene.status(fork["fork"].as_str().unwrap());
        assert!(status["base_moved"].is_null(), "{status}");
        assert_eq!((&status["changed"], &status["both_changed"]), (&json!([]), &json!([])), "{status}");
    }
}

#[test]
fn what_both_changed_is_the_intersection_and_nothing_else() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.work("s/cache-it", |workspace| {
        std::fs::write(workspace.join("src/token.rs"), "fork\n").unwrap();
        std::fs::write(workspace.join("README"), "fork\n").unwrap();
        std::fs::write(workspace.join("only-fork"), "x").unwrap();
        std::fs::remove_file(workspace.join("src/clock.rs")).unwrap();
    });
    let root = scene.root();
    std::fs::write(root.join("src/clock.rs"), "parent\n").unwrap();
    std::fs::write(root.join("README"), "parent\n").unwrap();
    std::fs::write(root.join("only-parent"), "x").unwrap();
    let status = scene.status("s/cache-it");
    assert_eq!(paths(&status["changed"]), ["README", "only-fork", "src/clock.rs", "src/token.rs"]);
    assert_eq!(paths(&status["base_moved"]["changed"]), ["README", "only-parent", "src/clock.rs"]);
    assert_eq!(paths(&status["both_changed"]), ["README", "src/clock.rs"]);
    let other = scene.status("s/check-twice");
    assert_eq!(paths(&other["both_changed"]), [""; 0], "{other}");
    // A revert is a revert.
    std::fs::write(root.join("src/clock.rs"), "skew\n").unwrap();
    std::fs::remove_file(root.join("only-parent")).unwrap();
    std::fs::write(root.join("README"), "readme\n").unwrap();
    let status = scene.status("s/cache-it");
    assert!(status["base_moved"].is_null(), "{status}");
    assert_eq!(paths(&status["both_changed"]), [""; 0]);
}

#[test]
fn the_parents_commits_and_checkouts_are_told_when_they_happen() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let told =
        |what: &str| scene.log().iter().any(|line| line["what"] == "base_moved" && line["moved"] == what);
    assert!(!told("head") && !told("tree"));
    let root = scene.root();
    let was = git(root, &["rev-parse", "HEAD"]);
    git(root, &["checkout", "-qb", "other"]);
    git(root, &["commit", "-q", "--allow-empty", "-m", "second"]);
    wait_until("the commit is told", || told("head"));
    assert!(!told("tree"), "no file changed");
    let status = scene.status("s/cache-it");
    assert_eq!(status["base_moved"]["head"]["was"], was.as_str(), "{status}");
    assert_eq!(status["base_moved"]["head"]["now"], git(root, &["rev-parse", "HEAD"]).as_str());
    std::fs::write(root.join("README"), "edited\n").unwrap();
    wait_until("the edit is told", || told("tree"));
}

#[test]
fn subscribers_are_told_too() {
    let scene = Scene::new();
    let mut raw = subscribe(&scene.daemon, &json!({ "topics": ["fork"] }));
    scene.create(&json!({ "hypotheses": ["one"] }));
    let mut until = |what: &str| {
        loop {
            let event: Value = told(&mut raw);
            if event["event"] == what {
                return event;
            }
        }
    };
    let created = until("created");
    assert_eq!((created["fork"].as_str(), created["session"].as_str()), (Some("s/one"), Some("s")));
    std::fs::write(scene.root().join("README"), "edited\n").unwrap();
    assert_eq!(until("base_moved")["fork"], "s/one");
}

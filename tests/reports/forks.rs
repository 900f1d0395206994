//! Forks: where they begin, what they lack, what moved under them.

use crate::fork::{Scene, at, git, paths};
use serde_json::json;

#[test]
fn r6_a_fork_of_an_earlier_commit_says_that_its_files_are_not_what_the_session_saw() {
    let scene = Scene::new();
    let earlier = git(scene.root(), &["rev-parse", "HEAD"]);
    std::fs::write(scene.root().join("src/token.rs"), "later\n").unwrap();
    git(scene.root(), &["commit", "-qam", "later"]);
    scene.register();
    let now = scene.create(&json!({ "hypotheses": ["now"] }));
    assert_eq!((now[0]["workspace_matches"].as_bool(), &now[0]["differs"]), (Some(true), &json!([])));
    let then = scene.create(&json!({ "hypotheses": ["then"], "from": earlier }));
    assert_eq!(
        (then[0]["workspace_matches"].as_bool(), &then[0]["differs"]),
        (Some(false), &json!(["src/token.rs"]))
    );
    assert_eq!(then[0]["base"], earlier.as_str());
}

#[test]
fn r10_a_branch_at_an_earlier_point_has_the_files_of_that_point_and_what_it_does_not_match_is_stale() {
    let scene = Scene::new();
    let earlier = git(scene.root(), &["rev-parse", "HEAD"]);
    std::fs::write(scene.root().join("src/token.rs"), "later\n").unwrap();
    git(scene.root(), &["commit", "-qam", "later"]);
    std::fs::write(scene.root().join("README"), "not committed\n").unwrap();
    scene.register();
    let then = scene.create(&json!({ "hypotheses": ["then"], "from": earlier }));
    let workspace = at(&then[0]["workspace"]);
    assert_eq!(std::fs::read_to_string(workspace.join("src/token.rs")).unwrap(), "ttl\n");
    assert_eq!(git(&workspace, &["status", "--porcelain"]), "", "nothing of later is carried back");
    let report = scene.daemon.ask("decide", &json!({ "session": "s/then", "deadline_ms": 10_000 }));
    assert_eq!(
        (report["transition"].as_str(), &report["stale"]),
        (Some("fresh"), &json!(["src/token.rs"])),
        "{report}"
    );
}

#[test]
fn r65_a_fork_begins_at_a_commit_id_and_never_at_a_name() {
    let scene = Scene::new();
    let head = git(scene.root(), &["rev-parse", "HEAD"]);
    git(scene.root(), &["update-ref", "refs/remotes/origin/abandoned", &head]);
    git(scene.root(), &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/abandoned"]);
    assert_eq!(scene.create(&json!({ "hypotheses": ["one"] }))[0]["base"], head.as_str());
    let mut client = scene.daemon.client();
    for name in ["origin/HEAD", "main", "HEAD", "HEAD~0", &head[..12]] {
        let ask = json!({ "session": "s", "hypotheses": ["two"], "from": name });
        assert_eq!(
            crate::harness::refusal(&mut client, "fork.create", &ask),
            "fork_from_not_an_id",
            "{name}"
        );
    }
}

#[test]
fn r69_ignored_files_that_were_asked_for_and_are_not_there_are_named() {
    let scene = Scene::new();
    let created = scene
        .daemon
        .ask("fork.create", &json!({ "session": "s", "hypotheses": ["one"], "copy": [".env", ".envrc"] }));
    assert_eq!(paths(&created["missing"]), [".env", ".envrc"]);
}

#[test]
fn r70_whatever_name_an_ignored_file_has_it_is_copied_when_it_is_listed() {
    let scene = Scene::new();
    std::fs::write(scene.root().join(".gitignore"), ".dev.vars\ntarget/\n").unwrap();
    std::fs::write(scene.root().join(".dev.vars"), "KEY=1\n").unwrap();
    let forks = scene.create(&json!({ "hypotheses": ["without"] }));
    assert!(!at(&forks[0]["workspace"]).join(".dev.vars").exists());
    let forks = scene.create(&json!({ "hypotheses": ["with"], "copy": [".dev.vars"] }));
    assert_eq!(std::fs::read_to_string(at(&forks[0]["workspace"]).join(".dev.vars")).unwrap(), "KEY=1\n");
    assert_eq!(forks[0]["missing"], json!([]));
}

#[test]
fn r72_a_symlink_out_of_the_workspace_into_the_parents_tree_is_reported() {
    let scene = Scene::new();
    std::fs::create_dir(scene.root().join("target")).unwrap();
    std::os::unix::fs::symlink(scene.root().join("target"), scene.root().join("node_modules")).unwrap();
    std::os::unix::fs::symlink("src", scene.root().join("inside")).unwrap();
    std::os::unix::fs::symlink("/usr", scene.root().join("elsewhere")).unwrap();
    let forks = scene.create(&json!({ "hypotheses": ["one"] }));
    assert_eq!(paths(&forks[0]["shared_by_symlink"]), ["node_modules"], "{forks:?}");
}

#[test]
fn r80_what_both_sides_changed_is_named_before_it_is_merged() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.commit("s/cache-it", "README", "fork\n");
    std::fs::write(scene.root().join("README"), "parent\n").unwrap();
    git(scene.root(), &["commit", "-qam", "parent"]);
    let merge = scene.merge("s/cache-it");
    assert_eq!(paths(&merge["both_changed"]), ["README"]);
    assert!(!merge["base_moved"]["head"].is_null(), "{merge}");
}

#[test]
fn r82_every_open_branch_is_told_when_the_parent_moves() {
    let scene = Scene::new();
    scene.create(&json!({ "hypotheses": ["one", "two", "three"] }));
    std::fs::write(scene.root().join("README"), "parent\n").unwrap();
    git(scene.root(), &["commit", "-qam", "parent"]);
    crate::harness::wait_until("all three are told", || {
        let told =
            scene.log().into_iter().filter(|line| line["what"] == "base_moved" && line["moved"] == "head");
        told.count() == 3
    });
}

#[test]
fn r83_files_that_are_dirty_in_the_parent_are_named_as_what_stands_in_the_way() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("README"), "dirty\n").unwrap();
    scene.create(&json!({}));
    let merge = scene.merge("s/cache-it");
    assert_eq!(paths(&merge["parent_dirty"]), ["README"], "{merge}");
}

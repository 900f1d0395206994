//! `fork.create`: a branch begins as the same world, believes the same, and is nobody else's.

use super::{Scene, at, git, paths};
use crate::harness::{refusal, wait_until};
use serde_json::json;
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

#[test]
fn every_hypothesis_gets_a_tree_a_branch_and_notes_of_its_own() {
    let scene = Scene::new();
    let head = git(scene.root(), &["rev-parse", "HEAD"]);
    let forks = scene.create(&json!({}));
    let ids: Vec<&str> = forks.iter().map(|fork| fork["fork"].as_str().unwrap()).collect();
    assert_eq!(ids, ["s/cache-it", "s/check-twice"]);
    for fork in &forks {
        let (workspace, scratchpad) = (at(&fork["workspace"]), at(&fork["scratchpad"]));
        assert_eq!(fork["base"], head.as_str());
        assert_eq!(git(&workspace, &["rev-parse", "HEAD"]), head);
        let branch = git(&workspace, &["symbolic-ref", "--short", "HEAD"]);
        assert_eq!(fork["branch"], branch.as_str());
        assert!(branch.starts_with("staled/s/"));
        assert_eq!(std::fs::read_to_string(workspace.join("src/token.rs")).unwrap(), "ttl\n");
        assert_eq!(scratchpad.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(
            (fork["stage"].as_str(), fork["isolation_broken"].as_bool()),
            (Some("ready"), Some(false))
        );
        assert_eq!(git(&workspace, &["remote"]), "", "a remote would lead back to the parent");
    }
    assert_eq!(
        git(scene.root(), &["branch", "--list", "staled/*"]),
        "",
        "the parent's repository is only read"
    );
    let told = scene.log();
    assert_eq!(told.iter().filter(|line| line["what"] == "created").count(), 2, "{told:?}");
}

#[test]
fn a_branch_believes_what_the_session_believed_of_its_own_tree() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let workspace = at(&forks[0]["workspace"]);
    let report = scene.daemon.ask("decide", &json!({ "session": "s/cache-it", "deadline_ms": 10_000 }));
    assert_eq!(
        (report["transition"].as_str(), report["counts"]["results"].as_u64()),
        (Some("resume"), Some(2)),
        "{report}"
    );
    // The parent's file is none of its business, and its own is.
    std::fs::write(scene.root().join("src/token.rs"), "parent\n").unwrap();
    let report = scene.daemon.ask("decide", &json!({ "session": "s/cache-it", "deadline_ms": 10_000 }));
    assert_eq!(report["transition"], "resume", "{report}");
    std::fs::write(workspace.join("src/clock.rs"), "own\n").unwrap();
    let report = scene.daemon.ask("decide", &json!({ "session": "s/cache-it", "deadline_ms": 10_000 }));
    assert_eq!(report["transition"], "fresh", "{report}");
    let context = scene.daemon.ask("context.get", &json!({ "session": "s/cache-it" }));
    assert_eq!(
        (context["root"].as_str(), context["goal"]["hypotheses"][0].as_str()),
        (workspace.to_str(), Some("Cache it"))
    );
    assert_eq!(context["facts"][0]["statement"], "TTL is checked once");
    let listed = scene.daemon.ask("context.list", &json!({}));
    let names: HashSet<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|one| one["session"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        HashSet::from(["s", "s/cache-it", "s/check-twice"]),
        "the daemon's own sessions are nobody's"
    );
}

#[test]
fn what_was_not_committed_goes_along_staged_and_unstaged_apart() {
    let scene = Scene::new();
    let root = scene.root();
    std::fs::write(root.join("README"), "staged\n").unwrap();
    git(root, &["add", "README"]);
    std::fs::write(root.join("README"), "unstaged\n").unwrap();
    std::fs::write(root.join("new file"), "untracked\n").unwrap();
    std::fs::write(root.join(".env"), "SECRET=1\n").unwrap();
    std::fs::remove_file(root.join("src/clock.rs")).unwrap();
    scene.register();
    let forks = scene.create(&json!({ "copy": [".env", "no/such"] }));
    for fork in &forks {
        let workspace = at(&fork["workspace"]);
        assert_eq!(git(&workspace, &["status", "--porcelain"]), git(root, &["status", "--porcelain"]));
        assert_eq!(git(&workspace, &["show", ":README"]), "staged");
        assert_eq!(std::fs::read_to_string(workspace.join("README")).unwrap(), "unstaged\n");
        assert_eq!(std::fs::read_to_string(workspace.join(".env")).unwrap(), "SECRET=1\n");
        assert_eq!(paths(&fork["missing"]), ["no/such"]);
    }
}

#[test]
fn names_that_collide_or_could_do_harm_become_plain_ones() {
    let scene = Scene::new();
    let long = "x".repeat(300);
    let names = ["../../etc", "-rf", "a b/c", "a-b c", "🦀", "🐧", ".", &long];
    let forks = scene.create(&json!({ "hypotheses": names }));
    let ids: HashSet<&str> = forks.iter().map(|fork| fork["fork"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), names.len(), "{ids:?}");
    let home = scene.place.home.join("state/forks/s");
    for fork in &forks {
        let workspace = at(&fork["workspace"]);
        assert!(workspace.starts_with(&home) && workspace.join("README").is_file(), "{fork}");
        git(&workspace, &["check-ref-format", "--branch", fork["branch"].as_str().unwrap()]);
    }
    // Another call takes none of their names.
    let again = scene.create(&json!({ "hypotheses": ["a b c"] }));
    assert!(!ids.contains(again[0]["fork"].as_str().unwrap()), "{again:?}");
}

#[test]
fn what_cannot_be_forked_is_refused_and_leaves_nothing() {
    let scene = Scene::new();
    let mut client = scene.daemon.client();
    scene.daemon.ask("context.register", &json!({ "session": "empty", "root": scene.root() }));
    let state = json!({ "branchable": true, "shares_mutable_state": true, "hypotheses": ["a", "b"] });
    let results = json!([crate::harness::file("README", "readme\n")]);
    let shared = json!({ "session": "shared", "root": scene.root(), "goal": state, "results": results });
    scene.daemon.ask("context.register", &shared);
    let no_goal = json!({ "session": "plain", "root": scene.root(), "results": results });
    scene.daemon.ask("context.register", &no_goal);
    for (ask, code) in [
        (json!({ "session": "nobody" }), "no_session_context"),
        (json!({ "session": "empty", "hypotheses": ["a"] }), "no_session_context"),
        (json!({ "session": "shared" }), "fork_blocked_shared_state"),
        (json!({ "session": "plain" }), "fork_no_hypotheses"),
        (json!({ "session": "s", "hypotheses": [" "] }), "-32602"),
        (json!({ "session": "s", "hypotheses": vec!["a"; 17] }), "too_large"),
        (json!({ "session": "s", "from": "main" }), "fork_from_not_an_id"),
        (json!({ "session": "s", "from": "0123456789012345678901234567890123456789" }), "fork_from_unknown"),
    ] {
        assert_eq!(refusal(&mut client, "fork.create", &ask), code, "{ask}");
    }
    let forks = scene.place.home.join("state/forks");
    let left = walk(&forks);
    assert!(left.is_empty(), "{left:?}");
    assert!(scene.daemon.ask("fork.list", &json!({}))["forks"].as_array().unwrap().is_empty());
    // A fork of a fork is none.
    let forks = scene.create(&json!({}));
    let ask = json!({ "session": forks[0]["fork"], "hypotheses": ["deeper"] });
    assert_eq!(refusal(&mut client, "fork.create", &ask), "fork_nested");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.file_name().unwrap() != ".guard")
        .flat_map(|path| [walk(&path), vec![path]].concat())
        .filter(|path| path.is_file())
        .collect()
}

#[test]
fn a_branch_becomes_independent_of_the_parents_objects() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    wait_until("both are independent", || {
        let listed = scene.daemon.ask("fork.list", &json!({ "session": "s" }));
        listed["forks"].as_array().unwrap().iter().all(|fork| fork["independent"] == true)
    });
    std::fs::remove_dir_all(scene.root().join(".git")).unwrap();
    for fork in &forks {
        let workspace = at(&fork["workspace"]);
        git(&workspace, &["fsck", "--full"]);
        assert_eq!(git(&workspace, &["show", "HEAD:README"]), "readme");
    }
    let intact = |fork: &serde_json::Value| fork["isolation"]["state"] == "intact";
    let listed = scene.daemon.ask("fork.list", &json!({}));
    assert!(
        listed["forks"].as_array().unwrap().iter().all(intact),
        "the daemon's own work breaks nothing: {listed}"
    );
}

#[test]
fn a_folder_outside_git_is_copied() {
    let place = crate::harness::Place::new();
    place.write("src/token.rs", "ttl\n");
    place.write("src/clock.rs", "skew\n");
    place.write("deep/down/file", "x");
    let scene = Scene::on(place);
    let forks = scene.create(&json!({}));
    for fork in &forks {
        assert_eq!((fork["mode"].as_str(), fork["base"].is_null()), (Some("copy"), true), "{fork}");
        assert_eq!(std::fs::read_to_string(at(&fork["workspace"]).join("deep/down/file")).unwrap(), "x");
    }
}

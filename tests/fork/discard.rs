//! `fork.discard` and `fork.reprovision`: what is nowhere else is refused without force, and kept with it.

use super::{Scene, at, git};
use crate::harness::refusal;
use serde_json::json;

#[test]
fn a_fork_without_work_of_its_own_goes_without_a_word() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("README"), "dirty parent\n").unwrap();
    let forks = scene.create(&json!({}));
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "staled/s/cache-it" }));
    assert_eq!((gone["discarded"].as_bool(), gone["kept"].is_null()), (Some(true), true), "{gone}");
    assert!(!at(&forks[0]["workspace"]).exists() && at(&forks[1]["workspace"]).exists());
    let mut client = scene.daemon.client();
    assert_eq!(refusal(&mut client, "fork.status", &json!({ "fork": "s/cache-it" })), "not_found");
    assert_eq!(refusal(&mut client, "decide", &json!({ "session": "s/cache-it" })), "no_session_context");
    assert_eq!(refusal(&mut client, "context.drop", &json!({ "session": "s/check-twice" })), "fork_in_use");
}

#[test]
fn commits_of_a_discarded_fork_stay_reachable_by_the_id_in_the_reply() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    scene.work("s/cache-it", |workspace| std::fs::write(workspace.join("left"), "not committed").unwrap());
    let mut client = scene.daemon.client();
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/cache-it" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    let kept = &gone["kept"];
    let (path, commit) = (at(&kept["path"]), kept["commit"].as_str().unwrap());
    let uncommitted = kept["uncommitted"].as_str().unwrap();
    git(scene.root(), &["fetch", "-q", path.to_str().unwrap(), uncommitted]);
    assert_eq!(git(scene.root(), &["show", &format!("{commit}:src/token.rs")]), "cached");
    assert_eq!(git(scene.root(), &["show", "FETCH_HEAD:left"]), "not committed");
    assert_eq!(kept["fetch"], format!("git fetch {} {uncommitted}", path.display()));
}

#[test]
fn what_was_merged_needs_no_force() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    let workspace = at(&forks[0]["workspace"]);
    git(scene.root(), &["pull", "-q", "--no-rebase", workspace.to_str().unwrap(), "staled/s/cache-it"]);
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it" }));
    assert!(gone["kept"].is_null(), "{gone}");
}

#[test]
fn a_copy_with_changes_is_kept_as_a_folder() {
    let place = crate::harness::Place::new();
    place.write("src/token.rs", "ttl\n");
    place.write("src/clock.rs", "skew\n");
    let scene = Scene::on(place);
    scene.create(&json!({}));
    scene.work("s/cache-it", |workspace| std::fs::write(workspace.join("left"), "x").unwrap());
    let mut client = scene.daemon.client();
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/cache-it" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    let kept = at(&gone["kept"]["path"]);
    let found = walk(&kept);
    assert!(found.iter().any(|path| path.ends_with("left")), "{found:?}");
    assert!(scene.daemon.ask("fork.discard", &json!({ "fork": "s/check-twice" }))["kept"].is_null());
}

#[test]
fn a_fork_whose_repository_is_gone_is_kept_with_force() {
    let scene = Scene::new();
    let forks = scene.create(&json!({ "hypotheses": ["Cache it"] }));
    let workspace = at(&forks[0]["workspace"]);
    crate::harness::wait_until("it is independent", || scene.status("s/cache-it")["independent"] == true);
    scene.work("s/cache-it", |workspace| {
        std::fs::remove_dir_all(workspace.join(".git")).unwrap();
        std::fs::write(workspace.join("left"), "x").unwrap();
    });
    let mut client = scene.daemon.client();
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/cache-it" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    assert!(!workspace.exists() && at(&gone["kept"]["path"]).join("left").is_file(), "{gone}");
}

#[test]
fn an_end_that_failed_is_ended_by_the_next_try() {
    let scene = Scene::new();
    scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    let kept = scene.place.home.join("state/forks/.kept");
    std::fs::write(&kept, "in the way").unwrap();
    let mut client = scene.daemon.client();
    let ask = json!({ "fork": "s/cache-it", "force": true });
    assert_eq!(refusal(&mut client, "fork.discard", &ask), "fork_failed");
    assert_eq!(refusal(&mut client, "fork.status", &ask_of("s/cache-it")), "fork_in_use");
    std::fs::remove_file(&kept).unwrap();
    let gone = scene.daemon.ask("fork.discard", &ask);
    assert!(at(&gone["kept"]["path"]).join("HEAD").is_file(), "{gone}");
    assert_eq!(refusal(&mut client, "fork.status", &ask_of("s/cache-it")), "not_found");
}

#[test]
fn where_a_fork_cannot_be_made_again_it_is_said_where_it_is_kept() {
    let scene = Scene::new();
    scene.create(&json!({ "hypotheses": ["Cache it"] }));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    std::fs::rename(scene.root(), scene.place.home.join("moved")).unwrap();
    let mut client = scene.daemon.client();
    let ask = json!({ "fork": "s/cache-it", "force": true });
    let error = client.ask("fork.reprovision", &ask).unwrap_err().to_string();
    let kept = std::fs::read_dir(scene.place.home.join("state/forks/.kept")).unwrap().next().unwrap();
    assert!(error.contains(kept.unwrap().path().to_str().unwrap()), "{error}");
}

fn ask_of(fork: &str) -> serde_json::Value {
    json!({ "fork": fork })
}

#[test]
fn what_an_agent_makes_of_its_object_folder_stops_nobody() {
    let scene = Scene::new();
    scene.create(&json!({ "hypotheses": ["Cache it"] }));
    crate::harness::wait_until("it is independent", || scene.status("s/cache-it")["independent"] == true);
    scene.work("s/cache-it", |workspace| {
        let pipe = workspace.join(".git/objects/info/alternates");
        let done = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(done.success());
    });
    scene.work("s/cache-it", |_| ());
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| [walk(&path), vec![path]].concat()).collect()
}

#[test]
fn a_fork_that_is_not_isolated_is_made_again() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let workspace = at(&forks[0]["workspace"]);
    std::fs::write(workspace.join("who"), "?").unwrap();
    assert_eq!(scene.status("s/cache-it")["isolation_broken"], true);
    std::fs::write(scene.root().join("README"), "newer parent\n").unwrap();
    let again = scene.daemon.ask("fork.reprovision", &json!({ "fork": "s/cache-it", "force": true }));
    assert_eq!(again["forks"][0]["fork"], "s/cache-it", "{again}");
    assert_eq!(again["forks"][0]["isolation_broken"], false);
    assert!(!again["kept"].is_null());
    assert!(!workspace.join("who").exists());
    assert_eq!(std::fs::read_to_string(workspace.join("README")).unwrap(), "newer parent\n");
    let status = scene.status("s/cache-it");
    assert!(status["base_moved"].is_null() && status["isolation"]["state"] == "intact", "{status}");
}

#[test]
fn notes_and_what_came_from_a_parent_that_is_gone_are_not_thrown_away() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let mut client = scene.daemon.client();
    scene.daemon.ask(
        "fork.access",
        &json!({ "fork": "s/cache-it", "path": forks[0]["scratchpad"], "mode": "write" }),
    );
    std::fs::create_dir(at(&forks[0]["scratchpad"]).join("tmp")).unwrap();
    std::fs::write(at(&forks[0]["scratchpad"]).join("notes"), "why it failed").unwrap();
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/cache-it" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    let kept = walk(&at(&gone["kept"]["path"]));
    assert!(
        kept.iter().any(|path| std::fs::read(path).is_ok_and(|text| text == b"why it failed")),
        "{kept:?}"
    );
    std::fs::remove_dir_all(scene.root()).unwrap();
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/check-twice" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/check-twice", "force": true }));
    assert!(!gone["kept"].is_null(), "{gone}");
}

#[test]
fn a_copy_in_which_a_repository_stands_is_never_thrown_away_unseen() {
    let place = crate::harness::Place::new();
    place.write("src/token.rs", "ttl\n");
    place.write("src/clock.rs", "skew\n");
    place.write("deep/sub/file", "x\n");
    let scene = Scene::on(place);
    scene.create(&json!({ "mode": "copy" }));
    let mut client = scene.daemon.client();
    scene.work("s/cache-it", |workspace| {
        let sub = workspace.join("deep/sub");
        git(&sub, &["init", "-q"]);
        git(&sub, &["add", "."]);
        git(&sub, &["commit", "-qm", "first"]);
        git(&sub, &["checkout", "-qb", "side"]);
        std::fs::write(sub.join("file"), "work\n").unwrap();
        git(&sub, &["commit", "-qam", "work"]);
        git(&sub, &["checkout", "-q", "-"]);
    });
    assert_eq!(scene.status("s/cache-it")["changed"], json!([]), "the tree is as it was");
    assert_eq!(refusal(&mut client, "fork.discard", &json!({ "fork": "s/cache-it" })), "fork_unsaved");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    let sub = at(&gone["kept"]["path"]).join("deep/sub");
    assert_eq!(git(&sub, &["show", "side:file"]), "work");
}

//! Forks over a restart, a compaction and an index that is made again.

use super::{Scene, paths};
use crate::harness::Daemon;
use serde_json::json;

#[test]
fn forks_are_what_they_were_after_a_restart() {
    let scene = Scene::new();
    let made = scene.create(&json!({}));
    scene.commit("s/cache-it", "src/token.rs", "cached\n");
    std::fs::write(scene.root().join("README"), "parent\n").unwrap();
    let before = scene.status("s/cache-it");
    let Scene { place, daemon } = scene;
    daemon.stop();
    let scene = Scene { daemon: Daemon::start(&place.home), place };
    let after = scene.status("s/cache-it");
    for key in ["fork", "base", "workspace", "changed", "both_changed", "isolation"] {
        assert_eq!(after[key], before[key], "{key}: {after}");
    }
    assert_eq!(paths(&after["base_moved"]["changed"]), ["README"]);
    assert_eq!(made[0]["fork"], after["fork"]);
    let merge = scene.merge("s/cache-it");
    assert_eq!(merge["may_merge"], true, "{merge}");
}

#[test]
fn an_index_that_is_made_again_knows_every_fork() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let Scene { place, daemon } = scene;
    daemon.stop();
    std::fs::remove_dir_all(place.home.join("state/index")).unwrap();
    let scene = Scene { daemon: Daemon::start(&place.home), place };
    let listed = scene.daemon.ask("fork.list", &json!({}));
    let forks = listed["forks"].as_array().unwrap();
    assert_eq!(forks.len(), 2, "{listed}");
    assert!(
        forks.iter().all(|fork| fork["base_moved"].is_null() && fork["changed"] == json!([])),
        "{listed}"
    );
    // What changes from now on is told as before.
    std::fs::write(scene.root().join("README"), "parent\n").unwrap();
    assert_eq!(paths(&scene.status("s/cache-it")["base_moved"]["changed"]), ["README"]);
}

#[test]
fn what_is_written_while_no_daemon_watches_is_not_called_intact() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let Scene { place, daemon } = scene;
    daemon.stop();
    std::fs::write(super::at(&forks[0]["workspace"]).join("src/clock.rs"), "meanwhile\n").unwrap();
    let scene = Scene { daemon: Daemon::start(&place.home), place };
    assert_eq!(scene.status("s/cache-it")["isolation"]["state"], "unknown");
    assert_eq!(scene.status("s/check-twice")["isolation"]["state"], "intact");
}

#[test]
fn what_is_written_just_before_a_daemon_ends_is_known_to_the_next() {
    let mut scene = Scene::new();
    let forks = scene.create(&json!({}));
    for fork in &forks {
        std::fs::write(super::at(&fork["workspace"]).join("src/clock.rs"), "late\n").unwrap();
        let Scene { place, daemon } = scene;
        daemon.stop();
        scene = Scene { daemon: Daemon::start(&place.home), place };
        let isolation = &scene.status(fork["fork"].as_str().unwrap())["isolation"];
        assert_eq!(
            (isolation["state"].as_str(), isolation["seen"][0]["kind"].as_str()),
            (Some("broken"), Some("undeclared_write")),
            "{isolation}"
        );
    }
}

#[test]
fn a_fork_that_cannot_be_watched_keeps_nobody_from_the_others() {
    let scene = Scene::new();
    let forks = scene.create(&json!({}));
    let Scene { place, daemon } = scene;
    daemon.stop();
    let home = super::at(&forks[0]["workspace"]);
    std::fs::remove_dir_all(home.parent().unwrap()).unwrap();
    let scene = Scene { daemon: Daemon::start(&place.home), place };
    assert_eq!(scene.status("s/check-twice")["isolation"]["state"], "intact");
    assert_eq!(scene.status("s/cache-it")["isolation"]["state"], "unknown");
    let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
    assert_eq!(gone["discarded"], true, "{gone}");
    assert!(scene.create(&json!({ "hypotheses": ["Cache it"] })).len() == 1);
}

#[test]
fn a_folder_that_no_record_tells_of_is_not_written_over() {
    let scene = Scene::new();
    let forks = scene.create(&json!({ "hypotheses": ["Cache it"] }));
    scene.work("s/cache-it", |workspace| std::fs::write(workspace.join("README"), "precious").unwrap());
    let Scene { place, daemon } = scene;
    daemon.stop();
    for folder in ["journal", "index"] {
        std::fs::remove_dir_all(place.home.join("state").join(folder)).unwrap();
    }
    let scene = Scene::on(place);
    let again = scene.create(&json!({ "hypotheses": ["Cache it"] }));
    assert_eq!(again[0]["fork"], "s/cache-it-2");
    let old = super::at(&forks[0]["workspace"]);
    assert_eq!(std::fs::read_to_string(old.join("README")).unwrap(), "precious");
}

#[test]
fn an_export_says_that_forks_stay_and_takes_their_sessions_along() {
    let scene = Scene::new();
    scene.create(&json!({}));
    let told = staled::store::told::settled(&scene.place.home.join("state"), &mut |_| {}).unwrap();
    let mut lines = Vec::new();
    let moved = staled::store::export::export(&told, &mut lines).unwrap();
    assert_eq!((moved.sessions, moved.forks_left), (3, 2));
    let text = String::from_utf8(lines).unwrap();
    assert!(
        text.contains("\"s/cache-it\"") && !text.contains("\"forked\"") && !text.contains("u0001fork"),
        "{text}"
    );
    let home = tempfile::tempdir().unwrap();
    let moved = staled::store::export::import(home.path(), &mut text.as_bytes(), [7; 16]).unwrap();
    assert_eq!((moved.sessions, moved.forks_left), (3, 0));
}

#[test]
fn a_compaction_keeps_every_fork_and_what_it_is_measured_by() {
    let place = crate::harness::Place::new();
    for path in ["src/token.rs", "src/clock.rs", "README"] {
        place.write(path, "1\n");
    }
    super::git(&place.root, &["init", "-q"]);
    super::git(&place.root, &["add", "."]);
    super::git(&place.root, &["commit", "-qm", "first"]);
    let mut config = staled::config::Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.journal.compact_bytes = 4_096;
    let scene = Scene { daemon: Daemon::start_with(&place.home, config.clone()), place };
    scene.register();
    scene.create(&json!({}));
    crate::harness::wait_until("the journal was compacted", || {
        // Whatever is told makes it due.
        scene.register();
        scene.daemon.ask("status", &json!({}))["compactions"].as_u64() > Some(1)
    });
    let before = scene.daemon.ask("fork.list", &json!({}));
    let Scene { place, daemon } = scene;
    daemon.stop();
    std::fs::remove_dir_all(place.home.join("state/index")).unwrap();
    let scene = Scene { daemon: Daemon::start_with(&place.home, config), place };
    let after = scene.daemon.ask("fork.list", &json!({}));
    let ids = |list: &serde_json::Value| {
        let forks = list["forks"].as_array().unwrap().iter();
        forks
            .map(|fork| (fork["fork"].clone(), fork["changed"].clone(), fork["base_moved"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&after), ids(&before));
}

#[test]
fn a_session_that_may_have_lost_what_failed_is_not_made_fresh_under_another_name() {
    let scene = Scene::new();
    let Scene { place, daemon } = scene;
    daemon.stop();
    // What an opening leaves that found damage, and ended before it could say so.
    std::fs::write(place.home.join("state/journal/in-doubt"), "").unwrap();
    let scene = Scene { daemon: Daemon::start(&place.home), place };
    let ask = json!({ "session": "s", "hypotheses": ["one"] });
    assert_eq!(crate::harness::refusal(&mut scene.daemon.client(), "fork.create", &ask), "fork_unsettled");
    scene.register();
    assert_eq!(crate::harness::refusal(&mut scene.daemon.client(), "fork.create", &ask), "fork_unsettled");
}

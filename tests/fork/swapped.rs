//! Whoever works in a fork, or in its parent, may swap the configuration of the repository at any moment. The daemon is not
//! confined here: what a repository names would run if git were told of it.

use super::{Scene, at, git};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

const ROUNDS: u64 = 12;

/// Ends who works in the background, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts a configuration that names a program in place of the one that is there, and back, for as long as there is one.
fn swap(gitdir: &Path, canary: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    let config = gitdir.join("config");
    let Ok(calm) = std::fs::read_to_string(&config) else { return };
    let program = canary.display();
    let evil = format!(
        "{calm}[filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n[core]\n\tfsmonitor = {program}\n"
    );
    while !stop.load(Ordering::Relaxed) {
        for text in [&evil, &calm] {
            let new = gitdir.join("config.new");
            // The fork has gone when it was discarded.
            if std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &config)).is_err() {
                return;
            }
            swaps.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_micros(700));
        }
    }
}

/// Of the same length and with another time: git has to look into it, and to filter it for that.
fn touch(tree: &Path, round: u64) {
    let path = tree.join("src/token.rs");
    std::fs::write(&path, ["lll\n", "ttl\n"][round as usize % 2]).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + round);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn a_configuration_that_is_swapped_meanwhile_runs_nothing() {
    let scene = Scene::new();
    let (canary, sung) = (scene.place.home.join("canary"), scene.place.home.join("sung"));
    std::fs::write(&canary, format!("#!/bin/sh\necho sung >> {}\ncat\n", sung.display())).unwrap();
    std::fs::set_permissions(&canary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let forks = scene.create(&json!({ "hypotheses": ["Cache it"] }));
    let workspace = at(&forks[0]["workspace"]);
    for tree in [&workspace, &scene.root().to_owned()] {
        std::fs::write(tree.join(".gitattributes"), "* filter=evil\n").unwrap();
    }
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for gitdir in [workspace.join(".git"), scene.root().join(".git")] {
            let (canary, stop, swaps) = (&canary, &stop, &swaps);
            scope.spawn(move || swap(&gitdir, canary, stop, swaps));
        }
        for round in 0..ROUNDS {
            touch(&workspace, round);
            touch(scene.root(), round);
            let merge = scene.merge("s/cache-it");
            assert!(merge["uncommitted"].is_array(), "{merge}");
            scene.status("s/cache-it");
            assert!(!sung.exists(), "in round {round}, after {} swaps", swaps.load(Ordering::Relaxed));
        }
        touch(&workspace, 0);
        let gone = scene.daemon.ask("fork.discard", &json!({ "fork": "s/cache-it", "force": true }));
        let (kept, id) = (at(&gone["kept"]["path"]), gone["kept"]["uncommitted"].as_str().unwrap());
        assert!(!sung.exists(), "when it was discarded");
        git(scene.root(), &["fetch", "-q", kept.to_str().unwrap(), id]);
        assert_eq!(git(&kept, &["show", &format!("{id}:src/token.rs")]), "lll");
    });
    assert!(swaps.load(Ordering::Relaxed) > ROUNDS, "it was swapped at all");
    drop(std::fs::remove_file(&sung));
    // Git itself would have run it.
    touch(scene.root(), 1);
    git(scene.root(), &["-c", &format!("filter.evil.clean={}", canary.display()), "status"]);
    assert!(sung.exists(), "the canary sings");
}

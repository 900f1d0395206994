//! Reports about lockfiles, builds and databases: what was built or tested is as fresh as what it was made from.

use super::{head, sh};
use crate::daemon::{cause, commit_all, decide, git, register, row};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::{Value, json};

fn command(id: &str, inputs: &Value) -> Value {
    json!({ "id": id, "source": { "kind": "command", "command": id, "inputs": inputs } })
}

#[test]
fn r48_a_worktree_may_rest_on_its_parents_lockfile_and_marker() {
    let place = Place::new();
    let parent = place.root.join("parent");
    place.write("parent/package-lock.json", "1");
    place.write("parent/.gitignore", "node_modules\n");
    place.write("parent/node_modules/.stamp", "1");
    git(&parent, &["init", "-q"]);
    git(&parent, &["add", "-A"]);
    git(&parent, &["commit", "-q", "-m", "c"]);
    git(&parent, &["worktree", "add", "-q", "../tree", "-b", "side"]);
    sh(&place, "ln -s ../parent/node_modules tree/node_modules");
    let daemon = Daemon::start(&place.home);
    let commit = git(&parent, &["rev-parse", "HEAD"]);
    let lock =
        json!({ "name": "deps", "source": { "kind": "lockfile", "path": "../parent/package-lock.json" } });
    let context = json!({ "session": "s", "root": place.root.join("tree"),
        "results": [file("node_modules/.stamp", "1")], "invariants": [head(".", "strict", &commit), lock] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    sh(&place, "touch parent/package-lock.json parent/node_modules/.stamp parent/other");
    assert_eq!(decide(&daemon, "s")["transition"], "resume", "nothing that it rests on changed");
    place.write("parent/package-lock.json", "2");
    let report = decide(&daemon, "s");
    assert_eq!(report["stale"], json!(["deps"]), "{report}");
    place.write("parent/node_modules/.stamp", "2");
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "node_modules/.stamp"), "content");
    git(&parent, &["commit", "-q", "-am", "c"]);
    assert_eq!(cause(&decide(&daemon, "s"), "git_head"), "fresh", "the parent's HEAD is not the worktree's");
}

#[test]
fn r49_only_the_declared_lockfile_and_marker_count() {
    let place = Place::new();
    place.write("package-lock.json", "1");
    place.write("node_modules/.sha", "of 1");
    place.write("node_modules/.package-lock.json", "hidden");
    let daemon = Daemon::start(&place.home);
    let pair = json!([
        { "kind": "lockfile", "path": "package-lock.json" },
        { "kind": "file", "path": "node_modules/.sha" },
    ]);
    register(&daemon, &place, "s", &json!([command("npm ci", &pair)]));
    place.write("node_modules/.package-lock.json", "hidden otherwise");
    place.write("node_modules/left-pad/index.js", "x");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("node_modules/.sha", "of 2");
    let report = decide(&daemon, "s");
    assert_eq!(
        (cause(&report, "npm ci").as_str(), &row(&report, "npm ci")["input"]),
        ("input", &json!("node_modules/.sha"))
    );
}

/// Test output that rests on the sources, and what was built from them.
fn built() -> (Daemon, Place) {
    let place = Place::new();
    place.write("src/a.rs", "a\n");
    place.write("src/b.rs", "b\n");
    place.write("target/app", "built");
    place.write(".gitignore", "target\n");
    sh(&place, "touch -d 2001-01-01 target/app");
    let daemon = Daemon::start(&place.home);
    let inputs = json!([{ "kind": "tree", "path": "src" }, { "kind": "absent", "path": "build.rs" }]);
    let results = json!([command("cargo test", &inputs), file("target/app", "built")]);
    register(&daemon, &place, "s", &results);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    (daemon, place)
}

/// That the artifact is as it was says nothing of what it was made from; each has its own row.
#[test]
fn r50_test_output_falls_with_one_input_although_the_artifact_stays() {
    for (path, input) in [("src/a.rs", "src"), ("src/new.rs", "src"), ("build.rs", "build.rs")] {
        let (daemon, place) = built();
        place.write(path, "changed\n");
        let report = decide(&daemon, "s");
        assert_eq!(
            (&report["transition"], &report["stale"]),
            (&json!("fresh"), &json!(["cargo test"])),
            "{path}"
        );
        assert_eq!(row(&report, "cargo test")["input"], input, "{path}");
        assert_eq!(cause(&report, "target/app"), "fresh", "{path}");
    }
}

#[test]
fn r51_an_old_artifact_of_unchanged_inputs_is_healthy() {
    let (daemon, place) = built();
    sh(&place, "touch src/a.rs; touch -d 2000-01-01 target/app; cp src/b.rs t; mv t src/b.rs");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    daemon.stop();
    sh(&place, "touch src/*");
    let daemon = Daemon::start(&place.home);
    assert_eq!(decide(&daemon, "s")["transition"], "resume", "after a restart");
    place.write("src/b.rs", "changed\n");
    assert_eq!(cause(&decide(&daemon, "s"), "cargo test"), "input");
}

/// By a probe file that anybody can keep; the schema itself is tested in `daemon::schema`.
#[test]
fn r52_who_migrates_the_shared_database_knows_and_the_other_is_told() {
    let place = Place::new();
    place.write("db/schema", "v1");
    let daemon = Daemon::start(&place.home);
    let knows = |session: &str, version: &str| {
        let schema = json!({ "name": "db_schema", "source": { "kind": "file", "path": "db/schema" }, "digest": digest(version) });
        daemon.ask(
            "context.register",
            &json!({ "session": session, "root": place.root, "invariants": [schema] }),
        );
    };
    knows("a", "v1");
    knows("b", "v1");
    place.write("db/schema", "v2");
    knows("a", "v2");
    assert_eq!(decide(&daemon, "a")["transition"], "resume");
    let report = decide(&daemon, "b");
    assert_eq!(
        (&report["transition"], &report["reason"]["code"]),
        (&json!("fresh"), &json!("world_changed"))
    );
    assert_eq!(report["reason"]["evidence"], json!(["db_schema"]));
}

#[test]
fn a_commit_of_what_was_tested_changes_no_test_output() {
    let (daemon, place) = built();
    commit_all(&place);
    git(&place.root, &["gc", "-q"]);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
}

//! What may not be merged: refused with a sentence, and nothing touched. And what a repository names is never run.

use super::stub::{BRANCH, Scene};
use crate::fork::git;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What is done to the scene after it was judged or before, and what is said of it.
struct Case {
    before: fn(&Scene),
    after: fn(&Scene),
    judged: fn(&mut Value),
    says: &'static [&'static str],
}

const NOTHING: fn(&Scene) = |_| {};
const SO: fn(&mut Value) = |_| {};

const CASES: [Case; 14] = [
    Case {
        before: |s| fs::write(s.parent.join("a"), "edited\n").unwrap(),
        after: NOTHING,
        judged: SO,
        says: &["(a)", "commit or stash"],
    },
    Case {
        before: |s| {
            fs::write(s.parent.join("b"), "staged\n").unwrap();
            git(&s.parent, &["add", "b"]);
        },
        after: NOTHING,
        judged: SO,
        says: &["(b)", "commit or stash"],
    },
    Case {
        before: |s| {
            s.works("new", "fork's\n");
            fs::write(s.parent.join("new"), "mine\n").unwrap();
        },
        after: NOTHING,
        judged: SO,
        says: &["untracked", "(new)"],
    },
    Case {
        before: |s| {
            fs::write(s.workspace.join("my.env"), "fork's\n").unwrap();
            git(&s.workspace, &["add", "-f", "my.env"]);
            s.commit(&s.workspace, "x");
            fs::write(s.parent.join("my.env"), "secret\n").unwrap();
        },
        after: NOTHING,
        judged: SO,
        says: &["untracked", "(my.env)"],
    },
    Case {
        before: |s| drop(git(&s.parent, &["checkout", "-q", "-b", "side"])),
        after: NOTHING,
        judged: SO,
        says: &["branch main", "branch side"],
    },
    Case {
        before: |s| drop(git(&s.parent, &["checkout", "-q", "--detach"])),
        after: NOTHING,
        judged: SO,
        says: &["branch main", "no branch"],
    },
    Case {
        before: |s| drop(git(&s.parent, &["update-ref", "-d", "refs/heads/main"])),
        after: NOTHING,
        judged: |judged| judged["base"] = json!("0123"),
        says: &["refs/heads/main is gone"],
    },
    Case {
        before: NOTHING,
        after: |s| s.moves("b", "later\n"),
        judged: SO,
        says: &["moved since it was judged"],
    },
    Case {
        before: NOTHING,
        after: |s| s.works("b", "later\n"),
        judged: SO,
        says: &[BRANCH, "moved since it was judged"],
    },
    Case {
        before: |s| fs::write(s.parent.join(".git/MERGE_HEAD"), s.head()).unwrap(),
        after: NOTHING,
        judged: SO,
        says: &["a merge is under way"],
    },
    Case {
        before: |s| fs::write(s.parent.join(".git/index.lock"), "").unwrap(),
        after: NOTHING,
        judged: SO,
        says: &["another git", "index.lock"],
    },
    Case {
        before: NOTHING,
        after: NOTHING,
        judged: |judged| judged["uncommitted"] = json!(["left"]),
        says: &["left", "git add -A"],
    },
    Case {
        before: NOTHING,
        after: NOTHING,
        judged: |judged| judged["tip"] = Value::Null,
        says: &["no commit"],
    },
    Case {
        before: NOTHING,
        after: NOTHING,
        judged: |judged| judged["mode"] = json!("copy"),
        says: &["a copy", "diff -r"],
    },
];

#[test]
fn what_stands_against_it_is_said_and_nothing_is_touched() {
    for (number, case) in CASES.iter().enumerate() {
        let scene = Scene::forked();
        (case.before)(&scene);
        let mut judged = scene.judgement();
        (case.judged)(&mut judged);
        (case.after)(&scene);
        let before = scene.everything();
        let run = scene.merge_by(judged, &[]);
        for says in case.says {
            run.fails(2, says);
        }
        let after = scene.everything();
        let moved: Vec<_> = after.iter().filter(|(path, what)| before.get(*path) != Some(what)).collect();
        assert!(moved.is_empty() && after.len() == before.len(), "case {number}: {moved:?}");
    }
}

#[test]
fn what_the_daemon_judges_stale_or_broken_is_not_merged() {
    let scene = Scene::forked();
    for (field, value, says) in
        [("may_merge", json!(false), "may not merge"), ("isolation_broken", json!(true), "")]
    {
        let mut judged = scene.judgement();
        judged["may_merge"] = json!(false);
        judged[field] = value;
        let before = scene.everything();
        let run = scene.merge_by(judged, &[]).ends(11);
        assert!(run.out.contains(says), "{run:?}");
        assert_eq!(scene.everything(), before);
    }
}

#[test]
fn what_is_named_as_what_broke_a_fork_is_no_doubt() {
    let scene = Scene::forked();
    let seen = [("unwatched", "/doubt"), ("undeclared_write", "/break"), ("moved_across", "/later")];
    let seen = seen.map(|(kind, path)| json!({ "kind": kind, "path": path }));
    let mut judged = scene.judgement();
    judged["may_merge"] = json!(false);
    judged["isolation_broken"] = json!(true);
    judged["isolation"] = json!({ "state": "broken", "seen": seen });
    let run = scene.merge_by(judged, &[]).ends(11);
    assert!(run.err.contains("isolation broken: undeclared_write /break;"), "{run:?}");
}

/// A program that leaves a mark.
fn canary(scene: &Scene, name: &str) -> String {
    let program = scene.place.root.join(name);
    let mark = scene.place.root.join("ran");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

fn booby_trap(scene: &Scene, repository: &Path) {
    let program = canary(scene, "canary");
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.alternateRefsCommand",
        "core.askPass",
        "gpg.program",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "merge.x.driver",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.y=z.process",
        "uploadpack.packObjectsHook",
        "receive.fsck.hook",
    ] {
        git(repository, &["config", key, &program]);
    }
    for (key, value) in
        [("filter.x.required", "true"), ("filter.y=z.required", "true"), ("commit.gpgSign", "true")]
    {
        git(repository, &["config", key, value]);
    }
    let hooks = repository.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "pre-merge-commit",
        "post-merge",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "prepare-commit-msg",
        "commit-msg",
        "post-rewrite",
        "fsmonitor-watchman",
    ] {
        fs::copy(&program, hooks.join(hook)).unwrap();
    }
}

#[test]
fn no_program_that_a_repository_names_is_run() {
    let scene = Scene::new();
    let attributes = "a merge=x diff=x\n*.x filter=x\n*.y filter=y=z\n";
    fs::write(scene.parent.join(".gitattributes"), attributes).unwrap();
    scene.moves("old.x", "x\n");
    scene.fork();
    for (name, content) in [("a", "ONE\ntwo\nthree\n"), ("new.x", "x\n"), ("new.y", "y\n"), ("old.x", "xx\n")]
    {
        scene.works(name, content);
    }
    scene.moves("b", "moved\n");
    booby_trap(&scene, &scene.parent);
    booby_trap(&scene, &scene.workspace);
    let ran = scene.place.root.join("ran");
    // What was read by the canary's own making does not count, and it does leave a mark where git is let.
    let _ = std::process::Command::new("git").arg("-C").arg(&scene.parent).arg("status").output();
    assert!(ran.exists(), "a canary that cannot sing proves nothing");
    fs::remove_file(&ran).unwrap();
    let judged = json!({ "head": scene.tip() });
    let mut told = scene.judgement();
    told["tip"] = judged["head"].clone();
    let _ = fs::remove_file(&ran);
    let run = scene.merge_by(told, &[]);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap_or_default());
    let run = run.ends(0);
    assert_eq!(fs::read_to_string(scene.parent.join("new.x")).unwrap(), "x\n", "{run:?}");
    // One that both changed is no merge of a driver that was not let: it is said.
    let scene = Scene::new();
    fs::write(scene.parent.join(".gitattributes"), attributes).unwrap();
    scene.moves("beside", "x\n");
    scene.fork();
    scene.works("a", "ONE\ntwo\nthree\n");
    scene.moves("a", "one\ntwo\nTHREE\n");
    git(&scene.parent, &["config", "merge.x.driver", &canary(&scene, "driver")]);
    scene.merge().ends(1);
    assert!(!scene.place.root.join("ran").exists());
}

#[test]
fn a_driver_whose_name_is_no_text_is_not_run_either() {
    let scene = Scene::new();
    fs::write(scene.parent.join(".gitattributes"), b"* filter=\xff merge=\xfe\n").unwrap();
    scene.moves("beside", "x\n");
    scene.fork();
    scene.works("a", "ONE\ntwo\nthree\n");
    scene.moves("a", "one\ntwo\nTHREE\n");
    let program = canary(&scene, "driver");
    let mut config = fs::read(scene.parent.join(".git/config")).unwrap();
    for (kind, name, key) in
        [("filter", 0xff, "clean"), ("filter", 0xff, "smudge"), ("merge", 0xfe, "driver")]
    {
        config.extend(format!("[{kind} \"").bytes());
        config.push(name);
        config.extend(format!("\"]\n\t{key} = {program}\n").bytes());
    }
    fs::write(scene.parent.join(".git/config"), config).unwrap();
    scene.merge().ends(1);
    assert!(!scene.place.root.join("ran").exists());
}

/// What git ignores it writes over without a word, also where it stands in the way as a folder or of one.
#[test]
fn ignored_files_in_the_place_of_a_folder_or_in_a_folder_in_the_way_stay() {
    for (new, there) in [("x/y", "x"), ("d", "d/z"), ("d", "d/deep/er")] {
        let scene = Scene::forked();
        fs::write(scene.parent.join(".git/info/exclude"), "x\nd\n").unwrap();
        fs::create_dir_all(scene.workspace.join(new).parent().unwrap()).unwrap();
        scene.works(new, "new\n");
        fs::create_dir_all(scene.parent.join(there).parent().unwrap()).unwrap();
        fs::write(scene.parent.join(there), "precious\n").unwrap();
        let run = scene.merge().ends(2);
        assert!(run.err.contains(there), "{run:?}");
        assert_eq!(fs::read_to_string(scene.parent.join(there)).unwrap(), "precious\n");
    }
}

#[test]
fn a_tracked_file_becomes_a_folder_and_a_tracked_folder_a_file() {
    let scene = Scene::new();
    fs::create_dir_all(scene.parent.join("d")).unwrap();
    scene.moves("d/z", "z\n");
    scene.moves("x", "x\n");
    scene.fork();
    git(&scene.workspace, &["rm", "-q", "-r", "x", "d"]);
    fs::create_dir_all(scene.workspace.join("x")).unwrap();
    scene.works("x/y", "y\n");
    scene.works("d", "d\n");
    scene.merge().ends(0);
    assert_eq!(fs::read_to_string(scene.parent.join("x/y")).unwrap(), "y\n");
    assert_eq!(fs::read_to_string(scene.parent.join("d")).unwrap(), "d\n");
}

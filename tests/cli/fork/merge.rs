//! A fork comes home: what then stands in the parent, in every kind of repository that a parent can be.

use super::stub::{BRANCH, Scene};
use crate::fork::git;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_branch_that_stood_still_goes_forward() {
    let scene = Scene::forked();
    let run = scene.merge().ends(0);
    assert_eq!(scene.head(), scene.tip());
    assert_eq!(fs::read_to_string(scene.parent.join("a")).unwrap(), "ONE\ntwo\nthree\n");
    assert!(scene.is_at_rest() && run.out.contains(BRANCH), "{run:?} {:?}", scene.leftovers());
    assert_eq!(git(&scene.parent, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    git(&scene.parent, &["fsck", "--strict"]);
    // Again there is nothing to do.
    let again = scene.merge().ends(0);
    assert!(again.out.contains("already"), "{again:?}");
}

#[test]
fn branches_that_both_moved_are_merged_by_the_user() {
    let scene = Scene::forked();
    scene.moves("a", "one\ntwo\nTHREE\n");
    let (old, before) = (scene.head(), scene.judgement());
    scene.merge_by(before, &[]).ends(0);
    assert_eq!(fs::read_to_string(scene.parent.join("a")).unwrap(), "ONE\ntwo\nTHREE\n");
    let log = git(&scene.parent, &["log", "-1", "--format=%an <%ae>|%cn|%P|%s"]);
    assert_eq!(
        log,
        format!("Me Myself <me@example.org>|Me Myself|{old} {}|Merge fork {BRANCH}: Shout", scene.tip())
    );
    assert!(scene.is_at_rest(), "{:?}", scene.leftovers());
    let refs = git(&scene.parent, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main");
    assert!(!scene.parent.join(".git/FETCH_HEAD").exists());
    // The parent needs nothing of the fork.
    fs::remove_dir_all(&scene.workspace).unwrap();
    git(&scene.parent, &["fsck", "--strict"]);
}

#[test]
fn what_both_changed_is_named_and_both_stand_as_before_byte_for_byte() {
    let scene = Scene::forked();
    scene.moves("a", "uno\ntwo\nthree\n");
    let before = scene.everything();
    let run = scene.merge().ends(1);
    assert!(run.out.contains("both changed a\n"), "{run:?}");
    // What is advised leads home.
    let advised =
        format!("git -C {} pull --no-rebase {} {BRANCH}", scene.parent.display(), scene.workspace.display());
    assert!(run.err.contains(&advised), "{run:?}");
    assert_eq!(scene.everything(), before);
    let told = scene.merge_by(scene.judgement(), &["--json"]).ends(1).json();
    assert_eq!(told["applied"], json!({ "how": "conflict", "commit": null, "conflicts": ["a"] }));
}

#[test]
fn files_of_every_kind_come_home_as_they_are() {
    let scene = Scene::forked();
    let at = |name: &str| scene.workspace.join(name);
    fs::remove_file(at("gone")).unwrap();
    fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("binary"), b"\0\xff\r\n\x80").unwrap();
    symlink("../out of here", at("link")).unwrap();
    fs::remove_file(at("b")).unwrap();
    fs::create_dir(at("b")).unwrap();
    fs::write(at("b/now a folder"), "x").unwrap();
    scene.commit(&scene.workspace, "work");
    scene.moves("beside", "x\n");
    scene.merge().ends(0);
    let home = |name: &str| scene.parent.join(name);
    assert!(!home("gone").exists() && home("b/now a folder").is_file() && home("beside").is_file());
    assert_eq!(fs::metadata(home("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read(home("binary")).unwrap(), b"\0\xff\r\n\x80");
    assert_eq!(fs::read_link(home("link")).unwrap().to_str(), Some("../out of here"));
    assert!(scene.is_at_rest(), "{:?}", scene.leftovers());
}

#[test]
fn a_parent_whose_head_was_and_is_detached_goes_forward_there() {
    let scene = Scene::forked();
    git(&scene.parent, &["checkout", "-q", "--detach"]);
    let main = scene.head();
    scene.moves("b", "moved\n");
    let mut judged = scene.judgement();
    judged["parent_branch"] = Value::Null;
    scene.merge_by(judged, &[]).ends(0);
    assert_eq!(git(&scene.parent, &["rev-parse", "HEAD^2"]), scene.tip());
    assert_eq!(git(&scene.parent, &["rev-parse", "main"]), main, "no branch moved");
}

#[test]
fn a_parent_without_a_commit_gets_its_first() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.parent.join(".git")).unwrap();
    git(&scene.parent, &["init", "-q"]);
    for name in ["a", "b", "gone", "run.sh", ".gitignore"] {
        fs::remove_file(scene.parent.join(name)).unwrap();
    }
    fs::create_dir_all(&scene.workspace).unwrap();
    git(&scene.workspace, &["init", "-q", "-b", BRANCH]);
    scene.works("a", "first\n");
    scene.merge().ends(0);
    assert_eq!((scene.head(), scene.is_at_rest()), (scene.tip(), true));
    assert_eq!(fs::read_to_string(scene.parent.join("a")).unwrap(), "first\n");
}

#[test]
fn sha256_and_a_linked_work_tree_are_parents_like_any_other() {
    let mut scene = Scene::with("sha256");
    let linked = scene.place.root.join("linked");
    git(&scene.parent, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let (main, old) = (std::mem::replace(&mut scene.parent, linked), scene.parent.clone());
    assert_ne!(main, scene.parent, "{old:?}");
    scene.fork();
    scene.works("a", "ONE\ntwo\nthree\n");
    scene.moves("b", "moved\n");
    let mut judged = scene.judgement();
    judged["parent_branch"] = json!("side");
    scene.merge_by(judged, &[]).ends(0);
    assert_eq!(git(&scene.parent, &["rev-parse", "side^2"]), scene.tip());
    assert_eq!(fs::read_to_string(scene.parent.join("a")).unwrap(), "ONE\ntwo\nthree\n");
    assert!(scene.is_at_rest() && git(&main, &["status", "--porcelain"]).is_empty());
}

#[test]
fn the_others_are_discarded_and_where_they_are_kept_is_said() {
    let scene = Scene::forked();
    let run = scene.merge_by(scene.judgement(), &["--discard-others"]).ends(0);
    assert!(run.out.contains("s/other is discarded\n  kept in      /kept\n"), "{run:?}");
    assert!(run.out.contains("git fetch /kept c0ffee") && !run.out.contains("s/try is discarded"), "{run:?}");
}

#[test]
fn what_is_ignored_stands_where_a_merge_makes_a_folder_or_a_file() {
    for (standing, new) in [("out", "out/x"), ("out/key", "out"), ("lib/my.env", "lib")] {
        let scene = Scene::new();
        fs::write(scene.parent.join(".gitignore"), "out\n*.env\n").unwrap();
        fs::create_dir(scene.parent.join("lib")).unwrap();
        fs::write(scene.parent.join("lib/tracked"), "t").unwrap();
        scene.commit(&scene.parent, "base");
        let place = scene.parent.join(standing);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "secret").unwrap();
        scene.fork();
        let new = scene.workspace.join(new);
        drop(fs::remove_dir_all(&new));
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        fs::write(&new, "new").unwrap();
        git(&scene.workspace, &["add", "-A", "-f"]);
        scene.commit(&scene.workspace, "work");
        let before = scene.everything();
        let run = scene.merge().ends(2);
        assert!(run.err.contains("untracked") && run.err.contains(standing), "{run:?}");
        assert_eq!((scene.everything(), fs::read_to_string(&place).unwrap()), (before, "secret".to_owned()));
    }
}

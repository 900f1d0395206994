//! A fork comes home: what then stands in the parent, in every kind of repository that a parent can be.

use super::stub::{BRANCH, Scene};
use crate::fork::git;
use crate::harness::wait_until;
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

/// A git that kills whoever merges when it is run for the nth time, and then does what it was asked.
fn deadly(scene: &Scene, at: u32) -> std::path::PathBuf {
    let bin = scene.place.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|at| at.join("git")).find(|git| git.is_file()).unwrap();
    let (count, victim) = (bin.join("count"), bin.join("victim"));
    fs::write(&count, "0\n").unwrap();
    let script = format!(
        "#!/bin/sh\nread n < {count}\nn=$((n+1))\necho $n > {count}\nif [ $n -eq {at} ]; then\n\
         until [ -s {victim} ]; do :; done\nread pid < {victim}\nkill -9 $pid\nfi\nexec {real} \"$@\"\n",
        count = count.display(),
        victim = victim.display(),
        real = real.display(),
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

/// Whether a git, or the shell that runs it, has the parent's repository.
fn is_worked_on(scene: &Scene) -> bool {
    let ours = format!("GIT_DIR={}", scene.parent.join(".git").display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut variables = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    variables.any(|variables| variables.split(|byte| *byte == 0).any(|variable| variable == ours.as_bytes()))
}

#[test]
fn killed_at_any_step_the_parent_is_as_before_or_merged_and_the_next_run_ends_it() {
    let mut outcomes = [0, 0];
    for at in 1.. {
        let scene = Scene::forked();
        scene.moves("b", "moved\n");
        let old = scene.head();
        let bin = deadly(&scene, at);
        let socket = scene.socket(scene.judgement());
        let mut command = scene.command(&socket, &["fork", "merge", "s/try", "--apply"]);
        let mut paths = vec![bin.clone()];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        command.env("PATH", std::env::join_paths(paths).unwrap());
        let mut child = command.spawn().unwrap();
        fs::write(bin.join("victim"), format!("{}\n", child.id())).unwrap();
        let status = child.wait().unwrap();
        if status.code() == Some(0) {
            assert!(at > 10, "it takes more steps than {at}");
            break;
        }
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "step {at}: {status}");
        // What was begun goes on without whoever was killed.
        wait_until("nothing works on the parent", || !is_worked_on(&scene));
        let set_aside = |path: &std::path::PathBuf| path.to_string_lossy().contains("tmp_objdir-staled-");
        let status = git(&scene.parent, &["--no-optional-locks", "status", "--porcelain", "-uno"]);
        assert_eq!(status, "", "step {at}");
        assert!(scene.leftovers().iter().all(set_aside), "step {at}: {:?}", scene.leftovers());
        let merged = scene.head() != old;
        outcomes[usize::from(merged)] += 1;
        scene.merge().ends(0);
        assert_eq!(git(&scene.parent, &["rev-parse", "HEAD^1", "HEAD^2"]), format!("{old}\n{}", scene.tip()));
        assert!(scene.is_at_rest(), "step {at}: {:?}", scene.leftovers());
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

/// A git that does this instead where its arguments have that word, and kills everybody who merges.
fn cut_off(scene: &Scene, word: &str, instead: &str) {
    let bin = deadly(scene, 0);
    let script = fs::read_to_string(bin.join("git")).unwrap();
    let (head, exec) = script.split_at(script.rfind("exec ").unwrap());
    let real = exec.split_whitespace().nth(1).unwrap();
    let victim = bin.join("victim").display().to_string();
    let deed = format!(
        "case \" $* \" in *\" {word} \"*)\nfor last; do :; done\n{}\nuntil [ -s {victim} ]; do :; done\n\
         read pid < {victim}\nkill -9 $pid $PPID\nexit 1\nesac\n",
        instead.replace("@git", real)
    );
    fs::write(bin.join("git"), format!("{head}{deed}{exec}")).unwrap();
    let socket = scene.socket(scene.judgement());
    let mut command = scene.command(&socket, &["fork", "merge", "s/try", "--apply"]);
    let mut paths = vec![bin.clone()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut child = command.env("PATH", std::env::join_paths(paths).unwrap()).spawn().unwrap();
    fs::write(bin.join("victim"), format!("{}\n", child.id())).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
    wait_until("nothing works on the parent", || !is_worked_on(scene));
}

fn two_sides() -> Scene {
    let scene = Scene::forked();
    fs::remove_file(scene.workspace.join("gone")).unwrap();
    scene.works("new", "new\n");
    scene.works("run.sh", "#!/bin/sh\nexit\n");
    scene.moves("b", "moved\n");
    scene
}

#[test]
fn a_tree_that_git_wrote_half_is_taken_back_by_the_next_run() {
    let scene = two_sides();
    // One file written, one deleted, one made, one not reached; and the lock that a killed git leaves.
    let half =
        "@git show \"$last:a\" > a; @git show \"$last:new\" > new; rm gone; : > \"$GIT_DIR/index.lock\"";
    cut_off(&scene, "read-tree", half);
    assert!(scene.parent.join("new").exists() && scene.parent.join(".git/index.lock").exists());
    // A branch that may not be merged now is not, but what was cut off is taken back.
    let mut judged = scene.judgement();
    judged["parent_branch"] = json!("side");
    scene.merge_by(judged, &[]).fails(2, "branch side");
    assert_eq!(git(&scene.parent, &["status", "--porcelain"]), "");
    assert!(scene.parent.join("gone").exists() && scene.is_at_rest(), "{:?}", scene.leftovers());
    scene.merge().ends(0);
    assert!(scene.is_at_rest() && !scene.parent.join("gone").exists());
}

#[test]
fn a_file_that_somebody_edited_meanwhile_stays_and_is_named() {
    let scene = two_sides();
    cut_off(&scene, "read-tree", "@git show \"$last:a\" > a; : > \"$GIT_DIR/index.lock\"");
    fs::write(scene.parent.join("run.sh"), "mine\n").unwrap();
    scene.merge().fails(2, "(run.sh)");
    assert_eq!(fs::read_to_string(scene.parent.join("run.sh")).unwrap(), "mine\n");
    assert_eq!(git(&scene.parent, &["status", "--porcelain"]), " M run.sh");
}

#[test]
fn a_branch_that_was_not_moved_when_all_was_written_is_moved_by_the_next_run() {
    let scene = two_sides();
    let old = scene.head();
    cut_off(&scene, "update-ref", ": > \"$GIT_DIR/refs/heads/main.lock\"");
    assert_eq!(scene.head(), old);
    scene.merge().fails(2, "has been ended");
    assert_eq!(git(&scene.parent, &["rev-parse", "HEAD^1", "HEAD^2"]), format!("{old}\n{}", scene.tip()));
    assert!(scene.is_at_rest(), "{:?}", scene.leftovers());
    scene.merge().ends(0);
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

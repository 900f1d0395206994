//! A merge that is cut off while it lands: whoever is killed, and whatever fails, the parent ends as before or merged.

use super::super::run_of;
use super::stub::Scene;
use crate::fork::git;
use crate::harness::wait_until;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A git that kills whoever merges when it is run for the nth time, and then does what it was asked.
fn deadly(scene: &Scene, at: u32) -> PathBuf {
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
        let set_aside = |path: &PathBuf| path.to_string_lossy().contains("tmp_objdir-staled-");
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

/// A merge with a git that does this instead where its arguments have that word.
fn with_another_git(scene: &Scene, word: &str, instead: &str) -> (Command, PathBuf) {
    let bin = deadly(scene, 0);
    let script = fs::read_to_string(bin.join("git")).unwrap();
    let (head, exec) = script.split_at(script.rfind("exec ").unwrap());
    let real = exec.split_whitespace().nth(1).unwrap();
    let instead = instead.replace("@git", real);
    let deed = format!("case \" $* \" in *\" {word} \"*)\nfor last; do :; done\n{instead}\nesac\n");
    fs::write(bin.join("git"), format!("{head}{deed}{exec}")).unwrap();
    let socket = scene.socket(scene.judgement());
    let mut command = scene.command(&socket, &["fork", "merge", "s/try", "--apply"]);
    let mut paths = vec![bin.clone()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    command.env("PATH", std::env::join_paths(paths).unwrap());
    (command, bin)
}

/// A git that does this instead where its arguments have that word, and kills everybody who merges.
fn cut_off(scene: &Scene, word: &str, instead: &str) {
    let victim = scene.place.root.join("bin/victim").display().to_string();
    let deed = format!(
        "{instead}\nuntil [ -s {victim} ]; do :; done\nread pid < {victim}\nkill -9 $pid $PPID\nexit 1"
    );
    let (mut command, bin) = with_another_git(scene, word, &deed);
    let mut child = command.spawn().unwrap();
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
fn a_tree_that_git_could_not_write_to_its_end_is_taken_back_by_the_same_run() {
    let scene = two_sides();
    let before = scene.head();
    let half = "@git show \"$last:a\" > a; @git show \"$last:new\" > new; echo 'no space' >&2; exit 128";
    let (mut command, _) = with_another_git(&scene, "read-tree -m", half);
    run_of(command.output().unwrap()).fails(2, "(no space), so nothing was done");
    assert_eq!((git(&scene.parent, &["status", "--porcelain"]), scene.head()), (String::new(), before));
    assert!(!scene.parent.join("new").exists() && scene.is_at_rest(), "{:?}", scene.leftovers());
    scene.merge().ends(0);
}

/// The branch moves when tree and index are written, and git fails when it is to take them back.
#[test]
fn what_stands_still_after_git_failed_twice_is_said_and_blocks_nobody() {
    let scene = two_sides();
    let deed = "[ -e {at}/bin/once ] && exit 128\n: > {at}/bin/once\n@git \"$@\" || exit\n\
                @git update-ref refs/heads/main HEAD~1\nexit";
    let deed = deed.replace("{at}", scene.place.root.to_str().unwrap());
    let (mut command, _) = with_another_git(&scene, "read-tree -m", &deed);
    run_of(command.output().unwrap()).fails(2, "its tree and index are the merge's still");
    assert!(scene.parent.join("new").exists() && scene.leftovers().is_empty(), "{:?}", scene.leftovers());
    git(&scene.parent, &["reset", "--merge"]);
    assert!(scene.is_at_rest() && !scene.parent.join("new").exists());
    scene.merge().ends(0);
}

/// Tree and index are written, the branch is not moved, and git cannot go back: it is all there but for the branch.
#[test]
fn what_only_the_branch_misses_is_ended_by_the_same_run() {
    let scene = two_sides();
    let old = scene.head();
    let deed = "[ -e {at}/bin/once ] && exec @git \"$@\"\n: > {at}/bin/once\nexit 128";
    let deed = deed.replace("{at}", scene.place.root.to_str().unwrap());
    let (mut command, bin) = with_another_git(&scene, "update-ref", &deed);
    let script = fs::read_to_string(bin.join("git")).unwrap();
    let (head, exec) = script.split_at(script.rfind("exec ").unwrap());
    let stuck =
        format!("case \" $* \" in *\" read-tree -m \"*) [ -e {0}/once ] && exit 128;; esac\n", bin.display());
    fs::write(bin.join("git"), format!("{head}{stuck}{exec}")).unwrap();
    run_of(command.output().unwrap()).ends(0);
    assert_eq!(git(&scene.parent, &["rev-parse", "HEAD^1", "HEAD^2"]), format!("{old}\n{}", scene.tip()));
    assert!(scene.is_at_rest(), "{:?}", scene.leftovers());
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

/// The tree is written half, or whole and only the branch is not moved: whoever then checks out another branch has it.
#[test]
fn what_somebody_took_over_on_another_branch_is_left_to_them() {
    for (word, half) in [("read-tree", "@git show \"$last:new\" > new"), ("update-ref", ":")] {
        let scene = two_sides();
        let old = scene.head();
        cut_off(&scene, word, half);
        git(&scene.parent, &["checkout", "-q", "-b", "rescue"]);
        scene.commit(&scene.parent, "rescued");
        let rescued = scene.head();
        let taken_over = scene.merge().ends(2);
        assert!(taken_over.err.contains("branch rescue"), "{word}: {taken_over:?}");
        assert_eq!(git(&scene.parent, &["rev-parse", "main"]), old, "{word}");
        assert_eq!((scene.head(), scene.is_at_rest()), (rescued, true), "{word}: {:?}", scene.leftovers());
        assert!(scene.parent.join("new").exists(), "{word}");
        // Nor does it block anybody for ever.
        git(&scene.parent, &["checkout", "-q", "main"]);
        scene.merge().ends(0);
    }
}

/// An empty folder is what git makes of a submodule, and the lock is what a git leaves that is killed while it mends.
#[test]
fn a_mending_that_was_cut_off_too_does_not_stand_in_the_way_of_the_next() {
    let scene = two_sides();
    fs::create_dir(scene.workspace.join("inner")).unwrap();
    let commit = format!("160000,{},inner", scene.tip());
    git(&scene.workspace, &["update-index", "--add", "--cacheinfo", &commit]);
    git(&scene.workspace, &["commit", "-qm", "inner"]);
    cut_off(&scene, "read-tree", "@git show \"$last:new\" > new; mkdir inner");
    let repository = scene.parent.join(".git");
    fs::copy(repository.join("index"), repository.join("staled-merge.index")).unwrap();
    fs::write(repository.join("staled-merge.index.lock"), "").unwrap();
    let mut judged = scene.judgement();
    judged["parent_branch"] = json!("side");
    scene.merge_by(judged, &[]).fails(2, "branch side");
    assert!(scene.is_at_rest() && !scene.parent.join("new").exists(), "{:?}", scene.leftovers());
    assert!(!scene.parent.join("inner").exists());
    scene.merge().ends(0);
}

/// Such as `git commit` with an editor: its lock is closed, and it is not done.
#[test]
fn the_lock_of_a_git_that_waits_is_left_to_it() {
    let scene = two_sides();
    cut_off(&scene, "read-tree", "@git show \"$last:new\" > new");
    let lock = scene.parent.join(".git/index.lock");
    fs::write(&lock, "its index").unwrap();
    let waiting = scene.place.root.join("git-waiting");
    fs::write(&waiting, "#!/bin/sh\nread line\n").unwrap();
    fs::set_permissions(&waiting, fs::Permissions::from_mode(0o755)).unwrap();
    let mut waits = Command::new(&waiting).current_dir(&scene.parent).stdin(Stdio::piped()).spawn().unwrap();
    let run = scene.merge();
    let stood = fs::read_to_string(&lock);
    drop(waits.stdin.take());
    waits.wait().unwrap();
    run.fails(2, &format!("git-waiting (process {}) runs in", waits.id()));
    assert_eq!(stood.unwrap(), "its index");
    // What is left when nobody waits any more is a dead git's.
    scene.merge().ends(0);
    assert!(scene.is_at_rest(), "{:?}", scene.leftovers());
}

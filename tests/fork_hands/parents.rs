//! Every kind of parent.

use super::*;
use crate::harness::skipped;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn an_empty_repository_has_unborn_forks() {
    let rig = Rig::empty(&["init", "-q", "p"]);
    rig.write("new", "n");
    rig.check("a");
    rig.write("staged", "s");
    git(&rig.parent, &["add", "staged"]);
    let (place, made) = rig.check("b");
    assert_eq!(made.base, None);
    git(&place.workspace, &["commit", "-qm", "first"]);
    git(&place.workspace, &["fsck", "--strict"]);
}

#[test]
fn objects_named_otherwise_and_refs_kept_otherwise() {
    for (format, kind) in [("--object-format=sha256", "sha256"), ("--ref-format=reftable", "reftable")] {
        let rig = Rig::bare();
        if ask(rig.dir.path(), &["init", "-q", format, "p"]).is_none() {
            skipped(&format!("this git has no {kind}"));
            continue;
        }
        rig.write("tracked", "one\n");
        git(&rig.parent, &["add", "-A"]);
        git(&rig.parent, &["commit", "-qm", "first"]);
        git(&rig.parent, &["tag", "v1"]);
        rig.write("tracked", "two\n").write("new", "n");
        let (place, made) = rig.check("a");
        assert_eq!(git(&place.workspace, &["tag"]), "v1");
        git(&place.workspace, &["fsck", "--strict"]);
        git(&place.workspace, &["commit", "-qam", "work"]);
        let work = rig.hands.work(&place.workspace, Mode::Git, made.base.as_deref(), None).unwrap();
        assert_eq!(work.commits, 1);
        rig.hands.make_independent(&place.workspace).unwrap();
        git(&place.workspace, &["fsck", "--strict"]);
    }
}

#[test]
fn a_linked_work_tree_is_forked_with_its_own_index() {
    let rig = Rig::new();
    let linked = rig.top().join("linked");
    git(&rig.parent, &["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
    fs::write(linked.join("tracked"), "linked\n").unwrap();
    git(&linked, &["add", "tracked"]);
    fs::write(linked.join("tracked"), "unstaged\n").unwrap();
    let before = (snapshot(&rig.parent), snapshot(&linked));
    let (place, made) = rig.fork_of("a", &linked, None, None, &[]).unwrap();
    unchanged(&before.0, &rig.parent);
    unchanged(&before.1, &linked);
    same(&linked, &place.workspace, &made.left_out);
    let parent = rig.hands.parent(&linked, None, None).unwrap();
    assert_eq!(parent.branch.as_deref(), Some("other"));
    assert_eq!(parent.repository, Some(rig.parent.join(".git")));
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    for index in [&["--no-sparse-index"][..], &["--sparse-index"][..]] {
        let rig = Rig::new();
        rig.write("far/away", "f").write("near/by", "n");
        git(&rig.parent, &["add", "-A"]);
        git(&rig.parent, &["commit", "-qm", "more"]);
        git(&rig.parent, &[&["sparse-checkout", "set", "--cone"], index, &["near"]].concat());
        rig.write("near/by", "changed");
        let (place, _) = rig.check("a");
        assert!(!place.workspace.join("far").exists());
        assert_eq!(git(&place.workspace, &["sparse-checkout", "list"]), "near");
        git(&place.workspace, &["fsck", "--strict"]);
    }
}

#[test]
fn a_shallow_clone_and_one_that_borrows() {
    let rig = Rig::new();
    rig.write("tracked", "two\n");
    git(&rig.parent, &["commit", "-qam", "second"]);
    let url = format!("file://{}", rig.parent.display());
    git(rig.dir.path(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    git(rig.dir.path(), &["clone", "-q", "--shared", "p", "borrows"]);
    for name in ["shallow", "borrows"] {
        let tree = rig.top().join(name);
        fs::write(tree.join("tracked"), "three\n").unwrap();
        let (place, made) = rig.fork_of(name, &tree, None, None, &[]).unwrap();
        same(&tree, &place.workspace, &made.left_out);
        assert_eq!(git(&tree, &["log", "--format=%H"]), git(&place.workspace, &["log", "--format=%H"]));
        rig.hands.make_independent(&place.workspace).unwrap();
        fs::rename(&tree, rig.top().join("gone")).unwrap();
        git(&place.workspace, &["fsck", "--strict"]);
        fs::rename(rig.top().join("gone"), &tree).unwrap();
    }
}

#[test]
fn a_partial_clone_has_forks_that_stay_dependent_and_say_so() {
    let rig = Rig::new();
    git(&rig.parent, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", rig.parent.display());
    git(rig.dir.path(), &["clone", "-q", "--filter=blob:none", &url, "partial"]);
    let (place, made) = rig.fork_of("a", &rig.top().join("partial"), None, None, &[]).unwrap();
    assert_eq!(left(&made.left_out), [".git/objects partial_clone"]);
    assert_eq!(status(&place.workspace), "");
    let error = rig.hands.make_independent(&place.workspace).unwrap_err();
    assert_eq!(error.code(), "fork_stays_dependent");
    assert_eq!(status(&place.workspace), "");
}

#[test]
fn a_repository_elsewhere_with_its_tree_here() {
    let rig = Rig::bare();
    git(rig.dir.path(), &["init", "-q", "--separate-git-dir=elsewhere", "p"]);
    git(&rig.parent, &["config", "core.worktree", rig.parent.to_str().unwrap()]);
    rig.write("tracked", "one\n");
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "first"]);
    rig.write("tracked", "two\n");
    let (place, _) = rig.check("a");
    assert_eq!(git(&place.workspace, &["rev-parse", "--show-toplevel"]), place.workspace.to_str().unwrap());
    assert_eq!(ask(&place.workspace, &["config", "core.worktree"]), None);
}

#[test]
fn a_merge_that_is_under_way_is_carried_as_far_as_the_index_knows_it() {
    let rig = Rig::new();
    git(&rig.parent, &["checkout", "-qb", "other"]);
    rig.write("tracked", "theirs\n");
    git(&rig.parent, &["commit", "-qam", "theirs"]);
    git(&rig.parent, &["checkout", "-q", "main"]);
    rig.write("tracked", "ours\n");
    git(&rig.parent, &["commit", "-qam", "ours"]);
    assert_eq!(ask(&rig.parent, &["merge", "other"]), None);
    let (place, made) = rig.check("a");
    assert_eq!(left(&made.left_out), [".git/MERGE_HEAD in_progress"]);
    assert!(status(&place.workspace).starts_with("u UU"));
}

#[test]
fn what_is_another_repository_is_named_and_left() {
    let rig = Rig::new();
    git(rig.dir.path(), &["clone", "-q", "p", "inner"]);
    git(&rig.parent, &["submodule", "--quiet", "add", "../inner", "sub"]);
    git(&rig.parent, &["commit", "-qm", "sub"]);
    git(rig.dir.path(), &["clone", "-q", "inner", "p/nested"]);
    let (place, made) = rig.check("a");
    assert_eq!(left(&made.left_out), ["nested nested_repository", "sub submodule"]);
    assert_eq!(status(&place.workspace), "", "an empty folder is a submodule that was not checked out");
    assert!(!place.workspace.join("nested").exists());
}

#[test]
fn a_parent_that_may_not_be_written_in() {
    let rig = Rig::new();
    rig.write("new", "n");
    let modes = |protect: bool| {
        for path in snapshot(&rig.parent).keys() {
            let found = fs::symlink_metadata(path).unwrap();
            let bits = if protect { found.mode() & !0o222 } else { found.mode() | 0o200 };
            fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
        }
    };
    modes(true);
    let (place, _) = rig.check("a");
    modes(false);
    let found = fs::metadata(place.workspace.join("tracked")).unwrap();
    assert_eq!(found.mode() & 0o600, 0o600, "the fork can be worked in");
    git(&place.workspace, &["add", "-A"]);
    git(&place.workspace, &["commit", "-qm", "work"]);
}

#[test]
fn a_parent_on_another_filesystem() {
    let rig = Rig::new();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return skipped("there is no /dev/shm") };
    if fs::metadata(other.path()).unwrap().dev() == fs::metadata(rig.dir.path()).unwrap().dev() {
        return skipped("/dev/shm is on the filesystem of the temporary folder");
    }
    let tree = other.path().join("p");
    git(other.path(), &["clone", "-q", rig.parent.to_str().unwrap(), "p"]);
    fs::write(tree.join("tracked"), "two\n").unwrap();
    // Longer than what is copied in one piece.
    fs::write(tree.join("long"), vec![b'x'; 300_000]).unwrap();
    let (place, made) = rig.fork_of("a", &tree, None, None, &[]).unwrap();
    same(&tree, &place.workspace, &made.left_out);
    rig.hands.make_independent(&place.workspace).unwrap();
    drop(other);
    git(&place.workspace, &["fsck", "--strict"]);
}

#[test]
fn a_fork_that_begins_elsewhere_carries_nothing_uncommitted() {
    let rig = Rig::new();
    let first = git(&rig.parent, &["rev-parse", "HEAD"]);
    rig.write("tracked", "two\n").write("later", "l");
    symlink(rig.parent.join("tracked"), rig.parent.join("link")).unwrap();
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "second"]);
    rig.write("tracked", "three\n").write("new", "n");
    let (place, made) = rig.fork_of("a", &rig.parent, None, Some(&first), &[]).unwrap();
    assert_eq!(made.base.as_deref(), Some(first.as_str()));
    assert_eq!(status(&place.workspace), "");
    assert_eq!(fs::read_to_string(place.workspace.join("tracked")).unwrap(), "one\n");
    assert!(!place.workspace.join("later").exists());
    // HEAD by its id is the world as it stands.
    let second = git(&rig.parent, &["rev-parse", "HEAD"]);
    let (place, made) = rig.fork_of("b", &rig.parent, None, Some(&second.to_uppercase()), &[]).unwrap();
    same(&rig.parent, &place.workspace, &made.left_out);
    assert_eq!(made.shared_by_symlink, [PathBuf::from("link")]);
}

#[test]
fn a_root_below_the_tree_is_found_in_the_fork() {
    let rig = Rig::new();
    rig.write("folder/x.ignored", "secret").write("built/y", "y").write(".gitignore", "*.ignored\nbuilt\n");
    let root = rig.parent.join("folder");
    let (place, made) = rig.fork_of("a", &root, None, None, &["x.ignored", "./missing", "no/such"]).unwrap();
    assert_eq!(made.root, place.workspace.join("folder"));
    assert_eq!(fs::read_to_string(made.root.join("x.ignored")).unwrap(), "secret");
    assert!(place.workspace.join("tracked").exists());
    let (_, load) = rig.surveyed(&root, None, None, &["x.ignored", "./missing", "no/such"]).unwrap();
    assert_eq!(load.missing, [PathBuf::from("./missing"), PathBuf::from("no/such")]);
    // What git ignores is in no repository.
    let parent = rig.hands.parent(&rig.parent.join("built"), None, None).unwrap();
    assert_eq!(parent.mode, Mode::Copy);
}

#[test]
fn what_the_user_ignores_everywhere_is_ignored() {
    let rig = Rig::new();
    fs::create_dir_all(rig.top().join("home/.config/git")).unwrap();
    fs::write(rig.top().join("home/.config/git/ignore"), "by-default\n").unwrap();
    rig.write("by-default", "d").write("by-choice", "c");
    let (place, _) = rig.fork("a");
    assert!(!place.workspace.join("by-default").exists());
    assert!(place.workspace.join("by-choice").exists());
    fs::write(rig.top().join("home/.gitconfig"), "[core]\n\texcludesFile = ~/mine\n").unwrap();
    fs::write(rig.top().join("home/mine"), "by-choice\n").unwrap();
    let (place, _) = rig.fork("b");
    assert!(place.workspace.join("by-default").exists());
    assert!(!place.workspace.join("by-choice").exists());
    // Nor is it uncommitted work.
    fs::write(place.workspace.join("by-choice"), "c").unwrap();
    fs::write(place.workspace.join("by-default"), "changed").unwrap();
    let work = rig.hands.work(&place.workspace, Mode::Git, None, None).unwrap();
    assert_eq!(work.dirty, [PathBuf::from("by-default")]);
}

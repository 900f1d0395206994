//! What is left to do in a fork, what is kept of it, and how it goes.

use super::*;
use crate::harness::skipped;
use staled::fork::work::Work;
use std::os::unix::fs::{PermissionsExt, symlink};

impl Rig {
    fn work(&self, place: &Place, made: &Made) -> Work {
        let parent = self.parent.join(".git");
        self.hands.work(&place.workspace, Mode::Git, made.base.as_deref(), Some(&parent)).unwrap()
    }

    fn kept(&self) -> PathBuf {
        self.top().join("state/kept/a")
    }
}

fn commit(tree: &Path, content: &str) -> String {
    fs::write(tree.join("tracked"), content).unwrap();
    git(tree, &["commit", "-qam", content]);
    git(tree, &["rev-parse", "HEAD"])
}

#[test]
fn work_is_what_is_nowhere_else() {
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    let tree = &place.workspace;
    let base = made.base.clone();
    let nothing = Work { tip: base.clone(), commits: 0, merged: true, dirty: Vec::new(), stash: false };
    assert_eq!(rig.work(&place, &made), nothing);
    fs::write(tree.join("x.ignored"), "i").unwrap();
    assert_eq!(rig.work(&place, &made), nothing, "what is ignored is no work");

    fs::write(tree.join("new"), "n").unwrap();
    fs::write(tree.join("tracked"), "changed\n").unwrap();
    git(tree, &["rm", "-q", "--cached", "folder/below"]);
    let dirty = rig.work(&place, &made).dirty;
    assert_eq!(dirty, ["folder/below", "tracked", "folder/below", "new"].map(PathBuf::from));
    git(tree, &["stash", "-u"]);
    let stashed = rig.work(&place, &made);
    assert!(stashed.stash && stashed.dirty.is_empty());
    git(tree, &["stash", "drop", "-q"]);
    for bit in ["assume-unchanged", "skip-worktree"] {
        git(tree, &["update-index", &format!("--{bit}"), "tracked"]);
        assert_eq!(rig.work(&place, &made), nothing, "{bit}");
        fs::write(tree.join("tracked"), "hidden from git\n").unwrap();
        assert_eq!(rig.work(&place, &made).dirty, [PathBuf::from("tracked")], "{bit}");
        git(tree, &["update-index", &format!("--no-{bit}"), "tracked"]);
        git(tree, &["checkout", "-q", "--", "tracked"]);
    }

    let tip = commit(tree, "work");
    let work = rig.work(&place, &made);
    assert_eq!((work.tip.as_deref(), work.commits, work.merged), (Some(tip.as_str()), 1, false));
    git(&rig.parent, &["fetch", "-q", tree.to_str().unwrap(), "HEAD:refs/heads/taken"]);
    commit(&rig.parent, "the parent goes on");
    let work = rig.work(&place, &made);
    assert_eq!((work.commits, work.merged), (1, true));

    // Work on another branch is work, wherever HEAD is.
    git(tree, &["checkout", "-qb", "aside"]);
    commit(tree, "aside");
    git(tree, &["checkout", "-q", "staled/s/a"]);
    let work = rig.work(&place, &made);
    assert_eq!((work.commits, work.merged), (2, false));
    let alone = rig.hands.work(tree, Mode::Git, base.as_deref(), Some(Path::new("/nonexistent"))).unwrap();
    assert!(!alone.merged, "a parent that is gone has nothing");
}

/// Files that git is told not to look at.
const HIDDEN: [(&str, &str); 2] = [("--assume-unchanged", "assumed"), ("--skip-worktree", "skipped")];

/// Everything that can be lost, and a check that it was not.
pub(super) fn busy(rig: &Rig) -> (Place, Made) {
    let (place, made) = rig.fork("a");
    let tree = &place.workspace;
    commit(tree, "stashed later");
    fs::write(tree.join("tracked"), "stashed\n").unwrap();
    git(tree, &["stash"]);
    git(tree, &["branch", "aside"]);
    for (bit, name) in HIDDEN {
        fs::write(tree.join(name), "committed\n").unwrap();
        git(tree, &["add", name]);
        git(tree, &["update-index", bit, name]);
    }
    commit(tree, "committed\n");
    for (_, name) in HIDDEN {
        fs::write(tree.join(name), "hidden\n").unwrap();
    }
    fs::write(tree.join("tracked"), "staged\n").unwrap();
    git(tree, &["add", "tracked"]);
    fs::write(tree.join("tracked"), "unstaged\n").unwrap();
    fs::remove_file(tree.join("folder/below")).unwrap();
    fs::remove_dir(tree.join("folder")).unwrap();
    fs::write(tree.join("folder"), "a file now").unwrap();
    fs::write(tree.join("new\nname"), "n").unwrap();
    symlink("/etc", tree.join("link")).unwrap();
    git(tree, &["init", "-q", "inner"]);
    fs::write(tree.join("inner/precious"), "p").unwrap();
    (place, made)
}

pub(super) fn is_kept(to: &Path, place: &Place, kept: &staled::fork::keep::KeptWork) {
    let show = |what: &str| git(to, &["show", what]);
    assert_eq!(kept.commit, ask(to, &["rev-parse", "refs/heads/staled/s/a"]));
    let rest = kept.uncommitted.clone().unwrap();
    assert_eq!(git(to, &["rev-parse", &format!("{rest}^")]), kept.commit.clone().unwrap());
    assert_eq!(show(&format!("{rest}:tracked")), "unstaged");
    assert_eq!(show(&format!("{rest}:folder")), "a file now");
    for (_, name) in HIDDEN {
        assert_eq!(show(&format!("{rest}:{name}")), "hidden");
    }
    assert_eq!(show(&format!("{rest}:new\nname")), "n");
    assert_eq!(show(&format!("{rest}:link")), "/etc");
    assert_eq!(show(":tracked"), "staged");
    assert_eq!(show("stash:tracked"), "stashed");
    assert_eq!(show("aside:tracked"), "stashed later");
    assert_eq!(show("HEAD:tracked"), "committed");
    assert_eq!(git(to, &["rev-parse", "--is-bare-repository"]), "true");
    assert_eq!(fs::read_to_string(to.join("staled.nested/inner/precious")).unwrap(), "p");
    assert!(!place.workspace.join(".git").exists());
    git(to, &["fsck", "--strict"]);
}

#[test]
fn what_is_kept_is_everything_and_needs_nothing() {
    let rig = Rig::new();
    let (place, _) = busy(&rig);
    let before = snapshot(&rig.parent);
    let kept = rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
    unchanged(&before, &rig.parent);
    let id = kept.uncommitted.clone().unwrap();
    git(
        &rig.parent,
        &["fetch", "-q", rig.kept().to_str().unwrap(), "refs/staled/uncommitted:refs/heads/back"],
    );
    assert_eq!(git(&rig.parent, &["rev-parse", "back"]), id);
    fs::remove_dir_all(&rig.parent).unwrap();
    rig.hands.remove(&place.home).unwrap();
    is_kept(&rig.kept(), &place, &kept);
    assert_eq!(rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap(), kept, "done again");
}

#[test]
fn keeping_goes_on_where_it_was_killed() {
    for step in 0..4 {
        let rig = Rig::new();
        let (place, _) = busy(&rig);
        let gitdir = place.workspace.join(".git");
        match step {
            0 => {
                for left in ["staled.index", "staled.index.lock", "index.lock"] {
                    fs::write(gitdir.join(left), "half").unwrap();
                }
            }
            1 => {
                fs::create_dir_all(gitdir.join("refs/staled")).unwrap();
                fs::write(gitdir.join("refs/staled/uncommitted.lock"), "").unwrap();
                fs::create_dir_all(gitdir.join("staled.nested")).unwrap();
                fs::rename(place.workspace.join("inner"), gitdir.join("staled.nested/inner")).unwrap();
            }
            2 => fs::create_dir_all(rig.kept()).unwrap(),
            _ => {
                let to = rig.top().join("first");
                rig.hands.keep(&place.workspace, Mode::Git, &to).unwrap();
                git(&to, &["config", "core.bare", "false"]);
                fs::write(to.join("config.lock"), "").unwrap();
                fs::create_dir_all(rig.kept().parent().unwrap()).unwrap();
                fs::rename(&to, rig.kept()).unwrap();
            }
        }
        let kept = rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
        is_kept(&rig.kept(), &place, &kept);
        let locks = snapshot(&rig.kept());
        assert!(locks.keys().all(|path| path.extension() != Some("lock".as_ref())), "{step}");
    }
}

#[test]
fn a_conflict_a_clean_tree_and_an_unborn_branch_are_kept() {
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    let tip = commit(&place.workspace, "work");
    let kept = rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
    assert_eq!((kept.commit, kept.uncommitted), (Some(tip), None));
    assert!(made.base.is_some());

    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    let tree = &place.workspace;
    git(tree, &["checkout", "-qb", "other"]);
    commit(tree, "theirs\n");
    git(tree, &["checkout", "-q", "staled/s/a"]);
    commit(tree, "ours\n");
    assert_eq!(ask(tree, &["merge", "other"]), None);
    let kept = rig.hands.keep(tree, Mode::Git, &rig.kept()).unwrap();
    let shown = git(&rig.kept(), &["show", &format!("{}:tracked", kept.uncommitted.unwrap())]);
    assert!(shown.contains("ours") && shown.contains("theirs"));

    let rig = Rig::empty(&["init", "-q", "p"]);
    rig.write("new", "n");
    let (place, _) = rig.fork("a");
    let kept = rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
    assert_eq!(kept.commit, None);
    assert_eq!(git(&rig.kept(), &["show", &format!("{}:new", kept.uncommitted.unwrap())]), "n");
}

#[test]
fn a_copy_is_kept_whole_and_so_is_a_tree_that_lost_its_repository() {
    for mode in [Mode::Copy, Mode::Git] {
        let rig = Rig::new();
        let (place, _) = rig.fork_of("a", &rig.parent, Some(mode), None, &[]).unwrap();
        fs::remove_dir_all(place.workspace.join(".git")).unwrap();
        fs::write(place.workspace.join("new"), "n").unwrap();
        fs::set_permissions(&place.workspace, fs::Permissions::from_mode(0o500)).unwrap();
        for _ in 0..2 {
            let kept = rig.hands.keep(&place.workspace, mode, &rig.kept()).unwrap();
            assert_eq!(kept, staled::fork::keep::KeptWork::default());
            assert_eq!(fs::read_to_string(rig.kept().join("new")).unwrap(), "n");
            assert!(!place.workspace.exists());
        }
    }
}

#[test]
fn what_git_does_not_take_up_is_kept_beside_it() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    let tree = &place.workspace;
    fs::write(tree.join("git~1"), "precious").unwrap();
    fs::write(tree.join("plain"), "p").unwrap();
    fs::write(place.scratchpad.join("notes"), "n").unwrap();
    let kept = rig.hands.keep(tree, Mode::Git, &rig.kept()).unwrap();
    let listed = git(&rig.kept(), &["ls-tree", "--name-only", &kept.uncommitted.unwrap()]);
    assert!(listed.contains("plain"), "{listed}");
    let read = |path: &str| fs::read_to_string(rig.kept().join(path)).unwrap();
    assert_eq!(
        (read("staled.nested/git~1"), read("staled.scratchpad/notes")),
        ("precious".into(), "n".into())
    );
}

#[test]
fn a_tree_that_git_cannot_take_up_is_kept_whole() {
    for elsewhere in [false, true] {
        let rig = Rig::new();
        let (place, _) = rig.fork("a");
        let tree = &place.workspace;
        let tip = commit(tree, "work");
        if elsewhere {
            let apart = format!("--separate-git-dir={}", place.scratchpad.join("apart").display());
            git(tree, &["init", "-q", &apart]);
        } else {
            fs::write(tree.join(".gitattributes"), "new working-tree-encoding=UTF-16\n").unwrap();
        }
        fs::write(tree.join("new"), "line\n").unwrap();
        for _ in 0..2 {
            let kept = rig.hands.keep(tree, Mode::Git, &rig.kept()).unwrap();
            assert_eq!((kept.commit, kept.uncommitted), ((!elsewhere).then_some(tip.clone()), None));
            assert_eq!(fs::read_to_string(rig.kept().join("new")).unwrap(), "line\n");
        }
        let repository = if elsewhere { "staled.scratchpad/apart" } else { ".git" };
        let shown = git(&rig.kept(), &["--git-dir", repository, "--work-tree=.", "cat-file", "-t", &tip]);
        assert_eq!(shown, "commit");
    }
}

#[test]
fn a_pipe_where_a_file_was_makes_nobody_wait() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    rig.hands.make_independent(&place.workspace).unwrap();
    let pipe = place.workspace.join(".git/objects/info/alternates");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600), 0)
        .unwrap();
    assert!(staled::fork::shared::objects_of(&place.workspace).is_empty());
    rig.hands.make_independent(&place.workspace).unwrap();
}

#[test]
fn what_a_rebase_has_stashed_is_work() {
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    let tree = &place.workspace;
    assert!(!rig.work(&place, &made).stash);
    commit(tree, "work");
    fs::write(tree.join("tracked"), "stashed by it\n").unwrap();
    git(tree, &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--autostash", "HEAD~1"]);
    let work = rig.work(&place, &made);
    assert!(work.stash && work.dirty.is_empty(), "{work:?}");
}

#[test]
fn a_tag_and_a_linked_work_tree_name_work_too() {
    for linked in [false, true] {
        let rig = Rig::new();
        git(&rig.parent, &["tag", "theirs"]);
        let (place, made) = rig.fork("a");
        let tree = &place.workspace;
        assert!(rig.work(&place, &made).merged);
        if linked {
            let at = place.scratchpad.join("linked");
            git(tree, &["worktree", "add", "-q", "--detach", at.to_str().unwrap()]);
            commit(&at, "aside");
        } else {
            git(tree, &["checkout", "-q", "--detach"]);
            commit(tree, "aside");
            git(tree, &["tag", "mine"]);
            git(tree, &["checkout", "-q", "staled/s/a"]);
        }
        let work = rig.work(&place, &made);
        assert_eq!((work.commits, work.merged), (0, false), "{linked}");
    }
}

#[test]
fn nothing_withstands_and_nothing_outside_goes() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    let tree = &place.workspace;
    let before = snapshot(&rig.parent);
    symlink(&rig.parent, tree.join("out")).unwrap();
    symlink(rig.parent.join("tracked"), tree.join("file")).unwrap();
    // Deeper than a path may be long: only step by step is there a way down.
    let name = "a-folder-with-a-long-name";
    deepen(tree, name, 400);
    assert!(tree.as_os_str().len() + 400 * (name.len() + 1) > 4_096);
    fs::create_dir(tree.join("closed")).unwrap();
    fs::write(tree.join("closed/file"), "x").unwrap();
    for folder in [tree.join("closed"), tree.clone(), place.scratchpad.clone()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        skipped("root may write in every folder, closed or not");
    }
    rig.hands.remove(&place.home).unwrap();
    assert!(!place.home.exists());
    unchanged(&before, &rig.parent);
    rig.hands.remove(&place.home).unwrap();
    // A symlink where a home was is removed itself.
    symlink(&rig.parent, &place.home).unwrap();
    rig.hands.remove(&place.home).unwrap();
    assert!(place.home.symlink_metadata().is_err());
    unchanged(&before, &rig.parent);
}

/// Whoever works in a fork may link its repository to another fork's, where the daemon may write.
#[test]
fn a_repository_that_leads_out_is_kept_whole_and_nothing_is_done_through_it() {
    for way in ["config", "refs/staled", "staled.nested", "index", "commondir", "objects/pack"] {
        let rig = Rig::new();
        let (place, made) = busy(&rig);
        let (other, _) = rig.fork("b");
        rig.hands.make_independent(&place.workspace).unwrap();
        let before = snapshot(&other.workspace);
        let (gitdir, theirs) = (place.workspace.join(".git"), other.workspace.join(".git"));
        if way == "commondir" {
            fs::write(gitdir.join(way), theirs.as_os_str().as_bytes()).unwrap();
        } else {
            let _ = fs::remove_file(gitdir.join(way));
            let _ = fs::remove_dir_all(gitdir.join(way));
            symlink(
                if way == "staled.nested" { other.workspace.clone() } else { theirs.join(way) },
                gitdir.join(way),
            )
            .unwrap();
        }
        let parent = rig.parent.join(".git");
        let refused = rig.hands.work(&place.workspace, Mode::Git, made.base.as_deref(), Some(&parent));
        assert_eq!(refused.unwrap_err().code(), "fork_leak", "{way}");
        let kept = rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
        assert_eq!(kept, staled::fork::keep::KeptWork::default(), "{way}");
        assert_eq!(fs::read_to_string(rig.kept().join("tracked")).unwrap(), "unstaged\n", "{way}");
        assert_eq!(fs::read_to_string(rig.kept().join("inner/precious")).unwrap(), "p", "{way}");
        unchanged(&before, &other.workspace);
    }
}

/// What git refuses now it refuses for ever.
#[test]
fn a_fork_whose_work_git_cannot_take_up_is_kept_whole() {
    let rig = Rig::new();
    let (place, _) = busy(&rig);
    git(&place.workspace, &["update-ref", "refs/staled", "HEAD"]);
    rig.hands.keep(&place.workspace, Mode::Git, &rig.kept()).unwrap();
    assert_eq!(fs::read_to_string(rig.kept().join("tracked")).unwrap(), "unstaged\n");
    assert_eq!(git(&rig.kept(), &["show", "HEAD:tracked"]), "committed");
}

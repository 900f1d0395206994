//! Each state that a repository can be in, one case a line.

use super::*;
use crate::harness::say;
use std::os::unix::fs::{PermissionsExt, symlink};

/// What is done to a repository with one commit before it is forked.
type Case = (&'static str, fn(&Rig));

const CASES: [Case; 22] = [
    ("clean", |_| {}),
    ("staged and unstaged apart", |rig| {
        rig.write("tracked", "staged\n");
        git(&rig.parent, &["add", "tracked"]);
        rig.write("tracked", "unstaged\n");
    }),
    ("untracked and ignored", |rig| {
        rig.write("new", "n").write("deep/er/new", "n").write("x.ignored", "i").write("deep/y.ignored", "i");
    }),
    ("deleted", |rig| {
        fs::remove_file(rig.parent.join("tracked")).unwrap();
        git(&rig.parent, &["rm", "-q", "folder/below"]);
    }),
    ("renamed", |rig| drop(git(&rig.parent, &["mv", "tracked", "moved"]))),
    ("executable", |rig| {
        fs::set_permissions(rig.parent.join("tracked"), fs::Permissions::from_mode(0o755)).unwrap();
    }),
    ("symlinks", |rig| {
        symlink("tracked", rig.parent.join("link")).unwrap();
        symlink("nowhere", rig.parent.join("dangling")).unwrap();
        symlink("/etc", rig.parent.join("out")).unwrap();
        git(&rig.parent, &["add", "link"]);
    }),
    ("a file became a symlink", |rig| {
        fs::remove_file(rig.parent.join("tracked")).unwrap();
        symlink("/etc/passwd", rig.parent.join("tracked")).unwrap();
    }),
    ("a folder became a symlink", |rig| {
        fs::create_dir(rig.parent.join("other")).unwrap();
        rig.write("other/below", "not two\n");
        fs::remove_dir_all(rig.parent.join("folder")).unwrap();
        symlink("other", rig.parent.join("folder")).unwrap();
    }),
    ("a file became a folder", |rig| {
        fs::remove_file(rig.parent.join("tracked")).unwrap();
        rig.write("tracked/inside", "x");
    }),
    ("a folder became a file", |rig| {
        fs::remove_dir_all(rig.parent.join("folder")).unwrap();
        rig.write("folder", "x");
    }),
    ("meant to be added", |rig| {
        rig.write("new", "n");
        git(&rig.parent, &["add", "-N", "new"]);
    }),
    ("assumed unchanged", |rig| {
        git(&rig.parent, &["update-index", "--assume-unchanged", "tracked"]);
        rig.write("tracked", "differs\n");
    }),
    ("detached", |rig| drop(git(&rig.parent, &["checkout", "-q", "--detach"]))),
    ("ignored but tracked", |rig| {
        rig.write("t.ignored", "t");
        git(&rig.parent, &["add", "-f", "t.ignored"]);
    }),
    ("excluded by the repository", |rig| {
        fs::write(rig.parent.join(".git/info/exclude"), "hidden\n").unwrap();
        rig.write("hidden", "h").write("shown", "s");
    }),
    ("ends of lines", |rig| {
        git(&rig.parent, &["config", "core.autocrlf", "true"]);
        rig.write("crlf", "a\r\nb\r\n");
        git(&rig.parent, &["add", "crlf"]);
        git(&rig.parent, &["commit", "-qm", "crlf"]);
        rig.write("crlf", "a\r\nb\r\n");
    }),
    ("modes that do not count", |rig| {
        git(&rig.parent, &["config", "core.filemode", "false"]);
        fs::set_permissions(rig.parent.join("tracked"), fs::Permissions::from_mode(0o755)).unwrap();
    }),
    ("split index", |rig| {
        git(&rig.parent, &["update-index", "--split-index"]);
        rig.write("tracked", "staged\n").write("more", "m");
        git(&rig.parent, &["add", "tracked", "more"]);
    }),
    ("packed names", |rig| {
        git(&rig.parent, &["update-index", "--index-version", "4"]);
        rig.write("folder/below2", "b").write("folder/belo", "b");
        git(&rig.parent, &["add", "-A"]);
    }),
    ("untracked kept in the index", |rig| {
        git(&rig.parent, &["update-index", "--untracked-cache"]);
        rig.write("new", "n");
        git(&rig.parent, &["-c", "core.untrackedCache=true", "status"]);
    }),
    ("names of all kinds", |rig| {
        for name in [
            b"-rf".as_slice(),
            b"with space",
            b"tab\tend",
            b"line\nend",
            b"\xff\xfe",
            "é🦀".as_bytes(),
            b"\"q\"",
        ] {
            fs::write(rig.parent.join(name_of(name)), "x").unwrap();
        }
        git(&rig.parent, &["add", "--", "-rf", "tab\tend"]);
    }),
];

fn name_of(bytes: &[u8]) -> &OsStr {
    name(bytes)
}

#[test]
fn a_fork_begins_as_the_same_world() {
    for (name, prepare) in CASES {
        let rig = Rig::new();
        prepare(&rig);
        say(name);
        let (place, made) = rig.check("a");
        assert!(made.left_out.is_empty(), "{name}: {:?}", made.left_out);
        assert_eq!(git(&place.workspace, &["symbolic-ref", "HEAD"]), "refs/heads/staled/s/a");
        assert_eq!(made.base, ask(&rig.parent, &["rev-parse", "HEAD"]));
        assert_eq!(made.root, place.workspace);
        git(&place.workspace, &["fsck", "--strict"]);
        assert_eq!(fs::metadata(&place.scratchpad).unwrap().mode() & 0o777, 0o700);
        assert!(!place.workspace.join(".git/index.lock").exists());
    }
}

#[test]
fn a_fork_can_be_worked_in_and_touches_nothing_of_the_parent() {
    let rig = Rig::new();
    git(&rig.parent, &["tag", "v1"]);
    git(&rig.parent, &["tag", "-am", "annotated", "v2"]);
    rig.write("tracked", "changed\n");
    let (place, _) = rig.check("a");
    let (other, _) = rig.check("b");
    // Git touches an object that it borrows and would have written, lest it be pruned.
    rig.hands.make_independent(&place.workspace).unwrap();
    let before = (snapshot(&rig.parent), snapshot(&other.home));
    let tree = &place.workspace;
    assert_eq!(git(tree, &["tag"]), "v1\nv2");
    assert_eq!(git(tree, &["remote"]), "");
    git(tree, &["add", "-A"]);
    git(tree, &["commit", "-qm", "work"]);
    git(tree, &["checkout", "-qb", "more"]);
    fs::write(tree.join("tracked"), "stashed\n").unwrap();
    git(tree, &["stash"]);
    git(tree, &["gc", "-q", "--prune=now"]);
    git(tree, &["fsck", "--strict"]);
    unchanged(&before.0, &rig.parent);
    unchanged(&before.1, &other.home);
}

#[test]
fn a_file_that_git_knows_to_be_unchanged_is_not_read_again() {
    let rig = Rig::new();
    // A filter that only the parent knows: whoever reads the file without it sees a change.
    git(&rig.parent, &["config", "filter.up.clean", "tr a-z A-Z"]);
    rig.write(".gitattributes", "shout filter=up\n").write("shout", "loud\n");
    settle(&rig);
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "filtered"]);
    assert_eq!(status(&rig.parent), "");
    let (place, _) = rig.check("a");
    assert_eq!(status(&place.workspace), "");
}

#[test]
fn what_the_index_cannot_know_is_read_again() {
    let rig = Rig::new();
    settle(&rig);
    git(&rig.parent, &["add", "-A"]);
    // As long as before and changed back in time: only what the filesystem itself notes gives it away.
    let file = rig.parent.join("tracked");
    let changed = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "two\n").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(changed).unwrap();
    let (place, _) = rig.fork("a");
    assert!(status(&place.workspace).contains("tracked"));
}

/// Makes every file so old that its times are beyond doubt.
fn settle(rig: &Rig) {
    for (path, _) in files(&rig.parent) {
        let file = fs::File::options().write(true).open(rig.parent.join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    }
}

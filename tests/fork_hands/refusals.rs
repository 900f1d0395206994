//! What is refused, and by which word.

use super::*;

fn refused(rig: &Rig, root: &Path, mode: Option<Mode>, from: Option<&str>, copy: &[&str]) -> String {
    let before = snapshot(&rig.top());
    let error = rig.surveyed(root, mode, from, copy).unwrap_err();
    unchanged(&before, &rig.top());
    error.code().to_owned()
}

#[test]
fn a_fork_begins_at_the_id_of_a_commit() {
    let rig = Rig::new();
    let tree = git(&rig.parent, &["rev-parse", "HEAD^{tree}"]);
    let short = git(&rig.parent, &["rev-parse", "--short", "HEAD"]);
    for from in ["HEAD", "main", "origin/HEAD", &short, "", "--all", &"g".repeat(40)] {
        assert_eq!(refused(&rig, &rig.parent, None, Some(from), &[]), "fork_from_not_an_id", "{from}");
    }
    for from in [&tree, &"0".repeat(40), &"a".repeat(40), &"a".repeat(64)] {
        assert_eq!(refused(&rig, &rig.parent, None, Some(from), &[]), "fork_from_unknown", "{from}");
    }
    let id = git(&rig.parent, &["rev-parse", "HEAD"]);
    assert_eq!(refused(&rig, &rig.parent, Some(Mode::Copy), Some(&id), &[]), "fork_from_unknown");
}

#[test]
fn forks_do_not_nest() {
    let mut rig = Rig::new();
    let (place, _) = rig.fork("a");
    assert_eq!(refused(&rig, &place.workspace, None, None, &[]), "fork_nested");
    assert_eq!(refused(&rig, &rig.top(), None, None, &[]), "fork_nested");
    let inside = rig.parent.join("state/forks");
    fs::create_dir_all(&inside).unwrap();
    rig.hands = Hands::new(Git::find(), inside, 1 << 30);
    assert_eq!(refused(&rig, &rig.parent, None, None, &[]), "fork_nested");
    rig.write(".gitignore", "state\n");
    rig.surveyed(&rig.parent, None, None, &[]).unwrap();
    assert_eq!(refused(&rig, &rig.parent, Some(Mode::Copy), None, &[]), "fork_nested");
}

#[test]
fn what_is_copied_besides_is_below_the_root() {
    let rig = Rig::new();
    for path in ["../p", "/etc/passwd", ".git/config", "folder/.git", "a/../../b", ".", ""] {
        assert_eq!(refused(&rig, &rig.parent, None, None, &[path]), "fork_copy_outside", "{path:?}");
    }
}

#[test]
fn without_git_only_copies_are_made() {
    let mut rig = Rig::new();
    rig.hands = Hands::new(Err(staled::fork::git::GitError::Missing), rig.top().join("state/forks"), 1 << 30);
    assert_eq!(refused(&rig, &rig.parent, None, None, &[]), "fork_unavailable");
    rig.fork_of("a", &rig.parent, Some(Mode::Copy), None, &[]).unwrap();
    let plain = rig.top().join("home");
    rig.fork_of("b", &plain, None, None, &[]).unwrap();
    assert_eq!(refused(&rig, &plain, Some(Mode::Git), None, &[]), "fork_unavailable");
}

#[test]
fn a_repository_is_asked_for_where_there_is_none() {
    let rig = Rig::new();
    assert_eq!(refused(&rig, &rig.top().join("home"), Some(Mode::Git), None, &[]), "fork_not_a_work_tree");
    assert_eq!(refused(&rig, &rig.parent.join(".git"), Some(Mode::Git), None, &[]), "fork_not_a_work_tree");
    fs::write(rig.parent.join(".git/refs/heads/main"), format!("{}\n", "a".repeat(40))).unwrap();
    assert_eq!(refused(&rig, &rig.parent, None, None, &[]), "fork_failed", "HEAD names what is not there");
}

//! A repository whose configuration names a program wherever one can be named: none runs.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// Names that git runs something by.
const NAMES: [&str; 20] = [
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.sshCommand",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.e=vil.process",
    "diff.external",
    "diff.evil.textconv",
    "diff.evil.command",
    "merge.evil.driver",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "gpg.program",
    "sequence.editor",
    "pager.status",
    "alias.status",
];

const HOOKS: [&str; 10] = [
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "pre-auto-gc",
    "post-rewrite",
    "prepare-commit-msg",
    "commit-msg",
    "update",
];

/// Has this repository run `canary` wherever it can, with files that it is asked about.
fn plant(tree: &Path, gitdir: &Path, canary: &Path) {
    let canary = canary.to_str().unwrap();
    for folder in [gitdir.join("hooks"), gitdir.join("other-hooks")] {
        fs::create_dir_all(&folder).unwrap();
        for hook in HOOKS {
            fs::copy(canary, folder.join(hook)).unwrap();
        }
    }
    for name in NAMES {
        git(tree, &["config", name, &format!("{canary} {name}")]);
    }
    for (name, value) in [
        ("filter.evil.required", "true"),
        ("filter.e=vil.required", "true"),
        ("core.hooksPath", gitdir.join("other-hooks").to_str().unwrap()),
        ("commit.gpgSign", "true"),
        ("core.untrackedCache", "true"),
    ] {
        git(tree, &["config", name, value]);
    }
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let rig = Rig::new();
    let (canary, sung) = (rig.top().join("canary"), rig.top().join("sung"));
    fs::write(&canary, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", sung.display())).unwrap();
    fs::set_permissions(&canary, fs::Permissions::from_mode(0o755)).unwrap();
    rig.write(".gitattributes", "*.evil filter=evil diff=evil merge=evil\n*.vil filter=e=vil\n");
    rig.write("a.evil", "a\n").write("b.vil", "b\n");
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "attributes"]);
    let first = git(&rig.parent, &["rev-parse", "HEAD"]);
    git(&rig.parent, &["commit", "-qm", "second", "--allow-empty"]);
    plant(&rig.parent, &rig.parent.join(".git"), &canary);
    // What has the same length and other bytes git must look into.
    rig.write("a.evil", "b\n").write("b.vil", "a\n").write("new.evil", "n\n");
    git_quietly(&rig.parent, &["status"]);
    assert!(sung.exists(), "the canary sings where git is not told to be quiet");
    fs::remove_file(&sung).unwrap();

    let root = rig.parent.join("folder");
    let (place, made) = rig.fork_of("a", &root, None, None, &[]).unwrap();
    assert!(!sung.exists(), "in a fork of HEAD: {:?}", fs::read_to_string(&sung));
    let (other, _) = rig.fork_of("b", &root, None, Some(&first), &[]).unwrap();
    assert!(!sung.exists(), "in a fork of a commit: {:?}", fs::read_to_string(&sung));

    // Whoever works in the fork may configure it, and the hands are the daemon's.
    for place in [&place, &other] {
        let tree = &place.workspace;
        plant(tree, &tree.join(".git"), &canary);
        fs::write(tree.join("a.evil"), "c\n").unwrap();
        fs::write(tree.join("b.vil"), "c\n").unwrap();
        let parent = rig.parent.join(".git");
        drop(fs::remove_file(&sung));
        let work = rig.hands.work(tree, Mode::Git, made.base.as_deref(), Some(&parent)).unwrap();
        assert!(work.dirty.contains(&PathBuf::from("a.evil")));
        assert!(!sung.exists(), "when its work was asked for: {:?}", fs::read_to_string(&sung));
        rig.hands.make_independent(tree).unwrap();
        assert!(!sung.exists(), "when it was made independent: {:?}", fs::read_to_string(&sung));
        let to = rig.top().join("kept").join(place.home.file_name().unwrap());
        let kept = rig.hands.keep(tree, Mode::Git, &to).unwrap();
        assert!(!sung.exists(), "when it was kept: {:?}", fs::read_to_string(&sung));
        let id = kept.uncommitted.unwrap();
        assert_eq!(blob(&to, &format!("{id}:a.evil")), "c\n");
    }
}

fn blob(repository: &Path, name: &str) -> String {
    let output =
        Command::new("git").arg("-C").arg(repository).args(["cat-file", "blob", name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whatever comes of it.
fn git_quietly(tree: &Path, args: &[&str]) {
    drop(run(tree, args));
}

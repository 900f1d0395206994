//! What git does not see of a fork, or cannot, is work all the same, and is kept.

use super::*;
use staled::fork::work::Work;

impl Rig {
    fn look(&self, place: &Place, made: &Made) -> Result<Work, ForkError> {
        let parent = self.parent.join(".git");
        self.hands.work(&place.workspace, Mode::Git, made.base.as_deref(), Some(&parent))
    }

    /// What is not committed.
    fn dirty(&self, place: &Place, made: &Made) -> Vec<String> {
        let dirty = self.look(place, made).unwrap().dirty;
        dirty.into_iter().map(|path| path.into_os_string().into_string().unwrap()).collect()
    }

    fn keeps(&self, place: &Place) -> PathBuf {
        let to = self.top().join("state/kept/a");
        self.hands.keep(&place.workspace, Mode::Git, &to).unwrap();
        to
    }
}

/// What its user hides from git is hidden in the parent alone.
#[test]
fn what_a_parent_hides_from_git_is_no_work_of_its_fork_as_it_is() {
    for edited in [false, true] {
        let rig = Rig::new();
        git(&rig.parent, &["update-index", "--assume-unchanged", "tracked"]);
        git(&rig.parent, &["update-index", "--skip-worktree", "folder/below"]);
        if edited {
            rig.write("tracked", "the user's\n").write("folder/below", "the user's\n");
        }
        assert!(rig.hands.parent_dirty(&rig.parent).unwrap().is_empty(), "{edited}");
        let (place, made) = rig.fork("a");
        assert!(rig.dirty(&place, &made).is_empty(), "{edited}");
        fs::write(place.workspace.join("folder/below"), "work\n").unwrap();
        assert_eq!(rig.dirty(&place, &made), ["folder/below"], "{edited}");
    }
}

/// One entry may stand for a folder, and hides what is put there.
#[test]
fn a_sparse_index_hides_nothing_that_is_there() {
    let rig = Rig::new();
    rig.write("far/away", "f").write("near/by", "n");
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "more"]);
    let (place, made) = rig.fork("a");
    git(&place.workspace, &["sparse-checkout", "set", "--cone", "--sparse-index", "near"]);
    assert!(git(&place.workspace, &["ls-files", "--sparse", "-t"]).contains("S far/"));
    assert!(rig.dirty(&place, &made).is_empty());
    fs::create_dir(place.workspace.join("far")).unwrap();
    fs::write(place.workspace.join("far/away"), "work\n").unwrap();
    assert_eq!(rig.dirty(&place, &made), ["far/away"]);
    let to = rig.keeps(&place);
    assert_eq!(git(&to, &["show", "refs/staled/uncommitted:far/away"]), "work");
}

/// A deed with a repository that is to be at `inner` in the tree.
type Deed = fn(&Path);

fn make(tree: &Path) {
    git(tree, &["init", "-q", "inner"]);
    git(&tree.join("inner"), &["commit", "-qm", "inner", "--allow-empty"]);
    fs::write(tree.join("inner/precious"), "p").unwrap();
}

const NAMED: [(&str, Deed, &str); 4] = [
    (
        "committed",
        |tree| {
            git(tree, &["add", "inner"]);
            git(tree, &["commit", "-qm", "inner"]);
        },
        "inner/",
    ),
    ("staged", |tree| drop(git(tree, &["add", "inner"])), "inner/"),
    (
        "in conflict",
        |tree| {
            let tip = git(tree, &["rev-parse", "HEAD"]);
            let sides = [1, 2, 3].map(|side| format!("160000 {tip} {side}\tinner\n")).concat();
            fs::write(tree.with_file_name("sides"), sides).unwrap();
            let sides = fs::File::open(tree.with_file_name("sides")).unwrap();
            let mut index = Command::new("git");
            index.current_dir(tree).args(["update-index", "--index-info"]).stdin(sides);
            assert!(index.status().unwrap().success());
        },
        "inner",
    ),
    (
        "in place of a file",
        |tree| {
            fs::rename(tree.join("inner"), tree.join("apart")).unwrap();
            fs::write(tree.join("inner"), "a file").unwrap();
            git(tree, &["add", "inner"]);
            git(tree, &["commit", "-qm", "inner"]);
            fs::remove_file(tree.join("inner")).unwrap();
            fs::rename(tree.join("apart"), tree.join("inner")).unwrap();
        },
        "inner",
    ),
];

#[test]
fn a_repository_that_the_index_names_is_work_and_is_kept() {
    for (how, deed, named) in NAMED {
        let rig = Rig::new();
        let (place, made) = rig.fork("a");
        make(&place.workspace);
        deed(&place.workspace);
        assert_eq!(rig.dirty(&place, &made), [named], "{how}");
        let to = rig.keeps(&place);
        assert_eq!(fs::read_to_string(to.join("staled.nested/inner/precious")).unwrap(), "p", "{how}");
        assert!(to.join("staled.nested/inner/.git").is_dir(), "{how}");
    }
}

#[test]
fn an_empty_folder_of_a_submodule_is_no_work() {
    let rig = Rig::new();
    make(&rig.parent);
    git(&rig.parent, &["add", "inner"]);
    git(&rig.parent, &["commit", "-qm", "inner"]);
    let (place, made) = rig.fork("a");
    assert!(place.workspace.join("inner").is_dir());
    assert!(rig.dirty(&place, &made).is_empty());
}

/// A file that a fork has instead of a folder is taken up, and so are files in a folder that it has instead of a file.
#[test]
fn files_in_a_folder_in_place_of_a_file_are_committed() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    let tree = &place.workspace;
    fs::remove_file(tree.join("tracked")).unwrap();
    fs::create_dir(tree.join("tracked")).unwrap();
    fs::write(tree.join("tracked/below"), "b").unwrap();
    let to = rig.keeps(&place);
    assert_eq!(git(&to, &["show", "refs/staled/uncommitted:tracked/below"]), "b");
}

#[test]
fn a_name_of_what_is_not_there_leaves_in_doubt_what_a_fork_holds() {
    for gone in [false, true] {
        let rig = Rig::new();
        let (place, made) = rig.fork("a");
        fs::write(place.workspace.join(".git/refs/heads/lost"), "d".repeat(40)).unwrap();
        let parent = if gone { PathBuf::from("/nonexistent") } else { rig.parent.join(".git") };
        let work = rig.hands.work(&place.workspace, Mode::Git, made.base.as_deref(), Some(&parent));
        assert_eq!(work.unwrap_err().code(), "fork_untold", "{gone}");
    }
    // What the parent itself names and lacks is no work of its forks.
    let rig = Rig::new();
    fs::write(rig.parent.join(".git/refs/tags/lost"), "d".repeat(40)).unwrap();
    let (place, made) = rig.fork("a");
    assert!(rig.look(&place, &made).unwrap().merged);
}

#[test]
fn a_folder_that_git_cannot_read_may_hold_work() {
    let rig = Rig::new();
    let (place, made) = rig.fork("a");
    // Also root reads no folder whose path is too long.
    deepen(&place.workspace, "a-folder-with-a-long-name", 200);
    assert_eq!(rig.look(&place, &made).unwrap_err().code(), "fork_untold");
    let to = rig.keeps(&place);
    assert!(to.join("a-folder-with-a-long-name").is_dir() && to.join(".git").is_dir());
}

#[test]
fn a_scratchpad_that_cannot_be_listed_may_hold_notes() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    fs::remove_dir_all(&place.scratchpad).unwrap();
    fs::write(&place.scratchpad, "notes").unwrap();
    let to = rig.keeps(&place);
    assert_eq!(fs::read_to_string(to.join("staled.scratchpad")).unwrap(), "notes");
}

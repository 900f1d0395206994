//! A guard on real folders, and what it has told.

use staled::world::dart::Died;
use staled::world::guard::{FileTime, Guard, Guarded, Seen};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// Places 1 and 2, each with the trees `1/w` and `1/s`.
pub(super) struct Post {
    _temp: TempDir,
    pub(super) base: PathBuf,
    pub(super) guard: Guard,
    told: Receiver<Seen>,
}

impl Post {
    pub(super) fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("staled-").tempdir().expect("a temporary folder");
        let base = temp.path().canonicalize().expect("it exists");
        for no in [1, 2] {
            for folder in ["w/.git/objects/ab", "w/src/deep", "s"] {
                fs::create_dir_all(base.join(no.to_string()).join(folder)).expect("folders");
            }
        }
        let (told, hear) = channel();
        let tell = Box::new(move |seen| drop(told.send(seen)));
        let guard = Guard::start(&base.join("cookies"), tell, &Died::default()).expect("it starts");
        Self { _temp: temp, base, guard, told: hear }
    }

    /// With both places guarded.
    pub(super) fn guarding() -> Self {
        let post = Self::new();
        [1, 2].into_iter().for_each(|no| post.guard(no, None));
        assert_eq!(post.seen(), []);
        post
    }

    pub(super) fn guard(&self, no: u64, quiet_since: Option<FileTime>) {
        let folders = ["w", "s"].map(|name| self.base.join(no.to_string()).join(name)).to_vec();
        self.guard
            .guard(Guarded { no, folders, apart_from: Vec::new() }, quiet_since)
            .expect("it is watched");
    }

    /// In the tree of the first place.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.base.join("1/w").join(name)
    }

    pub(super) fn barrier(&self) -> FileTime {
        let (done, passed) = channel();
        self.guard.barrier(Box::new(move |time| done.send(time).expect("somebody waits")));
        passed.recv().expect("it is passed")
    }

    /// Everything that was told until now.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.barrier();
        self.told.try_iter().collect()
    }

    /// The paths that changed while somebody watched.
    pub(super) fn changed(&self) -> BTreeSet<PathBuf> {
        let changed = |seen| if let Seen::Changed { path, .. } = seen { Some(path) } else { None };
        self.seen().into_iter().filter_map(changed).collect()
    }

    /// The paths of what is told as changed while nobody watched, in all that was told.
    pub(super) fn unwatched(seen: &[Seen]) -> BTreeSet<&Path> {
        fn unwatched(seen: &Seen) -> Option<&Path> {
            if let Seen::Unwatched { path, .. } = seen { Some(path) } else { None }
        }
        seen.iter().filter_map(unwatched).collect()
    }
}

#[test]
fn what_is_made_in_one_go_is_told_whole() {
    let post = Post::guarding();
    for round in 0..300 {
        let top = post.at(&format!("r{round}"));
        fs::create_dir_all(top.join("a/b/c")).expect("folders");
        fs::write(top.join("a/b/c/f"), "x").expect("a file");
        let expected = ["", "a", "a/b", "a/b/c", "a/b/c/f"]
            .map(|name| if name.is_empty() { top.clone() } else { top.join(name) });
        let changed = post.changed();
        let missed: Vec<_> = expected.iter().filter(|path| !changed.contains(*path)).collect();
        assert!(missed.is_empty(), "round {round}: {missed:?}");
        fs::write(top.join("a/b/c/f"), "y").expect("a file");
        let changed = post.changed();
        assert!(changed.contains(&top.join("a/b/c/f")), "round {round}: {changed:?}");
        // A test that starts a process has a copy of every open file for a moment, and closes it late.
        assert!(changed.iter().all(|path| path.ends_with("a/b/c/f")), "round {round}: {changed:?}");
    }
}

#[test]
fn nothing_is_told_of_objects_of_cookies_and_of_what_is_beside() {
    let post = Post::guarding();
    fs::write(post.at(".git/objects/ab/cd"), "x").expect("a file");
    fs::create_dir(post.at(".git/objects/ef")).expect("a folder");
    fs::write(post.base.join("1/exec.lock"), "x").expect("a file");
    fs::write(post.base.join("cookies/other"), "x").expect("a file");
    assert_eq!(post.seen(), []);
    fs::write(post.at(".git/HEAD"), "x").expect("a file");
    fs::create_dir_all(post.at("sub/.git/objects")).expect("folders");
    fs::write(post.at("sub/.git/objects/f"), "x").expect("a file");
    let changed = post.changed();
    for name in [".git/HEAD", "sub/.git/objects/f"] {
        assert!(changed.contains(&post.at(name)), "{name}: {changed:?}");
    }
}

#[test]
fn what_changed_while_nobody_watched_is_told_and_what_did_not_is_not() {
    let post = Post::new();
    for name in ["before", "src/kept"] {
        fs::write(post.at(name), "x").expect("a file");
    }
    let quiet_since = post.barrier();
    fs::write(post.at("before"), "y").expect("a file");
    fs::write(post.at("src/deep/new"), "y").expect("a file");
    post.guard(1, Some(quiet_since));
    let seen = post.seen();
    let expected = [post.at("before"), post.at("src/deep"), post.at("src/deep/new")];
    assert_eq!(Post::unwatched(&seen), expected.iter().map(PathBuf::as_path).collect());
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_place_that_is_not_there_is_refused_and_says_so() {
    let post = Post::new();
    let place = Guarded { no: 7, folders: vec![post.base.join("nowhere")], apart_from: Vec::new() };
    let refused = post.guard.guard(place, None).expect_err("it is not there");
    assert!(refused.to_string().contains("nowhere"), "{refused}");
}

#[test]
fn what_moves_between_places_is_told_at_both_and_as_a_move() {
    let post = Post::guarding();
    let (from, to) = (post.at("src"), post.base.join("2/s/src"));
    fs::write(from.join("f"), "x").expect("a file");
    post.seen();
    fs::rename(&from, &to).expect("it moves");
    let seen = post.seen();
    assert!(seen.contains(&Seen::Moved { from: (1, from.clone()), to: (2, to.clone()) }), "{seen:?}");
    for (no, path) in [(1, from), (2, to.clone()), (2, to.join("f")), (2, to.join("deep"))] {
        assert!(seen.contains(&Seen::Changed { no, path: path.clone() }), "{}: {seen:?}", path.display());
    }
    fs::write(to.join("deep/late"), "x").expect("a file");
    assert_eq!(post.seen().first(), Some(&Seen::Changed { no: 2, path: to.join("deep/late") }));
}

#[test]
fn a_place_that_is_forgotten_is_not_told_of_and_may_come_back() {
    let post = Post::guarding();
    post.guard.forget(1);
    fs::write(post.at("f"), "x").expect("a file");
    assert_eq!(post.seen(), []);
    post.guard(1, None);
    assert_eq!(post.seen(), []);
    fs::write(post.at("f"), "y").expect("a file");
    assert_eq!(post.changed(), [post.at("f")].into());
}

//! A fork's objects become its own, whatever happens meanwhile.

use super::*;
use crate::harness::wait_until;

fn alternates(tree: &Path) -> PathBuf {
    tree.join(".git/objects/info/alternates")
}

/// A repository with loose objects and packs, and a fork of it.
fn forked() -> (Rig, Place) {
    let rig = Rig::new();
    git(&rig.parent, &["gc", "-q"]);
    rig.write("tracked", "two\n");
    git(&rig.parent, &["commit", "-qam", "second"]);
    let (place, made) = rig.check("a");
    assert!(!made.independent);
    (rig, place)
}

#[test]
fn the_parent_can_go() {
    let (rig, place) = forked();
    let before = snapshot(&rig.parent);
    rig.hands.make_independent(&place.workspace).unwrap();
    unchanged(&before, &rig.parent);
    fs::remove_dir_all(&rig.parent).unwrap();
    git(&place.workspace, &["fsck", "--strict"]);
    assert_eq!(git(&place.workspace, &["log", "--format=%s"]), "second\nfirst");
    assert!(!alternates(&place.workspace).exists());
    rig.hands.make_independent(&place.workspace).unwrap();
}

#[test]
fn what_is_missing_leaves_it_dependent() {
    let (rig, place) = forked();
    // What only the index names, and a pack that its parent is about to lose.
    fs::write(place.workspace.join("staged"), "s").unwrap();
    git(&place.workspace, &["add", "staged"]);
    let id = git(&place.workspace, &["hash-object", "staged"]);
    let object = place.workspace.join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::rename(&object, rig.top().join("lost")).unwrap();
    rig.hands.make_independent(&place.workspace).unwrap_err();
    assert!(alternates(&place.workspace).exists(), "it goes on borrowing");
    assert!(!place.workspace.join(".git/objects/info/alternates.staled").exists());
    fs::rename(rig.top().join("lost"), &object).unwrap();
    rig.hands.make_independent(&place.workspace).unwrap();
    assert!(!alternates(&place.workspace).exists());
}

#[test]
fn it_goes_on_where_it_was_killed() {
    for step in 0..3 {
        let (rig, place) = forked();
        let objects = place.workspace.join(".git/objects");
        match step {
            // Within the copying: half of a file under another name, and one that a power cut emptied.
            0 => {
                fs::write(objects.join("pack/tmp_obj_staled_1"), "half").unwrap();
                let packs = fs::read_dir(rig.parent.join(".git/objects/pack")).unwrap();
                let theirs = packs.map(|entry| entry.unwrap().path());
                // What else there is of a pack is made anew when it is missing.
                for pack in theirs.filter(|path| path.extension() != Some("rev".as_ref())) {
                    fs::write(objects.join("pack").join(pack.file_name().unwrap()), "").unwrap();
                }
            }
            // When the parent's stores were out of reach.
            1 => fs::rename(alternates(&place.workspace), objects.join("info/alternates.staled")).unwrap(),
            // When they were put back.
            _ => {
                fs::copy(alternates(&place.workspace), objects.join("info/alternates.staled")).unwrap();
            }
        }
        rig.hands.make_independent(&place.workspace).unwrap();
        fs::remove_dir_all(&rig.parent).unwrap();
        git(&place.workspace, &["fsck", "--strict"]);
        assert!(!objects.join("info/alternates.staled").exists(), "{step}");
    }
}

#[test]
fn a_parent_that_is_repacked_and_a_fork_that_is_worked_in_meanwhile() {
    let rig = Rig::new();
    for number in 0..300 {
        rig.write(&format!("many/{number}"), &format!("{number}\n"));
    }
    git(&rig.parent, &["add", "-A"]);
    git(&rig.parent, &["commit", "-qm", "many"]);
    let (done, rounds) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                git(&rig.parent, &["repack", "-qad"]);
                git(&rig.parent, &["prune-packed", "-q"]);
                rounds.fetch_add(1, Ordering::Relaxed);
                git(&rig.parent, &["commit", "-qm", "more", "--allow-empty"]);
            }
        });
        for round in 0..4 {
            let seen = rounds.load(Ordering::Relaxed);
            wait_until("the parent is repacked again", || rounds.load(Ordering::Relaxed) > seen);
            let (place, _) = rig.fork(&format!("f{round}"));
            let tree = &place.workspace;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..5 {
                        fs::write(tree.join("work"), format!("{round} {number}")).unwrap();
                        git(tree, &["add", "work"]);
                        git(tree, &["commit", "-qm", "work"]);
                    }
                });
                // What did not hold still is tried again later.
                wait_until("the fork stands alone", || rig.hands.make_independent(tree).is_ok());
            });
            git(tree, &["fsck", "--strict"]);
            assert!(!alternates(tree).exists());
        }
    });
}

/// What the fork's repository names as objects, its agent may have written there.
#[test]
fn nothing_is_copied_from_where_only_the_fork_says_that_objects_are() {
    let (rig, place) = forked();
    let secret = rig.top().join("secret");
    fs::write(&secret, "s").unwrap();
    let store = place.workspace.join("store");
    fs::create_dir_all(store.join("ab")).unwrap();
    std::os::unix::fs::symlink(&secret, store.join("ab/cafe")).unwrap();
    let named =
        [store.as_os_str().as_bytes(), b"\n", &fs::read(alternates(&place.workspace)).unwrap()].concat();
    fs::write(alternates(&place.workspace), named).unwrap();
    rig.hands.make_independent(&place.workspace).unwrap();
    assert!(!place.workspace.join(".git/objects/ab/cafe").exists());
    fs::remove_dir_all(&rig.parent).unwrap();
    git(&place.workspace, &["fsck", "--strict"]);
}

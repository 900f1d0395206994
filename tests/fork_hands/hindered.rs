//! What a fork puts in the way of its own end does not hold it up, and nothing of it is lost for that.

use super::end::{busy, is_kept};
use super::*;

/// Where something is put in the repository, and whether all of the tree is kept as it is for that.
const WAYS: [(&str, bool); 9] = [
    ("index", true),
    ("refs/staled/uncommitted/", true),
    ("staled.nested/inner/x", true),
    ("staled.nested/inner", true),
    ("staled.nested/git~1", true),
    ("objects/info/alternates.staled/", false),
    ("staled.scratchpad/x", false),
    ("staled.config", false),
    ("staled.config.new/", false),
];

fn hinder(gitdir: &Path, way: &str) {
    let place = gitdir.join(way);
    if way == "index" {
        fs::remove_file(&place).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &place, kind, mode, 0).unwrap();
    } else if way.ends_with('/') {
        fs::create_dir_all(&place).unwrap();
    } else {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "theirs").unwrap();
    }
}

fn names_in(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_a_fork_puts_in_the_way_holds_up_nothing() {
    for (way, whole) in WAYS {
        let rig = Rig::new();
        let (place, _) = busy(&rig);
        fs::write(place.scratchpad.join("notes"), "n").unwrap();
        // Git takes up no file of this name.
        fs::write(place.workspace.join("git~1"), "apart").unwrap();
        hinder(&place.workspace.join(".git"), way);
        let to = rig.top().join("state/kept/a");
        let kept =
            rig.hands.keep(&place.workspace, Mode::Git, &to).unwrap_or_else(|why| panic!("{way}: {why}"));
        let read = |path: &str| {
            fs::read_to_string(to.join(path)).unwrap_or_else(|why| panic!("{way}: {path}: {why}"))
        };
        if whole {
            assert_eq!((kept.uncommitted, read("tracked").as_str()), (None, "unstaged\n"), "{way}");
            assert_eq!((read("assumed"), read("skipped")), ("hidden\n".into(), "hidden\n".into()), "{way}");
        } else {
            is_kept(&to, &place, &kept);
            let names = names_in(&to);
            assert_eq!(rig.hands.keep(&place.workspace, Mode::Git, &to).unwrap(), kept, "{way}: done again");
            assert_eq!(names_in(&to), names, "{way}: done again");
        }
        let apart = ["git~1", "staled.nested/git~1", ".git/staled.nested/git~1"].map(|name| to.join(name));
        let is_ours = |place: &PathBuf| fs::read(place).is_ok_and(|bytes| bytes == b"apart");
        assert!(apart.iter().any(is_ours), "{way}");
        let notes =
            if way.starts_with("staled.scratchpad") { "staled.scratchpad-1" } else { "staled.scratchpad" };
        assert_eq!(read(&format!("{notes}/notes")), "n", "{way}");
        if !way.ends_with('/') && way != "index" {
            let repository = if whole { ".git/" } else { "" };
            assert_eq!(read(&format!("{repository}{way}")), "theirs", "{way}");
        }
        rig.hands.remove(&place.home).unwrap();
    }
}

/// What a first start of a removal moved up is in the way of a second.
#[test]
fn a_removal_goes_on_where_it_was_killed() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    fs::create_dir(place.home.join(".deep-1")).unwrap();
    deepen(&place.home.join(".deep-1"), "d", 200);
    fs::write(place.home.join(".deep-2"), "").unwrap();
    rig.hands.remove(&place.home).unwrap();
    assert!(!place.home.exists());
}

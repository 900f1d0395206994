//! Copies of folders, and files that do not hold still.

use super::*;
use crate::harness::skipped;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_folder_is_copied_with_all_that_is_in_it() {
    let rig = Rig::bare();
    rig.write("a", "a").write(".hidden/b", "b").write("deep/er/c", "c");
    fs::write(rig.parent.join(name(b"\xff\n")), "bytes").unwrap();
    fs::write(rig.parent.join("long"), vec![b'x'; 1 << 20]).unwrap();
    fs::create_dir(rig.parent.join("empty")).unwrap();
    fs::set_permissions(rig.parent.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../outside", rig.parent.join("up")).unwrap();
    symlink(rig.parent.join("a"), rig.parent.join("deep/back")).unwrap();
    symlink(rig.top().join("state/forks/s/b/scratchpad"), rig.parent.join("sideways")).unwrap();
    symlink("deep", rig.parent.join("inside")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        rig.parent.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let before = snapshot(&rig.parent);
    let (place, made) = rig.fork("a");
    unchanged(&before, &rig.parent);
    assert_eq!(left(&made.left_out), ["fifo special"]);
    let mut expected = files(&rig.parent);
    expected.remove(Path::new("fifo"));
    assert!(expected == files(&place.workspace));
    assert!(place.workspace.join("empty").is_dir());
    assert_eq!(made.shared_by_symlink, [PathBuf::from("deep/back"), PathBuf::from("sideways")]);
    assert!(made.independent && made.base.is_none());
}

#[test]
fn a_repository_is_copied_whole_when_a_copy_of_it_is_asked_for() {
    let rig = Rig::new();
    git(rig.dir.path(), &["clone", "-q", "p", "p/nested"]);
    git(&rig.parent, &["worktree", "add", "-q", "linked"]);
    rig.write("x.ignored", "i");
    let (place, made) = rig.fork_of("a", &rig.parent, Some(Mode::Copy), None, &[]).unwrap();
    assert_eq!(left(&made.left_out), ["linked/.git linked_repository"], "it would write in the parent's");
    assert!(place.workspace.join("nested/.git/HEAD").exists());
    assert!(place.workspace.join("x.ignored").exists());
    git(&place.workspace, &["fsck", "--strict"]);
    // A folder that is in no repository leaves those in it alone, but not their files.
    let folder = rig.top().join("folder");
    git(rig.dir.path(), &["clone", "-q", "p", "folder/r"]);
    let (place, made) = rig.fork_of("b", &folder, None, None, &[]).unwrap();
    assert_eq!(left(&made.left_out), ["r/.git nested_repository"]);
    assert!(place.workspace.join("r/tracked").exists());
}

#[test]
fn a_file_that_is_too_big_is_named_unless_its_blocks_can_be_shared() {
    let mut rig = Rig::new();
    rig.hands = Hands::new(Git::find(), rig.top().join("state/forks"), 100_000);
    fs::write(rig.parent.join("big"), vec![b'x'; 200_000]).unwrap();
    let (place, made) = rig.fork("a");
    if place.workspace.join("big").exists() {
        return skipped("the temporary folder shares blocks");
    }
    assert_eq!(left(&made.left_out), ["big too_big"]);
    assert!(place.workspace.join("tracked").exists());
}

#[test]
fn what_may_not_be_read_is_named() {
    if rustix::process::geteuid().is_root() {
        return skipped("root may read everything");
    }
    let rig = Rig::new();
    rig.write("secret", "s");
    fs::set_permissions(rig.parent.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let (_, made) = rig.fork("a");
    assert_eq!(left(&made.left_out), ["secret unreadable"]);
}

#[test]
fn no_torn_bytes_land_while_somebody_writes() {
    const PIECE: usize = 65_536;
    const PIECES: usize = 64;
    let rig = Rig::bare();
    let done = AtomicBool::new(false);
    let path = rig.parent.join("busy");
    fs::write(&path, vec![0; PIECE * PIECES]).unwrap();
    std::thread::scope(|scope| {
        let _stop = Stop(&done);
        scope.spawn(|| {
            let (mut random, mut round) = (fastrand::Rng::new(), 0_u8);
            while !done.load(Ordering::Relaxed) {
                // From the beginning to the end: at every moment what is behind is what is ahead, or one more.
                round = round.wrapping_add(1);
                let mut file = fs::File::options().write(true).open(&path).unwrap();
                for _ in 0..PIECES {
                    file.write_all(&vec![round; PIECE]).unwrap();
                }
                drop(file);
                std::thread::sleep(std::time::Duration::from_millis(random.u64(..50)));
            }
        });
        for _ in 0..40 {
            let (place, made) = rig.fork("a");
            match fs::read(place.workspace.join("busy")) {
                Ok(bytes) => assert!(was_so(&bytes, PIECE * PIECES), "torn: {} bytes", bytes.len()),
                Err(_) => assert_eq!(left(&made.left_out), ["busy changing"]),
            }
            rig.hands.remove(&place.home).unwrap();
        }
    });
}

/// Whether the file was that at one moment.
fn was_so(bytes: &[u8], len: usize) -> bool {
    let (first, last) = (bytes[0], bytes[bytes.len() - 1]);
    let border = bytes.iter().position(|byte| *byte != first).unwrap_or(len);
    bytes.len() == len && bytes[border..].iter().all(|byte| *byte == last) && first.wrapping_sub(last) <= 1
}

#[test]
fn files_that_come_and_go_do_not_stop_it() {
    let rig = Rig::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&done);
        scope.spawn(|| {
            let mut random = fastrand::Rng::new();
            while !done.load(Ordering::Relaxed) {
                let path = rig.parent.join(format!("t{}", random.u8(..20)));
                // A name is a file, a folder with a file, a symlink, or nothing.
                drop(fs::remove_file(&path));
                drop(fs::remove_dir_all(&path));
                match random.u8(..4) {
                    0 => fs::write(&path, "x").unwrap(),
                    1 => {
                        fs::create_dir(&path).unwrap();
                        fs::write(path.join("below"), "x").unwrap();
                    }
                    2 => symlink("/etc", &path).unwrap(),
                    _ => {}
                }
            }
        });
        for _ in 0..20 {
            let (place, _) = rig.fork("a");
            for (path, (.., bytes)) in files(&place.workspace) {
                assert!(bytes == b"x" || bytes == b"/etc" || !path.starts_with("t"), "{}", path.display());
            }
            git(&place.workspace, &["fsck", "--strict"]);
            rig.hands.remove(&place.home).unwrap();
        }
    });
}

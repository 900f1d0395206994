//! Every way in which something is written, and none in which it is only read.

use super::guard::Post;
use crate::harness::skipped;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, XattrFlags};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

type Way = fn(&Path, &Path);

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("it opens")
}

/// Each with what it does to the first path, a file of eight bytes; the second is beside it, outside the place.
const WAYS: [(&str, Way); 20] = [
    ("write", |path, _| fs::write(path, "otherwise").expect("it is written")),
    ("write in the middle", |path, _| open(path).write_at(b"x", 3).map(drop).expect("it is written")),
    ("append", |path, _| {
        File::options()
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(b"x"))
            .expect("it is written");
    }),
    ("truncate", |path, _| open(path).set_len(2).expect("it is cut")),
    ("truncate to the same size", |path, _| open(path).set_len(8).expect("it is cut")),
    ("grow", |path, _| open(path).set_len(4_096).expect("it grows")),
    ("rename over", |path, outside| {
        fs::write(outside, "new").and_then(|()| fs::rename(outside, path)).expect("it moves");
    }),
    ("rename away", |path, outside| fs::rename(path, outside).expect("it moves")),
    ("unlink", |path, _| fs::remove_file(path).expect("it goes")),
    ("hard link in", |path, outside| {
        fs::write(outside, "x")
            .and_then(|()| fs::remove_file(path))
            .and_then(|()| fs::hard_link(outside, path))
            .expect("a link");
    }),
    ("symlink", |path, _| fs::remove_file(path).and_then(|()| symlink("x", path)).expect("a link")),
    ("folder", |path, _| fs::remove_file(path).and_then(|()| fs::create_dir(path)).expect("a folder")),
    ("chmod", |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("rights")),
    ("times", |path, _| open(path).set_modified(std::time::UNIX_EPOCH).expect("times")),
    ("attribute", |path, _| {
        if rustix::fs::setxattr(path, "user.a", b"x", XattrFlags::empty()).is_err() {
            // Not every filesystem has them; so that the case says what it would.
            fs::write(path, "x").expect("it is written");
        }
    }),
    ("punch a hole", |path, _| {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(open(path), how, 0, 4).is_err() {
            fs::write(path, "x").expect("it is written");
        }
    }),
    ("nameless, then named", |path, _| {
        fs::remove_file(path).expect("it goes");
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path.parent().expect("a folder"), flags, Mode::from(0o600));
        if let Ok(file) = file.map(File::from) {
            (&file).write_all(b"x").expect("it is written");
            let named = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, named, CWD, path, AtFlags::SYMLINK_FOLLOW).expect("a link");
        }
    }),
    ("copy in the kernel", |path, _| {
        rustix::fs::copy_file_range(open(path), Some(&mut 0), open(path), Some(&mut 4), 4)
            .map(drop)
            .expect("it is copied");
    }),
    ("by another name of its folder", |path, outside| {
        symlink(path.parent().expect("a folder"), outside).expect("a link");
        fs::write(outside.join(path.file_name().expect("a name")), "x").expect("it is written");
    }),
    ("through /proc", |path, _| {
        let folder = File::open(path.parent().expect("a folder")).expect("it opens");
        let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        fs::write(through.join(path.file_name().expect("a name")), "x").expect("it is written");
    }),
];

#[test]
fn every_way_of_writing_is_told_and_of_that_file_alone() {
    for (way, write) in WAYS {
        for folder in ["", "src/deep", ".git"] {
            let post = Post::new();
            let path = post.at(folder).join("f");
            fs::write(&path, "as it is").expect("a file");
            post.guard(1, None);
            // A test that starts a process has a copy of every open file for a moment, and closes it late.
            assert!(post.changed().iter().all(|changed| *changed == path), "{way} in {folder:?}");
            write(&path, &post.base.join("outside"));
            assert_eq!(post.changed(), [path].into(), "{way} in {folder:?}");
        }
    }
}

#[test]
fn reading_is_told_in_no_way() {
    let post = Post::new();
    let path = post.at("src/f");
    fs::write(&path, "as it is").expect("a file");
    post.guard(1, None);
    fs::read(&path).expect("it is read");
    open(&path);
    fs::read_dir(post.at("src")).expect("it is listed").for_each(drop);
    File::open(&path).and_then(|file| file.sync_all()).expect("it is synced");
    // One that is opened for writing is told when it is closed: nobody knows what was done through it.
    assert_eq!(post.changed(), [path].into());
    fs::read(post.at("src/f")).expect("it is read");
    fs::metadata(post.at("src")).expect("it is there");
    assert_eq!(post.seen(), []);
}

#[test]
fn what_never_gets_a_name_is_not_told() {
    let post = Post::guarding();
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(post.at("src"), flags, Mode::from(0o600)).map(File::from) else {
        return skipped("this filesystem has no files without names");
    };
    (&file).write_all(b"x").expect("it is written");
    drop(file);
    assert_eq!(post.seen(), []);
    // What only looks like one is told, however short it lives.
    fs::write(post.at("src/#123"), "x").and_then(|()| fs::remove_file(post.at("src/#123"))).expect("a file");
    assert_eq!(post.changed(), [post.at("src/#123")].into());
}

/// The stores themselves send no event.
#[test]
fn what_is_written_through_a_mapping_is_told_when_the_mapping_ends() {
    let post = Post::new();
    let path = post.at("f");
    fs::write(&path, "as it is").expect("a file");
    post.guard(1, None);
    let script = "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nf.close()\nm[0:1]=b'X'\nm.close()";
    let Ok(done) = Command::new("python3").args(["-c", script]).arg(&path).status() else {
        return skipped("python3 is missing");
    };
    assert!(done.success());
    assert_eq!(post.changed(), [path].into());
}

//! The same deeds on every filesystem that is believed, and mounts that come and go without an event.

use super::Writer;
use crate::daemon::{cause, decide_at_once as decide, register};
use crate::harness::{Daemon, Place, file, lax, skipped};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that is mounted until it is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn new(args: &[&str], at: &Path) -> Option<Self> {
        ran(Command::new("mount").args(args).arg(at)).then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: watches, and writers of a test that failed, may still hold it.
        assert!(ran(Command::new("umount").arg("-l").arg(&self.0)), "{} stays mounted", self.0.display());
    }
}

/// Whether a tool did what it was asked to; says so when it did not.
fn ran(command: &mut Command) -> bool {
    match command.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            skipped(&format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            false
        }
        Err(error) => {
            skipped(&format!("{command:?}: {error}"));
            false
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// A filesystem made in a file and mounted at `root/fs`.
fn loop_mounted(place: &Place, make: &[&str]) -> Option<Mounted> {
    let image = place.root.join("image");
    fs::File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("a sparse file");
    let made = ran(Command::new(make[0]).args(&make[1..]).arg(&image));
    made.then(|| Mounted::new(&["-o", "loop", text(&image)], &place.root.join("fs"))).flatten()
}

fn overlay(place: &Place) -> Option<Mounted> {
    place.write("lower/c", "one\n");
    for folder in ["upper", "work"] {
        fs::create_dir(place.root.join(folder)).expect("a folder");
    }
    let layer = |name: &str, folder: &str| format!("{name}={}", text(&place.root.join(folder)));
    let layers = [layer("lowerdir", "lower"), layer("upperdir", "upper"), layer("workdir", "work")].join(",");
    Mounted::new(&["-t", "overlay", "overlay", "-o", &layers], &place.root.join("fs"))
}

/// How a filesystem is made and mounted.
type Mount = fn(&Place) -> Option<Mounted>;

const FILESYSTEMS: [(&str, Mount); 5] = [
    ("ext4", |place| loop_mounted(place, &["mkfs.ext4", "-q"])),
    ("xfs", |place| loop_mounted(place, &["mkfs.xfs", "-q"])),
    ("btrfs", |place| loop_mounted(place, &["mkfs.btrfs", "-q"])),
    ("tmpfs", |place| Mounted::new(&["-t", "tmpfs", "tmpfs"], &place.root.join("fs"))),
    ("overlayfs", overlay),
];

#[test]
fn every_filesystem_that_is_believed_deserves_it() {
    for (name, mount) in FILESYSTEMS {
        let place = Place::new();
        fs::create_dir(place.root.join("fs")).expect("a folder");
        let Some(mounted) = mount(&place) else { continue };
        place.write("fs/d/f", "one\n");
        deeds(name, &place);
        drop(mounted);
    }
}

fn deeds(name: &str, place: &Place) {
    let dir = place.root.join("fs/d");
    let path = dir.join("f");
    let write = |text: &str| fs::write(&path, text).expect("a file");
    let mut daemon = Daemon::start(&place.home);
    register(&daemon, place, "s", &json!([lax("fs/d/f", "one\n")]));
    let is = |daemon: &Daemon, word: &str, deed: &str| {
        assert_eq!(cause(&decide(daemon, "s"), "fs/d/f"), word, "{deed} on {name}");
    };
    is(&daemon, "fresh", "nothing");
    write("two\n");
    is(&daemon, "content", "a write in place");
    fs::write(dir.join("g"), "one\n").and_then(|()| fs::rename(dir.join("g"), &path)).expect("a rename");
    is(&daemon, "fresh", "a replacement by the same bytes");
    fs::hard_link(&path, place.root.join("fs/h")).expect("a link");
    fs::write(place.root.join("fs/h"), "two\n").expect("a file");
    is(&daemon, "content", "a write through another name");
    write("one\n");
    is(&daemon, "fresh", "a write back");
    fs::rename(&dir, place.root.join("fs/e")).expect("a rename");
    is(&daemon, "renamed", "a rename of the folder");
    fs::rename(place.root.join("fs/e"), &dir).expect("a rename");
    is(&daemon, "fresh", "a rename back");
    let mut writer = Writer::start();
    writer.does_to("open", &path);
    is(&daemon, "live_writer", "an open for writing");
    writer.does("map");
    writer.does("store two");
    is(&daemon, "live_writer", "a store");
    writer.does("unmap");
    writer.does("close");
    is(&daemon, "content", "a store and its end");
    write("one\n");
    is(&daemon, "fresh", "a write back");
    daemon.stop();
    // Same size, and its time set back.
    let before = fs::metadata(&path).expect("a file").modified().expect("a time");
    write("six\n");
    fs::File::options().write(true).open(&path).expect("a file").set_modified(before).expect("a time");
    daemon = Daemon::start(&place.home);
    is(&daemon, "content", "a change in disguise while the daemon was down");
    write("one\n");
    is(&daemon, "fresh", "a write back");
    let overlay = daemon.ask("status", &json!({ "session": "s" }))["coverage"]["overlay"].clone();
    assert_eq!(overlay, u64::from(name == "overlayfs"), "{name}");
}

#[test]
fn a_mapping_is_seen_after_its_file_was_closed() {
    for (name, mount) in FILESYSTEMS {
        let place = Place::new();
        fs::create_dir(place.root.join("fs")).expect("a folder");
        let Some(_mounted) = mount(&place) else { continue };
        place.write("fs/d/f", "one\n");
        let daemon = Daemon::start(&place.home);
        register(&daemon, &place, "s", &json!([file("fs/d/f", "one\n")]));
        let mut writer = Writer::start();
        writer.does_to("open", &place.root.join("fs/d/f"));
        writer.does("map");
        writer.does("close");
        assert_eq!(cause(&decide(&daemon, "s"), "fs/d/f"), "live_writer", "{name}");
    }
}

#[test]
fn a_copy_up_is_a_change_like_any_other() {
    let place = Place::new();
    fs::create_dir(place.root.join("fs")).expect("a folder");
    let Some(_mounted) = overlay(&place) else { return };
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("fs/c", "one\n")]));
    assert_eq!(cause(&decide(&daemon, "s"), "fs/c"), "fresh");
    place.write("fs/c", "two\n");
    assert_eq!(cause(&decide(&daemon, "s"), "fs/c"), "content");
}

#[test]
fn a_mount_over_a_watched_folder_or_file_is_what_is_there_now() {
    let place = Place::new();
    place.write("d/f", "one\n");
    place.write("other", "two\n");
    place.write("same", "one\n");
    let path = place.root.join("d/f");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("d/f", "one\n")]));
    let is = |word: &str, deed: &str| assert_eq!(cause(&decide(&daemon, "s"), "d/f"), word, "{deed}");
    is("fresh", "nothing");
    let Some(over) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &place.root.join("d")) else { return };
    is("deleted", "a mount over the folder");
    fs::write(&path, "two\n").expect("a file");
    is("content", "a write in what is mounted");
    drop(over);
    is("fresh", "its end");
    for (source, word) in [("other", "content"), ("same", "fresh")] {
        let bound =
            Mounted::new(&["--bind", text(&place.root.join(source))], &path).expect("a mount as before");
        is(word, source);
        fs::write(place.root.join(source), "six\n").expect("a file");
        is("content", "a write to what is bound over it");
        drop(bound);
        is("fresh", "its end");
    }
}

#[test]
fn a_file_of_a_tree_that_is_mounted_from_elsewhere_is_heard() {
    let place = Place::new();
    place.write("tree/f", "one\n");
    place.write("other", "two\n");
    let other = place.root.join("other");
    let Some(bound) = Mounted::new(&["--bind", text(&other)], &place.root.join("tree/f")) else { return };
    let daemon = Daemon::start(&place.home);
    let tree = json!({ "id": "tree", "source": { "kind": "tree", "path": "tree" } });
    register(&daemon, &place, "s", &json!([tree]));
    let is = |word: &str, what: &str| {
        assert_eq!(cause(&crate::daemon::decide(&daemon, "s"), "tree"), word, "{what}");
    };
    is("fresh", "the start");
    // Neither is heard by the folder that the tree has: the name belongs to another.
    place.write("tree/f", "six\n");
    is("content", "a write under its own name");
    place.write("other", "two\n");
    is("fresh", "a write under the other");
    drop(bound);
    is("content", "its end");
}

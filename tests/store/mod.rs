//! The disk that is ours, and what happens to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod compaction;
mod decision_log;
mod index_damage;
mod edits;
mod journal;
mod journal_damage;
mod lost;
pub(crate) mod recovery;
mod syncer;
mod words;

use crate::harness::skipped;
use staled::store::{self, Opening};
use staled::world::dart::Died;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder on a filesystem of 64 KiB that fills up; `None` (said once) where this user may not mount.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder.path())
            .output();
        let mounted = mount.is_ok_and(|output| output.status.success());
        if !mounted {
            skipped("a small tmpfs cannot be mounted here, so no disk gets full");
            return None;
        }
        Some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fills the disk but for about `left` bytes; removing the file frees it again.
    fn fill_but(&self, left: usize) -> PathBuf {
        let path = self.path("ballast");
        let mut len = 64 * 1024;
        while std::fs::write(&path, vec![7; len]).is_err() {
            len -= 4096;
        }
        std::fs::write(&path, vec![7; len - left]).unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The store of a state, opened as a start opens it. It is never compacted.
fn open(state: &Path, trial: usize) -> store::Opened {
    open_for(state, &format!("trial-{trial}"), None)
}

/// The same, as it is opened again after its index failed.
fn open_distrusting(state: &Path, trial: usize) -> store::Opened {
    open_for(state, &format!("again-{trial}"), Some("it failed"))
}

fn open_for(state: &Path, stamp: &str, distrust: Option<&str>) -> store::Opened {
    store::open(
        &Opening { state, new_id: [9; 16], epoch: "epoch", stamp, distrust, compact_bytes: u64::MAX },
        &Died::default(),
    )
    .unwrap()
}

/// One random damage to what a file holds, and its name; none is to remove the file.
fn hurt(bytes: &mut Vec<u8>, random: &mut fastrand::Rng, reach: usize) -> Option<&'static str> {
    let at = random.usize(..bytes.len());
    match random.u8(..6) {
        0 | 1 => {
            bytes[at] ^= 1 << random.u8(..8);
            Some("a flipped bit")
        }
        2 => {
            bytes.truncate(at);
            Some("a file cut short")
        }
        3 => {
            let end = (at + random.usize(1..reach)).min(bytes.len());
            bytes[at..end].fill(0);
            Some("a block of zeros")
        }
        4 => {
            bytes.extend((0..random.usize(1..reach)).map(|_| random.u8(..)));
            Some("garbage behind the end")
        }
        _ => None,
    }
}

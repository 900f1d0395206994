//! What a workspace shares with its parent until it is independent: objects, which are only read.

use super::objects::named_in;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer than the names of all stores that git looks into.
const BYTES_MAX: u64 = 1 << 20;

/// Where a workspace notes the object folders that it shares.
#[must_use]
pub fn alternates_of(workspace: &Path) -> PathBuf {
    workspace.join(".git/objects/info/alternates")
}

/// The object folders that a workspace shares; none for one that is independent, or that is no repository.
#[must_use]
pub fn objects_of(workspace: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Whoever works in the fork may have put anything there: what waits for a writer, or does not end.
    let mut said = Vec::new();
    if let Ok(file) = rustix::fs::open(alternates_of(workspace), flags, Mode::empty()) {
        let file = File::from(file);
        if file.metadata().is_ok_and(|found| found.is_file()) {
            drop(file.take(BYTES_MAX).read_to_end(&mut said));
        }
    }
    named_in(&said)
}

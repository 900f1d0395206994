//! What a workspace shares with its parent until it is independent: objects, which are only read.
//!
//! Promise: which folders these are is read where no command of the fork can write. What its own repository names, the
//! fork's agent may have written there.

use super::objects::named_in;
use std::path::{Path, PathBuf};

/// Where it is noted beside a workspace which object folders that shares.
pub(super) fn note_of(workspace: &Path) -> PathBuf {
    workspace.with_file_name("shared")
}

/// The object folders that a workspace shares; none for one that is independent, or that is no repository.
#[must_use]
pub fn objects_of(workspace: &Path) -> Vec<PathBuf> {
    named_in(&std::fs::read(note_of(workspace)).unwrap_or_default())
}

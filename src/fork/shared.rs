//! What a workspace shares with its parent until it is independent: objects, which are only read.

use super::objects::named_in;
use std::path::{Path, PathBuf};

/// Where a workspace notes the object folders that it shares.
#[must_use]
pub fn alternates_of(workspace: &Path) -> PathBuf {
    workspace.join(".git/objects/info/alternates")
}

/// The object folders that a workspace shares; none for one that is independent, or that is no repository.
#[must_use]
pub fn objects_of(workspace: &Path) -> Vec<PathBuf> {
    named_in(&std::fs::read(alternates_of(workspace)).unwrap_or_default())
}

//! Whether a fork's repository is all its own.
//!
//! Whoever works in a fork may write in its repository, and what the daemon does there it may do in every fork: a symlink,
//! or a file that names another repository, would lead it astray. Promise: git is not run in one that leads out.

use super::ForkError;
use std::fs;
use std::path::{Path, PathBuf};

/// What is not looked at, for neither git nor we touch it here: tools may link what they like there.
const OTHERS: [&str; 4] = ["hooks", "modules", "lfs", "annex"];

/// Refuses a repository that is not a folder, or that leads out of itself.
pub(super) fn refuse_leading_out(gitdir: &Path) -> Result<(), ForkError> {
    let leads = |path: &Path| {
        let why = format!(
            "{} leads out of the fork's repository, in which git is not run therefore; remove it, or discard the fork with \
             force: then all of it is kept",
            path.display()
        );
        Err(ForkError::refused("fork_leak", why))
    };
    let found = gitdir.symlink_metadata().map_err(ForkError::io("look at", gitdir))?;
    if !found.is_dir() {
        return leads(gitdir);
    }
    let common = gitdir.join("commondir");
    if common.symlink_metadata().is_ok() {
        return leads(&common);
    }
    let others: Vec<PathBuf> = OTHERS.iter().map(|name| gitdir.join(name)).collect();
    let mut folders = vec![gitdir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(ForkError::io("list", &folder))? {
            let entry = entry.map_err(ForkError::io("list", &folder))?;
            let (path, kind) = (entry.path(), entry.file_type());
            let kind = kind.map_err(ForkError::io("look at", &path))?;
            if others.contains(&path) {
                continue;
            }
            if kind.is_symlink() {
                return leads(&path);
            }
            folders.extend(kind.is_dir().then_some(path));
        }
    }
    Ok(())
}

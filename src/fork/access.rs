//! Whose path is it: whether a fork may read or write there.
//!
//! Promise: the path is followed as the kernel would follow it, through symlinks, `..`, `/proc` and bind mounts, and a file
//! is known by its other names. What cannot be followed is denied, with the reason. It is advice to whoever asks: what
//! runs under `fork exec` is refused by the kernel, which is not asked here.

use super::places::{Followed, Mounts, follow, same_file_in};
use crate::protocol::fork::ask::AccessMode;
use std::path::{Path, PathBuf};

/// What belongs to one fork.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its id.
    pub fork: String,
    /// Its tree.
    pub workspace: PathBuf,
    /// Its private notes.
    pub scratchpad: PathBuf,
}

impl Place {
    fn folders(&self) -> [&Path; 2] {
        [&self.workspace, &self.scratchpad]
    }
}

/// What is to be kept apart.
#[derive(Debug, Clone, Copy)]
pub struct Apart<'a> {
    /// Who asks.
    pub own: &'a Place,
    /// Every other fork.
    pub forks: &'a [Place],
    /// What they were copied from.
    pub parents: &'a [PathBuf],
    /// What holds all forks.
    pub forks_folder: &'a Path,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may be.
    pub allow: bool,
    /// Where it leads, through no symlink. Empty where that cannot be told.
    pub path: PathBuf,
    /// Where the name itself stands: another path where that is a symlink.
    pub entry: PathBuf,
    /// Why, as a sentence.
    pub why: String,
}

/// Where an absolute path leads, through no symlink; none where that cannot be told.
#[must_use]
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    follow(path).ok().map(|followed| followed.path)
}

/// Judges an absolute path.
#[must_use]
pub fn judge(path: &Path, mode: AccessMode, apart: &Apart) -> Verdict {
    let followed = match follow(path) {
        Ok(followed) => followed,
        Err(why) => {
            let why = format!("{} cannot be followed: {why}", path.display());
            return Verdict { allow: false, path: PathBuf::new(), entry: PathBuf::new(), why };
        }
    };
    let why = refusal(&followed, mode, apart);
    let allow = why.is_none();
    let why = why.unwrap_or_else(|| permission(&followed, mode, apart));
    Verdict { allow, path: followed.path, entry: followed.entry, why }
}

fn permission(followed: &Followed, mode: AccessMode, apart: &Apart) -> String {
    if apart.own.folders().iter().any(|own| is_in(&followed.path, own)) {
        "it is the fork's own".to_owned()
    } else if mode == AccessMode::Write {
        "it belongs to no fork and to no parent; under `staled fork exec` the kernel would refuse it"
            .to_owned()
    } else {
        "it belongs to no fork and to no parent".to_owned()
    }
}

fn refusal(followed: &Followed, mode: AccessMode, apart: &Apart) -> Option<String> {
    let mounts = match Mounts::read() {
        Ok(mounts) => mounts,
        Err(error) => return Some(format!("what is mounted where cannot be told: {error}")),
    };
    // A link may be made or removed where it stands, and what it leads to is written through it: both must be allowed.
    let places = [&followed.path, &followed.entry];
    let places: &[&PathBuf] = if mode == AccessMode::Write { &places } else { &places[..1] };
    places
        .iter()
        .find_map(|path| foreign(path, mode, apart, &mounts))
        .or_else(|| linked(&followed.path, apart))
}

/// Whose it is, if it is not to be touched.
fn foreign(path: &Path, mode: AccessMode, apart: &Apart, mounts: &Mounts) -> Option<String> {
    let is_in = |folder: &Path| is_in(path, folder) || mounts.is_alias_in(path, folder);
    let holds = |folder: &Path| {
        mode == AccessMode::Write && (canonical(folder).starts_with(path) || mounts.is_alias_in(folder, path))
    };
    for fork in apart.forks {
        if is_in(&fork.workspace) {
            return Some(format!("it is in the workspace of fork {}", fork.fork));
        }
        if is_in(&fork.scratchpad) {
            return Some(format!("it is in the scratchpad of fork {}", fork.fork));
        }
    }
    if apart.own.folders().into_iter().any(is_in) {
        return None;
    }
    if is_in(apart.forks_folder) {
        return Some("it is in the folder that holds all forks, and not the fork's own".to_owned());
    }
    if let Some(parent) = apart.parents.iter().find(|parent| is_in(parent)) {
        return Some(format!("it is in {}, which forks were copied from", parent.display()));
    }
    let folders = apart.parents.iter().map(PathBuf::as_path).chain([apart.forks_folder]);
    let inside = folders.into_iter().find(|folder| holds(folder))?;
    Some(format!("{} is below it, which is not the fork's own", inside.display()))
}

/// A file that is allowed under this name and not under another that it has.
fn linked(path: &Path, apart: &Apart) -> Option<String> {
    let others = apart.forks.iter().flat_map(Place::folders);
    let other =
        same_file_in(path, others.chain(apart.parents.iter().map(PathBuf::as_path)), &apart.own.folders())?;
    Some(format!("it is one file with {}", other.display()))
}

fn canonical(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

fn is_in(path: &Path, folder: &Path) -> bool {
    path.starts_with(canonical(folder))
}

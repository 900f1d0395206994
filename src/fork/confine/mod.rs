//! What a command of a fork can reach, by the kernel: everything but what is hidden to read, its own trees to write.
//!
//! Promise: a command runs as confined as is said here or it does not run. It binds the calling thread and what that
//! starts, for ever, so it is called by the process of whoever asked, last of all, and never by the daemon.
//!
//! Landlock allows and cannot forbid, so what lies beside the hidden trees is allowed entry by entry: a folder that holds
//! one of them cannot be listed, and what is made there later is hidden too. What was bound or mounted elsewhere is found
//! when the command starts (see `mounts`), a file with two names too (see `links`).
//!
//! Not prevented, for Landlock has no rule for it:
//! - Of what is hidden, the kernel still tells whether it is there, whose it is and when it changed (`stat`), and the names
//!   of what changes in a folder (inotify); and it lets its owner change its mode and times (`chmod`, `utimes`).
//! - A unix socket of another program, such as that of a container engine, does for the command what that program may do.
//!   The daemon's own is one: a command may ask the daemon for anything that its user may, such as to allow a write in
//!   another fork, or to end one.
//! - Root can ask the kernel itself, and is bound by nothing that it does not want to be bound by.

mod links;
mod mounts;
mod rules;

use super::ForkError;
use crate::protocol::fork::answer::Confinement;
use rustix::io::FdFlags;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables by which git would work on another repository than the one it is in.
const GIT_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
];

/// Whether this kernel can confine a command. Binds nothing.
pub fn available() -> Result<(), ForkError> {
    rules::asked().map(drop)
}

/// What already leads into a hidden tree past every rule: a file with a name on both sides, an open file. Looked for
/// before anything is bound; the fork's lock may be held already.
pub fn refuse_leaks(of: &Confinement) -> Result<(), ForkError> {
    let hidden = hidden(of)?;
    refuse_open_files(of, &hidden)?;
    links::refuse(&[&of.workspace.0, &of.scratchpad.0], &hidden)
}

/// Says, for as long as the file or a copy of it is open, that something of the fork runs. Commands inherit it.
pub fn hold(lock: &Path) -> Result<File, ForkError> {
    let make = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock);
    make.map_err(ForkError::io("make", lock))?;
    // Handed on for reading only, so that nothing can be written through it.
    let file = File::open(lock).map_err(ForkError::io("open", lock))?;
    file.lock_shared().map_err(ForkError::io("lock", lock))?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty())
        .map_err(|error| ForkError::io("hand on", lock)(error.into()))?;
    Ok(file)
}

/// Binds the calling thread, and whatever it starts from now on.
pub fn enter(of: &Confinement) -> Result<(), ForkError> {
    let temporary = temporary(of);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&temporary);
    made.map_err(ForkError::io("make", &temporary))?;
    rules::enforce(of, &hidden(of)?)
}

/// A command that knows its fork, begun where we are if that is in it, and else at its top.
#[must_use]
pub fn command(of: &Confinement, program: &OsStr) -> Command {
    let here = std::env::current_dir().ok().filter(|here| here.starts_with(&of.workspace.0));
    let here = here.unwrap_or_else(|| of.workspace.0.clone());
    let mut command = Command::new(program);
    for variable in GIT_VARIABLES {
        command.env_remove(variable);
    }
    command.env_remove("OLDPWD").env("PWD", &here).current_dir(&here);
    command.env("STALED_FORK", &of.fork);
    command.env("STALED_WORKSPACE", &of.workspace.0).env("STALED_SCRATCHPAD", &of.scratchpad.0);
    command.env("TMPDIR", temporary(of));
    command
}

fn temporary(of: &Confinement) -> PathBuf {
    of.scratchpad.0.join("tmp")
}

/// The hidden trees by every name that they have: links resolved, and where else they are mounted.
fn hidden(of: &Confinement) -> Result<Vec<PathBuf>, ForkError> {
    let mut trees = Vec::new();
    for tree in &of.hidden {
        match std::fs::canonicalize(&tree.0) {
            Ok(tree) if tree.parent().is_none() => {
                let why = "everything would be hidden from the command, for the parent's tree is /; fork a folder below it";
                return Err(ForkError::refused("fork_unavailable", why));
            }
            Ok(tree) => trees.push(tree),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(ForkError::io("resolve", &tree.0)(error)),
        }
    }
    mounts::add_other_names(&mut trees)?;
    trees.sort();
    // Sorted, whatever holds a tree stands before it.
    trees.dedup_by(|tree, before| tree.starts_with(before));
    Ok(trees)
}

/// What is open already stays readable and writable whatever the rules are. Standard input and output are what whoever
/// runs the command gives it on purpose; everything else that leads into a hidden tree is not.
fn refuse_open_files(of: &Confinement, hidden: &[PathBuf]) -> Result<(), ForkError> {
    let table = Path::new("/proc/self/fd");
    for entry in std::fs::read_dir(table).map_err(ForkError::io("list", table))?.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()).unwrap_or(0);
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        let own = [&of.workspace, &of.scratchpad].iter().any(|tree| target.starts_with(&tree.0));
        if number > 2
            && !own
            && !is_lock(of, &entry.path())
            && hidden.iter().any(|tree| target.starts_with(tree))
        {
            let why = format!(
                "descriptor {number} is open at {}, which is hidden from {}; close it first, with {number}>&- in a shell",
                target.display(),
                of.fork
            );
            return Err(ForkError::refused("fork_leak", why));
        }
    }
    Ok(())
}

/// Whether a descriptor is the fork's lock, as [`hold`] hands it on: it can be read only, and there is nothing to read.
fn is_lock(of: &Confinement, descriptor: &Path) -> bool {
    let (Ok(lock), Ok(link), Ok(opened)) = (
        std::fs::symlink_metadata(&of.lock.0),
        std::fs::symlink_metadata(descriptor),
        std::fs::metadata(descriptor),
    ) else {
        return false;
    };
    // The mode of the link is what the descriptor was opened for.
    let read_only = link.mode() & 0o200 == 0;
    read_only && opened.len() == 0 && (opened.dev(), opened.ino()) == (lock.dev(), lock.ino())
}

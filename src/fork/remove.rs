//! The end of a fork's folder.
//!
//! Promise: nothing outside of it is touched, whatever symlinks are in it, and nothing in it withstands: neither folders that
//! may not be written in nor any depth.

use super::{ForkError, Hands};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Deeper folders are moved up first: each level holds an open file and some stack.
const DEPTH_MAX: usize = 64;

impl Hands {
    /// Removes a fork's folder with all that is in it. One that is not there is removed already; may be called again.
    pub fn remove(&self, home: &Path) -> Result<(), ForkError> {
        let failed = |error: Errno| ForkError::io("remove", home)(error.into());
        match fs::symlink_metadata(home) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Ok(found) if !found.is_dir() => {
                return fs::remove_file(home).map_err(ForkError::io("remove", home));
            }
            Err(error) => return Err(ForkError::io("remove", home)(error)),
            Ok(_) => {}
        }
        let top = open(&CWD, home.as_os_str()).map_err(failed)?;
        let mut moved = 0;
        // What was moved up while it was emptied is emptied next.
        while empty(&top, &top, 0, &mut moved).map_err(failed)? {}
        fs::remove_dir(home).map_err(ForkError::io("remove", home))
    }
}

/// Removes what is in a folder; whether something of it was moved to the top.
fn empty(top: &OwnedFd, folder: &OwnedFd, depth: usize, moved: &mut usize) -> rustix::io::Result<bool> {
    let mut again = false;
    let names: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in names {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode) == FileType::Directory
            }
            kind => kind == FileType::Directory,
        };
        if !is_folder {
            gone(rustix::fs::unlinkat(folder, name, AtFlags::empty()))?;
            continue;
        }
        let below = match open(folder, name) {
            Err(Errno::NOENT) => continue,
            below => below?,
        };
        if depth >= DEPTH_MAX {
            rustix::fs::renameat(folder, name, top, free(top, moved)?)?;
            again = true;
            continue;
        }
        again |= empty(top, &below, depth + 1, moved)?;
        gone(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR))?;
    }
    Ok(again)
}

/// A name at the top that nothing has: not what an earlier try moved there either, which this may be below.
fn free(top: &OwnedFd, moved: &mut usize) -> rustix::io::Result<String> {
    loop {
        *moved += 1;
        let name = format!(".deep-{moved}");
        match rustix::fs::statat(top, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(name),
            found => drop(found?),
        }
    }
}

/// What somebody else removed is removed.
fn gone(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    if result == Err(Errno::NOENT) { Ok(()) } else { result }
}

/// Opens a folder itself, and makes sure that it can be emptied.
fn open(folder: &impl std::os::fd::AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(folder, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = rustix::fs::fstat(&found)?.st_mode & 0o7777;
    if mode & 0o700 != 0o700 {
        // By its number it is this very folder, whatever has its name by now.
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        rustix::fs::chmod(itself, Mode::from_raw_mode(mode | 0o700))?;
    }
    rustix::fs::openat(&found, ".", flags | OFlags::RDONLY, Mode::empty())
}

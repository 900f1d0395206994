//! What a fork began with that was not committed: carried over from its parent, and no work of the fork's for as long as it
//! stays what it was.
//!
//! Promise: what cannot be compared counts as the fork's work.

use super::look::Look;
use super::refs;
use super::work::is_nested;
use super::{ForkError, Hands};
use crate::world::digest::{blake3, stream};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One thing that is not committed, as git tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uncommitted {
    /// The line: what is staged, what is committed, and the path.
    pub(super) line: Vec<u8>,
    /// Below the tree; a repository in it ends with a slash.
    pub(super) path: PathBuf,
}

impl Uncommitted {
    /// What is staged there, and what stands there: the same when nothing was done to either.
    fn mark(&self, workspace: &Path) -> io::Result<String> {
        let place = workspace.join(&self.path);
        let stands = match place.symlink_metadata() {
            Ok(found) if found.is_symlink() => blake3(fs::read_link(&place)?.as_os_str().as_bytes()).to_hex(),
            Ok(found) if found.is_file() => {
                let file = refs::open(&place)?;
                // It may be another one by now, and may go on growing.
                let len = file.metadata()?.len();
                stream(file.take(len), len, &[])?.blake3.to_hex()
            }
            Ok(_) => "other".to_owned(),
            // Where a folder was there may be a file now, and nothing below it.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                "nothing".to_owned()
            }
            Err(error) => return Err(error),
        };
        Ok(format!("{} {stands}", blake3(&self.line).to_hex()))
    }
}

fn list_of(workspace: &Path) -> PathBuf {
    workspace.with_file_name("carried")
}

impl Hands {
    /// Notes what is not committed in a fork that has just been made.
    pub(super) fn note_carried(&self, workspace: &Path) -> Result<(), ForkError> {
        let list = list_of(workspace);
        let carried = self.uncommitted(&self.look(workspace)?)?;
        // A folder is not compared with what it was.
        let carried = carried.iter().filter(|one| !is_nested(&one.path));
        let marks: io::Result<Vec<String>> = carried.map(|one| one.mark(workspace)).collect();
        let marks = marks.map_err(ForkError::io("read what was carried over to", workspace))?;
        fs::write(&list, marks.join("\n")).map_err(ForkError::io("write", &list))
    }

    /// What is not committed and was not carried over as it is.
    pub(super) fn own_work(&self, workspace: &Path, look: &Look) -> Result<Vec<PathBuf>, ForkError> {
        let found = self.uncommitted(look)?;
        // Without the list all of it counts.
        let carried = fs::read_to_string(list_of(workspace)).unwrap_or_default();
        let carried: HashSet<&str> = carried.lines().collect();
        let own = |one: &Uncommitted| one.mark(workspace).is_ok_and(|mark| carried.contains(mark.as_str()));
        Ok(found.into_iter().filter(|one| !own(one)).map(|one| one.path).collect())
    }
}

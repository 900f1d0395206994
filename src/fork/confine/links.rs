//! Files that have a name on both sides: what is written under the one is read under the other, and no rule about paths
//! can tell.
//!
//! Only a file with more names than are found in the fork's own trees can be one, so usually nothing hidden is walked.

use super::super::ForkError;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode.
type Identity = (u64, u64);

/// Refuses, with both names, when a file of these trees is one with a file of the hidden ones.
pub(super) fn refuse(own: &[&Path], hidden: &[PathBuf]) -> Result<(), ForkError> {
    let mut shared: BTreeMap<Identity, (PathBuf, u64)> = BTreeMap::new();
    for tree in own {
        each_file(tree, &[], &mut |path, identity, names| {
            let (_, missing) = shared.entry(identity).or_insert_with(|| (path.to_owned(), names));
            *missing -= 1;
            true
        })?;
    }
    shared.retain(|_, (_, missing)| *missing > 0);
    for tree in hidden.iter().filter(|_| !shared.is_empty()) {
        let mut found = None;
        each_file(tree, own, &mut |path, identity, _| {
            found = shared.get(&identity).map(|(own, _)| (own.clone(), path.to_owned()));
            found.is_none()
        })?;
        if let Some((own, other)) = found {
            let why = format!(
                "{} is one file with {}, so what is written here would be written there; make it a file of its own first: \
                 cp -p it aside and mv the copy over it",
                own.display(),
                other.display()
            );
            return Err(ForkError::refused("fork_leak", why));
        }
    }
    Ok(())
}

/// Calls it with every file that has several names, until it says that it has seen enough.
fn each_file(
    tree: &Path,
    except: &[&Path],
    see: &mut impl FnMut(&Path, Identity, u64) -> bool,
) -> Result<(), ForkError> {
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // The hidden trees are others', who go on working there; and what we may not list, the command may not either.
            Err(error) if passing(error.kind()) => continue,
            Err(error) => return Err(ForkError::io("list", &folder)(error)),
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
            if found.is_dir() {
                folders.extend((!except.contains(&path.as_path())).then_some(path));
            } else if found.nlink() > 1 && !see(&path, (found.dev(), found.ino()), found.nlink()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

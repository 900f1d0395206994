//! The journal that an import made takes the place of the one before it.
//!
//! Promise: what fails leaves the old journal under its name, and it is kept whole where nothing fails: what an opening has
//! set aside in it is nowhere else. What follows from the old one goes first, so that it never stands beside the new one. An
//! end of the process between two steps leaves the old journal, the new one or none, and what is not the new one is without
//! sessions.

use super::export::ImportError;
use super::{asides, tail_of, whole};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Puts `new` in place of the journal of this state, which has no sessions.
pub(super) fn put_in_place(state: &Path, new: &Path) -> Result<(), ImportError> {
    for follows in [state.join("index"), tail_of(state)] {
        removed(asides::remove(&follows)).map_err(|source| unusable(&follows, source))?;
    }
    let folder = state.join("journal");
    let old = folder.exists().then(|| free_name(&folder));
    if let Some(old) = &old {
        fs::rename(&folder, old).map_err(|source| unusable(&folder, source))?;
    }
    let placed = fs::rename(new, &folder).and_then(|()| {
        // One whose name may not last is taken back too: nobody is told of it.
        whole::sync_folder_of(&folder).inspect_err(|_| drop(fs::rename(&folder, new)))
    });
    placed.map_err(|source| match old.as_ref().map(|old| (old, fs::rename(old, &folder))) {
        Some((old, Err(error))) => ImportError::NotPutBack { old: old.clone(), folder, source, error },
        Some((_, Ok(()))) | None => unusable(&folder, source),
    })
}

/// Removes what an import that was cut short left.
pub(super) fn clear(new: &Path) -> Result<(), ImportError> {
    removed(asides::remove(new)).map_err(|source| unusable(new, source))
}

/// What is not there is removed already.
fn removed(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn unusable(path: &Path, source: io::Error) -> ImportError {
    ImportError::Folder { path: path.to_owned(), source }
}

/// `journal.old`, or with the first number behind it that is not taken.
fn free_name(folder: &Path) -> PathBuf {
    let base = folder.with_extension("old");
    let others = (2_u64..).map(|number| folder.with_extension(format!("old-{number}")));
    std::iter::once(base.clone()).chain(others).find(|name| !name.exists()).unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use crate::store::export::ImportError;
    use std::fs;

    #[test]
    fn what_cannot_be_swapped_leaves_the_old_journal_under_its_name() {
        let state = tempfile::tempdir().unwrap();
        let at = |name: &str| state.path().join(name);
        for name in ["journal", "journal.old"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["journal/1.seg", "journal.tail", "index"] {
            fs::write(at(name), name).unwrap();
        }
        let error = put_in_place(state.path(), &at("journal.new")).unwrap_err();
        assert!(matches!(&error, ImportError::Folder { path, .. } if *path == at("journal")), "{error}");
        assert!(at("journal/1.seg").exists() && !at("journal.old-2").exists());
        assert!(
            !at("index").exists() && !at("journal.tail").exists(),
            "they went before anything was swapped"
        );
        fs::create_dir(at("journal.new")).unwrap();
        put_in_place(state.path(), &at("journal.new")).unwrap();
        assert!(at("journal.old-2/1.seg").exists() && !at("journal.new").exists());
        assert_eq!(fs::read_dir(at("journal")).unwrap().count(), 0);
    }
}

//! A merge that was cut off while it landed: git could not go on or was killed, or the machine stopped.
//!
//! What was about to happen is noted beside the index before, with a lock on it for as long as anything of it runs. What the
//! same run finds when git has failed, or else the next, is brought to its end where tree and index were written and only
//! the branch was not, and taken back where they were not. A file that is neither what it was nor what it was to be is not ours to judge: it stays, and is
//! named like any change that is not committed.

use super::super::ForkError;
use super::parent::Parent;
use super::{line, names, shown};
use rustix::io::FdFlags;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What was about to happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The commit that the branch was at, or the empty tree.
    pub(super) from: String,
    pub(super) to: String,
    /// What is moved: a branch, or HEAD.
    pub(super) name: String,
}

impl Note {
    /// Writes it down. What is started while the file is open holds the lock too.
    pub(super) fn write(&self, at: &Path) -> Result<File, ForkError> {
        let text = format!("{}\n{}\n{}\n", self.from, self.to, self.name);
        std::fs::write(at, text).map_err(ForkError::io("write", at))?;
        let file = File::open(at).map_err(ForkError::io("open", at))?;
        file.lock_shared().map_err(ForkError::io("lock", at))?;
        let kept = rustix::io::fcntl_setfd(&file, FdFlags::empty());
        kept.map_err(|error| ForkError::io("hand on", at)(error.into()))?;
        Ok(file)
    }

    /// None of one that was not written whole, after which nothing was begun.
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n').map(str::to_owned);
        let note = Self { from: lines.next()?, to: lines.next()?, name: lines.next()? };
        (note.from.len() == note.to.len()).then_some(note)
    }
}

/// What became of a merge that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mended {
    /// All of it was done.
    Whole,
    /// The branch was moved at last.
    Ended,
    /// Tree and index are as before, or never were otherwise.
    TakenBack,
    /// The branch has moved elsewhere since, or another is checked out, so what is there is not ours any more.
    Left,
}

/// Ends, or takes back, what an earlier run was cut off at.
pub(super) fn mend(parent: &Parent) -> Result<(), ForkError> {
    if settle(parent)? != Mended::Ended {
        return Ok(());
    }
    let why = "a merge that had been cut off has been ended; run it again, for the branch moved by that";
    Err(ForkError::refused("parent_moved", why))
}

/// The same of what was noted last. The note is gone afterwards, but for an error.
pub(super) fn settle(parent: &Parent) -> Result<Mended, ForkError> {
    let at = parent.note();
    let Ok(file) = File::open(&at) else { return Ok(Mended::TakenBack) };
    let busy = || {
        let why = format!("another merge into {} is being ended; run it again", shown(parent.tree));
        Err(ForkError::refused("parent_busy", why))
    };
    if file.try_lock().is_err() {
        return busy();
    }
    let noted = Note::read(&std::fs::read_to_string(&at).unwrap_or_default());
    let mended = match noted {
        None => Mended::TakenBack,
        Some(note) => {
            let locks = parent.locks(&note.name);
            if locks.iter().any(|lock| is_open(lock)) {
                return busy();
            }
            clear(parent, &locks)?;
            end(parent, &note)?
        }
    };
    std::fs::remove_file(&at).map_err(ForkError::io("remove", &at))?;
    Ok(mended)
}

/// Whether any process of ours has it open: a git at work, that is.
fn is_open(lock: &Path) -> bool {
    // As the kernel names it; one that is not there nobody needs.
    let Ok(lock) = std::fs::canonicalize(lock) else { return false };
    let files = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let files = files.filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok());
    files.flatten().flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target == lock))
}

/// Removes what a killed git left. A git that waits for an editor has closed its lock and needs it still.
fn clear(parent: &Parent, locks: &[PathBuf]) -> Result<(), ForkError> {
    for lock in locks.iter().filter(|lock| std::fs::symlink_metadata(lock).is_ok()) {
        if let Some((id, name)) = git_at_work(&parent.folders()) {
            let (tree, lock) = (shown(parent.tree), shown(lock));
            let why =
                format!("{name} (process {id}) runs in {tree} and may hold {lock}; end it and run it again");
            return Err(ForkError::refused("parent_busy", why));
        }
        drop(std::fs::remove_file(lock));
    }
    Ok(())
}

/// A process that is git, or begins so, and is at home in one of these folders.
fn git_at_work(folders: &[PathBuf]) -> Option<(String, String)> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().find_map(|process| {
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        if !name.starts_with("git") {
            return None;
        }
        let at = std::fs::read_link(process.path().join("cwd")).ok()?;
        let is_here = folders.iter().any(|folder| at.starts_with(folder));
        is_here.then(|| (process.file_name().display().to_string(), name.trim_end().to_owned()))
    })
}

fn end(parent: &Parent, note: &Note) -> Result<Mended, ForkError> {
    if parent.place()?.name != note.name {
        // Tree and index are of what is checked out, and whoever did that has seen them.
        return Ok(Mended::Left);
    }
    let mut asked = parent.command(["rev-parse", "--verify", "--quiet", &note.name]);
    let (born, at) = parent.git.tells("read the branch", &mut asked)?;
    let at = line(&at);
    // Git writes the index when the tree is written.
    let is_written = || {
        let mut asked = parent.command(["diff-index", "--cached", "--quiet", &note.to]);
        parent.git.asks("look at the index", &mut asked)
    };
    if born && at != note.from {
        // Nothing is to be done, or the usual questions find out.
        return Ok(if at == note.to && is_written()? { Mended::Whole } else { Mended::Left });
    }
    if is_written()? {
        let nothing = "0".repeat(note.to.len());
        let old = if born { &note.from } else { &nothing };
        let mut moved = parent.command(["update-ref", "-m", "Merge fork"]);
        moved.args((note.name == "HEAD").then_some("--no-deref")).args([&note.name, &note.to, old]);
        parent.git.run("move the branch", &mut moved)?;
        return Ok(Mended::Ended);
    }
    take_back(parent, note)?;
    Ok(Mended::TakenBack)
}

/// The index is as it was: what of the tree is as it was to be becomes what it was.
fn take_back(parent: &Parent, note: &Note) -> Result<(), ForkError> {
    let listed = |filter: &str| {
        let asked = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", filter, &note.from, &note.to];
        parent.names("list what changed", parent.command(asked))
    };
    let added: BTreeSet<PathBuf> = listed("--diff-filter=A")?.into_iter().collect();
    let changed = listed("--diff-filter=MT")?;
    let other = unlike(parent, &note.to)?;
    for path in added.iter().filter(|path| !other.contains(*path)) {
        remove_added(&parent.tree.join(path))?;
    }
    let merged: BTreeSet<&PathBuf> = changed.iter().filter(|path| !other.contains(*path)).collect();
    let deleted = listed("--diff-filter=D")?;
    let is_gone = |path: &Path| std::fs::symlink_metadata(parent.tree.join(path)).is_err();
    let mut ours = Vec::new();
    for path in changed.iter().chain(&deleted) {
        // What the merge deletes is not among what it holds, so that it stands there says that it was not reached.
        if is_gone(path) || merged.contains(path) {
            ours.extend_from_slice(path.as_os_str().as_bytes());
            ours.push(0);
        }
    }
    let mut back = parent.command(["checkout-index", "-f", "-u", "-z", "--stdin"]);
    parent.git.feed("take the tree back", &mut back, &ours)?;
    Ok(())
}

fn remove_added(path: &Path) -> Result<(), ForkError> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        // A submodule, which git makes as an empty folder; one that holds something is somebody's.
        drop(std::fs::remove_dir(path));
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ForkError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Paths of a commit that stand otherwise in the tree.
fn unlike(parent: &Parent, commit: &str) -> Result<BTreeSet<PathBuf>, ForkError> {
    let index = parent.note().with_extension("index");
    for left in [&index, &index.with_extension("index.lock")] {
        // Of a git that was killed while it mended, for whoever mends has the note to itself.
        drop(std::fs::remove_file(left));
    }
    let with = |args: &[&str]| {
        let mut command = parent.command(args.iter().map(OsStr::new));
        command.env("GIT_INDEX_FILE", &index);
        command
    };
    parent.git.run("read the merge", &mut with(&["read-tree", commit]))?;
    // 1 says that some are otherwise, which is what is asked next.
    parent.git.tells("compare the tree", &mut with(&["update-index", "-q", "--refresh"]))?;
    let other = parent.git.run("compare the tree", &mut with(&["diff-files", "-z", "--name-only"]))?;
    drop(std::fs::remove_file(&index));
    Ok(names(&other).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::Note;

    #[test]
    fn a_note_that_is_not_whole_is_none() {
        let note = Note { from: "a1".into(), to: "b2".into(), name: "HEAD".into() };
        assert_eq!(Note::read("a1\nb2\nHEAD\n"), Some(note));
        for torn in ["", "a1\n", "a1\nb2\n", "a1\nb2\nHE", "a1\nb\nHEAD\n"] {
            assert_eq!(Note::read(torn), None, "{torn:?}");
        }
    }
}

//! Which commit a repository's HEAD resolves to, read from its files alone.
//!
//! Promise: the answer is the one that `git rev-parse HEAD` would give, for every layout git writes (linked worktrees,
//! submodules, separate git dirs, bare repositories, loose and packed refs, reftable, SHA-1 and SHA-256), and
//! [`Reading::files`] holds every path whose change could change it. Git is never run, and no setting that names a
//! program is ever acted upon. What is damaged or in doubt is [`Head::Unreadable`], never a guess.
//!
//! Absent on purpose: environment variables (`GIT_DIR` and its kin belong to one shell, not to the repository), and
//! whether the commit's object exists (`git rev-parse` does not ask either).

use super::look::{Fault, Look};
use super::refs::{self, RefName, Value};
use super::reftable;
use super::repository::{self, Repository, Store};
use crate::session::digest::CommitId;
use std::path::{Path, PathBuf};

/// Names read on the way from HEAD to an id, HEAD included; git's own limit.
const CHAIN_LEN_MAX: usize = 5;

/// Looks at a repository that says something is missing, until two in a row agree.
const LOOKS_MAX: usize = 8;

/// What HEAD is, and which files decide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What HEAD is.
    pub head: Head,
    /// Every path whose appearance, disappearance or change can change the answer, those that do not exist now
    /// included. Absolute, sorted, each once; some are folders, some have `..` or symlinks on the way, and all of
    /// them count by name: watch what resolving them uses.
    pub files: Vec<PathBuf>,
}

/// What HEAD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// HEAD resolves to a commit.
    Commit {
        /// Its id.
        commit: CommitId,
        /// The last name of the chain, without `refs/heads/`; `None` when HEAD is detached.
        branch: Option<String>,
    },
    /// HEAD names a branch that has no commit yet.
    Unborn {
        /// The branch's name, as in [`Head::Commit`].
        branch: String,
    },
    /// Neither the path nor any folder above it belongs to a repository.
    NoRepository,
    /// There is a repository, and what it says cannot be known.
    Unreadable {
        /// What could not be read.
        path: PathBuf,
        /// Why.
        error: String,
    },
}

/// Reads HEAD of the repository that `path` belongs to: a folder or file of a work tree, a git dir, or a place in one.
/// A path that does not exist belongs where its nearest existing folder does.
#[must_use]
pub fn head(path: &Path) -> Reading {
    let mut look = Look::default();
    let mut head = look_once(&mut look, path);
    for _ in 1..LOOKS_MAX {
        // One look is several reads. Between them git may switch branches and delete the one we were about to read,
        // create the one we just missed, or compact the table we were about to open. A commit was true at some
        // moment of the look; anything less is asked again, all the way from the path.
        if matches!(head, Head::Commit { .. }) {
            break;
        }
        let again = look_once(&mut look, path);
        if again == head {
            break;
        }
        head = again;
    }
    Reading { head, files: look.into_files() }
}

/// Whether git takes this for the name of a ref.
#[must_use]
pub fn is_ref_name(name: &[u8]) -> bool {
    RefName::parse(name).is_some()
}

fn look_once(look: &mut Look, path: &Path) -> Head {
    match repository::discover(look, path) {
        Ok(Some(repository)) => resolve(look, &repository).unwrap_or_else(unreadable),
        Ok(None) => Head::NoRepository,
        Err(fault) => unreadable(fault),
    }
}

fn unreadable(Fault { path, error }: Fault) -> Head {
    Head::Unreadable { path, error }
}

/// Follows the chain of symbolic refs from HEAD to an id, or to a name that nothing has yet.
fn resolve(look: &mut Look, repository: &Repository) -> Result<Head, Fault> {
    let head_path = repository.gitdir.join("HEAD");
    let mut name = RefName::head();
    for _ in 0..CHAIN_LEN_MAX {
        match read(look, repository, &name)? {
            Some(Value::Id(commit)) => {
                let branch = (!name.is_head()).then(|| name.branch());
                return Ok(Head::Commit { commit, branch });
            }
            Some(Value::Symbolic(target)) => {
                name = RefName::parse(&target).ok_or_else(|| bad_name(&head_path, &target))?;
            }
            None if name.is_head() => return Err(Fault::new(&head_path, "the ref store has no HEAD")),
            None => return Ok(Head::Unborn { branch: name.branch() }),
        }
    }
    Err(Fault::new(&head_path, format_args!("a chain of more than {CHAIN_LEN_MAX} refs")))
}

fn read(look: &mut Look, repository: &Repository, name: &RefName) -> Result<Option<Value>, Fault> {
    match repository.format.store {
        Store::Files => refs::find(look, repository, name),
        Store::Reftable => {
            let (dir, name) = refs::place(repository, name);
            reftable::find(look, &dir.join("reftable"), name, repository.format.id_len)
        }
    }
}

fn bad_name(path: &Path, target: &[u8]) -> Fault {
    let shown: String = String::from_utf8_lossy(target).chars().take(200).collect();
    Fault::new(path, format_args!("leads to {shown:?}, which is not the name of a ref"))
}

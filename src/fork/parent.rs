//! What is to be forked: the tree that a session's root stands in, and the commit that it is at.
//!
//! Promise: a fork begins at the id of a commit, never at a name, and a parent is only read.

use super::git::{Git, GitError};
use super::{ForkError, Hands};
use crate::protocol::fork::record::Mode;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is to be forked.
#[derive(Debug, Clone)]
pub struct Parent {
    /// The session's root, canonical.
    pub root: PathBuf,
    /// The top of the work tree, canonical; the root outside git.
    pub tree: PathBuf,
    /// The root below the tree.
    pub within: PathBuf,
    /// How it is forked.
    pub mode: Mode,
    /// The commit that HEAD is; none where there is no commit yet.
    pub head: Option<String>,
    /// The branch that is checked out; none when HEAD is detached.
    pub branch: Option<String>,
    /// What its work trees share of the repository.
    pub repository: Option<PathBuf>,
    /// What is its own of the repository.
    pub gitdir: Option<PathBuf>,
    /// The commit to begin at instead of HEAD.
    pub from: Option<String>,
    /// Whether its objects are named by SHA-256.
    pub sha256: bool,
    /// Whether repositories in it are copied like any folder: a copy of a work tree that was asked for by name.
    pub whole: bool,
}

impl Parent {
    /// The commit that its forks begin at.
    #[must_use]
    pub fn base(&self) -> Option<&str> {
        self.from.as_deref().or(self.head.as_deref())
    }
}

impl Hands {
    /// What is to be forked, for a session with this root: as a repository where it stands in a work tree that does not
    /// ignore it, as a copy otherwise, or as asked.
    pub fn parent(&self, root: &Path, mode: Option<Mode>, from: Option<&str>) -> Result<Parent, ForkError> {
        let root = std::fs::canonicalize(root).map_err(ForkError::io("find", root))?;
        self.refuse_fork(&root)?;
        let below_repository = root.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok());
        let parent = match mode {
            Some(Mode::Copy) => copied(&root, below_repository),
            None if !below_repository => copied(&root, false),
            _ => match repository(self.git()?, &root)? {
                Some(parent) if mode.is_some() || !self.is_ignored(&parent, &root)? => parent,
                None if mode.is_some() => {
                    let why =
                        format!("{} is in no git work tree: fork it with mode \"copy\"", root.display());
                    return Err(ForkError::refused("fork_not_a_work_tree", why));
                }
                _ => copied(&root, false),
            },
        };
        let parent = match from {
            Some(from) => self.begun_at(parent, from)?,
            None => parent,
        };
        self.refuse_nested(&parent)?;
        Ok(parent)
    }

    fn begun_at(&self, parent: Parent, from: &str) -> Result<Parent, ForkError> {
        let Some(gitdir) = &parent.gitdir else {
            let why =
                format!("{} is forked as a copy, which can begin at no other commit", parent.root.display());
            return Err(ForkError::refused("fork_from_unknown", why));
        };
        if !matches!(from.len(), 40 | 64) || !from.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let why = format!(
                "a fork begins at the full id of a commit, 40 or 64 hexadecimal digits, not at {from:?}"
            );
            return Err(ForkError::refused("fork_from_not_an_id", why));
        }
        let from = from.to_ascii_lowercase();
        let git = self.git()?;
        // Whatever git says of an id that it does not know, it is not a commit.
        let kind = git.run("find a commit", git.of(gitdir, None).args(["cat-file", "-t", &from]));
        match kind {
            Ok(kind) if kind.trim_ascii() == b"commit" => {}
            Ok(_) | Err(GitError::Failed { .. }) => {
                let why = format!("{from} is no commit in the repository of {}", parent.tree.display());
                return Err(ForkError::refused("fork_from_unknown", why));
            }
            Err(error) => return Err(error.into()),
        }
        let from = Some(from).filter(|from| parent.head.as_ref() != Some(from));
        Ok(Parent { from, ..parent })
    }

    fn forks(&self) -> PathBuf {
        std::fs::canonicalize(&self.forks).unwrap_or_else(|_| self.forks.clone())
    }

    /// Forks that would be copied out of a fork. Git is not even asked there, for it would read what the fork's agent wrote.
    fn refuse_fork(&self, root: &Path) -> Result<(), ForkError> {
        let forks = self.forks();
        if !root.starts_with(&forks) {
            return Ok(());
        }
        let (root, forks) = (root.display(), forks.display());
        let why = format!("{root} is in the folder of the forks, {forks}: a fork is not forked again");
        Err(ForkError::refused("fork_nested", why))
    }

    /// Forks that would be copied into themselves.
    fn refuse_nested(&self, parent: &Parent) -> Result<(), ForkError> {
        let forks = self.forks();
        let (tree, forks_shown) = (parent.tree.display(), forks.display());
        if forks.starts_with(&parent.tree) && !(parent.gitdir.is_some() && self.is_ignored(parent, &forks)?) {
            let why = format!(
                "the forks of {tree} would be copied into themselves, for they are kept in {forks_shown}: let git ignore \
                 that folder, or keep the daemon's state elsewhere"
            );
            return Err(ForkError::refused("fork_nested", why));
        }
        Ok(())
    }

    fn is_ignored(&self, parent: &Parent, path: &Path) -> Result<bool, ForkError> {
        let (Some(gitdir), Ok(below)) = (&parent.gitdir, path.strip_prefix(&parent.tree)) else {
            return Ok(false);
        };
        if below.as_os_str().is_empty() {
            return Ok(false);
        }
        let git = self.git()?;
        let mut command = git.of(gitdir, Some(&parent.tree));
        git.ignoring(gitdir, &parent.tree, &mut command)?;
        Ok(git.asks(
            "say what is ignored",
            command.args(["check-ignore", "--no-index", "-q", "--"]).arg(below),
        )?)
    }
}

fn copied(root: &Path, whole: bool) -> Parent {
    Parent {
        root: root.to_owned(),
        tree: root.to_owned(),
        within: PathBuf::new(),
        mode: Mode::Copy,
        head: None,
        branch: None,
        repository: None,
        gitdir: None,
        from: None,
        sha256: false,
        whole,
    }
}

/// The work tree that this folder is in.
fn repository(git: &Git, root: &Path) -> Result<Option<Parent>, ForkError> {
    let mut places = git.within(root);
    places.args(["rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-object-format"]);
    places.args(["--absolute-git-dir", "--git-common-dir", "--show-toplevel"]);
    let said = match git.run("find the repository", &mut places) {
        Ok(said) => said,
        // What is called `.git` need not be a repository, and what is in one is in no work tree.
        Err(GitError::Failed { said, .. })
            if said.contains("not a git repository") || said.contains("must be run in a work tree") =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let lines: Vec<&[u8]> = said.strip_suffix(b"\n").unwrap_or(&said).split(|byte| *byte == b'\n').collect();
    let [b"true", format, gitdir, common, tree] = lines[..] else {
        let why = format!(
            "git does not say where the repository of {} is: is there a line break in its path?",
            root.display()
        );
        return Err(ForkError::refused("fork_failed", why));
    };
    let canonical = |bytes: &[u8]| {
        let path = Path::new(<OsStr as OsStrExt>::from_bytes(bytes));
        std::fs::canonicalize(path).map_err(ForkError::io("find", path))
    };
    let (gitdir, common, tree) = (canonical(gitdir)?, canonical(common)?, canonical(tree)?);
    let Ok(within) = root.strip_prefix(&tree).map(Path::to_owned) else { return Ok(None) };
    let ask = |what, args: &[&str]| -> Result<Option<String>, GitError> {
        match git.run(what, git.of(&gitdir, None).args(args)) {
            Ok(said) => Ok(Some(String::from_utf8_lossy(&said).trim().to_owned())),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let branch = ask("read HEAD", &["symbolic-ref", "-q", "HEAD"])?;
    let head = ask("read HEAD", &["rev-parse", "-q", "--verify", "HEAD"])?;
    let there = match &head {
        Some(head) => ask("read HEAD", &["cat-file", "-e", &format!("{head}^{{commit}}")])?.is_some(),
        None => branch.is_some(),
    };
    if !there {
        let why =
            format!("HEAD of {} names no commit that is there: `git -C {0} fsck` says more", tree.display());
        return Err(ForkError::refused("fork_failed", why));
    }
    Ok(Some(Parent {
        root: root.to_owned(),
        within,
        tree,
        mode: Mode::Git,
        head,
        branch: branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()),
        repository: Some(common),
        gitdir: Some(gitdir),
        from: None,
        sha256: format == b"sha256",
        whole: false,
    }))
}

//! A look at a fork through a repository of our own, for whatever git is asked about it.
//!
//! Whoever works in a fork may write in its repository at any moment, its configuration first of all, which names programs.
//! Promise: git never reads that. It is run in a folder that is made for the moment, where no command of a fork can write,
//! with the configuration that the fork was made with, the refs as we read them, and a copy of the index; of the fork's
//! repository it uses the objects alone.

use super::git::{Git, GitError};
use super::parent::Parent;
use super::refs::{self, Refs};
use super::repository::{Apart, as_path, is_sparse, optional, write};
use super::{ForkError, Hands};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a fork is looked at with, of what it was made with.
const KEPT: [&str; 5] = ["config", "info/exclude", "info/attributes", "info/sparse-checkout", "shallow"];

/// Where it is kept, beside the workspace.
pub(super) fn kept_of(workspace: &Path) -> PathBuf {
    workspace.with_file_name("look")
}

/// Keeps a file of a new repository, if it is one to look with.
pub(super) fn keep(workspace: &Path, name: &str, bytes: &[u8]) -> Result<(), ForkError> {
    if !KEPT.contains(&name) {
        return Ok(());
    }
    let folder = kept_of(workspace);
    let info = folder.join("info");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&info);
    made.map_err(ForkError::io("make the folder", &info))?;
    write(&folder.join(name), bytes)
}

/// A repository of our own, gone when it is dropped.
pub(super) struct Look<'a> {
    git: &'a Git,
    place: Apart,
    tree: PathBuf,
    objects: PathBuf,
    /// What the fork's repository names.
    pub(super) refs: Refs,
}

impl Hands {
    /// Looks at a fork as it is now. Refused where what its repository names cannot be told.
    pub(super) fn look(&self, workspace: &Path) -> Result<Look<'_>, ForkError> {
        let (gitdir, kept) = (workspace.join(".git"), kept_of(workspace));
        let mut files = Vec::new();
        for name in KEPT {
            match optional(&kept.join(name))? {
                Some(bytes) => files.push((name, bytes)),
                None if name == "config" => return Err(without(&kept.join(name))),
                None => {}
            }
        }
        self.look_with(files, Refs::read(&gitdir)?, &gitdir, &gitdir.join("objects"), workspace)
    }

    /// Looks at the tree that is to be forked, or was; none where there is no repository. What of its index is in several
    /// files is too: git would note in the parent that it was read.
    pub(super) fn look_at_parent(&self, parent: &Parent) -> Result<Option<Look<'_>>, ForkError> {
        let (Some(gitdir), Some(common)) = (&parent.gitdir, &parent.repository) else { return Ok(None) };
        let mut files = vec![("config", self.config_of(parent, gitdir)?)];
        for name in &KEPT[1..] {
            let place = if *name == "info/sparse-checkout" { gitdir } else { common };
            files.extend(optional(&place.join(name))?.map(|bytes| (*name, bytes)));
        }
        let refs = Refs { tip: parent.head.clone(), ..Refs::default() };
        self.look_with(files, refs, gitdir, &common.join("objects"), &parent.tree).map(Some)
    }

    fn look_with(
        &self,
        files: Vec<(&str, Vec<u8>)>,
        refs: Refs,
        gitdir: &Path,
        objects: &Path,
        tree: &Path,
    ) -> Result<Look<'_>, ForkError> {
        let (git, place) = (self.git()?, Apart::new(&self.forks));
        let look = Look { git, place, tree: tree.to_owned(), objects: objects.to_owned(), refs };
        let own = look.gitdir();
        for folder in ["info", "refs"].map(|name| own.join(name)) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(ForkError::io("make the folder", &folder))?;
        }
        files.iter().try_for_each(|(name, bytes)| write(&own.join(name), bytes))?;
        let head = match &look.refs.tip {
            Some(id) => format!("{id}\n"),
            None => "ref: refs/heads/staled.none\n".to_owned(),
        };
        write(&own.join("HEAD"), head.as_bytes())?;
        write(&own.join("packed-refs"), &look.refs.packed())?;
        look.take_index(gitdir)?;
        Ok(look)
    }
}

impl Look<'_> {
    fn gitdir(&self) -> &Path {
        &self.place.0
    }

    /// A git for this moment of the fork.
    pub(super) fn command(&self) -> Command {
        let mut command = self.git.of(self.gitdir(), Some(&self.tree));
        command.env("GIT_OBJECT_DIRECTORY", &self.objects);
        command
    }

    /// The same, and what its user wants ignored is.
    pub(super) fn command_ignoring(&self) -> Result<Command, GitError> {
        let mut command = self.command();
        self.git.ignoring(self.gitdir(), &self.tree, &mut command)?;
        Ok(command)
    }

    /// Has git look at every file that is there, also where its index says that it need not: whoever works in a fork may
    /// have said so, and would lose what was done under it. What a sparse checkout left out is not there.
    pub(super) fn heed_every_file(&self) -> Result<(), ForkError> {
        let (assumed, skipped) = self.unheeded()?;
        for (bit, paths) in [("--no-assume-unchanged", &assumed), ("--no-skip-worktree", &skipped)] {
            self.mark("look at every file", bit, paths)?;
        }
        // Git says nothing of a name that it does not take.
        if (assumed.is_empty() && skipped.is_empty()) || self.unheeded()? == (Vec::new(), Vec::new()) {
            return Ok(());
        }
        let why = "the index of the fork hides files from git that cannot be shown to it; discard the fork with force: then all \
                   of it is kept";
        Err(ForkError::refused("fork_untold", why))
    }

    /// The paths that git would assume to be as they were, and those that are there though it was told that they are not.
    fn unheeded(&self) -> Result<(Vec<u8>, Vec<u8>), ForkError> {
        let is_there = |path: &[u8]| self.tree.join(as_path(path)).symlink_metadata().is_ok();
        let mut listed = self.index("-v", false)?;
        // Git before 2.36 leaves a folder one entry though it is there.
        let mut folders = listed.split(|byte| *byte == 0).filter_map(|line| line.strip_suffix(b"/"));
        if folders.any(|line| line.get(2..).is_some_and(is_there)) {
            listed = self.index("-v", true)?;
        }
        let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
        for line in listed.split(|byte| *byte == 0).filter(|line| line.len() > 2) {
            let (tag, path) = (line[0], &line[2..]);
            // One side of a conflict is always told.
            if tag.is_ascii_lowercase() && tag != b'm' {
                assumed.extend([path, b"\0"].concat());
            }
            if tag.eq_ignore_ascii_case(&b's') && is_there(path) {
                skipped.extend([path, b"\0"].concat());
            }
        }
        Ok((assumed, skipped))
    }

    /// What our copy of the index says. Filling in what a sparse one leaves out would touch objects of the parent.
    fn index(&self, how: &str, filled_in: bool) -> Result<Vec<u8>, ForkError> {
        let mut list = self.command();
        list.args(["ls-files", "-z", how]);
        let index = optional(&self.gitdir().join("index"))?.unwrap_or_default();
        if !filled_in && is_sparse(&index) {
            list.arg("--sparse");
        }
        Ok(self.git.run("list the index", &mut list)?)
    }

    /// Has git not look into the repositories that the index names in the tree: it would read their configuration, and that
    /// may be the fork's own. Those in whose folder something is, or may be, are given with a slash.
    pub(super) fn pass_over_repositories(&self) -> Result<Vec<PathBuf>, ForkError> {
        if !self.may_name_repositories()? {
            return Ok(Vec::new());
        }
        let listed = self.index("-s", false)?;
        let (mut paths, mut held) = (Vec::new(), Vec::new());
        for line in listed.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 ")) {
            let Some(at) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let (merged, path) = (line[..at].ends_with(b" 0"), &line[at + 1..]);
            let place = self.tree.join(as_path(path));
            // What stands where one was is told.
            let is_folder = place.symlink_metadata().is_ok_and(|found| found.is_dir());
            if merged && is_folder {
                paths.extend([path, b"\0"].concat());
                if !is_empty(&place) {
                    held.push(as_path(&[path, b"/"].concat()).to_owned());
                }
            }
        }
        self.mark("pass over the repositories in the tree", "--assume-unchanged", &paths)?;
        Ok(held)
    }

    /// Sets or clears a bit of these paths in our copy of the index.
    fn mark(&self, what: &'static str, bit: &str, paths: &[u8]) -> Result<(), ForkError> {
        if !paths.is_empty() {
            let mut mark = self.command();
            mark.args(["-c", "core.splitIndex=false", "update-index", bit, "-z", "--stdin"]);
            self.git.feed(what, &mut mark, paths)?;
        }
        Ok(())
    }

    /// Whether the kind of a repository is among the bytes of the index, as git writes it.
    fn may_name_repositories(&self) -> Result<bool, ForkError> {
        for entry in fs::read_dir(self.gitdir()).map_err(ForkError::io("list", self.gitdir()))?.flatten() {
            let name = entry.file_name();
            if name == "index" || name.as_bytes().starts_with(b"sharedindex.") {
                let bytes = optional(&entry.path())?.unwrap_or_default();
                if bytes.windows(4).any(|kind| kind == 0o160_000_u32.to_be_bytes()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The indexes of work trees that are linked to the fork's, as they are now.
    pub(super) fn linked_indexes(&self, gitdir: &Path) -> Result<Vec<PathBuf>, ForkError> {
        let mut indexes = Vec::new();
        for linked in refs::linked(gitdir)? {
            let own = self.gitdir().join(format!("index.{}", indexes.len()));
            take_file(&linked.join("index"), &own)?;
            indexes.push(own);
        }
        Ok(indexes)
    }

    /// Also what a split one is an addition to.
    fn take_index(&self, gitdir: &Path) -> Result<(), ForkError> {
        take_file(&gitdir.join("index"), &self.gitdir().join("index"))?;
        for entry in fs::read_dir(gitdir).map_err(ForkError::io("list", gitdir))?.flatten() {
            if entry.file_name().as_bytes().starts_with(b"sharedindex.") {
                take_file(&entry.path(), &self.gitdir().join(entry.file_name()))?;
            }
        }
        Ok(())
    }
}

/// Whether nothing is in a folder; one that cannot be listed may hold something.
fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Copies a file that may not be there, with its times, by which git tells what may have changed unseen.
fn take_file(from: &Path, to: &Path) -> Result<(), ForkError> {
    let copied = || -> io::Result<()> {
        let mut source = refs::open(from)?;
        let mut made = fs::File::create(to)?;
        io::copy(&mut source, &mut made)?;
        made.set_modified(source.metadata()?.modified()?)
    };
    match copied() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ForkError::io("copy", from)(error)),
        _ => Ok(()),
    }
}

fn without(path: &Path) -> ForkError {
    let why = format!(
        "{} is missing, without which git is not run on the fork; discard the fork with force: then all of it is kept",
        path.display()
    );
    ForkError::refused("fork_untold", why)
}

//! Making one fork: a folder of ours that begins as the same world as its parent.

use super::copy::{copy, open_folder};
use super::load::Load;
use super::parent::Parent;
use super::repository::{Repository, write};
use super::{ForkError, Hands, staged};
use crate::protocol::fork::record::LeftOut;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// Where a fork is made.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder that holds all of it.
    pub home: PathBuf,
    /// Its tree.
    pub workspace: PathBuf,
    /// Its private notes.
    pub scratchpad: PathBuf,
    /// Its branch.
    pub branch: String,
}

/// A fork that was made.
#[derive(Debug)]
pub struct Made {
    /// What corresponds to the session's root.
    pub root: PathBuf,
    /// The commit that it begins at.
    pub base: Option<String>,
    /// Whether nothing of the parent's repository is needed.
    pub independent: bool,
    /// What of the parent's tree is not in it.
    pub left_out: Vec<LeftOut>,
    /// Symlinks that lead into the parent's tree or into another fork, below the workspace.
    pub shared_by_symlink: Vec<PathBuf>,
}

/// How far a fork is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files that are there.
    pub files: u64,
    /// Files that there will be.
    pub files_all: u64,
    /// How long they are together.
    pub bytes: u64,
}

impl Hands {
    /// Makes one fork of what was looked up. On error what there is of it is nothing: the caller removes its home.
    pub fn make(
        &self,
        parent: &Parent,
        load: &Load,
        place: &Place,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Made, ForkError> {
        let root = place.workspace.join(&parent.within);
        for folder in [&place.home, &place.workspace, &place.scratchpad] {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(ForkError::io("make the folder", folder))?;
        }
        let outcome = copy(&parent.tree, &place.workspace, load, self.file_bytes_max, progress)?;
        let mut left_out = load.left_out.clone();
        left_out.extend(outcome.left_out);
        left_out.sort_by(|a, b| (&a.path, &a.why).cmp(&(&b.path, &b.why)));
        left_out.dedup();
        let mut symlinks = outcome.symlinks;
        if let Some(repository) = &load.repository {
            repository.begin(&place.workspace, &place.branch, parent.base())?;
            match &parent.from {
                Some(from) => symlinks.extend(self.check_out(&place.workspace, from, &mut left_out)?),
                None => self.stage(&place.workspace, repository, &outcome.copied)?,
            }
            self.note_carried(&place.workspace)?;
        }
        fs::create_dir_all(&root).map_err(ForkError::io("make the folder", &root))?;
        symlinks.sort();
        let shared_by_symlink =
            symlinks.into_iter().filter(|link| self.is_shared(parent, place, link)).collect();
        Ok(Made {
            root,
            base: parent.base().map(str::to_owned),
            independent: load.repository.is_none(),
            left_out,
            shared_by_symlink,
        })
    }

    /// One wait for all that was made: what is said to be there is there after a power cut too.
    pub fn sync(&self) -> Result<(), ForkError> {
        rustix::fs::syncfs(open_folder(&self.forks)?)
            .map_err(|error| ForkError::io("sync", &self.forks)(error.into()))
    }

    /// The parent's index becomes the fork's.
    fn stage(
        &self,
        workspace: &Path,
        repository: &Repository,
        copied: &[super::copy::Copied],
    ) -> Result<(), ForkError> {
        let Some(index) = &repository.index else { return Ok(()) };
        let (git, gitdir) = (self.git()?, workspace.join(".git"));
        let told = staged::told(index, copied, repository.name_len());
        write(&gitdir.join("index"), told.as_ref().unwrap_or(&index.bytes))?;
        let look = self.look(workspace)?;
        let mut command = look.command();
        command.env("GIT_INDEX_FILE", gitdir.join("index"));
        command.args(["update-index", "-q", "--refresh"]);
        // 1 says that something differs, as it does in the parent.
        git.asks("look at the files of the fork", &mut command)?;
        Ok(())
    }

    /// A commit as git checks it out, with nothing that was not committed. The symlinks in it are given.
    fn check_out(
        &self,
        workspace: &Path,
        from: &str,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Vec<PathBuf>, ForkError> {
        let (git, gitdir) = (self.git()?, workspace.join(".git"));
        let look = self.look(workspace)?;
        let of = || {
            let mut command = look.command();
            command.env("GIT_INDEX_FILE", gitdir.join("index"));
            command
        };
        git.run("check out the commit", of().args(["read-tree", "--reset", "-u", from]))?;
        let listed = git.run("list the files of the commit", of().args(["ls-files", "-z", "-s"]))?;
        let mut symlinks = Vec::new();
        for line in listed.split(|byte| *byte == 0) {
            let Some(at) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let path = super::repository::as_path(&line[at + 1..]);
            if line.starts_with(b"160000 ") {
                left_out.push(super::load::left_out(path, "submodule"));
            } else if line.starts_with(b"120000 ") {
                symlinks.push(path.to_owned());
            }
        }
        Ok(symlinks)
    }

    /// Whether a symlink leads to what is the parent's or another fork's.
    fn is_shared(&self, parent: &Parent, own: &Place, link: &Path) -> bool {
        let place = own.workspace.join(link);
        let Ok(leads) = fs::read_link(&place) else { return false };
        // What leads nowhere yet leads where its words say.
        let folder = place.parent().unwrap_or(&own.workspace);
        let ends = fs::canonicalize(&place).unwrap_or_else(|_| plain(&folder.join(&leads)));
        let said = plain(&folder.join(&leads));
        let ours = |path: &Path| path.starts_with(&own.home);
        let theirs = |path: &Path| {
            let repository =
                parent.repository.as_ref().is_some_and(|repository| path.starts_with(repository));
            path.starts_with(&parent.tree) || repository || path.starts_with(&self.forks)
        };
        [ends, said].iter().any(|path| !ours(path) && theirs(path))
    }
}

/// A path without steps back, as its words say.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

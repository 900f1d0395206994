//! Objects set aside: what a merge makes, and what the fork made, seen together with what the parent has, and none of it
//! in the parent's repository before it is wanted there.
//!
//! They stand in a folder that git itself clears away should we be killed, and that the next run does.

use super::super::ForkError;
use super::parent::Parent;
use super::{Judged, line, names, shown};
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Git prunes what begins with `tmp_objdir-`.
const NAME: &str = "tmp_objdir-staled-";

/// Gone when it is dropped.
#[derive(Debug)]
pub(super) struct Aside<'a> {
    parent: &'a Parent<'a>,
    folder: PathBuf,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        // What stays is cleared by the next run, or by git.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl<'a> Aside<'a> {
    pub(super) fn new(parent: &'a Parent<'a>, workspace: &Path) -> Result<Self, ForkError> {
        let objects = parent.common.join("objects");
        let objects = std::fs::canonicalize(&objects).map_err(ForkError::io("resolve", &objects))?;
        let folder = objects.join(format!("{NAME}{}", std::process::id()));
        for made in [folder.clone(), folder.join("info"), folder.join("pack")] {
            let done = DirBuilder::new().recursive(true).mode(0o700).create(&made);
            done.map_err(ForkError::io("make", &made))?;
        }
        let aside = Self { parent, folder };
        let mut shared = Vec::new();
        for objects in [objects, workspace.join(".git/objects")] {
            let path = objects.as_os_str().as_bytes();
            if path.contains(&b'\n') {
                let why = format!("{} holds a line feed, which git cannot share objects by", shown(&objects));
                return Err(ForkError::refused("fork_failed", why));
            }
            shared.extend_from_slice(path);
            shared.push(b'\n');
        }
        let noted = aside.folder.join("info/alternates");
        std::fs::write(&noted, shared).map_err(ForkError::io("write", &noted))?;
        Ok(aside)
    }

    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.parent.command(args);
        command.env("GIT_OBJECT_DIRECTORY", &self.folder);
        command
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, ForkError> {
        let mut asked = self.command(["merge-base", "--is-ancestor", old, new]);
        Ok(self.parent.git.asks("compare the branches", &mut asked)?)
    }

    /// The merged tree, or what both changed.
    pub(super) fn merge(&self, ours: &str, theirs: &str) -> Result<Result<String, Vec<PathBuf>>, ForkError> {
        let asked = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
        let (clean, told) = self.parent.git.tells("merge the branches", &mut self.command(asked))?;
        let mut names = names(&told);
        let tree = names.drain(..1).next();
        let tree = tree.map(|tree| tree.display().to_string()).unwrap_or_default();
        Ok(if clean { Ok(tree) } else { Err(names) })
    }

    /// Of whoever the user's own configuration says the user is.
    pub(super) fn commit(&self, tree: &str, of: &Judged) -> Result<String, ForkError> {
        let head = of.head.as_deref().unwrap_or_default();
        let mut made = self.command(["commit-tree", tree, "-p", head, "-p", &of.tip, "-F", "-"]);
        for who in ["AUTHOR", "COMMITTER"] {
            let mut asked = self.parent.git.as_user(self.parent.tree);
            let asked = asked.args(["var", &format!("GIT_{who}_IDENT")]);
            let ident = self.parent.git.run("say who you are", asked).map_err(|error| {
                let why = format!("{error}; `git config --global user.name` and `user.email` set it");
                ForkError::refused("fork_failed", why)
            })?;
            let ident = line(&ident);
            let parts = ident.rsplit_once("> ").and_then(|(who, at)| Some((who.split_once(" <")?, at)));
            let Some(((name, email), at)) = parts else { continue };
            made.env(format!("GIT_{who}_NAME"), name).env(format!("GIT_{who}_EMAIL"), email);
            made.env(format!("GIT_{who}_DATE"), format!("@{at}"));
        }
        Ok(line(&self.parent.git.feed("make the commit", &mut made, of.message.as_bytes())?))
    }

    /// Paths of the second commit that the first does not have, or has as something else than a file.
    pub(super) fn added(&self, from: Option<&str>, to: &str) -> Result<Vec<PathBuf>, ForkError> {
        match from {
            Some(from) => self.differing("--diff-filter=AT", from, to),
            None => {
                let asked = self.command(["ls-tree", "-r", "-z", "--name-only", to]);
                self.parent.names("list what is new", asked)
            }
        }
    }

    /// Paths of the first commit that are what the merge may take away.
    pub(super) fn gone(&self, from: Option<&str>, to: &str) -> Result<Vec<PathBuf>, ForkError> {
        from.map_or(Ok(Vec::new()), |from| self.differing("--diff-filter=DT", from, to))
    }

    fn differing(&self, filter: &str, from: &str, to: &str) -> Result<Vec<PathBuf>, ForkError> {
        let asked = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", filter, from, to];
        self.parent.names("list what is new", self.command(asked))
    }

    /// Packs every object that the parent's repository needs for a commit, and names the pack.
    pub(super) fn pack(&self, from: Option<&str>, to: &str) -> Result<String, ForkError> {
        let known = from.map(|from| format!("^{from}\n")).unwrap_or_default();
        let wanted = format!("{to}\n{known}");
        let packs = self.folder.join("pack");
        let mut made = self.command(["pack-objects", "--revs", "--quiet"]);
        made.arg(packs.join("pack"));
        let pack = line(&self.parent.git.feed("pack the fork's objects", &mut made, wanted.as_bytes())?);
        let mut checked = self.command(["verify-pack"]);
        checked.arg(packs.join(format!("pack-{pack}.idx")));
        self.parent.git.run("check the fork's objects", &mut checked)?;
        Ok(pack)
    }

    /// Gives a pack to the parent's repository. Whole or not at all: git sees one when its index is there, which comes last.
    pub(super) fn hand_over(&self, pack: &str) -> Result<(), ForkError> {
        let packs = self.folder.join("pack");
        let home = self.folder.with_file_name("pack");
        for end in ["rev", "pack", "idx"] {
            let name = format!("pack-{pack}.{end}");
            let moved = std::fs::rename(packs.join(&name), home.join(&name));
            if end != "rev" {
                moved.map_err(ForkError::io("make", &home.join(&name)))?;
            }
        }
        Ok(())
    }
}

/// Clears away what runs left that were killed.
pub(super) fn clear(parent: &Parent) {
    for entry in std::fs::read_dir(parent.common.join("objects")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

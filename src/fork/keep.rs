//! What must not be lost of a fork that ends.
//!
//! Promise: what was committed, staged, stashed, changed or added is in the folder that is kept before anything goes, and it
//! can be done again after it was killed at any point.

use super::own::refuse_leading_out;
use super::work::is_nested;
use super::{ForkError, Hands};
use crate::protocol::fork::record::Mode;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names the commit of what was not committed.
pub const UNCOMMITTED: &str = "refs/staled/uncommitted";
/// An index of our own, so that the fork's says what was staged.
const INDEX: &str = "staled.index";
/// Repositories that stood in the tree.
const NESTED: &str = "staled.nested";

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptWork {
    /// The commit that HEAD was.
    pub commit: Option<String>,
    /// A commit of what was not committed.
    pub uncommitted: Option<String>,
}

impl Hands {
    /// Moves what must not be lost of a fork to a folder that is new: its repository, or all of its tree where there is none.
    pub fn keep(&self, workspace: &Path, mode: Mode, to: &Path) -> Result<KeptWork, ForkError> {
        let folder = to.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(ForkError::io("make the folder", folder))?;
        let gitdir = workspace.join(".git");
        let has_repository = gitdir.symlink_metadata().is_ok_and(|found| found.is_dir());
        if mode == Mode::Git && has_repository && self.commit_all(workspace).is_ok() {
            move_to(&gitdir, to)?;
            return Ok(self.finish(to).unwrap_or_default());
        }
        // What git cannot do now it cannot do at the next try either, and an end that never comes would hold up everybody.
        if to.symlink_metadata().is_err() {
            // Somebody removed the repository, or there never was one: the tree is all there is.
            move_to(workspace, to)?;
        }
        let is_repository = mode == Mode::Git && to.join("HEAD").is_file();
        Ok(if is_repository { self.finish(to).unwrap_or_default() } else { KeptWork::default() })
    }

    fn commit_all(&self, workspace: &Path) -> Result<(), ForkError> {
        refuse_leading_out(&workspace.join(".git"))?;
        self.make_independent_or_not(workspace)?;
        self.commit_rest(workspace)
    }

    /// What is kept shall need nothing of the parent. Where that cannot be, it goes on borrowing.
    fn make_independent_or_not(&self, workspace: &Path) -> Result<(), ForkError> {
        match self.make_independent(workspace) {
            Err(error @ ForkError::Io { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    fn commit_rest(&self, workspace: &Path) -> Result<(), ForkError> {
        let (git, gitdir) = (self.git()?, workspace.join(".git"));
        let index = gitdir.join(INDEX);
        // What an earlier try left when it was killed.
        let locks = ["index.lock", "staled.index.lock", "refs/staled/uncommitted.lock"];
        for left in locks.iter().map(|name| gitdir.join(name)).chain([index.clone()]) {
            drop(fs::remove_file(left));
        }
        let (nested, dirty): (Vec<PathBuf>, Vec<PathBuf>) =
            self.dirty(workspace)?.into_iter().partition(|path| is_nested(path));
        for path in nested {
            let place = gitdir.join(NESTED).join(&path);
            let folder = place.parent().unwrap_or(&gitdir);
            fs::create_dir_all(folder).map_err(ForkError::io("make the folder", folder))?;
            move_to(&workspace.join(&path), &place)?;
        }
        if dirty.is_empty() {
            return Ok(());
        }
        match fs::copy(gitdir.join("index"), &index) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ForkError::io("copy", &gitdir.join("index"))(error));
            }
            _ => {}
        }
        let of = || -> Result<_, ForkError> {
            let mut command = git.of_untrusted(&gitdir, workspace)?;
            command.env("GIT_INDEX_FILE", &index);
            let who = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
            command.envs(
                who.map(|name| (name, if name.ends_with("NAME") { "staled" } else { "staled@localhost" })),
            );
            Ok(command)
        };
        let mut paths = Vec::new();
        for path in &dirty {
            paths.extend(path.as_os_str().as_bytes());
            paths.push(0);
        }
        let mut add = of()?;
        add.args([
            "-c",
            "core.splitIndex=false",
            "update-index",
            "--add",
            "--remove",
            "--replace",
            "-z",
            "--stdin",
        ]);
        git.feed("take up what is not committed", &mut add, &paths)?;
        let tree = git.run("write what is not committed", of()?.arg("write-tree"))?;
        let mut commit = of()?;
        commit.args(["commit-tree", "-m", "What was not committed when the fork was discarded"]);
        if let Some(head) = self.commit_of(workspace, "HEAD")? {
            commit.args(["-p", &head]);
        }
        commit.arg(String::from_utf8_lossy(&tree).trim());
        let commit = git.run("commit what is not committed", &mut commit)?;
        let id = String::from_utf8_lossy(&commit).trim().to_owned();
        git.run("name what is not committed", of()?.args(["update-ref", UNCOMMITTED, &id]))?;
        Ok(())
    }

    /// What was a fork's repository becomes one without a tree.
    fn finish(&self, to: &Path) -> Result<KeptWork, ForkError> {
        refuse_leading_out(to)?;
        let git = self.git()?;
        for left in [INDEX, "staled.index.lock", "config.lock"] {
            drop(fs::remove_file(to.join(left)));
        }
        for (what, args) in [
            ("forget the tree of what is kept", ["--unset-all", "core.worktree", "."]),
            ("say that what is kept has no tree", ["--replace-all", "core.bare", "true"]),
        ] {
            let mut command = git.of(to, None);
            // One that cannot be changed is as good to fetch from.
            drop(git.run(what, command.args(["config", "--file"]).arg(to.join("config")).args(args)));
        }
        let named = |name| -> Result<Option<String>, ForkError> {
            let mut command = git.of(to, None);
            if !git.asks("read a ref", command.args(["rev-parse", "-q", "--verify", name]))? {
                return Ok(None);
            }
            Ok(Some(String::from_utf8_lossy(&git.run("read a ref", &mut command)?).trim().to_owned()))
        };
        Ok(KeptWork { commit: named("HEAD")?, uncommitted: named(UNCOMMITTED)? })
    }
}

/// Moves a folder, also one that may not be written in.
fn move_to(from: &Path, to: &Path) -> Result<(), ForkError> {
    if let Ok(found) = from.symlink_metadata() {
        let mode = found.permissions().mode();
        if found.is_dir() && mode & 0o700 != 0o700 {
            let open = fs::Permissions::from_mode(mode & 0o7777 | 0o700);
            fs::set_permissions(from, open).map_err(ForkError::io("open", from))?;
        }
    }
    fs::rename(from, to).map_err(ForkError::io("move", from))
}

//! What must not be lost of a fork that ends.
//!
//! Promise: what was committed, staged, stashed, changed or added is in the folder that is kept before anything goes, and it
//! can be done again after it was killed at any point.

use super::own::refuse_leading_out;
use super::work::is_nested;
use super::{ForkError, Hands};
use crate::protocol::fork::record::Mode;
use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names the commit of what was not committed.
pub const UNCOMMITTED: &str = "refs/staled/uncommitted";
/// An index of our own, so that the fork's says what was staged.
const INDEX: &str = "staled.index";
/// Repositories that stood in the tree, and files that git does not take up.
const NESTED: &str = "staled.nested";
/// What was in the scratchpad.
const NOTES: &str = "staled.scratchpad";

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
        if mode == Mode::Git && has_repository && refuse_leading_out(&gitdir).is_ok() {
            self.make_independent_or_not(workspace)?;
            match self.commit_rest(workspace) {
                Ok(()) => {
                    move_to(&gitdir, to)?;
                    return self.finish(workspace, to);
                }
                // What git cannot take up is kept as it stands.
                Err(ForkError::Git(_) | ForkError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let is_repository = |of: &Path| of.join("HEAD").is_file() && of.join("objects").is_dir();
        if mode == Mode::Git && is_repository(to) {
            return self.finish(workspace, to);
        }
        if workspace.symlink_metadata().is_ok() {
            // There never was a repository, it is none any more, or one that leads elsewhere: the tree is kept as it is.
            move_to(workspace, to)?;
        } else {
            fs::create_dir_all(to).map_err(ForkError::io("make the folder", to))?;
        }
        keep_notes(workspace, to)?;
        let asked = mode == Mode::Git && refuse_leading_out(&to.join(".git")).is_ok();
        let commit = if asked { self.commit_of(to, "HEAD").ok().flatten() } else { None };
        Ok(KeptWork { commit, uncommitted: None })
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
        nested.iter().try_for_each(|path| set_apart(workspace, path))?;
        if dirty.is_empty() {
            return Ok(());
        }
        match copy_index(&gitdir.join("index"), &index) {
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
        let taken = git.run("list what is not committed", of()?.args(["ls-files", "-z"]))?;
        let taken: HashSet<&[u8]> = taken.split(|byte| *byte == 0).collect();
        let stands =
            |path: &&PathBuf| workspace.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
        for path in dirty.iter().filter(stands) {
            // Git says nothing of a name that it does not take, such as `git~1`.
            if !taken.contains(path.as_os_str().as_bytes()) {
                set_apart(workspace, path)?;
            }
        }
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
    fn finish(&self, workspace: &Path, to: &Path) -> Result<KeptWork, ForkError> {
        keep_notes(workspace, to)?;
        if refuse_leading_out(to).is_err() {
            return Ok(KeptWork::default());
        }
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

/// The scratchpad goes along if there is anything in it: notes, or a work tree that was put there.
fn keep_notes(workspace: &Path, to: &Path) -> Result<(), ForkError> {
    let notes = workspace.with_file_name("scratchpad");
    let any = fs::read_dir(&notes).is_ok_and(|mut entries| entries.next().is_some());
    if any { move_to(&notes, &to.join(NOTES)) } else { Ok(()) }
}

/// With its times, by which git tells what may have changed unseen.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let changed = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(changed)
}

/// Moves what git does not take up beside the repository.
fn set_apart(workspace: &Path, path: &Path) -> Result<(), ForkError> {
    let place = workspace.join(".git").join(NESTED).join(path);
    let folder = place.parent().unwrap_or(workspace);
    fs::create_dir_all(folder).map_err(ForkError::io("make the folder", folder))?;
    move_to(&workspace.join(path), &place)
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

//! What of a fork's work is nowhere else.
//!
//! Promise: when in doubt there is some. What is asked runs nothing that the fork's own configuration names.

use super::carried::Uncommitted;
use super::git::GitError;
use super::look::Look;
use super::own::refuse_leading_out;
use super::refs;
use super::{ForkError, Hands};
use crate::fork::repository::as_path;
use crate::protocol::fork::record::Mode;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was done in a fork.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// The commit that its HEAD is.
    pub tip: Option<String>,
    /// How many commits its branches have that the base has not.
    pub commits: u64,
    /// Whether all of them, and whatever else is named, are in the parent: reachable from its HEAD, a branch or a tag.
    pub merged: bool,
    /// What is not committed and was not carried over as it is: staged, changed, or untracked and not ignored. A repository in
    /// it ends with a slash. Nothing is known of it in a copy.
    pub dirty: Vec<PathBuf>,
    /// Whether something is stashed, by hand or by what is under way.
    pub stash: bool,
}

impl Hands {
    /// What was done in a fork that began at this commit. Of a copy nothing can be told but by comparing it.
    pub fn work(
        &self,
        workspace: &Path,
        mode: Mode,
        base: Option<&str>,
        parent_repository: Option<&Path>,
    ) -> Result<Work, ForkError> {
        if mode == Mode::Copy {
            return Ok(Work::default());
        }
        refuse_leading_out(&workspace.join(".git"))?;
        let look = self.look(workspace)?;
        let tip = look.refs.tip.clone();
        let not_base: Vec<String> = base.iter().map(|base| format!("^{base}")).collect();
        let commits = self.count(&look, &["--branches"], &not_base, None)?;
        let merged = match parent_repository.filter(|repository| repository.is_dir()) {
            Some(parent) => self.is_merged(&look, &not_base, parent)?,
            None => {
                self.refuse_missing(&look, &not_base, None)?;
                commits == 0
            }
        };
        let stash = look.refs.id("refs/stash").is_some() || has_autostash(&workspace.join(".git"))?;
        Ok(Work { tip, commits, merged, dirty: self.own_work(workspace, &look)?, stash })
    }

    fn is_merged(&self, look: &Look, not_base: &[String], parent: &Path) -> Result<bool, ForkError> {
        let git = self.git()?;
        let mut heads = git.of(parent, None);
        heads.args(["for-each-ref", "--format=^%(objectname)", "refs/heads", "refs/tags"]);
        let heads = git.run("list the branches of the parent", &mut heads)?;
        let heads = String::from_utf8_lossy(&heads);
        let mut not: Vec<String> = heads.lines().map(str::to_owned).chain(not_base.iter().cloned()).collect();
        let mut head = git.of(parent, None);
        match git.run("read HEAD of the parent", head.args(["rev-parse", "-q", "--verify", "HEAD"])) {
            Ok(head) => not.push(format!("^{}", String::from_utf8_lossy(&head).trim())),
            // An unborn HEAD holds nothing.
            Err(GitError::Failed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.refuse_missing(look, &not, Some(parent))?;
        // Whatever names a commit may be all that does: a tag, or HEAD of a linked work tree. A stash is told by itself,
        // and what was fetched is where it came from.
        let named = ["--exclude=refs/stash", "--exclude=refs/remotes/*", "--all"];
        Ok(self.count(look, &named, &not, Some(parent))? == 0)
    }

    /// Refuses a fork that names what is not there, none of which these are: whoever counts passes over what is missing, for
    /// the sake of what the fork never saw of its parent.
    fn refuse_missing(&self, look: &Look, not: &[String], parent: Option<&Path>) -> Result<(), ForkError> {
        let not: HashSet<&str> = not.iter().map(|not| not.trim_start_matches('^')).collect();
        let ids = look.refs.tip.iter().chain(look.refs.ids.values()).map(String::as_str);
        let ids: BTreeSet<&str> = ids.filter(|id| !not.contains(id)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = ids.into_iter().collect();
        let mut find = with_parent(look, parent);
        find.args(["rev-list", "--no-walk", "--quiet", "--stdin"]);
        match self.git()?.feed("find what the fork names", &mut find, ids.join("\n").as_bytes()) {
            Ok(_) => Ok(()),
            Err(GitError::Failed { said, .. }) => {
                let why = format!(
                    "the fork names what is not there ({said}), so what it holds cannot be told; mend that, or discard the \
                     fork with force: then all of it is kept"
                );
                Err(ForkError::refused("fork_untold", why))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// How many commits HEAD and what else is named have that are in none of these.
    fn count(
        &self,
        look: &Look,
        named: &[&str],
        not: &[String],
        parent: Option<&Path>,
    ) -> Result<u64, ForkError> {
        let git = self.git()?;
        let mut command = with_parent(look, parent);
        command.args(["rev-list", "--count", "--ignore-missing"]).args(named);
        if look.refs.tip.is_some() {
            command.arg("HEAD");
        }
        command.arg("--stdin");
        let said = git.feed("count the commits of the fork", &mut command, not.join("\n").as_bytes())?;
        let count = String::from_utf8_lossy(&said).trim().parse();
        count.map_err(|_| ForkError::refused("fork_failed", "git counts commits and says no number"))
    }

    /// What is not committed in the tree that a root is in; nothing where there is no repository.
    pub fn parent_dirty(&self, root: &Path) -> Result<Vec<PathBuf>, ForkError> {
        let parent = self.parent(root, None, None)?;
        let Some(look) = self.look_at_parent(&parent)? else { return Ok(Vec::new()) };
        // What its user hides from git, or has in its submodules, is the user's own affair.
        look.pass_over_repositories()?;
        Ok(self.listed(&look)?.0.into_iter().map(|one| one.path).collect())
    }

    /// What is not committed in a fork, carried over or not, and every repository in it that is not empty.
    pub(super) fn uncommitted(&self, look: &Look) -> Result<Vec<Uncommitted>, ForkError> {
        look.heed_every_file()?;
        let passed = look.pass_over_repositories()?;
        let (mut found, said) = self.listed(look)?;
        if let Some(line) = said.lines().find(|line| line.contains("could not open directory")) {
            let why = format!(
                "what is not committed in the fork cannot be told ({line}); mend that, or discard the fork with force: then \
                 all of it is kept"
            );
            return Err(ForkError::refused("fork_untold", why));
        }
        found.extend(passed.into_iter().map(|path| Uncommitted { line: Vec::new(), path }));
        Ok(found)
    }

    /// What git says is not committed, and what it says besides.
    fn listed(&self, look: &Look) -> Result<(Vec<Uncommitted>, String), ForkError> {
        let git = self.git()?;
        let mut command = look.command_ignoring()?;
        command.args(["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all"]);
        command.arg("--ignore-submodules=all");
        let (said, besides) = git.run_aloud("say what is not committed", &mut command)?;
        let read = |line: &[u8]| {
            let before = match line.first()? {
                b'1' => 8,
                b'u' => 10,
                b'?' => 1,
                _ => return None,
            };
            let path = line.splitn(before + 1, |byte| *byte == b' ').nth(before)?;
            Some(Uncommitted { line: line.to_owned(), path: as_path(path).to_owned() })
        };
        Ok((said.split(|byte| *byte == 0).filter_map(read).collect(), besides))
    }
}

/// A git that reads the fork, and the parent's objects too.
fn with_parent(look: &Look, parent: Option<&Path>) -> Command {
    let mut command = look.command();
    if let Some(parent) = parent {
        // The parent may have commits that the fork never saw, and may not be asked about otherwise.
        let store = super::objects::quoted(parent.join("objects").as_os_str().as_bytes());
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsString::from_vec(store));
    }
    command
}

/// Whether what is under way has stashed something, in a fork's own work tree or in one that is linked to it.
fn has_autostash(gitdir: &Path) -> Result<bool, ForkError> {
    let names = ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];
    let mut trees = refs::linked(gitdir)?;
    trees.push(gitdir.to_owned());
    let has = |tree: &PathBuf| names.iter().any(|name| tree.join(name).symlink_metadata().is_ok());
    Ok(trees.iter().any(has))
}

/// Whether that is how a folder is spelled which git does not look into.
pub(super) fn is_nested(path: &Path) -> bool {
    OsStr::as_bytes(path.as_os_str()).ends_with(b"/")
}

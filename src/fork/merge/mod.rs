//! The way home: what a fork committed becomes part of the branch it began on, in the user's own process.
//!
//! Promise: the parent's tree, index, refs and objects are as before, or merged; there is nothing between. All that can be
//! refused is refused before anything is written: the merge is computed in objects set aside (see `aside`), the tree is
//! looked at, the judgement is asked for again, for all of that takes time, and only then everything lands in one process
//! that outlives us (see `land`). No hook, filter, merge driver
//! or other program that a repository names is run, and nothing of the fork's configuration is read.
//!
//! One window stays open: if the machine stops, or git itself is killed, while it writes the tree, the parent is left half
//! way, as any git leaves it. The next run brings it to its end or takes it back (see `mend`), as this one does where git
//! could not go on.

mod aside;
mod land;
mod mend;
mod parent;

use super::ForkError;
use super::git::Git;
use aside::Aside;
use parent::Parent;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `merge-tree --write-tree` came with it.
pub const OLDEST: (u32, u32) = (2, 38);

/// What the daemon just judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The tree that the fork came from.
    pub tree: PathBuf,
    /// The branch that was checked out there when the fork began; none when HEAD was detached.
    pub branch: Option<String>,
    /// The commit that HEAD was there when it was judged; none before the first.
    pub head: Option<String>,
    /// The commit that the fork began at; none where there was none.
    pub base: Option<String>,
    /// The fork's tree.
    pub workspace: PathBuf,
    /// The fork's branch.
    pub fork_branch: String,
    /// The last commit of it.
    pub tip: String,
    /// What the merge says.
    pub message: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// All of it was there.
    Already,
    /// The parent had stood still, so its branch is the fork's now.
    Forward(String),
    /// A commit of both.
    Merge(String),
    /// Both changed the same; nothing was done.
    Conflict(Vec<PathBuf>),
}

/// Of a merge that was let when it began and is not when it would land.
pub const STALE: &str = "merge_stale";

/// Merges what was judged, or says why not. `confirm` judges again when all is ready, and nothing lands but what it judges.
pub fn apply<E: From<ForkError>>(
    git: &Git,
    of: &Judged,
    confirm: impl FnOnce() -> Result<Judged, E>,
) -> Result<Merged, E> {
    refuse_old(git, of)?;
    let parent = Parent::open(git, &of.tree)?;
    aside::clear(&parent);
    mend::mend(&parent)?;
    parent.refuse_busy()?;
    let place = parent.place()?;
    place.refuse_moved(of)?;
    parent.refuse_dirty()?;
    refuse_other_tip(git, of)?;
    let aside = Aside::new(&parent, &of.workspace)?;
    let to = match joined(&aside, of)? {
        Joined::To(to) => to,
        Joined::Ended(merged) => return Ok(merged),
    };
    let ready = ready(&parent, &aside, of, to)?;
    // What was edited while the merge was computed is told by nobody else: git looks at the files that it writes alone.
    refuse_other(of, &confirm()?)?;
    aside.hand_over(&ready.pack)?;
    land::land(&parent, &place, of, &ready.to)?;
    Ok(ready.merged)
}

fn refuse_old(git: &Git, of: &Judged) -> Result<(), ForkError> {
    let found = git.version()?;
    if found >= OLDEST {
        return Ok(());
    }
    let why = format!(
        "git {}.{} is too old to merge without touching a tree: {}.{} or newer does; install that, or fetch {} from {} \
         and merge it yourself",
        found.0,
        found.1,
        OLDEST.0,
        OLDEST.1,
        of.fork_branch,
        of.workspace.display()
    );
    Err(ForkError::refused("fork_unavailable", why))
}

/// All that a merge needs, and nothing of it where anybody sees it.
struct Ready {
    to: String,
    pack: String,
    merged: Merged,
}

fn ready(parent: &Parent, aside: &Aside, of: &Judged, goal: Goal) -> Result<Ready, ForkError> {
    let (to, merged) = match goal {
        Goal::Forward => (of.tip.clone(), Merged::Forward(of.tip.clone())),
        Goal::Tree(tree) => {
            let commit = aside.commit(&tree, of)?;
            (commit.clone(), Merged::Merge(commit))
        }
    };
    let from = of.head.as_deref();
    parent.refuse_overwriting(&aside.added(from, &to)?, &aside.gone(from, &to)?)?;
    let pack = aside.pack(from, &to)?;
    Ok(Ready { to, pack, merged })
}

enum Joined {
    To(Goal),
    Ended(Merged),
}

enum Goal {
    Forward,
    Tree(String),
}

fn joined(aside: &Aside, of: &Judged) -> Result<Joined, ForkError> {
    let Some(head) = &of.head else { return Ok(Joined::To(Goal::Forward)) };
    if aside.is_ancestor(&of.tip, head)? {
        return Ok(Joined::Ended(Merged::Already));
    }
    if aside.is_ancestor(head, &of.tip)? {
        return Ok(Joined::To(Goal::Forward));
    }
    Ok(match aside.merge(head, &of.tip)? {
        Ok(tree) => Joined::To(Goal::Tree(tree)),
        Err(conflicts) => Joined::Ended(Merged::Conflict(conflicts)),
    })
}

/// What was judged again is what was merged, or it is not merged.
fn refuse_other(of: &Judged, again: &Judged) -> Result<(), ForkError> {
    let what = if again.tip != of.tip || again.fork_branch != of.fork_branch {
        format!("the fork's branch {}", of.fork_branch)
    } else if again.base != of.base || again.workspace != of.workspace {
        format!("{}, which was made again,", of.fork_branch)
    } else if again.head != of.head || again.branch != of.branch || again.tree != of.tree {
        shown(&of.tree).to_string()
    } else {
        return Ok(());
    };
    let why = format!("{what} moved while it was merged, so nothing was done; run it again");
    Err(ForkError::refused(STALE, why))
}

/// What was committed since is not what was judged.
fn refuse_other_tip(git: &Git, of: &Judged) -> Result<(), ForkError> {
    let mut asked = git.of(&of.workspace.join(".git"), None);
    asked.args(["rev-parse", "--verify", "--quiet"]).arg(format!("refs/heads/{}^{{commit}}", of.fork_branch));
    let (_, tip) = git.tells("read the fork's branch", &mut asked)?;
    if line(&tip) == of.tip {
        return Ok(());
    }
    let why = format!("the fork's branch {} moved since it was judged; run it again", of.fork_branch);
    Err(ForkError::refused("fork_moved", why))
}

/// The one line that git answered.
fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Names that git ends with a NUL each.
fn names(bytes: &[u8]) -> Vec<PathBuf> {
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

/// The first few of many paths, for a sentence.
fn first(paths: &[PathBuf]) -> String {
    const FEW: usize = 10;
    let few: Vec<_> = paths.iter().take(FEW).map(|path| path.display().to_string()).collect();
    match paths.len().saturating_sub(FEW) {
        0 => few.join(", "),
        more => format!("{} and {more} more", few.join(", ")),
    }
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}

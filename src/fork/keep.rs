//! What must not be lost of a fork that ends.
//!
//! Promise: what was committed, staged, stashed, changed or added is in the folder that is kept before anything goes, and it
//! can be done again after it was killed at any point.

use super::look::kept_of;
use super::own::refuse_leading_out;
use super::refs::Refs;
use super::repository::{as_path, optional, write};
use super::work::is_nested;
use super::{ForkError, Hands};
use crate::protocol::fork::record;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, renameat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names the commit of what was not committed.
pub const UNCOMMITTED: &str = "refs/staled/uncommitted";
/// The configuration that the fork had in the end.
const THEIRS: &str = "staled.config";
/// What is about to be its configuration.
const NEW: &str = "staled.config.new";
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
    pub fn keep(&self, workspace: &Path, mode: record::Mode, to: &Path) -> Result<KeptWork, ForkError> {
        let folder = to.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(ForkError::io("make the folder", folder))?;
        let gitdir = workspace.join(".git");
        let has_repository = gitdir.symlink_metadata().is_ok_and(|found| found.is_dir());
        if mode == record::Mode::Git && has_repository && refuse_leading_out(&gitdir).is_ok() {
            self.make_independent_or_not(workspace)?;
            match self.commit_rest(workspace).and_then(|()| move_to(&gitdir, to)) {
                Ok(()) => return finish(workspace, to),
                Err(error) if may_pass(&error) => return Err(error),
                // What git cannot take up, or we, is kept as it stands.
                Err(_) => {}
            }
        }
        let is_repository = |of: &Path| of.join("HEAD").is_file() && of.join("objects").is_dir();
        if mode == record::Mode::Git && is_repository(to) {
            return finish(workspace, to);
        }
        if workspace.symlink_metadata().is_ok() {
            // There never was a repository, it is none any more, or one that leads elsewhere: the tree is kept as it is.
            move_to(workspace, to)?;
        } else {
            fs::create_dir_all(to).map_err(ForkError::io("make the folder", to))?;
        }
        keep_notes(workspace, to)?;
        let commit = if mode == record::Mode::Git { named_in(&to.join(".git")).tip } else { None };
        Ok(KeptWork { commit, uncommitted: None })
    }

    /// What is kept shall need nothing of the parent. Where that cannot be, it goes on borrowing.
    fn make_independent_or_not(&self, workspace: &Path) -> Result<(), ForkError> {
        match self.make_independent(workspace) {
            Err(error) if may_pass(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn commit_rest(&self, workspace: &Path) -> Result<(), ForkError> {
        let (git, gitdir) = (self.git()?, workspace.join(".git"));
        // What an earlier try left, or whoever was killed.
        for left in ["index.lock", "refs/staled/uncommitted.lock"] {
            drop(fs::remove_file(gitdir.join(left)));
        }
        let look = self.look(workspace)?;
        let dirty: BTreeSet<Vec<u8>> =
            self.uncommitted(&look)?.into_iter().map(|one| one.path.into_os_string().into_vec()).collect();
        let is_apart = |path: &&Path| is_nested(path) || is_folder_alone(workspace, path, &dirty);
        let apart: Vec<&Path> = dirty.iter().map(|path| as_path(path)).filter(is_apart).collect();
        apart.into_iter().try_for_each(|path| set_apart(workspace, path))?;
        let dirty: Vec<&Path> =
            dirty.iter().map(|path| as_path(path)).filter(|path| !is_nested(path)).collect();
        if dirty.is_empty() {
            return Ok(());
        }
        if look.refs.is_in_the_way(UNCOMMITTED) {
            let why = format!("{UNCOMMITTED} cannot be named beside what the fork named");
            return Err(ForkError::refused("fork_failed", why));
        }
        let of = || -> Result<_, ForkError> {
            let mut command = look.command_ignoring()?;
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
            |path: &&&Path| workspace.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
        for path in dirty.iter().filter(stands) {
            // Git says nothing of a name that it does not take, such as `git~1`.
            if !taken.contains(path.as_os_str().as_bytes()) {
                set_apart(workspace, path)?;
            }
        }
        let tree = git.run("write what is not committed", of()?.arg("write-tree"))?;
        let mut commit = of()?;
        commit.args(["commit-tree", "-m", "What was not committed when the fork was discarded"]);
        if let Some(head) = &look.refs.tip {
            commit.args(["-p", head]);
        }
        commit.arg(String::from_utf8_lossy(&tree).trim());
        let commit = git.run("commit what is not committed", &mut commit)?;
        let id = String::from_utf8_lossy(&commit).trim().to_owned();
        name(&gitdir, &id)
    }
}

/// Whether an error is the machine's, which goes by, so that the end of a fork can wait for it. What the fork itself is like
/// stays so.
fn may_pass(error: &ForkError) -> bool {
    let ForkError::Io { source, .. } = error else { return false };
    let passes =
        [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ROFS];
    Errno::from_io_error(source).is_some_and(|found| passes.contains(&found))
}

/// Whether a folder stands where git would tell of a file or take up a repository by its name alone. One with files that
/// git tells of is taken up file by file.
fn is_folder_alone(workspace: &Path, path: &Path, dirty: &BTreeSet<Vec<u8>>) -> bool {
    let below = [path.as_os_str().as_bytes(), b"/"].concat();
    let has_told = || dirty.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below));
    workspace.join(path).symlink_metadata().is_ok_and(|found| found.is_dir()) && !has_told()
}

/// A name in a folder that nothing has: this one, or it with a number.
fn free(folder: &Path, name: &str) -> PathBuf {
    let names = std::iter::once(name.to_owned()).chain((1..).map(|no: u64| format!("{name}-{no}")));
    let mut places = names.map(|name| folder.join(name));
    // Where that cannot be told, whoever takes the name is told why.
    places.find(|place| place.symlink_metadata().is_err()).expect("because no folder has all names")
}

/// What was a fork's repository becomes one without a tree.
fn finish(workspace: &Path, to: &Path) -> Result<KeptWork, ForkError> {
    keep_notes(workspace, to)?;
    if refuse_leading_out(to).is_err() {
        return Ok(KeptWork::default());
    }
    for left in ["staled.index", "staled.index.lock", "config.lock"] {
        drop(fs::remove_file(to.join(left)));
    }
    configure(workspace, to)?;
    let Refs { tip, ids } = named_in(to);
    Ok(KeptWork { commit: tip, uncommitted: ids.get(UNCOMMITTED.as_bytes()).cloned() })
}

/// What is named in a repository that is kept, as far as it can be told.
fn named_in(gitdir: &Path) -> Refs {
    if refuse_leading_out(gitdir).is_err() {
        return Refs::default();
    }
    Refs::read(gitdir).unwrap_or_default()
}

/// Gives what is kept a configuration that we wrote, without a tree. Another one stays beside it. May be done again.
fn configure(workspace: &Path, to: &Path) -> Result<(), ForkError> {
    let Some(text) = optional(&kept_of(workspace).join("config"))? else { return Ok(()) };
    let text = String::from_utf8_lossy(&text).replacen("bare = false", "bare = true", 1);
    let config = to.join("config");
    if optional(&config).is_ok_and(|found| found.as_deref() == Some(text.as_bytes())) {
        return Ok(());
    }
    if config.symlink_metadata().is_ok() {
        fs::rename(&config, free(to, THEIRS)).map_err(ForkError::io("rename", &config))?;
    }
    drop(fs::remove_file(to.join(NEW)));
    let new = free(to, NEW);
    write(&new, text.as_bytes())?;
    fs::rename(&new, &config).map_err(ForkError::io("rename", &new))
}

/// Names a commit in a fork's repository, step by step through folders that are none but its own.
fn name(gitdir: &Path, id: &str) -> Result<(), ForkError> {
    let named = || -> rustix::io::Result<()> {
        let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(CWD, gitdir, folder, Mode::empty())?;
        let (parts, last) = UNCOMMITTED.rsplit_once('/').expect("because it is a name below others");
        for part in parts.split('/') {
            match mkdirat(&at, part, Mode::RWXU) {
                Err(error) if error != rustix::io::Errno::EXIST => return Err(error),
                _ => at = openat(&at, part, folder, Mode::empty())?,
            }
        }
        // By this name it is none of git's refs yet.
        let new = format!("{last}.lock");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&at, &new, flags, Mode::from_raw_mode(0o644))?;
        io::Write::write_all(&mut fs::File::from(file), format!("{id}\n").as_bytes())
            .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))?;
        renameat(&at, &new, &at, last)
    };
    named().map_err(|error| ForkError::io("name what is not committed in", gitdir)(error.into()))
}

/// The scratchpad goes along if there is anything in it: notes, or a work tree that was put there.
fn keep_notes(workspace: &Path, to: &Path) -> Result<(), ForkError> {
    let notes = workspace.with_file_name("scratchpad");
    let any = match fs::read_dir(&notes) {
        Ok(mut entries) => entries.next().is_some(),
        // What cannot be listed may hold some.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    if any { move_to(&notes, &free(to, NOTES)) } else { Ok(()) }
}

/// Moves what git does not take up beside the repository.
fn set_apart(workspace: &Path, path: &Path) -> Result<(), ForkError> {
    let place = workspace.join(".git").join(NESTED).join(path);
    if place.symlink_metadata().is_ok() {
        let why = format!("{} is taken, so {} cannot be kept there", place.display(), path.display());
        return Err(ForkError::refused("fork_failed", why));
    }
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

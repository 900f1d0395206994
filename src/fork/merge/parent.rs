//! The parent's repository, as it must be for a merge: at rest, on the fork's branch, with nothing uncommitted.

use super::super::ForkError;
use super::super::git::Git;
use super::{Judged, first, line, names, shown};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What git leaves in its folder while something is under way.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("index.lock", "another git, or one that was killed: if none runs, remove that file;"),
];

/// The repository, and how git is run in it.
#[derive(Debug)]
pub(super) struct Parent<'a> {
    pub(super) git: &'a Git,
    pub(super) tree: &'a Path,
    /// What is this work tree's own.
    gitdir: PathBuf,
    /// What all its work trees share.
    pub(super) common: PathBuf,
    /// Settings that keep git from running what the repository names, and those of the user's that say how lines end.
    settings: Vec<(OsString, String)>,
}

/// Where HEAD is.
#[derive(Debug)]
pub(super) struct Place {
    /// What is to be moved: the branch, or HEAD itself.
    pub(super) name: String,
    branch: Option<String>,
    commit: Option<String>,
}

impl<'a> Parent<'a> {
    pub(super) fn open(git: &'a Git, tree: &'a Path) -> Result<Self, ForkError> {
        let gitdir = gitdir(tree)?;
        let common = match std::fs::read(gitdir.join("commondir")) {
            Ok(bytes) => gitdir.join(OsStr::from_bytes(bytes.trim_ascii_end())),
            Err(_) => gitdir.clone(),
        };
        let mut parent = Self { git, tree, gitdir, common, settings: Vec::new() };
        parent.settings = parent.neutral()?;
        Ok(parent)
    }

    /// A git that knows this repository and runs nothing of it.
    pub(super) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.git.of(&self.gitdir, Some(self.tree));
        // By variables, for a driver's name may hold whatever `-c` would take for the end of a key.
        command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (number, (key, value)) in self.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        command.args(args);
        command
    }

    /// Filters that do nothing; and merge drivers that fail, for one that does nothing would take our side unseen.
    fn neutral(&self) -> Result<Vec<(OsString, String)>, ForkError> {
        let drivers = r"^(filter|merge)\..*\.(clean|smudge|process|required|driver)$";
        let mut asked = self.command(["config", "-z", "--name-only", "--get-regexp", drivers]);
        let (_, keys) = self.git.tells("list its drivers", &mut asked)?;
        let off = |key: &[u8]| {
            if key.ends_with(b".required") || key.ends_with(b".driver") { "false" } else { "" }
        };
        let keys = keys.split(|byte| *byte == 0).filter(|key| !key.is_empty());
        // The name of a driver may be any bytes.
        let mut settings: Vec<_> =
            keys.map(|key| (OsStr::from_bytes(key).to_owned(), off(key).to_owned())).collect();
        for key in ["core.autocrlf", "core.eol"] {
            let mut asked = self.git.as_user(self.tree);
            let (set, value) = self.git.tells("read a setting", asked.args(["config", "--get", key]))?;
            settings.extend(set.then(|| (key.into(), line(&value))));
        }
        Ok(settings)
    }

    /// Where it is noted what is about to happen.
    pub(super) fn note(&self) -> PathBuf {
        self.gitdir.join("staled-merge")
    }

    /// The locks that git takes to move a branch, and the tree with it.
    pub(super) fn locks(&self, name: &str) -> [PathBuf; 3] {
        let branch = self.common.join(format!("{name}.lock"));
        [self.gitdir.join("index.lock"), self.gitdir.join("HEAD.lock"), branch]
    }

    /// Where a git that works on it is at home, links resolved.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let folders = [self.tree, &self.gitdir, &self.common].into_iter();
        folders.filter_map(|folder| std::fs::canonicalize(folder).ok()).collect()
    }

    pub(super) fn refuse_busy(&self) -> Result<(), ForkError> {
        let busy = UNDER_WAY.iter().find(|(file, _)| self.gitdir.join(file).exists());
        busy.map_or(Ok(()), |(file, what)| {
            let file = self.gitdir.join(file);
            let why = format!("{what} is under way in {} ({}); end it first", shown(self.tree), shown(&file));
            Err(ForkError::refused("parent_busy", why))
        })
    }

    pub(super) fn place(&self) -> Result<Place, ForkError> {
        let mut asked = self.command(["symbolic-ref", "--quiet", "HEAD"]);
        let (on_branch, name) = self.git.tells("read HEAD", &mut asked)?;
        let mut asked = self.command(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let (born, commit) = self.git.tells("read HEAD", &mut asked)?;
        let branch = on_branch.then(|| line(&name));
        let name = branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        Ok(Place { name, branch, commit: born.then(|| line(&commit)) })
    }

    pub(super) fn refuse_dirty(&self) -> Result<(), ForkError> {
        // What a submodule holds git would ask by running itself in it; which commit it is at, it reads.
        let asked = [
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=no",
            "--ignore-submodules=dirty",
        ];
        let changed = self.git.run("look for changes", &mut self.command(asked))?;
        let changed: Vec<PathBuf> = changed
            .split(|byte| *byte == 0)
            .filter_map(|entry| entry.get(3..))
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let why = format!(
            "{} has changes that are not committed ({}); commit or stash them first",
            shown(self.tree),
            first(&changed)
        );
        Err(ForkError::refused("parent_dirty", why))
    }

    /// Files that nobody tracks, ignored or not, stay: the merge does not write over them, nor over a folder that holds
    /// some or a file where it makes a folder, which git would do to what is ignored.
    pub(super) fn refuse_overwriting(&self, added: &[PathBuf], gone: &[PathBuf]) -> Result<(), ForkError> {
        let gone: BTreeSet<&PathBuf> = gone.iter().collect();
        let mut there = BTreeSet::new();
        for path in added {
            let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
            let is_file = |path: &Path| {
                std::fs::symlink_metadata(self.tree.join(path)).is_ok_and(|found| !found.is_dir())
            };
            there.extend(above.filter(|above| is_file(above)).map(Path::to_owned));
            self.files_at(path, &mut there)?;
        }
        let there: Vec<PathBuf> = there.into_iter().filter(|path| !gone.contains(path)).collect();
        if there.is_empty() {
            return Ok(());
        }
        let there: Vec<PathBuf> = there.into_iter().collect();
        let why = format!(
            "the merge would write over untracked files of {} ({}); move them away first",
            shown(self.tree),
            first(&there)
        );
        Err(ForkError::refused("parent_dirty", why))
    }

    /// The file of that name, or all that are in the folder of that name.
    fn files_at(&self, path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), ForkError> {
        let mut next = vec![path.to_owned()];
        while let Some(path) = next.pop() {
            let place = self.tree.join(&path);
            match std::fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() => {
                    for entry in std::fs::read_dir(&place).map_err(ForkError::io("list", &place))? {
                        let name = entry.map_err(ForkError::io("list", &place))?.file_name();
                        next.push(path.join(name));
                    }
                }
                Ok(_) => drop(files.insert(path)),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The paths that a command lists.
    pub(super) fn names(&self, what: &'static str, mut command: Command) -> Result<Vec<PathBuf>, ForkError> {
        Ok(names(&self.git.run(what, &mut command)?))
    }
}

impl Place {
    pub(super) fn refuse_moved(&self, of: &Judged) -> Result<(), ForkError> {
        let began =
            of.branch.as_deref().map(|name| format!("refs/heads/{}", name.trim_start_matches("refs/heads/")));
        let refuse = |code, why| Err(ForkError::refused(code, why));
        if self.branch != began {
            let named = |branch: &Option<String>| match branch {
                Some(branch) => format!("branch {}", branch.trim_start_matches("refs/heads/")),
                None => "no branch".to_owned(),
            };
            let why = format!(
                "the fork began on {} and {} is on {} now; check out what it began on, or merge {} yourself",
                named(&began),
                shown(&of.tree),
                named(&self.branch),
                of.fork_branch
            );
            return refuse("parent_moved", why);
        }
        if self.commit.is_none() && of.base.is_some() {
            let why = format!(
                "{} is gone from {}; make it again (`git reflog` shows where it was)",
                self.name,
                shown(&of.tree)
            );
            return refuse("parent_moved", why);
        }
        if self.commit != of.head {
            return refuse(
                "parent_moved",
                format!("{} moved since it was judged; run it again", shown(&of.tree)),
            );
        }
        Ok(())
    }
}

/// A folder, or a file that says where it is.
fn gitdir(tree: &Path) -> Result<PathBuf, ForkError> {
    let dot_git = tree.join(".git");
    if dot_git.is_dir() {
        return Ok(dot_git);
    }
    let bytes = std::fs::read(&dot_git).map_err(ForkError::io("read", &dot_git))?;
    let target = bytes.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
    let target = target.ok_or_else(|| {
        ForkError::refused("fork_failed", format!("{} does not say gitdir: and a path", shown(&dot_git)))
    })?;
    Ok(tree.join(OsStr::from_bytes(target)))
}

//! The hands against the real git and a naive walk: a fork begins as the same world as its parent, which is never changed.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod canary;
mod copies;
mod end;
mod hidden;
mod hindered;
mod independent;
mod make;
mod named;
mod parents;
mod random;
mod refusals;

use staled::fork::git::Git;
use staled::fork::{ForkError, Hands, Load, Made, Parent, Place};
use staled::protocol::fork::record::{LeftOut, Mode};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A folder with a parent and a folder for its forks.
struct Rig {
    dir: TempDir,
    parent: PathBuf,
    hands: Hands,
}

impl Rig {
    /// With a repository `p` that has one commit.
    fn new() -> Self {
        let rig = Self::empty(&["init", "-q", "p"]);
        rig.write("tracked", "one\n").write("folder/below", "two\n").write(".gitignore", "*.ignored\n");
        git(&rig.parent, &["add", "-A"]);
        git(&rig.parent, &["commit", "-qm", "first"]);
        rig
    }

    /// With whatever this command of git makes at `p`.
    fn empty(args: &[&str]) -> Self {
        let rig = Self::bare();
        git(rig.dir.path(), args);
        rig
    }

    /// With nothing but folders.
    fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        for folder in ["p", "state/forks", "home"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let git = Git::find().map(|git| git.with_home(top.join("home")));
        let hands = Hands::new(git, top.join("state/forks"), 1 << 30);
        Self { parent: top.join("p"), hands, dir }
    }

    fn top(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap()
    }

    fn write(&self, path: &str, content: &str) -> &Self {
        let path = self.parent.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn place(&self, name: &str) -> Place {
        let home = self.top().join("state/forks/s").join(name);
        Place {
            workspace: home.join("workspace"),
            scratchpad: home.join("scratchpad"),
            branch: format!("staled/s/{name}"),
            home,
        }
    }

    fn fork(&self, name: &str) -> (Place, Made) {
        self.fork_of(name, &self.parent, None, None, &[]).unwrap()
    }

    fn fork_of(
        &self,
        name: &str,
        root: &Path,
        mode: Option<Mode>,
        from: Option<&str>,
        copy: &[&str],
    ) -> Result<(Place, Made), ForkError> {
        let (parent, load) = self.surveyed(root, mode, from, copy)?;
        let place = self.place(name);
        let made = self.hands.make(&parent, &load, &place, &|_| {})?;
        Ok((place, made))
    }

    fn surveyed(
        &self,
        root: &Path,
        mode: Option<Mode>,
        from: Option<&str>,
        copy: &[&str],
    ) -> Result<(Parent, Load), ForkError> {
        let parent = self.hands.parent(root, mode, from)?;
        let copy: Vec<PathBuf> = copy.iter().map(PathBuf::from).collect();
        let load = self.hands.survey(&parent, &copy)?;
        Ok((parent, load))
    }

    /// Forks the parent, which must stay as it is to the byte, and compares both.
    fn check(&self, name: &str) -> (Place, Made) {
        let before = snapshot(&self.parent);
        let (place, made) = self.fork(name);
        unchanged(&before, &self.parent);
        same(&self.parent, &place.workspace, &made.left_out);
        (place, made)
    }
}

/// Both have the same status and, but for what is ignored, the same files.
fn same(parent: &Path, workspace: &Path, left: &[LeftOut]) {
    let left: BTreeSet<PathBuf> = left.iter().map(|left| left.path.0.clone()).collect();
    let there = |path: &Path| !path.ancestors().any(|path| left.contains(path));
    let said = |tree: &Path| -> Vec<String> {
        let said = status(tree);
        let said = said.split('\0').filter(|line| {
            let path = line.rsplit(' ').next().unwrap_or_default();
            there(Path::new(path.trim_end_matches('/')))
        });
        said.map(str::to_owned).collect()
    };
    assert_eq!(said(parent), said(workspace), "the status differs");
    assert_eq!(ask(parent, &["ls-files", "-s", "-t"]), ask(workspace, &["ls-files", "-s", "-t"]));
    assert_eq!(ask(parent, &["rev-parse", "HEAD"]), ask(workspace, &["rev-parse", "HEAD"]));
    let ignored = git(parent, &["ls-files", "-z", "-o", "-i", "--exclude-standard"]);
    let ignored: BTreeSet<&Path> = ignored.split('\0').map(Path::new).collect();
    let mut expected = files(parent);
    expected.retain(|path, _| there(path) && !ignored.contains(path.as_path()));
    let found = files(workspace);
    let (expected_names, found_names): (Vec<_>, Vec<_>) = (expected.keys().collect(), found.keys().collect());
    assert_eq!(expected_names, found_names);
    for (path, file) in &expected {
        assert!(found[path] == *file, "{} differs", path.display());
    }
}

/// Every file of a tree but the repository: where a symlink leads, or whether it is executable, when it was changed, and
/// what is in it.
fn files(tree: &Path) -> BTreeMap<PathBuf, (bool, bool, i64, i64, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(tree.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let found = fs::symlink_metadata(tree.join(&path)).unwrap();
            if path == Path::new(".git") {
                continue;
            }
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = if found.is_symlink() {
                fs::read_link(tree.join(&path)).unwrap().as_os_str().as_bytes().to_vec()
            } else if found.is_file() {
                fs::read(tree.join(&path)).unwrap()
            } else {
                Vec::new()
            };
            let executable = found.is_file() && found.mode() & 0o100 != 0;
            files.insert(path, (found.is_symlink(), executable, found.mtime(), found.mtime_nsec(), bytes));
        }
    }
    files
}

/// Everything of a folder by name, with all that must not change when it is read.
type Snapshot = BTreeMap<PathBuf, (u32, i64, i64, u64, Vec<u8>)>;

/// The folder is what it was to the byte, the repository in it too.
fn unchanged(before: &Snapshot, folder: &Path) {
    let after = snapshot(folder);
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let changed: Vec<_> = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(changed.is_empty(), "these changed: {changed:?}");
}

fn snapshot(folder: &Path) -> Snapshot {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if found.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path, (found.mode(), found.mtime(), found.mtime_nsec(), found.ino(), bytes));
        }
    }
    all
}

/// Makes folders in a folder, each in the one before, however long that makes their path.
fn deepen(folder: &Path, name: &str, depth: usize) {
    let flags = rustix::fs::OFlags::DIRECTORY;
    let mut opened = rustix::fs::open(folder, flags, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&opened, name, rustix::fs::Mode::from(0o755)).unwrap();
        opened = rustix::fs::openat(&opened, name, flags, rustix::fs::Mode::empty()).unwrap();
    }
}

fn status(tree: &Path) -> String {
    git(tree, &["status", "--porcelain=v2", "-z", "--untracked-files=all"])
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.current_dir(dir).args([
        "-c",
        "init.defaultBranch=main",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "gc.auto=0",
    ]);
    git.args(["-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"]).args(args);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(key);
    }
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
    git.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b.c"), ("GIT_OPTIONAL_LOCKS", "0")]);
    git.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b.c"), ("HOME", "/nonexistent")]);
    git.output().expect("git runs")
}

/// What git prints; the test fails when it fails.
fn git(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

/// What git prints, or none when it fails.
fn ask(dir: &Path, args: &[&str]) -> Option<String> {
    let output = run(dir, args);
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What was left out, as `path why`.
fn left(made: &[LeftOut]) -> Vec<String> {
    made.iter().map(|left| format!("{} {}", left.path.0.display(), left.why)).collect()
}

fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Ends whoever works in the background, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

//! What a fork takes from the repository of its parent, and how a repository of its own begins.
//!
//! Promise: of the parent's configuration only what decides how bytes map to objects is taken, nothing that names a program
//! or a remote; its tags are, other refs are not. Objects are shared at first, by naming where the parent has them.

use super::ForkError;
use super::git::Git;
use super::load::left_out;
use super::look;
use super::objects;
use super::parent::Parent;
use super::shared::note_of;
use crate::protocol::fork::record::LeftOut;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the objects that are shared.
const SHARED: &str = "objects/info/alternates";

/// How often a listing is tried while somebody else writes the index.
const TRIES: usize = 5;

/// What decides how bytes map to objects, and what of the tree is meant to be there.
const KEYS: &str = "^(core\\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|sparsecheckout|sparsecheckoutcone)|index\\.sparse|extensions\\.partialclone|remote\\..*\\.promisor)$";

/// Something that is under way in the parent and stays there: its file in the repository.
const UNDER_WAY: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"];

/// What belongs to git of what is carried over.
#[derive(Debug)]
pub(super) struct Repository {
    /// The index, and its own times, by which git tells what may have changed unseen.
    pub(super) index: Option<Index>,
    /// Folders of submodules, which are empty in the fork.
    submodules: Vec<PathBuf>,
    /// Files below `.git`.
    files: Vec<(&'static str, Vec<u8>)>,
    config: String,
    sha256: bool,
}

/// An index as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) bytes: Vec<u8>,
    pub(super) changed: (i64, i64),
    /// What it is an addition to, where it is split.
    shared: Vec<(PathBuf, Vec<u8>)>,
}

impl Repository {
    /// Reads it, with the paths that are tracked, or untracked and not ignored.
    pub(super) fn read(
        git: &Git,
        parent: &Parent,
        forks: &Path,
        left: &mut Vec<LeftOut>,
    ) -> Result<(Self, Vec<PathBuf>), ForkError> {
        let (Some(gitdir), Some(common)) = (&parent.gitdir, &parent.repository) else {
            return Err(ForkError::refused("fork_not_a_work_tree", "the parent has no repository"));
        };
        let set = git.effective(gitdir, KEYS)?;
        let excludes = git.excludes(gitdir, &parent.tree)?;
        let partial =
            set.iter().any(|(key, _)| key == "extensions.partialclone" || key.ends_with(".promisor"));
        let mut files = Vec::new();
        let per_tree = [("info/sparse-checkout", gitdir)];
        for (name, place) in [("info/exclude", common), ("info/attributes", common), ("shallow", common)]
            .into_iter()
            .chain(per_tree)
        {
            if let Some(bytes) = optional(&place.join(name))? {
                files.push((name, bytes));
            }
        }
        let stores = objects::stores(&common.join("objects"))?;
        files.push((SHARED, objects::alternates(&stores)));
        let mut tags = git.of(gitdir, None);
        tags.args(["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"]);
        let tags = git.run("list the tags", &mut tags)?;
        files.push(("packed-refs", [b"# pack-refs with: sorted \n", tags.as_slice()].concat()));
        let mut repository = Self {
            index: None,
            submodules: Vec::new(),
            files,
            config: config(&set, parent.sha256, excludes.as_deref().filter(|file| file.is_file())),
            sha256: parent.sha256,
        };
        if partial {
            left.push(left_out(Path::new(".git/objects"), "partial_clone"));
        }
        if parent.from.is_some() {
            return Ok((repository, Vec::new()));
        }
        let under_way = UNDER_WAY.iter().filter(|name| gitdir.join(name).symlink_metadata().is_ok());
        left.extend(under_way.map(|name| left_out(&Path::new(".git").join(name), "in_progress")));
        let paths = repository.list(git, parent, gitdir, forks, left)?;
        Ok((repository, paths))
    }

    /// Lists the index and the tree, and keeps the index that was listed.
    fn list(
        &mut self,
        git: &Git,
        parent: &Parent,
        gitdir: &Path,
        forks: &Path,
        left: &mut Vec<LeftOut>,
    ) -> Result<Vec<PathBuf>, ForkError> {
        let mut command = git.of(gitdir, Some(&parent.tree));
        git.ignoring(gitdir, &parent.tree, &mut command)?;
        command.args(["ls-files", "-z", "-t", "-s", "-c", "-o", "--exclude-standard"]);
        for _ in 0..TRIES {
            let before = Index::read(gitdir)?;
            let (mut index, mut apart) = (before.clone(), None);
            if let Some(index) = index.as_mut().filter(|index| !index.shared.is_empty()) {
                // Git leaves a note in the repository when it reads a split index, so it reads a whole one elsewhere.
                let place = Apart::new(forks);
                index.join(git, &place.0, self.name_len())?;
                command.env("GIT_INDEX_FILE", place.0.join(".git/index"));
                apart = Some(place);
            }
            if index.as_ref().is_some_and(|index| is_sparse(&index.bytes)) {
                // Filling in what a sparse index leaves out would touch objects of the parent.
                command.arg("--sparse");
            }
            let listed = git.run("list the files", &mut command)?;
            drop(apart);
            if before == Index::read(gitdir)? {
                self.index = index;
                return Ok(self.sort(&parent.tree, &listed, left));
            }
        }
        let why = format!(
            "the index of {} does not hold still: try again when git is done there",
            gitdir.display()
        );
        Err(ForkError::refused("fork_failed", why))
    }

    /// Tells files from what is none of the repository's own.
    fn sort(&mut self, tree: &Path, listed: &[u8], left: &mut Vec<LeftOut>) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| line.len() > 2) {
            let (tag, rest) = (line[0], &line[2..]);
            if tag == b'?' {
                match rest.strip_suffix(b"/") {
                    Some(nested) => left.push(left_out(as_path(nested), "nested_repository")),
                    None => paths.push(as_path(rest).to_owned()),
                }
                continue;
            }
            let Some(at) = rest.iter().position(|byte| *byte == b'\t') else { continue };
            let path = as_path(&rest[at + 1..]).to_owned();
            if rest.starts_with(b"160000 ") {
                left.push(left_out(&path, "submodule"));
                if fs::symlink_metadata(tree.join(&path)).is_ok_and(|found| found.is_dir()) {
                    self.submodules.push(path);
                }
            } else {
                paths.push(path);
            }
        }
        paths
    }

    /// Makes a repository of it, whose branch begins at this commit.
    pub(super) fn begin(&self, workspace: &Path, branch: &str, base: Option<&str>) -> Result<(), ForkError> {
        let gitdir = workspace.join(".git");
        skeleton(&gitdir, &self.config, branch)?;
        look::keep(workspace, "config", self.config.as_bytes())?;
        for (name, bytes) in &self.files {
            write(&gitdir.join(name), bytes)?;
            look::keep(workspace, name, bytes)?;
            if *name == SHARED {
                write(&note_of(workspace), bytes)?;
            }
        }
        if let Some(base) = base {
            let file = gitdir.join("refs/heads").join(branch);
            let folder = file.parent().unwrap_or(&gitdir);
            fs::create_dir_all(folder).map_err(ForkError::io("make the folder", folder))?;
            write(&file, format!("{base}\n").as_bytes())?;
        }
        for folder in self.submodules.iter().map(|path| workspace.join(path)) {
            // Where a symlink of the parent stands in the way there is no submodule.
            drop(fs::create_dir_all(&folder));
        }
        Ok(())
    }

    /// How long the name of an object is, in bytes.
    pub(super) fn name_len(&self) -> usize {
        if self.sha256 { 32 } else { 20 }
    }
}

/// Whether whole folders stand as one entry in an index.
pub(super) fn is_sparse(index: &[u8]) -> bool {
    // The extension is among the last bytes; the same letters elsewhere do no harm.
    index.windows(8).any(|bytes| bytes == b"sdir\0\0\0\0")
}

impl Index {
    fn read(gitdir: &Path) -> Result<Option<Self>, ForkError> {
        let path = gitdir.join("index");
        let failed = || ForkError::io("read", &path);
        let mut file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed())?,
        };
        let mut bytes = Vec::new();
        // Git writes it anew and renames, so what is open holds still.
        let found = file.metadata().map_err(failed())?;
        file.read_to_end(&mut bytes).map_err(failed())?;
        let mut shared = Vec::new();
        let entries = fs::read_dir(gitdir).map_err(ForkError::io("list", gitdir))?.flatten();
        for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex.")) {
            if let Some(bytes) = optional(&entry.path())? {
                shared.push((entry.file_name().into(), bytes));
            }
        }
        Ok(Some(Self { bytes, changed: (found.mtime(), found.mtime_nsec()), shared }))
    }

    /// Makes one of it and what it is an addition to, in a repository that is made for it.
    fn join(&mut self, git: &Git, place: &Path, name_len: usize) -> Result<(), ForkError> {
        let gitdir = place.join(".git");
        skeleton(&gitdir, &config(&[], name_len == 32, None), "apart")?;
        write(&gitdir.join("index"), &self.bytes)?;
        for (name, bytes) in self.shared.drain(..) {
            write(&gitdir.join(name), &bytes)?;
        }
        let mut command = git.of(&gitdir, Some(place));
        command.args(["-c", "core.splitIndex=false", "update-index", "--no-split-index"]);
        git.run("make one index of a split one", &mut command)?;
        self.bytes = fs::read(gitdir.join("index")).map_err(ForkError::io("read", &gitdir))?;
        Ok(())
    }
}

/// A folder for a moment.
pub(super) struct Apart(pub(super) PathBuf);

impl Apart {
    pub(super) fn new(forks: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let no = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(forks.join(format!(".survey-{}-{no}", std::process::id())))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // What is left the next start removes.
        drop(fs::remove_dir_all(&self.0));
    }
}

impl super::Hands {
    /// The configuration that a repository like the parent's is looked at with.
    pub(super) fn config_of(&self, parent: &Parent, gitdir: &Path) -> Result<Vec<u8>, ForkError> {
        Ok(config(&self.git()?.effective(gitdir, KEYS)?, parent.sha256, None).into_bytes())
    }

    /// Removes what surveys left that were killed.
    pub fn sweep(&self) {
        let entries = fs::read_dir(&self.forks).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(b".survey-")) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// What git takes for a repository, all but its objects.
fn skeleton(gitdir: &Path, config: &str, branch: &str) -> Result<(), ForkError> {
    for folder in ["info", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        let folder = gitdir.join(folder);
        fs::create_dir_all(&folder).map_err(ForkError::io("make the folder", &folder))?;
    }
    write(&gitdir.join("config"), config.as_bytes())?;
    write(&gitdir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())
}

/// The configuration of a repository of our own.
fn config(set: &[(String, Vec<u8>)], sha256: bool, excludes: Option<&Path>) -> String {
    use std::fmt::Write as _;
    let version = u8::from(sha256);
    let mut text =
        format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlogallrefupdates = true\n");
    for (key, value) in set {
        let plain = !value.is_empty() && value.iter().all(u8::is_ascii_alphanumeric);
        if let (Some(name), true) = (key.strip_prefix("core."), plain) {
            let _ = writeln!(text, "\t{name} = {}", String::from_utf8_lossy(value));
        }
    }
    if let Some(excludes) = excludes.and_then(Path::to_str) {
        let quoted = excludes.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = writeln!(text, "\texcludesFile = \"{quoted}\"");
    }
    if set.iter().any(|(key, value)| key == "index.sparse" && value == b"true") {
        text.push_str("[index]\n\tsparse = true\n");
    }
    if sha256 {
        text.push_str("[extensions]\n\tobjectformat = sha256\n");
    }
    // What git does unasked would hold up whoever ends the fork, and a fork lives for a day.
    text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
    text
}

pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// What is in a file; none where there is no such file.
pub(super) fn optional(path: &Path) -> Result<Option<Vec<u8>>, ForkError> {
    let mut bytes = Vec::new();
    match open_file(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ForkError::io("read", path)(error)),
    }
}

/// Opens a file that somebody else may have made. A pipe, which waits for a writer, is none.
pub(super) fn open_file(path: &Path) -> io::Result<fs::File> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), ForkError> {
    fs::write(path, bytes).map_err(ForkError::io("write", path))
}

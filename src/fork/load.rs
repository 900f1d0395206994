//! What of a parent is carried over into its forks: looked up once, however many forks are made of it.
//!
//! Promise: what a name leads to is never taken for the name, what is not carried over is named with the reason, and an index
//! is read together with what it lists.

use super::copy::{open_below, open_folder, why};
use super::parent::Parent;
use super::repository::Repository;
use super::{ForkError, Hands};
use crate::protocol::fork::record::{LeftOut, Mode};
use crate::protocol::path::WirePath;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What is carried over.
#[derive(Debug, Default)]
pub struct Load {
    /// Folders, those above before those below.
    pub(super) folders: Vec<Folder>,
    /// What is not, and why.
    pub left_out: Vec<LeftOut>,
    /// What was asked for and is not there.
    pub missing: Vec<PathBuf>,
    /// How many files there are.
    pub files: u64,
    /// How long they are together.
    pub bytes: u64,
    /// What belongs to git.
    pub(super) repository: Option<Repository>,
}

/// A folder, and what is carried over of what is in it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) names: Vec<OsString>,
}

/// Something that is not carried over.
pub(super) fn left_out(path: &Path, why: &str) -> LeftOut {
    LeftOut { path: WirePath::from(path), why: why.to_owned() }
}

impl Hands {
    /// What of a parent is carried over, with what was asked for besides: paths below the session's root.
    pub fn survey(&self, parent: &Parent, copy: &[PathBuf]) -> Result<Load, ForkError> {
        let mut found = Found {
            tree: open_folder(&parent.tree)?,
            root: &parent.tree,
            whole: parent.whole,
            keeps_empty: parent.mode == Mode::Copy,
            names: BTreeMap::new(),
        };
        let mut load = Load::default();
        if parent.gitdir.is_some() {
            let (repository, listed) =
                Repository::read(self.git()?, parent, &self.forks, &mut load.left_out)?;
            listed.into_iter().for_each(|path| found.add(path));
            load.repository = Some(repository);
        } else {
            found.walk(PathBuf::new(), &mut load.left_out)?;
        }
        for path in copy {
            let below = parent.within.join(inside(path)?);
            if !found.ask_for(below, &mut load.left_out)? {
                load.missing.push(path.clone());
            }
        }
        found.measure(&mut load);
        load.left_out.sort_by(|a, b| (&a.path, &a.why).cmp(&(&b.path, &b.why)));
        load.left_out.dedup();
        Ok(load)
    }
}

/// A path that stays below where it begins, and out of the repository.
fn inside(path: &Path) -> Result<PathBuf, ForkError> {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let stays = plain.components().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
    if stays && !plain.as_os_str().is_empty() {
        return Ok(plain);
    }
    let why = format!("copy[] names paths below the session's root and outside .git, not {}", path.display());
    Err(ForkError::refused("fork_copy_outside", why))
}

/// Names by the folder that they are in.
struct Found<'a> {
    tree: OwnedFd,
    root: &'a Path,
    whole: bool,
    keeps_empty: bool,
    names: BTreeMap<PathBuf, BTreeSet<OsString>>,
}

impl Found<'_> {
    fn add(&mut self, path: PathBuf) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        if let Some(names) = self.names.get_mut(folder) {
            names.insert(name.to_owned());
        } else {
            self.names.insert(folder.to_owned(), BTreeSet::from([name.to_owned()]));
        }
    }

    /// Adds what was asked for; whether it is there.
    fn ask_for(&mut self, path: PathBuf, left: &mut Vec<LeftOut>) -> Result<bool, ForkError> {
        let folder = open_below(&self.tree, path.parent().unwrap_or(Path::new("")));
        let name = path.file_name().unwrap_or_default();
        let stat = folder.and_then(|folder| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => self.walk(path, left)?,
            Ok(_) => self.add(path),
            Err(error) if why(error) == "vanished" => return Ok(false),
            Err(error) => left.push(left_out(&path, why(error))),
        }
        Ok(true)
    }

    /// Adds all that is below a folder.
    fn walk(&mut self, top: PathBuf, left: &mut Vec<LeftOut>) -> Result<(), ForkError> {
        let mut folders = vec![top];
        while let Some(path) = folders.pop() {
            let failed = |error: Errno| ForkError::io("list", &self.root.join(&path))(error.into());
            let opened = match open_below(&self.tree, &path) {
                Ok(opened) => opened,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(failed(error)),
                Err(error) => {
                    left.push(left_out(&path, why(error)));
                    continue;
                }
            };
            let mut names = BTreeSet::new();
            for entry in Dir::read_from(&opened).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                let below = path.join(name);
                let kind = match entry.file_type() {
                    FileType::Unknown => rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                    kind => kind,
                };
                if name == ".git" && !self.takes(&below, kind) {
                    let why =
                        if kind == FileType::Directory { "nested_repository" } else { "linked_repository" };
                    left.push(left_out(&below, why));
                } else if kind == FileType::Directory {
                    folders.push(below);
                } else {
                    names.insert(name.to_owned());
                }
            }
            self.names.entry(path).or_default().extend(names);
        }
        Ok(())
    }

    /// Whether a `.git` goes along: one that leads to a repository outside would share it.
    fn takes(&self, path: &Path, kind: FileType) -> bool {
        if !self.whole {
            return false;
        }
        if kind == FileType::Directory {
            return true;
        }
        let place = self.root.join(path);
        let text = std::fs::read(&place).unwrap_or_default();
        let Some(leads) = text.strip_prefix(b"gitdir: ") else { return false };
        let leads = Path::new(OsStr::from_bytes(leads.trim_ascii_end()));
        let folder = place.parent().unwrap_or(self.root).join(leads);
        leads.is_relative() && std::fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with(self.root))
    }

    /// What is there of it, in the order in which it is copied.
    fn measure(self, load: &mut Load) {
        for (path, names) in self.names {
            let opened = match open_below(&self.tree, &path) {
                Ok(opened) => opened,
                // What git lists and is not there was deleted.
                Err(error) if why(error) == "vanished" => continue,
                Err(error) => {
                    load.left_out.push(left_out(&path, why(error)));
                    continue;
                }
            };
            let keeps = self.keeps_empty || names.is_empty();
            let mut there = Vec::with_capacity(names.len());
            for name in names {
                match rustix::fs::statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                        FileType::RegularFile | FileType::Symlink => {
                            load.files += 1;
                            load.bytes += stat.st_size as u64;
                            there.push(name);
                        }
                        // A folder where git knows a file: what is in it is listed by itself.
                        FileType::Directory => {}
                        _ => load.left_out.push(left_out(&path.join(name), "special")),
                    },
                    Err(error) if why(error) == "vanished" => {}
                    Err(error) => load.left_out.push(left_out(&path.join(name), why(error))),
                }
            }
            if keeps || !there.is_empty() {
                load.folders.push(Folder { path, names: there });
            }
        }
    }
}

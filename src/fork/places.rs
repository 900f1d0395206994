//! Where a path leads, and what else is the same place: symlinks, `/proc`, bind mounts and hard links.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Symlinks that are followed before it is called a loop; the kernel's own number.
const LINKS_MAX: usize = 40;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Followed {
    /// Through no symlink. What is missing of it at the end is written as it was.
    pub(super) path: PathBuf,
    /// The name itself, where it stands: another path only if it is a symlink.
    pub(super) entry: PathBuf,
}

/// Follows an absolute path as the kernel does on behalf of somebody else.
pub(super) fn follow(path: &Path) -> Result<Followed, String> {
    if !path.is_absolute() {
        return Err("it is not absolute".to_owned());
    }
    let mut walk =
        Walk { here: PathBuf::from("/"), ahead: VecDeque::new(), links: 0, entry: None, missing: false };
    walk.push(path);
    while let Some(name) = walk.ahead.pop_front() {
        walk.step(&name)?;
    }
    Ok(Followed { entry: walk.entry.unwrap_or_else(|| walk.here.clone()), path: walk.here })
}

struct Walk {
    here: PathBuf,
    ahead: VecDeque<OsString>,
    links: usize,
    entry: Option<PathBuf>,
    /// What comes from here on does not exist.
    missing: bool,
}

impl Walk {
    fn push(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front("..".into()),
                Component::RootDir | Component::Prefix(_) | Component::CurDir => {}
            }
        }
        if path.is_absolute() {
            self.here = PathBuf::from("/");
        }
    }

    fn step(&mut self, name: &OsStr) -> Result<(), String> {
        if name == ".." {
            if self.missing {
                return Err(format!("it goes up from {}, which is not there", self.here.display()));
            }
            self.here.pop();
            return Ok(());
        }
        let next = self.here.join(name);
        if self.missing {
            self.here = next;
            return Ok(());
        }
        let found = match std::fs::symlink_metadata(&next) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (self.missing, self.here) = (true, next);
                return Ok(());
            }
            Err(error) => return Err(format!("{}: {error}", next.display())),
        };
        if !found.is_symlink() {
            self.here = next;
            return Ok(());
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err("it leads through too many symlinks".to_owned());
        }
        if self.ahead.is_empty() && self.entry.is_none() {
            self.entry = Some(next.clone());
        }
        let target = self.target(&next)?;
        self.push(&target);
        Ok(())
    }

    /// What a link says. Those of `/proc` say where something is for the process that asks, and that is not us.
    fn target(&self, link: &Path) -> Result<PathBuf, String> {
        let said = std::fs::read_link(link).map_err(|error| format!("{}: {error}", link.display()));
        let Ok(below) = link.strip_prefix("/proc") else { return said };
        let parts: Vec<&OsStr> = below.iter().collect();
        match parts.as_slice() {
            [process] if *process == "self" || *process == "thread-self" => own_process(link, &self.ahead),
            [name] if *name == "mounts" || *name == "net" => Ok(PathBuf::from("/proc").join(said?)),
            [.., name] if *name == "root" => {
                let found =
                    std::fs::metadata(link).map_err(|error| format!("{}: {error}", link.display()))?;
                let ours = std::fs::metadata("/").map_err(|error| format!("/: {error}"))?;
                if is_same(&found, &ours) { Ok(PathBuf::from("/")) } else { Err(elsewhere(link)) }
            }
            // Said by name only, which may be that of something else by now, or of nothing.
            _ => {
                let said = said?;
                let found =
                    std::fs::metadata(link).map_err(|error| format!("{}: {error}", link.display()))?;
                let named = std::fs::metadata(&said).map_err(|_| elsewhere(link))?;
                if is_same(&found, &named) { Ok(said) } else { Err(elsewhere(link)) }
            }
        }
    }
}

/// `/proc/self` is whoever asks. Its root is taken to be ours; what else of it leads somewhere is not known.
fn own_process(link: &Path, ahead: &VecDeque<OsString>) -> Result<PathBuf, String> {
    const LEADING: [&str; 6] = ["cwd", "exe", "fd", "map_files", "ns", "task"];
    let leads = ahead.front().is_some_and(|name| LEADING.iter().any(|leading| name == leading));
    if leads || link.ends_with("thread-self") {
        return Err(format!("{} is another place for each process; name the place itself", link.display()));
    }
    Ok(PathBuf::from("/proc").join(std::process::id().to_string()))
}

fn elsewhere(link: &Path) -> String {
    format!("{} leads where no path is known to lead", link.display())
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// What is mounted where.
pub(super) struct Mounts {
    /// The device, the folder of it that is mounted, and where; the last one at a place is on top.
    all: Vec<(Vec<u8>, PathBuf, PathBuf)>,
}

impl Mounts {
    pub(super) fn read() -> io::Result<Self> {
        let table = std::fs::read("/proc/self/mountinfo")?;
        let mount = |line: &[u8]| {
            let mut fields = line.split(|&byte| byte == b' ').skip(2);
            Some((fields.next()?.to_vec(), unescaped(fields.next()?), unescaped(fields.next()?)))
        };
        Ok(Self { all: table.split(|&byte| byte == b'\n').filter_map(mount).collect() })
    }

    /// Whether a path is the same place as one in a folder, under another mount of the same filesystem.
    pub(super) fn is_alias_in(&self, path: &Path, folder: &Path) -> bool {
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        match (self.place(path), self.place(&folder)) {
            (Some((device, path)), Some((other, folder))) => device == other && path.starts_with(folder),
            _ => false,
        }
    }

    fn place(&self, path: &Path) -> Option<(&[u8], PathBuf)> {
        let over = self.all.iter().enumerate().filter(|(_, (.., point))| path.starts_with(point));
        let (_, (device, root, point)) =
            over.max_by_key(|(number, (.., point))| (point.components().count(), *number))?;
        Some((device, root.join(path.strip_prefix(point).ok()?)))
    }
}

/// A field in which blanks and backslashes are written in octal.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| byte == b'\\') {
            Some(meant) => {
                path.push(meant);
                rest = &after[3..];
            }
            None => {
                path.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Another name of this file in one of these folders, outside of its own. Only a file with several names is looked for.
pub(super) fn same_file_in<'a>(
    path: &Path,
    folders: impl Iterator<Item = &'a Path>,
    own: &[&Path],
) -> Option<PathBuf> {
    let found = std::fs::symlink_metadata(path).ok().filter(|found| found.nlink() > 1 && !found.is_dir())?;
    let mut ahead: Vec<PathBuf> = folders.map(Path::to_owned).collect();
    while let Some(folder) = ahead.pop() {
        // What cannot be listed has gone, or is not ours to read.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_own = || own.iter().any(|own| entry.path().starts_with(own));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_own() {
                ahead.push(entry.path());
            }
            let is_it = || std::fs::symlink_metadata(entry.path()).is_ok_and(|other| is_same(&found, &other));
            if entry.ino() == found.ino()
                && is_it()
                && entry.path().as_os_str().as_bytes() != path.as_os_str().as_bytes()
            {
                return Some(entry.path());
            }
        }
    }
    None
}

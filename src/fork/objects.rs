//! The objects of a fork: shared with its parent at first, then its own.
//!
//! Promise: whenever this ends, or is killed, the fork has all its objects, its own or the parent's. They are copied as files
//! while both repositories are worked in: a pack before its index, whatever is new once more after the parent's are out of
//! reach, and only a repository in which nothing is missing stays alone.

use super::copy::open_below;
use super::own::refuse_leading_out;
use super::repository::{open_file, optional};
use super::shared::{note_of, objects_of};
use super::{ForkError, Hands};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deep git itself looks.
const DEPTH_MAX: usize = 6;
/// How often a store that is being repacked is looked through again.
const ROUNDS_MAX: usize = 20;
/// Names the parent's stores.
const NAMED: &str = "alternates";
/// Where they are named while it is tried without them.
const ASIDE: &str = "alternates.staled";

/// A store and all that it borrows from, in the order in which git looks.
pub(super) fn stores(objects: &Path) -> Result<Vec<PathBuf>, ForkError> {
    let mut stores = Vec::new();
    let mut next = vec![(objects.to_owned(), 0)];
    while let Some((store, depth)) = next.pop() {
        // What is named and not there is nothing to git either.
        let Ok(store) = fs::canonicalize(&store) else { continue };
        if stores.contains(&store) || depth > DEPTH_MAX {
            continue;
        }
        let named = optional(&store.join("info/alternates"))?.unwrap_or_default();
        let named = named_in(&named).into_iter().rev().map(|path| (store.join(path), depth + 1));
        next.extend(named);
        stores.push(store);
    }
    Ok(stores)
}

/// What names these stores.
pub(super) fn alternates(stores: &[PathBuf]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for store in stores {
        let name = store.as_os_str().as_bytes();
        let plain = !name.contains(&b'\n') && !name.starts_with(b"\"") && !name.starts_with(b"#");
        bytes.extend(if plain { name.to_vec() } else { quoted(name) });
        bytes.push(b'\n');
    }
    bytes
}

/// A path as git reads it in quotes.
pub(super) fn quoted(name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b'"'];
    for byte in name {
        match byte {
            b'\n' => bytes.extend(b"\\n"),
            b'"' | b'\\' => bytes.extend([b'\\', *byte]),
            byte => bytes.push(*byte),
        }
    }
    bytes.push(b'"');
    bytes
}

/// The stores that are named there.
pub(super) fn named_in(bytes: &[u8]) -> Vec<PathBuf> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    let name = |line: &[u8]| -> PathBuf {
        let Some(quoted) = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")) else {
            return OsStr::from_bytes(line).into();
        };
        let (mut name, mut escaped) = (Vec::new(), false);
        for byte in quoted {
            match (escaped, byte) {
                (false, b'\\') => escaped = true,
                (true, b'n') => (name.push(b'\n'), escaped = false).1,
                (_, byte) => (name.push(*byte), escaped = false).1,
            }
        }
        OsStr::from_bytes(&name).into()
    };
    lines.map(name).collect()
}

impl Hands {
    /// Makes a fork's repository stand alone. May be called again, after any end.
    pub fn make_independent(&self, workspace: &Path) -> Result<(), ForkError> {
        self.make_independent_unless(&AtomicBool::new(false), workspace)
    }

    /// The same, ending early when told to stop.
    pub fn make_independent_unless(&self, stop: &AtomicBool, workspace: &Path) -> Result<(), ForkError> {
        let gitdir = workspace.join(".git");
        let Some((own, info)) = opened(workspace)? else { return forget(workspace) };
        let renamed = |from: &str, to: &str| {
            rustix::fs::renameat(&info, from, &info, to).map_err(|error| {
                ForkError::io("rename", &gitdir.join("objects/info").join(from))(error.into())
            })
        };
        // Whoever was killed between the two left what it had set aside.
        if is_there(&info, ASIDE) && !is_there(&info, NAMED) {
            renamed(ASIDE, NAMED)?;
        }
        if !is_there(&info, NAMED) {
            return forget(workspace);
        }
        refuse_leading_out(&gitdir)?;
        // Not what the repository itself names: whoever works in the fork can write that.
        let theirs = objects_of(workspace);
        take(&theirs, &own, stop)?;
        renamed(NAMED, ASIDE)?;
        let alone = take(&theirs, &own, stop).and_then(|()| self.is_whole(workspace));
        match alone {
            Ok(()) => {
                let ended = rustix::fs::syncfs(&own.opened)
                    .and_then(|()| rustix::fs::unlinkat(&info, ASIDE, AtFlags::empty()));
                ended.map_err(|error| ForkError::io("stop sharing in", &own.path)(error.into()))?;
                forget(workspace)
            }
            Err(error) => {
                renamed(ASIDE, NAMED)?;
                Err(error)
            }
        }
    }

    /// Whether a repository has every object that it names.
    fn is_whole(&self, workspace: &Path) -> Result<(), ForkError> {
        let (git, look) = (self.git()?, self.look(workspace)?);
        let find = |command: &mut Command| {
            command.args(["rev-list", "--objects", "--quiet", "--all", "--indexed-objects"]);
            git.run("find every object of the fork in its own repository", command)
        };
        find(&mut look.command())?;
        for index in look.linked_indexes(&workspace.join(".git"))? {
            find(look.command().env("GIT_INDEX_FILE", index))?;
        }
        Ok(())
    }
}

/// It shares nothing any more.
fn forget(workspace: &Path) -> Result<(), ForkError> {
    let note = note_of(workspace);
    match fs::remove_file(&note) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ForkError::io("remove", &note)(error)),
        _ => Ok(()),
    }
}

/// A folder of the fork's store, opened once: whoever works there may put a link to another fork's in its place at any
/// moment, where the daemon may write too.
struct Store {
    opened: OwnedFd,
    /// For people.
    path: PathBuf,
}

impl Store {
    /// A folder in it, made if need be.
    fn below(&self, name: &str) -> Result<Self, ForkError> {
        let path = self.path.join(name);
        let open = || match rustix::fs::mkdirat(&self.opened, name, Mode::from(0o777)) {
            Ok(()) | Err(Errno::EXIST) => open_below(&self.opened, Path::new(name)),
            Err(error) => Err(error),
        };
        match open() {
            Ok(opened) => Ok(Self { opened, path }),
            Err(error) => Err(ForkError::io("open the folder", &path)(error.into())),
        }
    }
}

/// The fork's own store, and where it names others; none where there is no such place.
fn opened(workspace: &Path) -> Result<Option<(Store, OwnedFd)>, ForkError> {
    let path = workspace.join(".git/objects");
    let open = || -> rustix::io::Result<_> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = rustix::fs::open(workspace, flags, Mode::empty())?;
        let opened = open_below(&tree, Path::new(".git/objects"))?;
        let info = open_below(&opened, Path::new("info"))?;
        Ok((opened, info))
    };
    match open() {
        Ok((opened, info)) => Ok(Some((Store { opened, path }, info))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => {
            refuse_leading_out(&workspace.join(".git"))?;
            Err(ForkError::io("open the folder", &path)(error.into()))
        }
    }
}

fn is_there(folder: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Copies what these stores have and ours has not, until a look through all of them finds nothing more.
fn take(theirs: &[PathBuf], own: &Store, stop: &AtomicBool) -> Result<(), ForkError> {
    for _ in 0..ROUNDS_MAX {
        let mut new = 0;
        for store in theirs {
            new += take_packs(store, own, stop)? + take_loose(store, own, stop)?;
        }
        if new == 0 {
            return Ok(());
        }
    }
    let why =
        format!("the objects that {} shares do not hold still: it is tried again later", own.path.display());
    Err(ForkError::refused("fork_failed", why))
}

fn take_packs(store: &Path, own: &Store, stop: &AtomicBool) -> Result<usize, ForkError> {
    let (from, to) = (store.join("pack"), own.below("pack")?);
    let names = names(&from)?;
    if names.iter().any(|name| name.ends_with(".promisor")) {
        let why = format!(
            "{} lacks objects that only a remote has, so its forks go on borrowing from it: keep it while they live",
            store.display()
        );
        return Err(ForkError::refused("fork_stays_dependent", why));
    }
    let mut new = 0;
    for (index, stem) in names.iter().filter_map(|name| Some((name, name.strip_suffix(".idx")?))) {
        refuse_if(stop)?;
        // Git finds a pack by its index, which therefore comes last.
        let pack = format!("{stem}.pack");
        let taken = take_file(&from.join(&pack), &to, &pack)?.and(take_file(&from.join(index), &to, index)?);
        match taken {
            Some(true) => new += 1,
            Some(false) => {}
            // It was repacked: the pack that took its place is found in the next round.
            None => new += 1,
        }
    }
    Ok(new)
}

fn take_loose(store: &Path, own: &Store, stop: &AtomicBool) -> Result<usize, ForkError> {
    let mut new = 0;
    for folder in names(store)?.iter().filter(|name| name.len() == 2 && is_hex(name)) {
        let from = store.join(folder);
        let names = names(&from)?;
        if !names.iter().any(|name| is_hex(name)) {
            continue;
        }
        let to = own.below(folder)?;
        for name in names.iter().filter(|name| is_hex(name)) {
            refuse_if(stop)?;
            // One that is gone is in a pack, or nobody needs it.
            new += usize::from(take_file(&from.join(name), &to, name)?.unwrap_or(true));
        }
    }
    Ok(new)
}

fn refuse_if(stop: &AtomicBool) -> Result<(), ForkError> {
    if stop.load(Ordering::Relaxed) {
        return Err(ForkError::refused(
            "fork_in_use",
            "the fork ends, so its objects are not copied any more",
        ));
    }
    Ok(())
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn names(folder: &Path) -> Result<BTreeSet<String>, ForkError> {
    let failed = || ForkError::io("list", folder);
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        entries => {
            let mut names = BTreeSet::new();
            for entry in entries.map_err(failed())? {
                names.insert(entry.map_err(failed())?.file_name().to_string_lossy().into_owned());
            }
            Ok(names)
        }
    }
}

/// Copies one file under another name first. Says whether it was new; none when there is none any more.
fn take_file(from: &Path, to: &Store, name: &str) -> Result<Option<bool>, ForkError> {
    let mut source = match open_file(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        source => source.map_err(ForkError::io("read", from))?,
    };
    // One of another length is what a power cut left of it.
    let len = source.metadata().map_err(ForkError::io("read", from))?.len();
    let found = rustix::fs::statat(&to.opened, name, AtFlags::SYMLINK_NOFOLLOW);
    if found.is_ok_and(|found| found.st_size as u64 == len) {
        return Ok(Some(false));
    }
    // Git clears away what is called so, should nobody else.
    let part = format!("tmp_obj_staled_{}", std::process::id());
    let mut copied = || -> io::Result<()> {
        let _ = rustix::fs::unlinkat(&to.opened, &part, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut made = File::from(rustix::fs::openat(&to.opened, &part, flags, Mode::from(0o666))?);
        if rustix::fs::ioctl_ficlone(&made, &source).is_err() {
            io::copy(&mut source, &mut made)?;
        }
        let found = source.metadata()?;
        made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
        made.set_modified(found.modified()?)?;
        Ok(rustix::fs::renameat(&to.opened, &part, &to.opened, name)?)
    };
    copied().map(|()| Some(true)).map_err(ForkError::io("copy to", &to.path.join(name)))
}

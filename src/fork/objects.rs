//! The objects of a fork: shared with its parent at first, then its own.
//!
//! Promise: whenever this ends, or is killed, the fork has all its objects, its own or the parent's. They are copied as files
//! while both repositories are worked in: a pack before its index, whatever is new once more after the parent's are out of
//! reach, and only a repository in which nothing is missing stays alone.

use super::copy::open_folder;
use super::own::refuse_leading_out;
use super::repository::{open_file, optional};
use super::shared::{note_of, objects_of};
use super::{ForkError, Hands};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deep git itself looks.
const DEPTH_MAX: usize = 6;
/// How often a store that is being repacked is looked through again.
const ROUNDS_MAX: usize = 20;
/// Where the names of the parent's stores are while it is tried without them.
const ASIDE: &str = "objects/info/alternates.staled";

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
        let (named, aside) = (gitdir.join("objects/info/alternates"), gitdir.join(ASIDE));
        // Whoever was killed between the two left what it had set aside.
        if aside.exists() && !named.exists() {
            rename(&aside, &named)?;
        }
        if !named.exists() {
            return forget(workspace);
        }
        refuse_leading_out(&gitdir)?;
        let own = gitdir.join("objects");
        let own = fs::canonicalize(&own).map_err(ForkError::io("find", &own))?;
        // Not what the repository itself names: whoever works in the fork can write that.
        let theirs = objects_of(workspace);
        take(&theirs, &own, stop)?;
        rename(&named, &aside)?;
        let alone = take(&theirs, &own, stop).and_then(|()| self.is_whole(workspace));
        match alone {
            Ok(()) => {
                rustix::fs::syncfs(open_folder(&own)?)
                    .map_err(|error| ForkError::io("sync", &own)(error.into()))?;
                fs::remove_file(&aside).map_err(ForkError::io("remove", &aside))?;
                forget(workspace)
            }
            Err(error) => {
                rename(&aside, &named)?;
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

fn rename(from: &Path, to: &Path) -> Result<(), ForkError> {
    fs::rename(from, to).map_err(ForkError::io("rename", from))
}

/// Copies what these stores have and ours has not, until a look through all of them finds nothing more.
fn take(theirs: &[PathBuf], own: &Path, stop: &AtomicBool) -> Result<(), ForkError> {
    for _ in 0..ROUNDS_MAX {
        let mut new = 0;
        for store in theirs {
            new += take_packs(store, own, stop)? + take_loose(store, own, stop)?;
        }
        if new == 0 {
            return Ok(());
        }
    }
    let why = format!("the objects that {} shares do not hold still: it is tried again later", own.display());
    Err(ForkError::refused("fork_failed", why))
}

fn take_packs(store: &Path, own: &Path, stop: &AtomicBool) -> Result<usize, ForkError> {
    let (from, to) = (store.join("pack"), own.join("pack"));
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
        let taken = take_file(&from.join(&pack), &to.join(&pack))?
            .and(take_file(&from.join(index), &to.join(index))?);
        match taken {
            Some(true) => new += 1,
            Some(false) => {}
            // It was repacked: the pack that took its place is found in the next round.
            None => new += 1,
        }
    }
    Ok(new)
}

fn take_loose(store: &Path, own: &Path, stop: &AtomicBool) -> Result<usize, ForkError> {
    let mut new = 0;
    for folder in names(store)?.iter().filter(|name| name.len() == 2 && is_hex(name)) {
        let (from, to) = (store.join(folder), own.join(folder));
        for name in names(&from)?.iter().filter(|name| is_hex(name)) {
            refuse_if(stop)?;
            fs::create_dir_all(&to).map_err(ForkError::io("make the folder", &to))?;
            // One that is gone is in a pack, or nobody needs it.
            new += usize::from(take_file(&from.join(name), &to.join(name))?.unwrap_or(true));
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
fn take_file(from: &Path, to: &Path) -> Result<Option<bool>, ForkError> {
    let mut source = match open_file(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        source => source.map_err(ForkError::io("read", from))?,
    };
    // One of another length is what a power cut left of it.
    let len = source.metadata().map_err(ForkError::io("read", from))?.len();
    if to.symlink_metadata().is_ok_and(|found| found.len() == len) {
        return Ok(Some(false));
    }
    // Git clears away what is called so, should nobody else.
    let part = to.with_file_name(format!("tmp_obj_staled_{}", std::process::id()));
    let mut copied = || -> io::Result<()> {
        drop(fs::remove_file(&part));
        let mut made = File::create_new(&part)?;
        if rustix::fs::ioctl_ficlone(&made, &source).is_err() {
            io::copy(&mut source, &mut made)?;
        }
        let found = source.metadata()?;
        made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
        made.set_modified(found.modified()?)?;
        fs::rename(&part, to)
    };
    copied().map(|()| Some(true)).map_err(ForkError::io("copy to", to))
}

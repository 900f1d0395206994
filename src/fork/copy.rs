//! A tree of our own out of somebody else's, file by file.
//!
//! Promise: no symlink is followed on either side, nothing in the source is changed, and no torn bytes land: a file whose
//! times moved while it was read is read again, and left out when it never holds still. Bytes that the filesystem can share
//! are shared.

use super::ForkError;
use super::bytes::{by_hand, by_kernel};
use super::load::{Folder, Load, left_out};
use super::make::Progress;
use crate::protocol::fork::record::LeftOut;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// What the kernel's clock for file times may lag behind: two writes in it may have the same time.
const TICK: Duration = Duration::from_millis(20);
/// How often a file that changes under our eyes is read again.
const TRIES: usize = 10;
/// Files up to this long are copied in one piece.
const SMALL: u64 = 65_536;
/// More would wait for the same disk.
const WORKERS_MAX: usize = 4;

/// A file that was copied: what it is called, and both as they are.
pub(super) struct Copied {
    pub(super) path: PathBuf,
    pub(super) was: Stat,
    pub(super) is: Stat,
}

/// What became of the files.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) copied: Vec<Copied>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) symlinks: Vec<PathBuf>,
}

/// Why one file is not there.
pub(super) enum Miss {
    /// The source's doing.
    Left(&'static str),
    /// Ours.
    Failed(io::Error),
}

/// Opens a folder below another, through folders only.
pub(super) fn open_below(top: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut opened = rustix::fs::openat(top, ".", flags, Mode::empty())?;
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(Errno::INVAL) };
        opened = rustix::fs::openat(&opened, name, flags, Mode::empty())?;
    }
    Ok(opened)
}

/// Opens a folder by its own path.
pub(super) fn open_folder(path: &Path) -> Result<OwnedFd, ForkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| ForkError::io("open the folder", path)(error.into()))
}

/// Why something of the source cannot be had.
pub(super) fn why(error: Errno) -> &'static str {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE => "vanished",
        _ => "unreadable",
    }
}

/// Copies what is to be carried over.
pub(super) fn copy(
    source: &Path,
    target: &Path,
    load: &Load,
    bytes_max: u64,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, ForkError> {
    let copier = Copier {
        source: open_folder(source)?,
        target: open_folder(target)?,
        place: target,
        bytes_max,
        shares: AtomicBool::new(true),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<Outcome, ForkError> {
        let (mut outcome, mut buffer) = (Outcome::default(), vec![0; SMALL as usize + 1]);
        while !failed.load(Relaxed) {
            let Some(folder) = load.folders.get(next.fetch_add(1, Relaxed)) else { break };
            if let Err(error) = copier.folder(folder, &mut outcome, &mut buffer) {
                failed.store(true, Relaxed);
                return Err(error);
            }
            let (files, bytes) = (copier.files.load(Relaxed), copier.bytes.load(Relaxed));
            progress(Progress { files, files_all: load.files, bytes });
        }
        Ok(outcome)
    };
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get().min(WORKERS_MAX));
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(load.folders.len())).map(|_| scope.spawn(work)).collect();
        let ours = work();
        let theirs = others.into_iter().map(|other| other.join().expect("because copying does not panic"));
        std::iter::once(ours).chain(theirs).collect()
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        let outcome = outcome?;
        all.copied.extend(outcome.copied);
        all.left_out.extend(outcome.left_out);
        all.symlinks.extend(outcome.symlinks);
    }
    Ok(all)
}

struct Copier<'a> {
    source: OwnedFd,
    target: OwnedFd,
    place: &'a Path,
    bytes_max: u64,
    /// Whether both are on a filesystem that shares blocks, until it is known not to.
    shares: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Copier<'_> {
    fn folder(&self, folder: &Folder, outcome: &mut Outcome, buffer: &mut [u8]) -> Result<(), ForkError> {
        let source = match open_below(&self.source, &folder.path) {
            Ok(source) => source,
            Err(error) => {
                let lost = folder.names.iter().map(|name| left_out(&folder.path.join(name), why(error)));
                outcome.left_out.extend(lost);
                return Ok(());
            }
        };
        let target = self.made(&folder.path)?;
        for name in &folder.names {
            let path = folder.path.join(name);
            match self.entry(&source, &target, name, buffer) {
                Ok((was, is)) => {
                    if FileType::from_raw_mode(is.st_mode) == FileType::Symlink {
                        outcome.symlinks.push(path.clone());
                    }
                    self.files.fetch_add(1, Relaxed);
                    self.bytes.fetch_add(is.st_size as u64, Relaxed);
                    outcome.copied.push(Copied { path, was, is });
                }
                Err(Miss::Left(why)) => outcome.left_out.push(left_out(&path, why)),
                Err(Miss::Failed(error)) => {
                    return Err(ForkError::io("copy to", &self.place.join(path))(error));
                }
            }
        }
        Ok(())
    }

    /// The folder of that name in the target, made as needed.
    fn made(&self, path: &Path) -> Result<OwnedFd, ForkError> {
        let failed = |error: Errno| ForkError::io("make the folder", &self.place.join(path))(error.into());
        if let Ok(opened) = open_below(&self.target, path) {
            return Ok(opened);
        }
        let mut made = open_below(&self.target, Path::new("")).map_err(failed)?;
        for name in path.components() {
            match rustix::fs::mkdirat(&made, name.as_os_str(), Mode::from(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            made = open_below(&made, Path::new(name.as_os_str())).map_err(failed)?;
        }
        Ok(made)
    }

    fn entry(
        &self,
        source: &OwnedFd,
        target: &OwnedFd,
        name: &OsStr,
        buffer: &mut [u8],
    ) -> Result<(Stat, Stat), Miss> {
        for _ in 0..TRIES {
            let flags =
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let opened = match rustix::fs::openat(source, name, flags, Mode::empty()) {
                Ok(opened) => File::from(opened),
                Err(Errno::LOOP) => match symlink(source, target, name)? {
                    Some(both) => return Ok(both),
                    None => continue,
                },
                Err(error) => return Err(Miss::Left(why(error))),
            };
            match self.file(opened, target, name, buffer) {
                Ok(Some(both)) => return Ok(both),
                Ok(None) => {}
                Err(miss) => {
                    // What there is of it is no copy.
                    clear(target, name);
                    return Err(miss);
                }
            }
        }
        clear(target, name);
        Err(Miss::Left("changing"))
    }

    /// One try; none when the source changed meanwhile.
    fn file(
        &self,
        mut source: File,
        target: &OwnedFd,
        name: &OsStr,
        buffer: &mut [u8],
    ) -> Result<Option<(Stat, Stat)>, Miss> {
        let before = still(&source)?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Err(Miss::Left("special"));
        }
        // Whoever works in the fork may write everything in it, however the parent is protected.
        let mode = Mode::from_raw_mode(before.st_mode & 0o777 | 0o600);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut made = File::from(
            rustix::fs::openat(target, name, flags, mode).map_err(|error| Miss::Failed(error.into()))?,
        );
        self.fill(&mut source, &mut made, before.st_size as u64, buffer)?;
        let after = rustix::fs::fstat(&source).map_err(|error| Miss::Left(why(error)))?;
        if !same(&before, &after) {
            return Ok(None);
        }
        let finished = || {
            rustix::fs::futimens(&made, &times(&before))?;
            let is = rustix::fs::fstat(&made)?;
            // The process may be forbidden to give others rights to what it makes.
            if is.st_mode & 0o777 == mode.as_raw_mode() {
                return Ok(is);
            }
            rustix::fs::fchmod(&made, mode)?;
            rustix::fs::fstat(&made)
        };
        // One that is shorter than it was said to be was cut while it was read.
        let whole = |is: Stat| (is.st_size == before.st_size).then_some((before, is));
        finished().map(whole).map_err(|error: Errno| Miss::Failed(error.into()))
    }

    fn fill(&self, source: &mut File, made: &mut File, size: u64, buffer: &mut [u8]) -> Result<(), Miss> {
        if size > SMALL {
            if self.shares.load(Relaxed) {
                match rustix::fs::ioctl_ficlone(&*made, &*source) {
                    Ok(()) => return Ok(()),
                    Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
                        self.shares.store(false, Relaxed);
                    }
                    // This file cannot be shared; others may.
                    Err(_) => {}
                }
            }
            if size > self.bytes_max {
                return Err(Miss::Left("too_big"));
            }
            if by_kernel(source, made, size)? {
                return Ok(());
            }
        }
        by_hand(source, made, size, buffer)
    }
}

/// Removes what is no copy; where nothing is, nothing is to be removed.
fn clear(target: &OwnedFd, name: &OsStr) {
    let _ = rustix::fs::unlinkat(target, name, AtFlags::empty());
}

/// What the open file is, once its times are so old that another write would show in them.
fn still(file: &File) -> Result<Stat, Miss> {
    let stat = || rustix::fs::fstat(file).map_err(|error| Miss::Left(why(error)));
    let (now, found) = (SystemTime::now(), stat()?);
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(found.st_ctime as u64, found.st_ctime_nsec as u32);
    match since.checked_sub(changed) {
        Some(age) if age < TICK => {
            std::thread::sleep(TICK.saturating_sub(age));
            stat()
        }
        // A time in the future is another machine's, and says nothing.
        _ => Ok(found),
    }
}

/// The symlink itself; none when it is one no more.
fn symlink(source: &OwnedFd, target: &OwnedFd, name: &OsStr) -> Result<Option<(Stat, Stat)>, Miss> {
    let leads = match rustix::fs::readlinkat(source, name, Vec::new()) {
        Ok(leads) => leads,
        Err(Errno::INVAL) => return Ok(None),
        Err(error) => return Err(Miss::Left(why(error))),
    };
    let was = rustix::fs::statat(source, name, AtFlags::SYMLINK_NOFOLLOW);
    let was = was.map_err(|error| Miss::Left(why(error)))?;
    let made = || {
        match rustix::fs::symlinkat(&leads, target, name) {
            // It was a file a moment ago.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(target, name, AtFlags::empty())?;
                rustix::fs::symlinkat(&leads, target, name)?;
            }
            other => other?,
        }
        rustix::fs::utimensat(target, name, &times(&was), AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::statat(target, name, AtFlags::SYMLINK_NOFOLLOW)
    };
    made().map(|is| Some((was, is))).map_err(|error: Errno| Miss::Failed(error.into()))
}

fn same(before: &Stat, after: &Stat) -> bool {
    let times =
        |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec, stat.st_size);
    times(before) == times(after)
}

/// The time of the last change goes along, so that builds in the fork do not begin from nothing.
fn times(stat: &Stat) -> Timestamps {
    let last_modification = Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ }, last_modification }
}

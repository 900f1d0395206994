//! Cookies and dividers: files of our own whose touch comes back through the same watcher as everything else.
//!
//! The kernel queues an event before the system call that caused it returns, in one queue for all filesystems. So when
//! a cookie comes back, every change whose system call had returned before the cookie was made has been handled.
//! Touching a file that is open already is the cheapest cookie known (1 µs against 5 µs for creating one).

use super::marks::DIVIDERS;
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// Files in the pool. They are used in turn, so that a late event of one barrier cannot pass for another's.
const POOL: usize = 64;

#[derive(Debug)]
pub(super) struct Cookies {
    files: Vec<File>,
    next: usize,
}

impl Cookies {
    /// Makes the folder and its files, and whatever of them is missing.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self { files: open_all(folder, (0..POOL).map(|index| index.to_string()))?, next: 0 })
    }

    /// Touches the next cookie and says which it was.
    pub(super) fn touch(&mut self) -> io::Result<usize> {
        let index = self.next;
        self.next = (index + 1) % POOL;
        touch(&self.files[index])?;
        Ok(index)
    }
}

/// Where a divider's name begins. A cookie's is a number.
pub(super) const DIVIDER: &[u8] = b"d";

/// Files that say, in the queue, which opens came before a look's question and which after. Who may touch which is kept
/// with the marks.
#[derive(Debug)]
pub(super) struct Dividers {
    files: RwLock<Vec<File>>,
}

impl Dividers {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { files: RwLock::new(open_dividers(folder)?) })
    }

    /// Makes what is missing.
    pub(super) fn reopen(&self, folder: &Path) -> io::Result<()> {
        let files = open_dividers(folder)?;
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        Ok(())
    }

    pub(super) fn touch(&self, divider: usize) -> io::Result<()> {
        touch(&self.files.read().unwrap_or_else(PoisonError::into_inner)[divider])
    }
}

fn open_dividers(folder: &Path) -> io::Result<Vec<File>> {
    let letter = String::from_utf8_lossy(DIVIDER);
    open_all(folder, (0..DIVIDERS).map(|index| format!("{letter}{index}")))
}

fn open_all(folder: &Path, names: impl Iterator<Item = String>) -> io::Result<Vec<File>> {
    let open = |name: String| {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(rustix::fs::open(folder.join(name), flags, Mode::from(0o600))?))
    };
    names.map(open).collect()
}

fn touch(file: &File) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?;
    Ok(())
}

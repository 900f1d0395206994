//! Cookies: files of our own whose touch comes back through the same watcher as everything else.
//!
//! The kernel queues an event before the system call that caused it returns, in one queue for all filesystems. So when
//! a cookie comes back, every change whose system call had returned before the cookie was made has been handled.
//! Touching a file that is open already is the cheapest cookie known (1 µs against 5 µs for creating one).

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

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
        let open = |index: usize| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            Ok(File::from(rustix::fs::open(folder.join(index.to_string()), flags, Mode::from(0o600))?))
        };
        Ok(Self { files: (0..POOL).map(open).collect::<io::Result<_>>()?, next: 0 })
    }

    /// Touches the next cookie and says which it was.
    pub(super) fn touch(&mut self) -> io::Result<usize> {
        let index = self.next;
        self.next = (index + 1) % POOL;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        rustix::fs::futimens(&self.files[index], &Timestamps { last_access: now, last_modification: now })?;
        Ok(index)
    }
}

//! What time filesystems say it is, so finely that it divides what happened before from what happens later.
//!
//! The times of files advance in ticks of some milliseconds, except that since Linux 6.13 a time that somebody has read is
//! followed by one that is truly later, for all files. So a file that is touched, read, and touched again has a time after
//! everything before, and nothing that comes has an earlier one. On older kernels what happened in the same tick counts
//! as later, which leads to doubt and never to silence.

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A time as a filesystem tells it, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub i128);

impl FileTime {
    /// When something was changed for the last time, its name and its rights included. Nobody can set it.
    #[must_use]
    pub fn changed(found: &Metadata) -> Self {
        Self(i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec()))
    }
}

/// A file of our own that is asked what time it is.
#[derive(Debug)]
pub(super) struct Clock {
    file: File,
}

impl Clock {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(false).open(folder.join("clock"))?;
        Ok(Self { file })
    }

    pub(super) fn now(&self) -> io::Result<FileTime> {
        self.touched()?;
        self.touched()
    }

    fn touched(&self) -> io::Result<FileTime> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        rustix::fs::futimens(&self.file, &Timestamps { last_access: now, last_modification: now })?;
        Ok(FileTime::changed(&self.file.metadata()?))
    }
}

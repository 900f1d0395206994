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

#[cfg(test)]
mod tests {
    use super::{Clock, FileTime};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Whether times that were read are followed by later ones here, which a kernel since 6.13 sees to.
    fn is_fine() -> bool {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let numbers = release.split(|symbol: char| !symbol.is_ascii_digit());
        let numbers: Vec<u32> = numbers.filter_map(|digits| digits.parse().ok()).take(2).collect();
        numbers.as_slice() >= [6, 13].as_slice()
    }

    #[test]
    fn the_time_it_is_divides_what_was_before_from_what_comes() {
        let temp = tempfile::tempdir().unwrap();
        let clock = Clock::open(temp.path()).unwrap();
        let path = temp.path().join("f");
        let changed = || FileTime::changed(&fs::metadata(&path).unwrap());
        for round in 0..300 {
            fs::write(&path, "x").unwrap();
            let now = clock.now().unwrap();
            let before = changed();
            assert!(before < now || (before == now && !is_fine()), "round {round}: {before:?} {now:?}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(changed() >= now, "round {round}: {:?} {now:?}", changed());
            // Otherwise all of it is in one tick of the clock.
            std::thread::sleep(std::time::Duration::from_micros(150 * (round % 40)));
        }
    }
}

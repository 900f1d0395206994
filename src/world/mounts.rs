//! Mounts: what is mounted where, asked anew whenever the kernel says that it changed.
//!
//! A mount over a folder sends no event to those who watch the folder, and yet every path through it leads elsewhere.
//! The kernel keeps a mark for each reader of the mount table; asking for it costs one system call and no thread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

const TABLE: &str = "/proc/self/mountinfo";

#[derive(Debug)]
pub(super) struct Mounts {
    table: File,
    held: HashSet<Vec<u8>>,
    /// The kernel has said that it changed, and said so once: until the table was read it has not been heard.
    unread: bool,
}

impl Mounts {
    pub(super) fn open() -> io::Result<Self> {
        let mut mounts = Self { table: File::open(TABLE)?, held: HashSet::new(), unread: false };
        mounts.held = mounts.lines()?;
        Ok(mounts)
    }

    /// Where a filesystem came, went or changed since the last time.
    pub(super) fn moved(&mut self) -> io::Result<Vec<PathBuf>> {
        let mut asked = [PollFd::new(&self.table, PollFlags::PRI)];
        poll(&mut asked, Some(&Timespec::default()))?;
        self.unread |= asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR);
        if !self.unread {
            return Ok(Vec::new());
        }
        // Read after the mark was taken back: a mount that comes in between sets it again.
        let now = self.lines()?;
        self.unread = false;
        let points = now.symmetric_difference(&self.held).filter_map(|line| point(line)).collect();
        self.held = now;
        Ok(points)
    }

    /// Read through the descriptor that is held: a process that has no other left must hear of a mount too.
    fn lines(&mut self) -> io::Result<HashSet<Vec<u8>>> {
        let mut table = Vec::new();
        self.table.rewind()?;
        self.table.read_to_end(&mut table)?;
        Ok(table.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// The mount point of a line: its fifth field, in which blanks and backslashes are written in octal.
fn point(line: &[u8]) -> Option<PathBuf> {
    let mut field = line.split(|&byte| byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(field.len());
    while let Some((&byte, rest)) = field.split_first() {
        let octal = (byte == b'\\').then(|| rest.get(..3)).flatten();
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(octal.unwrap_or(byte));
        field = if octal.is_some() { &rest[3..] } else { rest };
    }
    Some(OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::point;
    use std::path::Path;

    #[test]
    fn a_mount_point_is_read_however_it_is_written() {
        for (line, path) in [
            ("36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw", "/mnt"),
            (r"36 35 98:0 / /a\040b\134c\0 rw - ext3 /dev/root rw", r"/a b\c\0"),
        ] {
            assert_eq!(point(line.as_bytes()).as_deref(), Some(Path::new(path)), "{line}");
        }
        assert_eq!(point(b"36 35"), None);
    }
}

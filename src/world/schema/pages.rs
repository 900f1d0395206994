//! The pages of a database as of its last commit: the newest of the log, else what a journal keeps, else the file's own.

use super::{journal, wal};
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;

/// Why the pages could not be read.
#[derive(Debug)]
pub(super) enum Damage {
    /// The disk said so.
    Io(io::Error),
    /// What is there does not add up.
    Broken,
    /// It cannot be told before a transaction over several databases is over.
    Unsettled,
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A page behind the end of a file.
            io::ErrorKind::UnexpectedEof => Self::Broken,
            _ => Self::Io(error),
        }
    }
}

/// One of the three files. What has no entry in its folder is none.
struct Kept {
    path: PathBuf,
    file: Option<File>,
    stat: Option<Stat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    inode: (u64, u64),
    size: u64,
    times: [i64; 4],
}

impl Stat {
    fn of(found: &Metadata) -> Self {
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Self { inode: (found.dev(), found.ino()), size: found.len(), times }
    }
}

impl Kept {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NOFOLLOW;
        let file = match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let stat = match &file {
            Some(file) => Some(Stat::of(&file.metadata()?)),
            None => None,
        };
        Ok(Self { path: path.to_owned(), file, stat })
    }

    /// Nothing of it has changed, and it still has its name.
    fn is_same(&self) -> io::Result<bool> {
        Ok(self.now()? == self.stat)
    }

    fn now(&self) -> io::Result<Option<Stat>> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) => Ok(Some(Stat::of(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The pages as of the last commit.
pub(super) struct Pages {
    database: Kept,
    log: Kept,
    journal: Kept,
    log_header: Vec<u8>,
    in_log: HashMap<u32, u64>,
    in_journal: HashMap<u32, u64>,
    page_len: usize,
}

impl Pages {
    /// `None` when it is no database: empty, or not in the format.
    pub(super) fn open(database: &Path, log: &Path, journal: &Path) -> Result<Option<Self>, Damage> {
        let (database, log, journal) = (Kept::open(database)?, Kept::open(log)?, Kept::open(journal)?);
        let Some(file) = &database.file else {
            return Err(Damage::Io(io::ErrorKind::NotFound.into()));
        };
        let mut header = vec![0; HEADER_BYTES];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if !header.starts_with(MAGIC) {
            return Ok(None);
        }
        let page_len = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65536,
            len if len >= 512 && len.is_power_of_two() => usize::from(len),
            _ => return Err(Damage::Broken),
        };
        let in_journal = match &journal.file {
            Some(file) => journal::kept(file, page_len)?,
            None => HashMap::new(),
        };
        let (log_header, in_log) = match &log.file {
            Some(file) => wal::committed(file, page_len)?,
            None => (Vec::new(), HashMap::new()),
        };
        Ok(Some(Self { database, log, journal, log_header, in_log, in_journal, page_len }))
    }

    /// One page; the first is 1.
    pub(super) fn page(&self, number: u32) -> Result<Vec<u8>, Damage> {
        let (kept, offset) = match (self.in_log.get(&number), self.in_journal.get(&number)) {
            (Some(offset), _) => (&self.log, *offset),
            (None, Some(offset)) => (&self.journal, *offset),
            (None, None) => {
                let before = number.checked_sub(1).ok_or(Damage::Broken)?;
                (&self.database, u64::from(before) * self.page_len as u64)
            }
        };
        let mut page = vec![0; self.page_len];
        kept.file.as_ref().ok_or(Damage::Broken)?.read_exact_at(&mut page, offset)?;
        Ok(page)
    }

    /// Whether all that was read was there at one moment. The log may have grown: what was read of it stands.
    pub(super) fn held_still(&self) -> Result<bool, Damage> {
        let whole = self.database.is_same()? && self.journal.is_same()?;
        let grew = |before: Stat, now: Stat| before.inode == now.inode && before.size <= now.size;
        let log = match (&self.log.file, self.log.stat, self.log.now()?) {
            (Some(file), Some(before), Some(now)) => {
                grew(before, now) && wal::header(file)? == self.log_header
            }
            (_, before, now) => before == now,
        };
        Ok(whole && log)
    }
}

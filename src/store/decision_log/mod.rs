//! The decision log: one JSON object a line, each chained to the one before by its hash, for people and for audits.
//!
//! Promise: a line is whole or absent. It is written with one `write`; what a failed write left is cut back, and if
//! that fails the log takes nothing more until it goes on in another file. The chain goes on over restarts and over a
//! change of files; whenever a file is left for another reason than its size, the next one's first line says why.
//!
//! Absent: what a line means; when to rotate; syncing (the [`Syncer`](super::syncer::Syncer) does, on [`DecisionLog::file`]); protection
//! against somebody who may write the file and rewrites all of it. [`verify`] says what can be found.

mod backward;
mod files;
mod line;
mod read;
mod renewal;
mod verify;

pub use files::Unreadable;
pub use line::{NotAReceipt, Receipt};
pub use read::{Extent, Placed, READ_BYTES_MAX, each_line, last_line_where, read};
pub use verify::{Outcome, Verdict, id_at, verify, verify_files};

use super::whole;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest line, chain fields included.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The chain's own fields, at their longest.
const SEAL_BYTES_MAX: usize = 256;

/// The buffer of an append is given back when a long line has made it larger than this.
const BUFFER_KEPT_MAX: usize = 1024 * 1024;

/// The open log; one owner appends.
#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
    file: File,
    /// Where the last good line ends; the file is cut back to here when an append fails.
    end: u64,
    last: Receipt,
    /// Hash of the chain's first line, by which anchors know the log; empty until there is one.
    id: String,
    buffer: Vec<u8>,
    poisoned: Option<String>,
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The last line; `None` when the file has none.
    pub last: Option<Receipt>,
    /// How much of a torn last line was cut off.
    pub torn_bytes: u64,
    /// Why what was found could not be continued and stands under another name now.
    pub set_aside: Option<String>,
}

impl LogError {
    /// Whether nothing can be appended any more until the log goes on in another file.
    #[must_use]
    pub fn ends_the_file(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Foreign { .. } | Self::Poisoned { .. })
    }
}

/// Why the log could not be opened or appended to.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refused; the log stands as before.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The verb of what was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The last whole line is not one that this log wrote. Set the file aside under another name and open again.
    #[error("the decision log {} is damaged: the line at byte {at_byte} cannot be continued: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where its last line starts.
        at_byte: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file changed its length under us: somebody else writes or cuts it. [`DecisionLog::reopen`] looks anew.
    #[error("the decision log {} has {found} bytes instead of {expected}: somebody else changed it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Where our last line ends.
        expected: u64,
        /// How long the file is.
        found: u64,
    },
    /// The text is not one JSON object on one line, or is longer than [`LINE_BYTES_MAX`].
    #[error(
        "a line for the decision log has to be one JSON object without a line break, of at most {LINE_BYTES_MAX} bytes"
    )]
    NotAnObject,
    /// A failed append could not be cut back; nothing is appended until [`DecisionLog::reopen`].
    #[error("the decision log {} takes no more lines: {why}", path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The failure.
        why: String,
    },
}

impl DecisionLog {
    /// Opens the log, creating it when missing, and cuts off a torn last line.
    pub fn open(path: &Path) -> Result<(Self, Opened), LogError> {
        let found = Found::open(path)?;
        let id = found.id(path)?;
        let last = found.last.clone().unwrap_or_else(Receipt::genesis);
        let opened = Opened { last: found.last, torn_bytes: found.torn_bytes, set_aside: None };
        let (path, buffer) = (path.to_owned(), Vec::new());
        let log = Self { path, file: found.file, end: found.end, last, id, buffer, poisoned: None };
        Ok((log, opened))
    }

    /// Opens the log whatever is found: a rotation that a crash cut short is undone, an empty file continues the newest
    /// rotated one, and a file that cannot be continued is set aside under this name.
    pub fn open_or_set_aside(path: &Path, aside: &Path) -> Result<(Self, Opened), LogError> {
        let failed = |source| io_error("open", path, source);
        files::heal(path).map_err(failed)?;
        let why = match Self::open(path) {
            Ok((mut log, opened)) => {
                if opened.last.is_none()
                    && let Some((last, id)) = files::newest_rotated(path).map_err(failed)?
                {
                    log.continue_from(last, &id)?;
                }
                return Ok((log, opened));
            }
            Err(error) if error.ends_the_file() => error.to_string(),
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        let end = file.metadata().map_err(failed)?.len();
        let known = match files::last_good(&file).map_err(failed)? {
            Some(last) => Some((last, files::id_of(&file).map_err(failed)?)),
            None => files::newest_rotated(path).map_err(failed)?,
        };
        let (last, id) = known.unwrap_or_else(|| (Receipt { seq: 1, ..Receipt::genesis() }, String::new()));
        let mut log = Self { path: path.to_owned(), file, end, last, id, buffer: Vec::new(), poisoned: None };
        log.rotate(aside, Some(&why))?;
        let opened = Opened { last: log.last().cloned(), torn_bytes: 0, set_aside: Some(why) };
        Ok((log, opened))
    }

    /// Appends one object (its text, without a line break) with one `write`. It is not yet synced.
    ///
    /// The object's own fields should not be named `seq`, `prev` or `hash`.
    pub fn append(&mut self, object: &str) -> Result<Receipt, LogError> {
        self.check_sound()?;
        self.say_what_it_continues()?;
        self.append_line(object)
    }

    /// A file never starts in the middle of the chain without saying so.
    fn say_what_it_continues(&mut self) -> Result<Option<Receipt>, LogError> {
        if self.end > 0 || self.last.seq == 0 {
            return Ok(None);
        }
        self.append_line(&continued(None, &self.last, &self.id, None)).map(Some)
    }

    fn append_line(&mut self, object: &str) -> Result<Receipt, LogError> {
        let fits = object.len() <= LINE_BYTES_MAX - SEAL_BYTES_MAX;
        let receipt = line::seal(if fits { object } else { "" }, &self.last, &mut self.buffer)
            .ok_or(LogError::NotAnObject)?;
        let written = self.write_once();
        let len = self.buffer.len() as u64;
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
        written?;
        self.end += len;
        if self.id.is_empty() {
            self.id.clone_from(&receipt.hash);
        }
        self.last = receipt.clone();
        Ok(receipt)
    }

    /// Opens the path anew: after somebody renamed the file away, and after an error. The chain continues: an empty file
    /// gets a line that says what it continues, whose receipt is returned.
    pub fn reopen(&mut self) -> Result<Option<Receipt>, LogError> {
        let found = Found::open(&self.path)?;
        if let Some(last) = &found.last
            && *last != self.last
        {
            let why = "it is not the line that was appended last";
            return Err(LogError::Damaged { path: self.path.clone(), at_byte: found.last_start, why });
        }
        (self.file, self.end, self.poisoned) = (found.file, found.end, None);
        self.say_what_it_continues()
    }

    /// Renames the file to `aside` and goes on in a new one, whose first line names the old one and its end. There is no
    /// moment without a file under the log's name, and the new file is on disk when this returns. The old file is not
    /// synced: ask the syncer first.
    ///
    /// With a reason it is left whatever became of it, be it that somebody else wrote in it or renamed it away, and the
    /// new file's first line says the reason.
    pub fn rotate(&mut self, aside: &Path, why: Option<&str>) -> Result<Receipt, LogError> {
        match why {
            None => self.check_ours()?,
            // What a failed append left behind the last good line is no line, and never was.
            Some(_) if self.poisoned.is_some() => drop(self.file.set_len(self.end)),
            Some(_) => {}
        }
        let fresh = with_suffix(&self.path, ".new");
        let mut buffer = Vec::new();
        let named = aside.file_name().and_then(|name| name.to_str());
        let object = continued(named, &self.last, &self.id, why);
        let receipt = line::seal(&object, &self.last, &mut buffer).ok_or(LogError::NotAnObject)?;
        let file = write_fresh(&fresh, &buffer).map_err(|source| io_error("create", &fresh, source))?;
        match fs::hard_link(&self.path, aside) {
            Err(error) if why.is_some() && error.kind() == io::ErrorKind::NotFound => {}
            linked => linked.map_err(|source| io_error("rotate to", aside, source))?,
        }
        if let Err(source) = fs::rename(&fresh, &self.path) {
            // The second name goes again; if even that fails, the next start takes it away.
            let _ = fs::remove_file(aside);
            return Err(io_error("rotate", &self.path, source));
        }
        (self.file, self.end, self.poisoned) = (file, buffer.len() as u64, None);
        if self.id.is_empty() {
            self.id.clone_from(&receipt.hash);
        }
        self.last = receipt.clone();
        whole::sync_folder_of(&self.path)
            .map_err(|source| io_error("sync the folder of", &self.path, source))?;
        Ok(receipt)
    }

    /// Removes the oldest rotated files but for `keep` of them, and names those that are gone.
    pub fn forget_oldest(&self, keep: usize) -> Result<Vec<PathBuf>, LogError> {
        files::forget_oldest(&self.path, keep)
            .map_err(|source| io_error("remove old files of", &self.path, source))
    }

    /// Lets an empty log continue a chain whose end and whose id are known from elsewhere, such as the newest rotated file.
    /// The line that says so is the log's first. `None`, and nothing done, when the log has lines of its own.
    pub fn continue_from(&mut self, last: Receipt, id: &str) -> Result<Option<Receipt>, LogError> {
        if self.last.seq > 0 {
            return Ok(None);
        }
        self.last = last;
        id.clone_into(&mut self.id);
        self.check_sound()?;
        self.say_what_it_continues()
    }

    /// A second handle on the current file, for the syncer.
    pub fn file(&self) -> Result<File, LogError> {
        self.file.try_clone().map_err(|source| io_error("duplicate the handle of", &self.path, source))
    }

    /// The last line, if there is one.
    #[must_use]
    pub fn last(&self) -> Option<&Receipt> {
        Some(&self.last).filter(|last| last.seq > 0)
    }

    /// Hash of the chain's first line, by which anchors know the log; empty while it has none.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How long the file is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    fn check_sound(&self) -> Result<(), LogError> {
        if let Some(why) = &self.poisoned {
            return Err(LogError::Poisoned { path: self.path.clone(), why: why.clone() });
        }
        let found = self.file.metadata().map_err(|source| io_error("look at", &self.path, source))?.len();
        if found != self.end {
            return Err(LogError::Foreign { path: self.path.clone(), expected: self.end, found });
        }
        Ok(())
    }

    /// Whether the path still names the file that is open; only then may it be rotated.
    fn check_ours(&self) -> Result<(), LogError> {
        let failed = |source| io_error("look at", &self.path, source);
        let ours = self.file.metadata().map_err(failed)?;
        let named = fs::metadata(&self.path).map_err(failed)?;
        if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
            return Ok(());
        }
        Err(failed(io::Error::new(io::ErrorKind::NotFound, "the file was renamed away; reopen first")))
    }

    /// Writes the buffer, all or nothing.
    fn write_once(&mut self) -> Result<(), LogError> {
        let Err(source) = whole::write_once(&mut self.file, &self.buffer) else { return Ok(()) };
        if let Err(error) = self.file.set_len(self.end) {
            self.poisoned = Some(format!("an append failed ({source}) and could not be cut back ({error})"));
        }
        Err(io_error("append to", &self.path, source))
    }
}

/// A log file as it was found, with a torn last line already cut off.
struct Found {
    file: File,
    end: u64,
    last: Option<Receipt>,
    last_start: u64,
    torn_bytes: u64,
}

impl Found {
    fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |source| io_error("open", path, source);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        if len == 0 {
            whole::sync_folder_of(path).map_err(failed)?;
        }
        let damaged = |at_byte, why| LogError::Damaged { path: path.to_owned(), at_byte, why };
        let end = backward::end_of_whole_lines(&file, len).map_err(failed)?;
        let (last_start, last) = match backward::line_before(&file, end) {
            Ok(Some((at_byte, line))) => {
                let link = line::check(&line).map_err(|why| damaged(at_byte, why))?;
                (at_byte, Some(link.receipt()))
            }
            Ok(None) => (0, None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged(0, "its last line is longer than any that is written"));
            }
            Err(error) => return Err(failed(error)),
        };
        if end < len {
            let cut = file.set_len(end).and_then(|()| file.sync_all());
            cut.map_err(|source| io_error("cut the torn end of", path, source))?;
        }
        Ok(Self { file, end, last, last_start, torn_bytes: len - end })
    }

    fn id(&self, path: &Path) -> Result<String, LogError> {
        files::id_of(&self.file).map_err(|source| io_error("read", path, source))
    }
}

/// The object that opens a file in the middle of the chain.
fn continued(previous_file: Option<&str>, last: &Receipt, id: &str, why: Option<&str>) -> String {
    let text = |text: Option<&str>| text.map_or(serde_json::Value::Null, serde_json::Value::from);
    let why = why.map(|why| format!(r#","why":{}"#, text(Some(why)))).unwrap_or_default();
    format!(
        r#"{}"previous_file":{},"previous_seq":{},"previous_hash":"{}","log":{}{why}}}"#,
        line::CONTINUES,
        text(previous_file),
        last.seq,
        last.hash,
        text(Some(id).filter(|id| !id.is_empty())),
    )
}

fn write_fresh(path: &Path, bytes: &[u8]) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
    whole::write_once(&mut file, bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io { doing, path: path.to_owned(), source }
}

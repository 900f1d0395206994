//! The journal: the truth for everything that cannot be recomputed, as checksummed records in append-only segments.
//!
//! Promise: what was appended and then synced is replayed, in order, byte for byte, up to the first damage, if there is any:
//! from there on everything is set aside, and the journal says that it is in doubt until its owner has taken note. A crash in the middle of an append costs that record only, and the cut bytes are kept beside the segment.
//! After a failed append the journal stands exactly as before it, or takes nothing more.
//!
//! Absent: what a payload means; syncing what was appended (the [`Syncer`](super::syncer::Syncer) does, on
//! [`Journal::file`]); a lock against a second daemon; and any removal of old records.

mod damage;
mod error;
mod replay;
mod segment;

pub use damage::Damage;
pub use error::JournalError;
pub use replay::Each;

use super::whole;
use replay::Replayed;
use segment::{HEADER_LEN, Header, RECORD_HEAD_LEN, Reader};
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The longest payload of one record.
pub const PAYLOAD_MAX: usize = 32 * 1024 * 1024;

/// A segment that would grow over this is followed by a new one (unless it is still empty).
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The buffer of an append is given back when a large record has made it larger than this.
const BUFFER_KEPT_MAX: usize = 1024 * 1024;

/// The name of what a failed sync leaves behind.
const FAILED_SYNC: &str = "sync-failed";

/// An open journal; one owner appends.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    id: [u8; 16],
    file: File,
    path: PathBuf,
    first_seq: u64,
    last_seq: u64,
    /// Where the last good record ends; the file is cut back to here when an append fails.
    end: u64,
    buffer: Vec<u8>,
    poisoned: Option<String>,
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The journal's own id: a new one only when there was no journal yet.
    pub id: [u8; 16],
    /// The last record replayed; 0 when there is none.
    pub last_seq: u64,
    /// The end that was cut off, if it was torn.
    pub torn: Option<Torn>,
    /// Damage that was found, and what was given up for it.
    pub damage: Option<Damage>,
    /// Records may be lost, now or since an earlier opening: to be said in the journal itself, and then
    /// [settled](Journal::settle_doubt).
    pub in_doubt: bool,
}

/// A torn end: it is now in a file beside the segment, and no longer in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The last segment.
    pub segment: PathBuf,
    /// Where it ends now.
    pub at_byte: u64,
    /// How much was cut.
    pub bytes_cut: u64,
}

impl Journal {
    /// Opens the journal in this folder, creating both when missing, and tells every record to `each` in order.
    ///
    /// What was replayed is synced before this returns: the records of a killed daemon may not have been.
    pub fn open(dir: &Path, new_id: [u8; 16], each: Each<'_>) -> Result<(Self, Opened), JournalError> {
        create_dir(dir)?;
        let mut segments = segment::list(dir)?;
        if segments.is_empty() {
            let path = segment::path_of(dir, 1);
            let aside = segment::make_aside(&path, Header { id: new_id, first_seq: 1 }, |_| Ok(()))?;
            damage::put_in_place(&aside, &path)?;
            segments.push(1);
        }
        let state = replay::replay(dir, &segments, new_id, each)?;
        let path = segment::path_of(dir, state.first_seq);
        let file = segment::open_to_append(&path)?;
        file.sync_data().map_err(|source| JournalError::io("sync", &path, source))?;
        let in_doubt = damage::is_in_doubt(dir)?;
        let Replayed { id, last_seq, torn, damage, .. } = state;
        let opened = Opened { id, last_seq, torn, damage, in_doubt };
        let mut journal = Self {
            dir: dir.to_owned(),
            id: state.id,
            file,
            path,
            first_seq: state.first_seq,
            last_seq: state.last_seq,
            end: state.end,
            buffer: Vec::new(),
            poisoned: None,
        };
        if journal.failed_sync_mark().exists() {
            // The sync above may have succeeded over bytes that the kernel has given up.
            journal.start_over(journal.first_seq - 1)?;
            journal.forget_failed_sync()?;
        }
        Ok((journal, opened))
    }

    /// Appends one record with one `write` and returns its seq. It is not yet synced.
    ///
    /// May start a new segment first; [`first_seq`](Self::first_seq) tells, and then [`file`](Self::file) is another.
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        self.check_sound()?;
        if payload.len() > PAYLOAD_MAX {
            return Err(JournalError::TooLarge { len: payload.len() });
        }
        let grows_by = (RECORD_HEAD_LEN + payload.len()) as u64;
        if self.end + grows_by > SEGMENT_BYTES_MAX {
            self.roll()?;
        }
        let seq = self.last_seq + 1;
        self.buffer.clear();
        segment::encode_record(seq, payload, &mut self.buffer);
        let written = self.write_once();
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
        written?;
        self.last_seq = seq;
        self.end += grows_by;
        Ok(seq)
    }

    /// Starts a new segment, after syncing the current one; does nothing while that one is empty.
    ///
    /// After a *failed* sync use [`start_over`](Self::start_over): syncing again would report a false success.
    pub fn roll(&mut self) -> Result<(), JournalError> {
        self.check_sound()?;
        if self.last_seq < self.first_seq {
            return Ok(());
        }
        if let Err(source) = self.file.sync_data() {
            self.poisoned = Some(format!("a sync failed: {source}"));
            return Err(JournalError::io("sync", &self.path, source));
        }
        self.begin_segment(self.last_seq + 1)
    }

    /// Starts a new segment after a failed sync or a poisoning, carrying over every record after `synced_seq`, the last
    /// one known to be on disk (0 when unknown). They are read back and their checksums compared, since the old file
    /// may have lost them; if it did, this is [`JournalError::Damaged`] and the journal takes nothing more.
    pub fn start_over(&mut self, synced_seq: u64) -> Result<(), JournalError> {
        self.poisoned = Some("it is being replaced after a failure".to_owned());
        // A segment whose birth failed half way may stand behind this one. It holds nothing of its own, and would
        // come after the records that are appended from now on.
        for stray in segment::list(&self.dir)?.into_iter().filter(|&first_seq| first_seq > self.first_seq) {
            segment::remove(&segment::path_of(&self.dir, stray))?;
        }
        segment::sync_dir(&self.dir)?;
        self.begin_segment(synced_seq.saturating_add(1).clamp(self.first_seq, self.last_seq + 1))
    }

    /// Records may be lost that the caller knows of: every opening says so from now on, whatever happens to this process.
    pub fn put_in_doubt(&self) -> Result<(), JournalError> {
        damage::put_in_doubt(&self.dir)
    }

    /// The doubt stands in a record: syncs it, and no later opening says it again.
    pub fn settle_doubt(&mut self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|source| JournalError::io("sync", &self.path, source))?;
        damage::end_doubt(&self.dir)
    }

    /// The file whose presence says that a sync failed, and that nothing was begun anew since.
    #[must_use]
    pub fn failed_sync_mark(&self) -> PathBuf {
        self.dir.join(FAILED_SYNC)
    }

    /// It was begun anew: the next opening need not do it.
    pub fn forget_failed_sync(&self) -> Result<(), JournalError> {
        segment::remove(&self.failed_sync_mark())
    }

    /// A second handle on the current segment, for the syncer. It is opened on its own, because the kernel reports a
    /// sync error once to each open file: neither [`roll`](Self::roll) nor the syncer hides one from the other.
    pub fn file(&self) -> Result<File, JournalError> {
        segment::open_to_append(&self.path)
    }

    /// The journal's own id.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The first record of the current segment, its name so to speak.
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The last record appended; 0 when there is none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The failure after which it takes nothing more, if there was one.
    #[must_use]
    pub fn poisoned(&self) -> Option<&str> {
        self.poisoned.as_deref()
    }

    fn check_sound(&self) -> Result<(), JournalError> {
        match &self.poisoned {
            Some(why) => Err(JournalError::Poisoned { segment: self.path.clone(), why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Writes the buffer, all or nothing.
    fn write_once(&mut self) -> Result<(), JournalError> {
        let Err(source) = whole::write_once(&mut self.file, &self.buffer) else { return Ok(()) };
        if let Err(error) = self.file.set_len(self.end) {
            self.poisoned = Some(format!("an append failed ({source}) and could not be cut back ({error})"));
        }
        Err(JournalError::io("append to", &self.path, source))
    }

    /// Makes the segment that starts with `first_seq`, with the current one's records from there on, and moves to it.
    fn begin_segment(&mut self, first_seq: u64) -> Result<(), JournalError> {
        let path = segment::path_of(&self.dir, first_seq);
        let header = Header { id: self.id, first_seq };
        let mut end = HEADER_LEN;
        let made = segment::make_aside(&path, header, |file| {
            end += self.carry_over(first_seq, file)?;
            Ok(())
        });
        let aside = made.inspect_err(|_| {
            // Best effort: what is left here is removed when the journal is opened.
            let _ = segment::remove(&segment::half_made_path(&path));
        })?;
        // From here on the new segment may be the last one on disk. Records appended to this one would be lost.
        self.poisoned = Some("the segment that follows it could not be finished".to_owned());
        damage::put_in_place(&aside, &path)?;
        self.file = segment::open_to_append(&path)?;
        (self.path, self.first_seq, self.end, self.poisoned) = (path, first_seq, end, None);
        Ok(())
    }

    fn carry_over(&self, from_seq: u64, into: &mut File) -> Result<u64, JournalError> {
        let mut carried = 0;
        if from_seq > self.last_seq {
            return Ok(carried);
        }
        let lost = |at| JournalError::damaged(&self.path, at, "it cannot be read back after a failed sync");
        let (_, mut reader) = Reader::open(&self.path)?.ok_or_else(|| lost(0))?;
        let mut buffer = Vec::new();
        for seq in self.first_seq..=self.last_seq {
            let at = reader.at();
            let payload = reader.next(seq)?.ok_or_else(|| lost(at))?;
            if seq >= from_seq {
                buffer.clear();
                segment::encode_record(seq, payload, &mut buffer);
                into.write_all(&buffer)
                    .map_err(|source| JournalError::io("carry records over from", &self.path, source))?;
                carried += buffer.len() as u64;
            }
        }
        Ok(carried)
    }
}

fn create_dir(dir: &Path) -> Result<(), JournalError> {
    if dir.is_dir() {
        return Ok(());
    }
    let failed = |source| JournalError::io("create", dir, source);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    whole::sync_folder_of(dir).map_err(failed)
}

/// The id of the journal in this folder, if there is one: the first segment whose header is sound says so.
pub fn peek_id(dir: &Path) -> Result<Option<[u8; 16]>, JournalError> {
    if !dir.exists() {
        return Ok(None);
    }
    for first_seq in segment::list(dir)? {
        match Reader::open(&segment::path_of(dir, first_seq)) {
            Ok(Some((header, _))) => return Ok(Some(header.id)),
            Ok(None) | Err(JournalError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

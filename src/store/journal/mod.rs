//! The journal: the truth for everything that cannot be recomputed, as checksummed records in append-only segments, behind
//! a snapshot of what is left of the ones before them.
//!
//! Promise: what was appended and then synced is replayed, in order, byte for byte, up to the first damage, if there is any:
//! from there on everything is set aside, and the journal says that it is in doubt until its owner has taken note. A crash in the middle of an append costs that record only, and the cut bytes are kept beside the segment.
//! After a failed append the journal stands exactly as before it, or takes nothing more. Records are removed only when
//! a snapshot stands for them, on disk and read back ([`Closed`]).
//!
//! Absent: what a payload means, and so what is left of a record; syncing what was appended (the
//! [`Syncer`](super::syncer::Syncer) does, on [`Journal::file`]); a lock against a second daemon.

mod base;
mod compaction;
mod damage;
mod error;
mod folder;
mod opening;
mod reading;
mod replay;
mod segment;
mod snapshot;
mod syncing;

pub use compaction::{Closed, Written};
pub use damage::Damage;
pub use error::JournalError;
pub use opening::{Opened, Torn, peek_id};
pub use reading::{Read, read};
pub use replay::{Each, Piece};

use super::whole;
use segment::{HEADER_LEN, Header, Kind, RECORD_HEAD_LEN, Reader};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use syncing::sync_or_mark;

/// The longest payload of one record.
pub const PAYLOAD_MAX: usize = 32 * 1024 * 1024;

/// A segment that would grow over this is followed by a new one (unless it is still empty).
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The buffer of an append is given back when a large record has made it larger than this.
const BUFFER_KEPT_MAX: usize = 1024 * 1024;

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
    /// The last record that the snapshot stands for; 0 when there is none.
    snapshot_seq: u64,
    snapshot_bytes: u64,
    /// How long the segments between the snapshot and the current one are.
    closed_bytes: u64,
    segment_bytes_max: u64,
}

impl Journal {
    /// Segments that take nothing more, to be compacted; none while there is no such segment.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        let last_seq = self.first_seq - 1;
        (last_seq > self.snapshot_seq).then(|| Closed {
            dir: self.dir.clone(),
            id: self.id,
            last_seq,
            segment_bytes: self.closed_bytes,
            snapshot_bytes: self.snapshot_bytes,
        })
    }

    /// A snapshot was put in place.
    pub fn compacted(&mut self, written: Written) {
        let Written { last_seq, covered_bytes, bytes } = written;
        (self.snapshot_seq, self.snapshot_bytes) = (last_seq, bytes);
        self.closed_bytes = self.closed_bytes.saturating_sub(covered_bytes);
    }

    /// How long the snapshot is that it begins with; 0 when there is none.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes
    }

    /// How long it is: its snapshot, and the segments behind it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.snapshot_bytes + self.closed_bytes + self.end
    }

    /// From now on a segment that would grow over this is followed by a new one. Compaction takes whole segments, so
    /// this is also how finely it goes.
    pub fn set_segment_bytes_max(&mut self, bytes: u64) {
        self.segment_bytes_max = bytes.min(SEGMENT_BYTES_MAX);
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
        if self.end + grows_by > self.segment_bytes_max {
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
        sync_or_mark(&self.path, &self.file).inspect_err(|error| self.poisoned = Some(error.to_string()))?;
        self.begin_segment(self.last_seq + 1)
    }

    /// Starts a new segment after a failed sync or a poisoning, carrying over every record after `synced_seq`, the last
    /// one known to be on disk (0 when unknown). They are read back and their checksums compared, since the old file
    /// may have lost them; if it did, this is [`JournalError::Damaged`] and the journal takes nothing more.
    pub fn start_over(&mut self, synced_seq: u64) -> Result<(), JournalError> {
        self.poisoned = Some("it is being replaced after a failure".to_owned());
        // A segment whose birth failed half way may stand behind this one. It holds nothing of its own, and would
        // come after the records that are appended from now on.
        let strays = folder::list(&self.dir)?.segments.into_iter().filter(|&seq| seq > self.first_seq);
        strays
            .map(|seq| folder::segment_path(&self.dir, seq))
            .try_for_each(|stray| folder::remove(&stray))?;
        folder::sync(&self.dir)?;
        self.begin_segment(synced_seq.saturating_add(1).clamp(self.first_seq, self.last_seq + 1))
    }

    /// Records may be lost that the caller knows of: every opening says so from now on, whatever happens to this process.
    pub(crate) fn put_in_doubt(&self) -> Result<(), JournalError> {
        damage::put_in_doubt(&self.dir)
    }

    /// The doubt stands in a record: syncs it, and no later opening says it again.
    pub fn settle_doubt(&mut self) -> Result<(), JournalError> {
        sync_or_mark(&self.path, &self.file)?;
        damage::end_doubt(&self.dir)
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
    pub(crate) fn poisoned(&self) -> Option<&str> {
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
        let path = folder::segment_path(&self.dir, first_seq);
        let mut end = HEADER_LEN;
        let aside = segment::make_aside(&path, Header::segment(self.id, first_seq), |file| {
            end += self.carry_over(first_seq, file)?;
            Ok(())
        })?;
        // From here on the new segment may be the last one on disk. Records appended to this one would be lost.
        self.poisoned = Some("the segment that follows it could not be finished".to_owned());
        folder::put_in_place(&aside, &path)?;
        self.file = segment::open_to_append(&path)?;
        if first_seq > self.first_seq {
            self.closed_bytes += self.end;
        }
        (self.path, self.first_seq, self.end, self.poisoned) = (path, first_seq, end, None);
        Ok(())
    }

    fn carry_over(&self, from_seq: u64, into: &mut File) -> Result<u64, JournalError> {
        let mut carried = 0;
        if from_seq > self.last_seq {
            return Ok(carried);
        }
        let lost = |at| JournalError::damaged(&self.path, at, "it cannot be read back after a failed sync");
        let (_, mut reader) = Reader::open(&self.path, Kind::Segment)?.ok_or_else(|| lost(0))?;
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

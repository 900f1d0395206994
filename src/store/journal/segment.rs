//! One segment file: its header, its records, and how a new one comes into being.
//!
//! Promise: a record that `Reader` delivers is byte for byte the one that was appended. A segment appears under its
//! name only when its header is on disk. Absent: any judgement whether damage may be cut away (`replay` has that).
//!
//! Snapshots have headers and records of the same form; what is more to them stands in `snapshot`.
//!
//! The segment of the first record says format 1, and every other 2. They are read alike. But a program that knows no
//! snapshots takes what is behind one for a journal that lost its beginning, and gives it up; a format that it does not
//! know it leaves alone.
//!
//! ```text
//! header   "STALEDJ1" | format u32 | journal id 16 | first seq u64 | checksum 16      52 bytes, little endian
//! record   len u32 | seq u64 | checksum 16 of seq and payload | payload               28 bytes and the payload
//! ```

use super::{JournalError, PAYLOAD_MAX, folder};
use crate::world::digest::blake3;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) const HEADER_LEN: u64 = HEADER_BYTES as u64;
const HEADER_BYTES: usize = 52;
pub(super) const RECORD_HEAD_LEN: usize = 28;
const FORMAT: u32 = 1;
/// Of segments that may stand behind a snapshot.
const FORMAT_BEHIND: u32 = 2;
pub(super) const CHECKSUM_LEN: usize = 16;
const SEQ_LEN: usize = 8;

/// Which file it is, by the first bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Segment,
    Snapshot,
}

impl Kind {
    fn magic(self) -> [u8; 8] {
        match self {
            Self::Segment => *b"STALEDJ1",
            Self::Snapshot => *b"STALEDS1",
        }
    }

    fn knows(self, format: u32) -> bool {
        format == FORMAT || self == Self::Segment && format == FORMAT_BEHIND
    }
}

/// What a file of the journal says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) id: [u8; 16],
    /// The first record of a segment, the last one that a snapshot stands for.
    pub(super) seq: u64,
}

impl Header {
    pub(super) fn segment(id: [u8; 16], first_seq: u64) -> Self {
        Self { kind: Kind::Segment, id, seq: first_seq }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = self.kind.magic().to_vec();
        bytes.extend(self.format().to_le_bytes());
        bytes.extend(self.id);
        bytes.extend(self.seq.to_le_bytes());
        let sum = checksum(&bytes);
        bytes.extend(sum);
        bytes
    }

    fn format(self) -> u32 {
        if self.kind == Kind::Segment && self.seq > 1 { FORMAT_BEHIND } else { FORMAT }
    }

    fn decode(kind: Kind, bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Self, JournalError> {
        let (said, sum) = bytes.split_at(bytes.len() - CHECKSUM_LEN);
        if said[..8] != kind.magic() || sum != checksum(said) {
            return Err(JournalError::damaged(path, 0, "its header is not what was written"));
        }
        let format = u32_at(said, 8);
        if !kind.knows(format) {
            return Err(JournalError::OtherFormat { segment: path.to_owned(), format });
        }
        let mut id = [0; 16];
        id.copy_from_slice(&said[12..28]);
        Ok(Self { kind, id, seq: u64_at(said, 28) })
    }
}

/// Appends one record to `buffer`, and tells its checksum.
pub(super) fn encode_record(seq: u64, payload: &[u8], buffer: &mut Vec<u8>) -> [u8; CHECKSUM_LEN] {
    let start = buffer.len();
    buffer.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    buffer.extend([0; CHECKSUM_LEN]);
    buffer.extend(seq.to_le_bytes());
    buffer.extend(payload);
    // Seq and payload lie side by side for one pass of the checksum; then head and seq take their places.
    let sum = checksum(&buffer[start + 4 + CHECKSUM_LEN..]);
    buffer[start + 4..start + 12].copy_from_slice(&seq.to_le_bytes());
    buffer[start + 12..start + RECORD_HEAD_LEN].copy_from_slice(&sum);
    sum
}

/// The seq of the record at the start of `bytes`, when it is whole and unaltered.
fn decode_record(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..RECORD_HEAD_LEN)?;
    let len = u32_at(head, 0) as usize;
    let payload = bytes.get(RECORD_HEAD_LEN..RECORD_HEAD_LEN.checked_add(len)?)?;
    let body = [&head[4..12], payload].concat();
    (len <= PAYLOAD_MAX && checksum(&body) == head[12..]).then_some(u64_at(head, 4))
}

/// Whether `tail` is the beginning of the record `expected`, without its end. One whose length alone was altered is not:
/// its checksum still knows it.
pub(super) fn ends_short(tail: &[u8], expected: u64) -> bool {
    let Some((head, rest)) = tail.split_at_checked(RECORD_HEAD_LEN) else { return true };
    let len = u32_at(head, 0) as usize;
    let whole = || checksum(&[&head[4..12], rest].concat()) == head[12..];
    (rest.len() + 1..=PAYLOAD_MAX).contains(&len) && u64_at(head, 4) == expected && !whole()
}

/// Whether a whole, unaltered record with a seq of at least `expected` stands anywhere behind the start of `tail`.
pub(super) fn holds_a_record_behind(tail: &[u8], expected: u64) -> bool {
    let most = expected.saturating_add((tail.len() / RECORD_HEAD_LEN) as u64);
    let starts = 1..tail.len().saturating_sub(RECORD_HEAD_LEN - 1);
    // The seq is a filter of 64 bits, so that hardly any place needs its checksum computed.
    starts
        .filter(|&start| (expected..=most).contains(&u64_at(tail, start + 4)))
        .any(|start| decode_record(&tail[start..]).is_some())
}

/// Reads a file's records in order.
pub(super) struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    len: u64,
    at: u64,
    /// Seq and payload side by side, as the checksum wants them.
    body: Vec<u8>,
    /// The checksum of the record that was delivered last; of the header before the first.
    sum: [u8; CHECKSUM_LEN],
}

impl Reader {
    /// Opens a file and reads its header; `None` when it is too short to have one.
    pub(super) fn open(path: &Path, kind: Kind) -> Result<Option<(Header, Self)>, JournalError> {
        let file = File::open(path).map_err(|source| JournalError::io("open", path, source))?;
        let len = file.metadata().map_err(|source| JournalError::io("read", path, source))?.len();
        if len < HEADER_LEN {
            return Ok(None);
        }
        let mut file = BufReader::with_capacity(256 * 1024, file);
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(|source| JournalError::io("read", path, source))?;
        let header = Header::decode(kind, &bytes, path)?;
        let sum = sum_at(&bytes, HEADER_BYTES - CHECKSUM_LEN);
        let reader = Self { file, path: path.to_owned(), len, at: HEADER_LEN, body: Vec::new(), sum };
        Ok(Some((header, reader)))
    }

    /// Where the next record starts.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// How long the file was when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The checksum of what was delivered last.
    pub(super) fn sum(&self) -> [u8; CHECKSUM_LEN] {
        self.sum
    }

    /// The next bytes as they stand, when so many are left.
    pub(super) fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], JournalError> {
        let mut bytes = [0; LEN];
        self.file.read_exact(&mut bytes).map_err(|source| JournalError::io("read", &self.path, source))?;
        self.at += LEN as u64;
        Ok(bytes)
    }

    /// The file that is read.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The payload of the record that was read last.
    pub(super) fn payload(&self) -> &[u8] {
        self.body.get(SEQ_LEN..).unwrap_or_default()
    }

    /// The next record; `None` at the end, and where no whole, unaltered record with this seq stands.
    pub(super) fn next(&mut self, seq: u64) -> Result<Option<&[u8]>, JournalError> {
        Ok(self.advance(seq)?.then(|| self.payload()))
    }

    /// Reads the next record. False at the end, and where no whole, unaltered record with this seq stands.
    pub(super) fn advance(&mut self, seq: u64) -> Result<bool, JournalError> {
        let left = self.len - self.at;
        if left < RECORD_HEAD_LEN as u64 {
            return Ok(false);
        }
        let mut head = [0; RECORD_HEAD_LEN];
        self.file.read_exact(&mut head).map_err(|source| JournalError::io("read", &self.path, source))?;
        let len = u32_at(&head, 0) as usize;
        if len > PAYLOAD_MAX || len as u64 > left - RECORD_HEAD_LEN as u64 || u64_at(&head, 4) != seq {
            return Ok(false);
        }
        self.body.resize(SEQ_LEN + len, 0);
        let (seq_bytes, payload) = self.body.split_at_mut(SEQ_LEN);
        seq_bytes.copy_from_slice(&head[4..12]);
        self.file.read_exact(payload).map_err(|source| JournalError::io("read", &self.path, source))?;
        if checksum(&self.body) != head[12..] {
            return Ok(false);
        }
        self.at += (RECORD_HEAD_LEN + len) as u64;
        self.sum = sum_at(&head, 12);
        Ok(true)
    }
}

/// Makes a file aside with what `contents` appends to it, and syncs it; it is not in place yet. What fails leaves
/// nothing behind: it would only keep a full disk full.
pub(super) fn make_aside(
    path: &Path,
    header: Header,
    contents: impl FnOnce(&mut File) -> Result<(), JournalError>,
) -> Result<PathBuf, JournalError> {
    let aside = folder::half_made(path);
    let failed = |source| JournalError::io("create", &aside, source);
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(failed)?;
    let written = file.write_all(&header.encode()).map_err(failed);
    let made = written.and_then(|()| contents(&mut file)).and_then(|()| file.sync_all().map_err(failed));
    match made {
        Ok(()) => Ok(aside),
        Err(error) => {
            // Best effort: what is left here is swept away by the next opening.
            let _ = folder::remove(&aside);
            Err(error)
        }
    }
}

/// Whether a segment begins as one that is made now: before there were snapshots all said the same format.
pub(super) fn begins_as(path: &Path, header: Header) -> Result<bool, JournalError> {
    let mut bytes = [0; HEADER_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|source| JournalError::io("read", path, source))?;
    Ok(bytes[..] == header.encode())
}

/// Opens a segment that is in place, for appending.
pub(super) fn open_to_append(path: &Path) -> Result<File, JournalError> {
    OpenOptions::new().append(true).open(path).map_err(|source| JournalError::io("open", path, source))
}

pub(super) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut sum = [0; CHECKSUM_LEN];
    sum.copy_from_slice(&blake3(bytes).as_bytes()[..CHECKSUM_LEN]);
    sum
}

fn sum_at(bytes: &[u8], at: usize) -> [u8; CHECKSUM_LEN] {
    let mut sum = [0; CHECKSUM_LEN];
    sum.copy_from_slice(&bytes[at..at + CHECKSUM_LEN]);
    sum
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut le = [0; 4];
    le.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(le)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut le = [0; 8];
    le.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(le)
}

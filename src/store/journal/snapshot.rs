//! One snapshot file: what is left of all records up to a certain one, in records of its own. Their payloads are the
//! caller's, as in a segment; their numbers count them, and are no place in the journal.
//!
//! Promise: what is read to its end is byte for byte what was written; one without its end, or with any other byte in
//! it, is damaged. A snapshot appears under its name only when it is on disk, and was read back whole.
//!
//! ```text
//! header   "STALEDS1" | format u32 | journal id 16 | last seq u64 | checksum 16        52 bytes, little endian
//! record   as in a segment, numbered from 1
//! end      0xffffffff | count u64 | checksum 16 of the last link and the count         28 bytes, and nothing behind
//!
//! The links go through all checksums: the first is the header's, each other the checksum of the one before it and of
//! its record's.
//! ```

use super::folder::{self, put_in_place, snapshot_path};
use super::segment::{self, CHECKSUM_LEN, Header, Kind, RECORD_HEAD_LEN, checksum};
use super::{JournalError, PAYLOAD_MAX};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const END_LEN: usize = RECORD_HEAD_LEN;
const END: [u8; 4] = [0xff; 4];

type Link = [u8; CHECKSUM_LEN];

/// Reads what was kept, in order.
pub(super) struct Reader {
    records: segment::Reader,
    link: Link,
    count: u64,
}

impl Reader {
    /// Opens the snapshot of this name.
    pub(super) fn open(path: &Path, last_seq: u64) -> Result<(Header, Self), JournalError> {
        let Some((header, records)) = segment::Reader::open(path, Kind::Snapshot)? else {
            return Err(JournalError::damaged(path, 0, "it is too short to have a header"));
        };
        if header.seq != last_seq {
            let why = "its name and its header disagree about the last record";
            return Err(JournalError::damaged(path, 0, why));
        }
        let link = records.sum();
        Ok((header, Self { records, link, count: 0 }))
    }

    /// The next payload; `None` at the end of a whole snapshot.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, JournalError> {
        let (at, left) = (self.records.at(), self.records.len() - self.records.at());
        let damaged =
            |records: &segment::Reader, why: &str| Err(JournalError::damaged(records.path(), at, why));
        if left == END_LEN as u64 {
            let end = self.records.take::<END_LEN>()?;
            if end[..] == end_mark(self.link, self.count) {
                return Ok(None);
            }
            return damaged(&self.records, "it does not end as it was written");
        }
        let ordinal = self.count + 1;
        if self.records.advance(ordinal)? {
            self.count = ordinal;
            self.link = linked(self.link, self.records.sum());
            return Ok(Some(self.records.payload()));
        }
        let why = if left < END_LEN as u64 { "it has no end" } else { "a record is not what was written" };
        damaged(&self.records, why)
    }

    /// Where the next one starts.
    pub(super) fn at(&self) -> u64 {
        self.records.at()
    }

    /// How many were delivered.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// Reads a snapshot to its end. The error says where the damage is, and `kept` how many payloads stand before it.
pub(super) fn verify(path: &Path, last_seq: u64, kept: &mut u64) -> Result<Header, JournalError> {
    *kept = 0;
    let (header, mut reader) = Reader::open(path, last_seq)?;
    while reader.next()?.is_some() {
        *kept = reader.count();
    }
    Ok(header)
}

/// Takes payloads into a snapshot that is being made.
pub(super) struct Draft<'file> {
    file: BufWriter<&'file mut File>,
    path: &'file Path,
    buffer: Vec<u8>,
    link: Link,
    count: u64,
}

impl Draft<'_> {
    pub(super) fn keep(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(JournalError::TooLarge { len: payload.len() });
        }
        self.count += 1;
        self.buffer.clear();
        let sum = segment::encode_record(self.count, payload, &mut self.buffer);
        self.link = linked(self.link, sum);
        self.file.write_all(&self.buffer).map_err(|source| JournalError::io("write to", self.path, source))
    }

    fn finish(mut self) -> Result<(), JournalError> {
        let end = end_mark(self.link, self.count);
        let written = self.file.write_all(&end).and_then(|()| self.file.flush());
        written.map_err(|source| JournalError::io("write to", self.path, source))
    }
}

/// Makes the snapshot that this header names, in the place of one of the same name. Returns its length. What fails
/// leaves everything as it was, but for the sync of the folder behind the last step: the new one is in place then, and
/// whether it stays there after a power cut is not known.
pub(super) fn write(
    dir: &Path,
    header: Header,
    contents: impl FnOnce(&mut Draft<'_>) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let path = snapshot_path(dir, header.seq);
    let aside = segment::make_aside(&path, header, |file| {
        let encoded = header.encode();
        let mut link = Link::default();
        link.copy_from_slice(&encoded[encoded.len() - CHECKSUM_LEN..]);
        let file = BufWriter::with_capacity(256 * 1024, file);
        let mut draft = Draft { file, path: &path, buffer: Vec::new(), link, count: 0 };
        contents(&mut draft)?;
        draft.finish()
    })?;
    let placed = verify(&aside, header.seq, &mut 0).and_then(|_| {
        let len = aside.metadata().map_err(|source| JournalError::io("read", &aside, source))?.len();
        put_in_place(&aside, &path)?;
        Ok(len)
    });
    placed.inspect_err(|_| drop(folder::remove(&aside)))
}

fn linked(link: Link, sum: [u8; CHECKSUM_LEN]) -> Link {
    checksum(&[link, sum].concat())
}

fn end_mark(link: Link, count: u64) -> Vec<u8> {
    let count = count.to_le_bytes();
    let sum = checksum(&[&link[..], &count].concat());
    [&END[..], &count, &sum].concat()
}

//! A reader of git's reftable: sorted, prefix-compressed tables of refs, stacked newest last in `tables.list`.
//!
//! Promise: the value of a name, or that the stack has none; every length is checked against the file before it is
//! used, so damaged bytes give a fault and never a panic or an allocation beyond one block (16 MiB).
//! Absent on purpose: indexes (blocks are scanned in order; names sort, so HEAD is met first), reflogs, and writing.
//! Format: <https://git-scm.com/docs/reftable>.

use super::look::{Fault, Look};
use super::refs::Value;
use crate::session::digest::CommitId;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

const LIST_BYTES_MAX: u64 = 1 << 20;
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// The value of `name` in the stack of this `reftable` folder: the newest table that speaks of it wins, also when it
/// says that the ref was deleted.
///
/// A table may vanish between our reading the list and our opening it: git had compacted it into another. That is a
/// fault here, and gone when the caller looks again, as the new list is in place before the old tables go.
pub(super) fn find(look: &mut Look, dir: &Path, name: &[u8], id_len: usize) -> Result<Option<Value>, Fault> {
    let list = dir.join("tables.list");
    let bytes = look.read(&list, LIST_BYTES_MAX)?.unwrap_or_default();
    for line in bytes.split(|&byte| byte == b'\n').rev().filter(|line| !line.is_empty()) {
        if line.contains(&b'/') || line.starts_with(b".") {
            return Err(Fault::new(&list, "names a table outside its folder"));
        }
        let path = dir.join(OsStr::from_bytes(line));
        let file = look.open(&path, TABLE_BYTES_MAX)?;
        let file = file.ok_or_else(|| Fault::new(&path, "is in tables.list and does not exist"))?;
        let record = Table::open(file, id_len).and_then(|table| table.find(name));
        match record.map_err(|error| Fault::new(&path, error))? {
            None => {}
            Some(Record::Deleted) => return Ok(None),
            Some(Record::Value(value)) => return Ok(Some(value)),
        }
    }
    Ok(None)
}

enum Record {
    Deleted,
    Value(Value),
}

/// An open table whose header and footer agree.
struct Table {
    file: File,
    header_len: u64,
    /// Blocks begin at multiples of it; 0 when they are not aligned.
    block_size: u64,
    id_len: usize,
    /// Where the footer begins.
    end: u64,
}

impl Table {
    fn open(file: File, id_len: usize) -> Result<Self, String> {
        let len = file.metadata().map_err(|error| error.to_string())?.len();
        let start = read(&file, 0, 5)?;
        let header_len = match (&start[..4], start[4]) {
            (b"REFT", 1) => 24,
            (b"REFT", 2) => 28,
            _ => return Err("not a reftable of version 1 or 2".into()),
        };
        let footer_len = header_len + 44;
        let end = len.checked_sub(footer_len).filter(|&end| end >= header_len).ok_or("too short")?;
        let header = read(&file, 0, header_len)?;
        let footer = read(&file, end, footer_len)?;
        let (summed, sum) = footer.split_at(footer.len() - 4);
        if !footer.starts_with(&header) || crc32(summed).to_be_bytes() != sum {
            return Err("the footer is damaged".into());
        }
        let hash = header.get(24..).filter(|hash| !hash.is_empty()).unwrap_or(b"sha1");
        if (hash, id_len) != (b"sha1", 20) && (hash, id_len) != (b"s256", 32) {
            return Err("another kind of object id than the repository's".into());
        }
        Ok(Self { file, header_len, block_size: be24(&header[5..8]), id_len, end })
    }

    /// What this table says of a name, if it speaks of it at all.
    fn find(&self, name: &[u8]) -> Result<Option<Record>, String> {
        let mut key = Vec::new();
        let mut at = 0;
        while let Some(block) = self.ref_block(at)? {
            let mut records = Cursor(block.records());
            while !records.0.is_empty() {
                let record = self.record(&mut records, &mut key).ok_or_else(|| damaged(at))?;
                if key == name {
                    return Ok(Some(record));
                }
                if key.as_slice() > name {
                    return Ok(None);
                }
            }
            at = self.after(at, block.bytes.len() as u64)?;
        }
        Ok(None)
    }

    /// The block of refs at this offset; `None` when the section of refs is over.
    fn ref_block(&self, at: u64) -> Result<Option<Block>, String> {
        // The first block begins at offset 0 and has the file's header inside.
        let skipped = if at == 0 { self.header_len } else { 0 };
        if at + skipped >= self.end {
            return Ok(None);
        }
        let head = self.read(at + skipped, 4)?;
        match head[0] {
            b'r' => {}
            b'i' | b'o' | b'g' => return Ok(None),
            0 if self.is_blank_from(at + skipped)? => return Ok(None),
            _ => return Err(damaged(at)),
        }
        let bytes = self.read(at, be24(&head[1..]))?;
        Block::parse(bytes, skipped + 4).map(Some).ok_or_else(|| damaged(at))
    }

    /// Where the next block begins: padding is zeros up to the next multiple, and no block begins with a zero.
    fn after(&self, at: u64, len: u64) -> Result<u64, String> {
        let next = at + len;
        let padded = len < self.block_size && next < self.end && self.read(next, 1)?[0] == 0;
        Ok(if padded { at + self.block_size } else { next })
    }

    fn is_blank_from(&self, mut at: u64) -> Result<bool, String> {
        while at < self.end {
            let len = (self.end - at).min(64 * 1024);
            if self.read(at, len)?.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += len;
        }
        Ok(true)
    }

    /// Steps over one record; `key` goes from the previous name to this one, and has to grow; else it is damage.
    fn record(&self, records: &mut Cursor, key: &mut Vec<u8>) -> Option<Record> {
        let shared = usize::try_from(records.varint()?).ok()?;
        let suffix = records.varint()?;
        let tail = records.take(suffix >> 3)?;
        let grows = key.get(shared..)? < tail;
        key.truncate(shared);
        key.extend_from_slice(tail);
        let _update_index = records.varint()?;
        if !grows {
            return None;
        }
        match suffix & 7 {
            0 => Some(Record::Deleted),
            1 => commit(records.take(self.id_len as u64)?),
            2 => commit(&records.take(2 * self.id_len as u64)?[..self.id_len]),
            3 => {
                let len = records.varint()?;
                Some(Record::Value(Value::Symbolic(records.take(len)?.to_vec())))
            }
            _ => None,
        }
    }

    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, String> {
        if at.checked_add(len).is_none_or(|past| past > self.end) {
            return Err(damaged(at));
        }
        read(&self.file, at, len)
    }
}

fn commit(id: &[u8]) -> Option<Record> {
    let id = CommitId::from_bytes(id).filter(|_| id.iter().any(|&byte| byte != 0))?;
    Some(Record::Value(Value::Id(id)))
}

/// One block: its head, its records, and the restart points that we do not need.
struct Block {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Block {
    fn parse(bytes: Vec<u8>, begin: u64) -> Option<Self> {
        let begin = usize::try_from(begin).ok()?;
        let count = bytes.last_chunk::<2>().map(|count| usize::from(u16::from_be_bytes(*count)))?;
        let end = bytes.len().checked_sub(2 + 3 * count).filter(|&end| end >= begin)?;
        Some(Self { bytes, begin, end })
    }

    fn records(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Git's own spelling: each further byte adds one before it shifts, so that no number has two spellings.
    fn varint(&mut self) -> Option<u64> {
        let mut byte = self.take(1)?[0];
        let mut value = u64::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)? | u64::from(byte & 127);
        }
        Some(value)
    }
}

fn damaged(at: u64) -> String {
    format!("the block at byte {at} is damaged")
}

fn read(file: &File, at: u64, len: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; usize::try_from(len).map_err(|error| error.to_string())?];
    file.read_exact_at(&mut bytes, at).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn be24(bytes: &[u8]) -> u64 {
    bytes.iter().take(3).fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// CRC-32 as in gzip. Bit by bit: it is asked for 68 bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

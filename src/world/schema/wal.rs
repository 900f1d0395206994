//! The write-ahead log: which pages it holds that are committed, by SQLite's own rules of recovery.

use super::pages::Damage;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// What the log begins with; empty for a log without a header.
pub(super) fn header(file: &File) -> io::Result<Vec<u8>> {
    let mut header = vec![0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(header),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The log's header, and where in it the newest committed copy of each page stands. Frames count from the first as long
/// as their salts are the header's and the checksum, which runs through all of them, is right; and only up to the last
/// one that ends a transaction.
pub(super) fn committed(file: &File, page_len: usize) -> Result<(Vec<u8>, HashMap<u32, u64>), Damage> {
    let header = header(file)?;
    let (mut committed, mut open) = (HashMap::new(), HashMap::new());
    let Some(mut sum) = Sum::begin(&header) else { return Ok((header, committed)) };
    if word(&header, 8) as usize != page_len {
        return Err(Damage::Broken);
    }
    let mut frames = BufReader::with_capacity(1 << 18, file);
    let mut offset = HEADER_BYTES as u64;
    frames.seek(SeekFrom::Start(offset))?;
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_len];
    while read_whole(&mut frames, &mut frame)? {
        sum.add(&frame[..8]);
        sum.add(&frame[FRAME_HEADER_BYTES..]);
        let (page, pages_after) = (word(&frame, 0), word(&frame, 4));
        if page == 0 || frame[8..16] != header[16..24] || !sum.is(&frame[16..24]) {
            break;
        }
        open.insert(page, offset + FRAME_HEADER_BYTES as u64);
        if pages_after > 0 {
            committed.extend(open.drain());
        }
        offset += frame.len() as u64;
    }
    Ok((header, committed))
}

fn read_whole(frames: &mut impl Read, frame: &mut [u8]) -> io::Result<bool> {
    match frames.read_exact(frame) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The checksum that runs through the log.
struct Sum {
    pair: (u32, u32),
    big_endian: bool,
}

impl Sum {
    /// After a sound header.
    fn begin(header: &[u8]) -> Option<Self> {
        if header.len() < HEADER_BYTES || word(header, 0) & !1 != MAGIC {
            return None;
        }
        let mut sum = Self { pair: (0, 0), big_endian: word(header, 0) & 1 == 1 };
        sum.add(&header[..24]);
        sum.is(&header[24..32]).then_some(sum)
    }

    fn add(&mut self, bytes: &[u8]) {
        let number = |four: &[u8]| {
            let four = [four[0], four[1], four[2], four[3]];
            if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        let (mut first, mut second) = self.pair;
        for eight in bytes.chunks_exact(8) {
            first = first.wrapping_add(number(&eight[..4])).wrapping_add(second);
            second = second.wrapping_add(number(&eight[4..])).wrapping_add(first);
        }
        self.pair = (first, second);
    }

    fn is(&self, told: &[u8]) -> bool {
        self.pair == (word(told, 0), word(told, 4))
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

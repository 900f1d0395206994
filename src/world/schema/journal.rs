//! The rollback journal: what the pages were before the transaction that it belongs to.
//!
//! Whether that transaction is in progress or was cut off by a crash, what it keeps is what was committed last: SQLite
//! writes to the database only after the journal says how many pages it keeps.

use super::pages::Damage;
use super::wal::word;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEADER_BYTES: usize = 28;

/// Where in the journal each page stands. A journal whose header was zeroed or cut off is over.
pub(super) fn kept(file: &File, page_len: usize) -> Result<HashMap<u32, u64>, Damage> {
    let size = file.metadata()?.len();
    let mut kept = HashMap::new();
    let mut offset = 0;
    while let Some(header) = header(file, offset)? {
        if header.page_len != page_len || names_others(file, size)? {
            return Err(Damage::Unsettled);
        }
        let mut at = offset + header.sector;
        let record_len = page_len as u64 + 8;
        let fit = size.saturating_sub(at) / record_len;
        let records = if header.records == u32::MAX { fit } else { fit.min(u64::from(header.records)) };
        for _ in 0..records {
            let Some(page) = sound_record(file, at, page_len, header.nonce)? else { return Ok(kept) };
            kept.entry(page).or_insert(at + 4);
            at += record_len;
        }
        if at == offset + header.sector {
            break;
        }
        offset = at.next_multiple_of(header.sector);
    }
    Ok(kept)
}

struct Header {
    records: u32,
    nonce: u32,
    sector: u64,
    page_len: usize,
}

fn header(file: &File, offset: u64) -> Result<Option<Header>, Damage> {
    let mut bytes = [0; HEADER_BYTES];
    match file.read_exact_at(&mut bytes, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    if bytes[..8] != MAGIC {
        return Ok(None);
    }
    let (records, nonce) = (word(&bytes, 8), word(&bytes, 12));
    let (sector, page_len) = (word(&bytes, 20), word(&bytes, 24) as usize);
    if sector < HEADER_BYTES as u32 || !sector.is_power_of_two() {
        return Err(Damage::Unsettled);
    }
    Ok(Some(Header { records, nonce, sector: u64::from(sector), page_len }))
}

/// A transaction over several databases is committed by a file of its own, which is not looked at here.
fn names_others(file: &File, size: u64) -> io::Result<bool> {
    let mut last = [0; 8];
    if size < 8 {
        return Ok(false);
    }
    file.read_exact_at(&mut last, size - 8)?;
    Ok(last == MAGIC)
}

/// The page that a record keeps, if its checksum is right.
fn sound_record(file: &File, at: u64, page_len: usize, nonce: u32) -> Result<Option<u32>, Damage> {
    let mut record = vec![0; page_len + 8];
    file.read_exact_at(&mut record, at)?;
    let page = &record[4..4 + page_len];
    let sampled = (1..=page_len / 200).map(|step| page_len - 200 * step).filter(|&at| at > 0);
    let sum = sampled.fold(nonce, |sum, at| sum.wrapping_add(u32::from(page[at])));
    let number = word(&record, 0);
    Ok((number > 0 && sum == word(&record, 4 + page_len)).then_some(number))
}

//! The index of a fork: the parent's, with what git remembers of each file told of the fork's files instead.
//!
//! A file whose times in the parent are those that the index remembers is what the index says, and so is its copy. Telling
//! git so spares it reading every file again; and it keeps what a filter of the parent would have to say again, which is
//! never run. Whatever is in doubt is left as it is, and git looks for itself.

use super::copy::Copied;
use super::repository::Index;
use rustix::fs::Stat;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

/// How long what git remembers of a file is, in bytes.
const STAT: usize = 40;
/// The name is longer than its length says.
const LONG: usize = 0xfff;

/// The index with the copies in it, if it can be understood.
pub(super) fn told(index: &Index, copied: &[Copied], name_len: usize) -> Option<Vec<u8>> {
    let mut bytes = index.bytes.clone();
    let by_path: HashMap<&[u8], &Copied> =
        copied.iter().map(|copied| (copied.path.as_os_str().as_bytes(), copied)).collect();
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().expect("because it is 4 bytes")))
    };
    let (version, entries) = (number(&bytes, 4)?, number(&bytes, 8)?);
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..entries {
        let (names, next) = entry(&bytes, at, version, name_len, &mut path)?;
        if let Some(copied) = by_path.get(path.as_slice()).filter(|_| names) {
            let remembered = bytes.get(at..at + STAT)?;
            if remembered[..24] == words(&copied.was)[..24]
                && remembered[28..] == words(&copied.was)[28..]
                && is_settled(index, &copied.was)
            {
                // The mode is the index's own: it says what was staged.
                let words = words(&copied.is);
                bytes[at..at + 24].copy_from_slice(&words[..24]);
                bytes[at + 28..at + STAT].copy_from_slice(&words[28..]);
            }
        }
        at = next;
    }
    let end = bytes.len().checked_sub(name_len).filter(|end| *end >= at)?;
    // All zeros stand where nobody asked for a sum.
    if bytes[end..].iter().any(|byte| *byte != 0) {
        let sum = if name_len == 20 {
            Sha1::digest(&bytes[..end]).to_vec()
        } else {
            Sha256::digest(&bytes[..end]).to_vec()
        };
        bytes[end..].copy_from_slice(&sum);
    }
    Some(bytes)
}

/// Whether the entry there names one file, and where the next one is. The path before it becomes its own.
fn entry(
    bytes: &[u8],
    at: usize,
    version: u32,
    name_len: usize,
    path: &mut Vec<u8>,
) -> Option<(bool, usize)> {
    let flags_at = at + STAT + name_len;
    let flags = bytes.get(flags_at..flags_at + 2)?;
    let flags = usize::from(u16::from_be_bytes([flags[0], flags[1]]));
    let extended = version >= 3 && flags & 0x4000 != 0;
    let mut name_at = flags_at + if extended { 4 } else { 2 };
    if version == 4 {
        let (cut, len) = varint(bytes.get(name_at..)?)?;
        name_at += len;
        path.truncate(path.len().checked_sub(cut)?);
    } else {
        path.clear();
    }
    let rest = bytes.get(name_at..)?;
    let len = match flags & LONG {
        len if version < 4 && len < LONG => len,
        _ => rest.iter().position(|byte| *byte == 0)?,
    };
    path.extend_from_slice(rest.get(..len)?);
    let next = if version == 4 { name_at + len + 1 } else { at + ((name_at - at + len + 8) & !7) };
    // A stage is one side of a conflict, whose file is none of them.
    Some((flags & 0x3000 == 0, next))
}

/// The number at the beginning, as git packs offsets, and how long it is.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut len = 1;
    while bytes[len - 1] & 0x80 != 0 {
        let byte = *bytes.get(len)?;
        value = (value.checked_add(1)?.checked_mul(128)?) | usize::from(byte & 0x7f);
        len += 1;
    }
    Some((value, len))
}

/// Whether the file was not touched since shortly before the index was written: only then its times tell a change.
fn is_settled(index: &Index, was: &Stat) -> bool {
    (was.st_mtime, was.st_mtime_nsec as i64) < index.changed
}

/// What git remembers of a file: ten numbers, cut to 32 bits.
fn words(stat: &Stat) -> [u8; STAT] {
    let numbers = [
        stat.st_ctime as u32,
        stat.st_ctime_nsec as u32,
        stat.st_mtime as u32,
        stat.st_mtime_nsec as u32,
        stat.st_dev as u32,
        stat.st_ino as u32,
        stat.st_mode,
        stat.st_uid,
        stat.st_gid,
        stat.st_size as u32,
    ];
    let mut words = [0; STAT];
    for (word, number) in words.chunks_exact_mut(4).zip(numbers) {
        word.copy_from_slice(&number.to_be_bytes());
    }
    words
}

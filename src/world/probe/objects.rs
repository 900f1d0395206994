//! Objects of a repository by their ids: loose ones, packed ones, and those of the repositories that it borrows from.
//!
//! Git is not run for this: a repository that was cloned in part would have it run whatever fetches the rest. An object
//! that is not here is missing, and that is the answer. Nothing larger than a tree of many thousand names is read.

use super::look::open_regular;
use crate::session::digest::CommitId;
use flate2::read::ZlibDecoder;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// As much is read of the list of other folders with objects.
const ALTERNATES_BYTES_MAX: u64 = 1024 * 1024;
/// Larger objects are not read, in bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Deltas on top of each other; git makes 50 at most unless told otherwise.
const DELTAS_MAX: usize = 4096;
/// Repositories that borrow from each other, git's own limit.
const ALTERNATES_MAX: usize = 5;

/// What kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Other,
}

/// The objects of one repository, as of the moment it was opened.
pub(super) struct Objects {
    folders: Vec<PathBuf>,
    packs: Vec<Pack>,
    id_len: usize,
}

struct Pack {
    index: File,
    data: File,
    fanout: Vec<u32>,
}

impl Objects {
    /// Opens the objects in a git dir that work trees share.
    pub(super) fn open(commondir: &Path, id_len: usize) -> Self {
        let mut folders = vec![commondir.join("objects")];
        let mut at = 0;
        while at < folders.len() && at < ALTERNATES_MAX {
            let borrowed = alternates(&folders[at]);
            folders.extend(borrowed.into_iter().filter(|folder| folder.is_dir()));
            at += 1;
        }
        folders.dedup();
        let packs = folders.iter().flat_map(|folder| packs(&folder.join("pack"))).collect();
        Self { folders, packs, id_len }
    }

    /// One object; `None` when it is not here or not what it should be.
    pub(super) fn get(&self, id: &[u8]) -> Option<(Kind, Vec<u8>)> {
        self.folders
            .iter()
            .find_map(|folder| loose(folder, id))
            .or_else(|| self.packs.iter().find_map(|pack| self.packed(pack, id)))
    }

    fn packed(&self, pack: &Pack, id: &[u8]) -> Option<(Kind, Vec<u8>)> {
        let offset = pack.find(id, self.id_len).ok()??;
        self.unpack(pack, offset).ok()?
    }

    /// Follows the deltas down to a whole object, and applies them on the way back.
    fn unpack(&self, pack: &Pack, mut offset: u64) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let mut deltas = Vec::new();
        let (kind, mut bytes) = loop {
            if deltas.len() > DELTAS_MAX {
                return Ok(None);
            }
            let mut data = BufReader::with_capacity(4096, &pack.data);
            data.seek(SeekFrom::Start(offset))?;
            let (kind, size) = entry_head(&mut data)?;
            if size > BYTES_MAX {
                return Ok(None);
            }
            match kind {
                1 => break (Kind::Commit, inflate(data, size)?),
                2 => break (Kind::Tree, inflate(data, size)?),
                3 | 4 => break (Kind::Other, Vec::new()),
                6 => {
                    let back = delta_offset(&mut data)?;
                    deltas.push(inflate(data, size)?);
                    let Some(base) = offset.checked_sub(back) else { return Ok(None) };
                    offset = base;
                }
                7 => {
                    let mut id = vec![0; self.id_len];
                    data.read_exact(&mut id)?;
                    deltas.push(inflate(data, size)?);
                    match pack.find(&id, self.id_len)? {
                        Some(base) => offset = base,
                        None => return Ok(None),
                    }
                }
                _ => return Ok(None),
            }
        };
        for delta in deltas.iter().rev() {
            let Some(applied) = apply(&bytes, delta) else { return Ok(None) };
            bytes = applied;
        }
        Ok(Some((kind, bytes)))
    }
}

fn alternates(folder: &Path) -> Vec<PathBuf> {
    let mut text = Vec::new();
    // Somebody may have put a pipe or a device there, which would hold us for ever. A list that is cut short only makes
    // the count of paths unknown.
    if let Ok(file) = open_regular(&folder.join("info/alternates")) {
        let _ = file.take(ALTERNATES_BYTES_MAX).read_to_end(&mut text);
    }
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    lines.map(|line| folder.join(OsStr::from_bytes(line))).collect()
}

fn packs(folder: &Path) -> Vec<Pack> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let indexes = entries.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
    indexes.filter_map(|path| Pack::open(&path).ok().flatten()).collect()
}

fn loose(folder: &Path, id: &[u8]) -> Option<(Kind, Vec<u8>)> {
    let hex = CommitId::from_bytes(id)?.to_string();
    let file = open_regular(&folder.join(&hex[..2]).join(&hex[2..])).ok()?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(file).take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let head = bytes.iter().position(|&byte| byte == 0)?;
    let body = bytes.split_off(head + 1);
    let (kind, size) = std::str::from_utf8(&bytes[..head]).ok()?.split_once(' ')?;
    let kind = match kind {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        _ => Kind::Other,
    };
    (size.parse() == Ok(body.len())).then_some((kind, body))
}

impl Pack {
    /// `None` for an index of another version than git has written since 2008.
    fn open(index: &Path) -> io::Result<Option<Self>> {
        let (data, index) = (open_regular(&index.with_extension("pack"))?, open_regular(index)?);
        let mut head = vec![0; 8 + 256 * 4];
        index.read_exact_at(&mut head, 0)?;
        if head[..8] != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return Ok(None);
        }
        let fanout = head[8..].chunks_exact(4).map(|four| big_endian(four) as u32).collect();
        Ok(Some(Self { index, data, fanout }))
    }

    /// Where in the pack an object is.
    fn find(&self, id: &[u8], id_len: usize) -> io::Result<Option<u64>> {
        let (len, first) = (u64::from(self.fanout[255]), usize::from(id[0]));
        let (mut low, mut high) = match first {
            0 => (0, u64::from(self.fanout[0])),
            _ => (u64::from(self.fanout[first - 1]), u64::from(self.fanout[first])),
        };
        let (names, width) = (8 + 256 * 4, id_len as u64);
        let mut name = vec![0; id_len];
        while low < high {
            let middle = low + (high - low) / 2;
            self.index.read_exact_at(&mut name, names + middle * width)?;
            match name.as_slice().cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return self.offset(names + len * (width + 4), len, middle).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// The offset of the object of this number; one that needs more than 31 bits stands in a table of its own.
    fn offset(&self, offsets: u64, len: u64, number: u64) -> io::Result<u64> {
        let mut four = [0; 4];
        self.index.read_exact_at(&mut four, offsets + 4 * number)?;
        let offset = big_endian(&four);
        if offset & 0x8000_0000 == 0 {
            return Ok(offset);
        }
        let mut eight = [0; 8];
        self.index.read_exact_at(&mut eight, offsets + 4 * len + 8 * (offset & 0x7fff_ffff))?;
        Ok(big_endian(&eight))
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn byte(data: &mut impl Read) -> io::Result<u8> {
    let mut one = [0];
    data.read_exact(&mut one)?;
    Ok(one[0])
}

/// Type and unpacked size of a pack's entry.
fn entry_head(data: &mut impl Read) -> io::Result<(u8, u64)> {
    let first = byte(data)?;
    let (kind, mut size, mut shift, mut last) = (first >> 4 & 7, u64::from(first & 15), 4, first);
    while last & 0x80 != 0 && shift < 60 {
        last = byte(data)?;
        size |= u64::from(last & 0x7f) << shift;
        shift += 7;
    }
    Ok((kind, size))
}

/// How far back the base of a delta is.
fn delta_offset(data: &mut impl Read) -> io::Result<u64> {
    let mut last = byte(data)?;
    let mut back = u64::from(last & 0x7f);
    while last & 0x80 != 0 && back < 1 << 56 {
        last = byte(data)?;
        back = (back + 1) << 7 | u64::from(last & 0x7f);
    }
    Ok(back)
}

fn inflate(data: impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(data).take(size + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// What a delta makes of its base: pieces of the base, and new bytes.
fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut delta = delta;
    let (from, size) = (size(&mut delta)?, size(&mut delta)?);
    if from != base.len() as u64 || size > BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(size as usize);
    while let Some((&order, rest)) = delta.split_first() {
        delta = rest;
        if order & 0x80 != 0 {
            let mut field = |bits: std::ops::Range<u8>| {
                bits.enumerate().try_fold(0_usize, |number, (at, bit)| {
                    if order & 1 << bit == 0 {
                        return Some(number);
                    }
                    let (&byte, rest) = delta.split_first()?;
                    delta = rest;
                    Some(number | usize::from(byte) << (8 * at))
                })
            };
            let (start, len) = (field(0..4)?, field(4..7)?);
            let len = if len == 0 { 0x10000 } else { len };
            out.extend_from_slice(base.get(start..start.checked_add(len)?)?);
        } else {
            let (new, rest) = delta.split_at_checked(usize::from(order)).filter(|_| order > 0)?;
            out.extend_from_slice(new);
            delta = rest;
        }
    }
    (out.len() as u64 == size).then_some(out)
}

fn size(delta: &mut &[u8]) -> Option<u64> {
    let mut size = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = delta.split_first()?;
        *delta = rest;
        size |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_pipe_for_a_list_of_folders_holds_nobody() {
        let temp = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(temp.path().join("info")).expect("a folder");
        let pipe = temp.path().join("info/alternates");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).expect("a pipe");
        let (done, ended) = mpsc::channel();
        let folder = temp.path().to_owned();
        std::thread::spawn(move || done.send(super::alternates(&folder)));
        let found = ended.recv_timeout(Duration::from_secs(60)).expect("it does not wait for a writer");
        assert!(found.is_empty());
    }
}

//! Reading the whole journal back, and judging what is wrong with it.
//!
//! Promise: records are delivered in order, without a gap, each as it was appended. Only the end of the last segment
//! is ever cut, only when no good record stands behind the cut, and never before the bytes were copied aside: that is
//! what a crash in the middle of an append looks like. All other damage is an error that names file and byte.
//!
//! A segment ends where the next one begins, by seq: what an earlier segment holds beyond that was carried over into
//! the next one after a failed sync, and is not looked at.

use super::segment::{self, HEADER_LEN, Header, Reader};
use super::{JournalError, Torn};
use crate::store::whole;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Told the seq and the payload of every record, in order.
pub type Each<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), JournalError>;

/// Where the journal stands after a replay.
pub(super) struct Replayed {
    pub(super) id: [u8; 16],
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) end: u64,
    pub(super) torn: Option<Torn>,
}

/// A tail longer than any append could have left is not read into memory to be judged.
const TAIL_MAX: u64 = super::SEGMENT_BYTES_MAX + super::PAYLOAD_MAX as u64 + HEADER_LEN;

/// Replays the segments, which are sorted and at least one.
pub(super) fn replay(
    dir: &Path,
    segments: &[u64],
    new_id: [u8; 16],
    each: Each<'_>,
) -> Result<Replayed, JournalError> {
    let mut state = Replayed { id: new_id, first_seq: 1, last_seq: 0, end: HEADER_LEN, torn: None };
    let mut id = None;
    for (place, &first_seq) in segments.iter().enumerate() {
        let path = segment::path_of(dir, first_seq);
        if first_seq != state.last_seq + 1 {
            let why = format!("it starts with record {first_seq} where {} comes next", state.last_seq + 1);
            return Err(JournalError::damaged(&path, 0, why));
        }
        state.first_seq = first_seq;
        let next_first = segments.get(place + 1).copied();
        let Some((header, mut reader)) = Reader::open(&path)? else {
            return remake(state, &path, next_first.is_none());
        };
        check_header(header, first_seq, id, &path)?;
        state.id = *id.insert(header.id);
        read_records(&mut reader, &mut state, next_first, each)?;
        if next_first.is_some_and(|next| state.last_seq + 1 != next) {
            return Err(JournalError::damaged(&path, reader.at(), "a record is not what was written"));
        }
        state.end = reader.at();
        if next_first.is_none() && reader.at() < reader.len() {
            state.torn = Some(cut_tail(&path, &reader, state.last_seq + 1)?);
        }
    }
    Ok(state)
}

fn check_header(
    header: Header,
    first_seq: u64,
    id: Option<[u8; 16]>,
    path: &Path,
) -> Result<(), JournalError> {
    if header.first_seq != first_seq {
        return Err(JournalError::damaged(
            path,
            0,
            "its name and its header disagree about the first record",
        ));
    }
    if id.is_some_and(|id| id != header.id) {
        return Err(JournalError::damaged(path, 0, "it belongs to another journal"));
    }
    Ok(())
}

/// Delivers records until the next segment takes over, or until there is no good one.
fn read_records(
    reader: &mut Reader,
    state: &mut Replayed,
    next_first: Option<u64>,
    each: Each<'_>,
) -> Result<(), JournalError> {
    while next_first.is_none_or(|next| state.last_seq + 1 < next) {
        let seq = state.last_seq + 1;
        let Some(payload) = reader.next(seq)? else { break };
        each(seq, payload)?;
        state.last_seq = seq;
    }
    Ok(())
}

/// A last segment too short for its header holds no record. A crash cannot leave one, since segments are synced before
/// they get their name; whatever did, the segment is made anew under the same name.
fn remake(mut state: Replayed, path: &Path, is_last: bool) -> Result<Replayed, JournalError> {
    if !is_last {
        return Err(JournalError::damaged(path, 0, "it is too short to have a header"));
    }
    let cut = fs::read(path).map_err(|source| JournalError::io("read", path, source))?;
    keep_aside(path, &cut)?;
    let header = Header { id: state.id, first_seq: state.first_seq };
    let aside = segment::make_aside(path, header, |_| Ok(()))?;
    put_in_place(&aside, path)?;
    state.end = HEADER_LEN;
    state.torn = Some(Torn { segment: path.to_owned(), at_byte: 0, bytes_cut: cut.len() as u64 });
    Ok(state)
}

/// Cuts everything behind the last good record, unless a good one stands further on.
fn cut_tail(path: &Path, reader: &Reader, expected: u64) -> Result<Torn, JournalError> {
    let (at_byte, bytes_cut) = (reader.at(), reader.len() - reader.at());
    if bytes_cut > TAIL_MAX {
        return Err(JournalError::damaged(path, at_byte, "more follows than was ever written at once"));
    }
    let tail = read_tail(path, at_byte).map_err(|source| JournalError::io("read", path, source))?;
    if segment::holds_a_record_behind(&tail, expected) {
        let why = format!("record {expected} is not what was written, and good records follow it");
        return Err(JournalError::damaged(path, at_byte, why));
    }
    keep_aside(path, &tail)?;
    let cut = |file: File| file.set_len(at_byte).and_then(|()| file.sync_all());
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(cut).map_err(|source| JournalError::io("cut the torn end of", path, source))?;
    Ok(Torn { segment: path.to_owned(), at_byte, bytes_cut })
}

fn read_tail(path: &Path, at_byte: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at_byte))?;
    let mut tail = Vec::new();
    file.take(TAIL_MAX).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Copies bytes that are about to be cut to `<segment>.torn-<len>`, with a number behind it when that name is taken.
fn keep_aside(segment: &Path, cut: &[u8]) -> Result<(), JournalError> {
    let base = format!("{}.torn-{}", segment.display(), cut.len());
    let mut path = PathBuf::from(&base);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut times = 1;
    let file = loop {
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => times += 1,
            opened => break opened,
        }
        path = PathBuf::from(format!("{base}-{times}"));
    };
    file.and_then(|mut file| io::Write::write_all(&mut file, cut).and_then(|()| file.sync_all()))
        .map_err(|source| JournalError::io("keep the torn end in", &path, source))?;
    whole::sync_folder_of(segment).map_err(|source| JournalError::io("sync the folder of", segment, source))
}

/// Gives a segment made aside its name, for good.
pub(super) fn put_in_place(aside: &Path, path: &Path) -> Result<(), JournalError> {
    fs::rename(aside, path)
        .and_then(|()| whole::sync_folder_of(path))
        .map_err(|source| JournalError::io("put in place", path, source))
}

//! Reading the whole journal back, and judging what is wrong with it.
//!
//! Promise: records are delivered in order, without a gap, each as it was appended. What ends short of a record in the
//! last segment is what a crash in the middle of an append leaves: it is cut, and nothing that was acknowledged is
//! gone. Everything else that is not as it was written is damage, and ends the journal there (`damage` heals it).
//!
//! A segment ends where the next one begins, by seq: what an earlier segment holds beyond that was carried over into
//! the next one after a failed sync, and is not looked at.

use super::damage::{Damage, cut, heal};
use super::folder::segment_path;
use super::segment::{self, HEADER_LEN, Header, Kind, Reader};
use super::{JournalError, Torn};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// What a journal is told in, one by one and in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// It begins with a snapshot, which stands for every record up to this one. Told before what was kept of them.
    Snapshot {
        /// The last record that it stands for.
        last_seq: u64,
    },
    /// The next payload of that snapshot.
    Kept(&'a [u8]),
    /// The next record, by its seq.
    Record(u64, &'a [u8]),
}

/// Told every piece, in order. What it refuses ends the replay, and the journal stays as it is.
pub type Each<'a> = &'a mut dyn FnMut(Piece<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Where the journal stands in a replay.
pub(super) struct Replayed {
    pub(super) id: [u8; 16],
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) end: u64,
    /// Whether the header of a segment was good.
    pub(super) entered: bool,
    pub(super) torn: Option<Torn>,
    pub(super) damage: Option<Damage>,
    /// The id that the next segment has to have.
    known: Option<[u8; 16]>,
}

impl Replayed {
    /// Before the first segment, behind the snapshot if there is one.
    pub(super) fn behind(snapshot: Option<Header>, new_id: [u8; 16]) -> Self {
        let last_seq = snapshot.map_or(0, |snapshot| snapshot.seq);
        Self {
            id: snapshot.map_or(new_id, |snapshot| snapshot.id),
            first_seq: last_seq + 1,
            last_seq,
            end: HEADER_LEN,
            entered: false,
            torn: None,
            damage: None,
            known: snapshot.map(|snapshot| snapshot.id),
        }
    }
}

/// A tail longer than any append could have left is not read into memory to be judged.
const TAIL_MAX: u64 = super::SEGMENT_BYTES_MAX + super::PAYLOAD_MAX as u64 + HEADER_LEN;

/// Replays the segments, which are sorted and at least one. Damage ends the journal before it.
pub(super) fn replay(
    dir: &Path,
    segments: &[u64],
    state: &mut Replayed,
    each: Each<'_>,
) -> Result<(), JournalError> {
    for (place, &first_seq) in segments.iter().enumerate() {
        let next_first = segments.get(place + 1).copied();
        match replay_one(dir, first_seq, next_first, state, each) {
            Err(JournalError::Damaged { segment, at_byte, why }) => {
                state.damage = Some(heal(dir, &segments[place..], state, (segment, at_byte, why))?);
                return Ok(());
            }
            replayed => replayed?,
        }
    }
    Ok(())
}

/// Replays one segment, up to the one behind it if there is one. A torn end is cut.
fn replay_one(
    dir: &Path,
    first_seq: u64,
    next_first: Option<u64>,
    state: &mut Replayed,
    each: Each<'_>,
) -> Result<(), JournalError> {
    if let Some(torn) = tell_one(dir, first_seq, next_first, state, each)? {
        cut(&torn.segment, torn.at_byte, "torn")?;
        state.torn = Some(torn);
    }
    Ok(())
}

/// Tells one segment, up to the one behind it if there is one, and changes nothing. Returns its torn end.
pub(super) fn tell_one(
    dir: &Path,
    first_seq: u64,
    next_first: Option<u64>,
    state: &mut Replayed,
    each: Each<'_>,
) -> Result<Option<Torn>, JournalError> {
    let path = segment_path(dir, first_seq);
    let Some((header, mut reader)) = Reader::open(&path, Kind::Segment)? else {
        // A crash leaves no such thing: segments get their name when their header is on disk.
        return Err(JournalError::damaged(&path, 0, "it is too short to have a header"));
    };
    if first_seq != state.last_seq + 1 {
        let why = format!("it starts with record {first_seq} where {} comes next", state.last_seq + 1);
        return Err(JournalError::damaged(&path, 0, why));
    }
    check_header(header, first_seq, state.known, &path)?;
    (state.first_seq, state.end, state.entered) = (first_seq, HEADER_LEN, true);
    state.id = *state.known.insert(header.id);
    read_records(&path, &mut reader, state, next_first, each)?;
    state.end = reader.at();
    if next_first.is_some_and(|next| state.last_seq + 1 != next) {
        return Err(JournalError::damaged(&path, reader.at(), "a record is not what was written"));
    }
    if next_first.is_some() || reader.at() == reader.len() {
        return Ok(None);
    }
    torn_end(&path, &reader, state.last_seq + 1).map(Some)
}

fn check_header(
    header: Header,
    first_seq: u64,
    id: Option<[u8; 16]>,
    path: &Path,
) -> Result<(), JournalError> {
    if header.seq != first_seq {
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
    path: &Path,
    reader: &mut Reader,
    state: &mut Replayed,
    next_first: Option<u64>,
    each: Each<'_>,
) -> Result<(), JournalError> {
    while next_first.is_none_or(|next| state.last_seq + 1 < next) {
        let seq = state.last_seq + 1;
        let at_byte = reader.at();
        let Some(payload) = reader.next(seq)? else { break };
        let refused = |source| JournalError::Refused { segment: path.to_owned(), at_byte, seq, source };
        each(Piece::Record(seq, payload)).map_err(refused)?;
        state.last_seq = seq;
    }
    Ok(())
}

/// What a crash left of an append. What is more than that is damage.
fn torn_end(path: &Path, reader: &Reader, expected: u64) -> Result<Torn, JournalError> {
    let (at_byte, bytes_cut) = (reader.at(), reader.len() - reader.at());
    let damaged = |why: String| Err(JournalError::damaged(path, at_byte, why));
    if bytes_cut > TAIL_MAX {
        return damaged("more follows than was ever written at once".to_owned());
    }
    // Only what was there when it was opened: somebody may be appending.
    let tail =
        read_tail(path, at_byte, bytes_cut).map_err(|source| JournalError::io("read", path, source))?;
    if !segment::ends_short(&tail, expected) {
        return damaged(format!("record {expected} is not what was written"));
    }
    if segment::holds_a_record_behind(&tail, expected) {
        return damaged(format!("record {expected} is not what was written, and good records follow it"));
    }
    Ok(Torn { segment: path.to_owned(), at_byte, bytes_cut })
}

fn read_tail(path: &Path, at_byte: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at_byte))?;
    let mut tail = Vec::new();
    file.take(len).read_to_end(&mut tail)?;
    Ok(tail)
}

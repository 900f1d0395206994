//! What a journal begins with: its newest snapshot, which is whole or is made whole before anything is told from it.
//!
//! Promise: a damaged snapshot loses nothing while what it stands for is still in the segments; it is set aside and those
//! are read. Otherwise the payloads before the damage are kept, in a whole snapshot in its place, and everything else is
//! set aside with its bytes. The journal is marked as in doubt before the first file moves.

use super::damage::{self, Damage, keep_end, move_all_aside, move_aside};
use super::folder::{self, Found, segment_path, snapshot_path};
use super::segment::Header;
use super::snapshot::{self, Reader};
use super::{Each, JournalError, Piece};
use std::path::{Path, PathBuf};

/// The snapshot to begin with, if there is one, and the damage that was healed on the way to it.
pub(super) fn settle(dir: &Path) -> Result<(Option<Header>, Option<Damage>), JournalError> {
    let mut healed = None;
    loop {
        let found = folder::list(dir)?;
        let Some(&newest) = found.snapshots.last() else { return Ok((None, healed)) };
        let mut kept = 0;
        let (segment, at_byte, why) = match snapshot::verify(&snapshot_path(dir, newest), newest, &mut kept) {
            Ok(header) => return Ok((Some(header), healed)),
            Err(JournalError::Damaged { segment, at_byte, why }) => (segment, at_byte, why),
            Err(error) => return Err(error),
        };
        let found = Found { snapshots: found.snapshots[..found.snapshots.len() - 1].to_vec(), ..found };
        damage::refuse_other_formats(dir, &found.segments, &found.snapshots)?;
        let mut damage = Damage { segment, at_byte, why, aside: Vec::new() };
        heal(dir, &found, newest, kept, &mut damage)?;
        healed = Some(damage.behind(healed));
    }
}

/// Tells what was kept of the records before the first segment.
pub(super) fn tell(dir: &Path, header: Header, each: Each<'_>) -> Result<(), JournalError> {
    let path = snapshot_path(dir, header.seq);
    let (found, mut reader) = Reader::open(&path, header.seq)?;
    if found != header {
        return Err(JournalError::damaged(&path, 0, "it belongs to another journal"));
    }
    let seq = header.seq;
    let refused = |at_byte| {
        let segment = path.clone();
        move |source| JournalError::Refused { segment, at_byte, seq, source }
    };
    each(Piece::Snapshot { last_seq: seq }).map_err(refused(0))?;
    let mut at_byte = reader.at();
    while let Some(payload) = reader.next()? {
        each(Piece::Kept(payload)).map_err(refused(at_byte))?;
        at_byte = reader.at();
    }
    Ok(())
}

/// `found` is what stands beside the damaged snapshot `last_seq`, of which `kept` payloads are good.
fn heal(
    dir: &Path,
    found: &Found,
    last_seq: u64,
    kept: u64,
    damage: &mut Damage,
) -> Result<(), JournalError> {
    let path = snapshot_path(dir, last_seq);
    let before = found.snapshots.last().copied().unwrap_or(0);
    if before < last_seq && found.segments.contains(&(before + 1)) {
        // An end in the middle of a compaction left them. They are judged like any other segment.
        damage.why.push_str(", but what it stands for was not removed yet");
        damage.aside.push(move_aside(&path)?);
        return Ok(());
    }
    damage::put_in_doubt(dir)?;
    let segments = found.segments.iter().map(|&first_seq| segment_path(dir, first_seq));
    damage.aside = move_all_aside(&segments.collect::<Vec<PathBuf>>())?;
    if damage.at_byte == 0 {
        // Nothing in it says what it is. One before it may still be good.
        damage.aside.insert(0, move_aside(&path)?);
        return Ok(());
    }
    let older = found.snapshots.iter().map(|&snapshot| snapshot_path(dir, snapshot));
    damage.aside.splice(0..0, move_all_aside(&older.collect::<Vec<PathBuf>>())?);
    let end = keep_end(&path, damage.at_byte, "damaged")?;
    rewrite(dir, last_seq, kept).inspect_err(|_| {
        // The bytes still stand where they stood. A copy for every try would only fill the disk.
        end.iter().for_each(|end| drop(folder::remove(end)));
    })?;
    damage.aside.splice(0..0, end);
    Ok(())
}

/// Replaces a damaged snapshot by one of its first `kept` payloads.
fn rewrite(dir: &Path, last_seq: u64, kept: u64) -> Result<(), JournalError> {
    let (header, mut reader) = Reader::open(&snapshot_path(dir, last_seq), last_seq)?;
    snapshot::write(dir, header, |draft| {
        (0..kept).try_for_each(|_| reader.next()?.map_or(Ok(()), |payload| draft.keep(payload)))
    })?;
    Ok(())
}

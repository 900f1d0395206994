//! How far the journal is known to be on disk, kept beside it: a journal that ends before that has lost records.
//!
//! A journal that is cut where a record ends, or that lost its last segment, looks like one that was never longer. The
//! index knows better, but it may be gone too. So every sync is noted, after it and before anybody is told of it.
//!
//! Promise: a note never claims more than was on disk. It is not synced itself: the end of the process loses nothing of it,
//! and a power cut leaves an older one, which only claims less. One that is torn claims nothing. One of another journal
//! claims nothing of this one, but says that there was another here.
//!
//! ```text
//! journal id 16 | seq u64 | checksum 16      40 bytes, little endian
//! ```

use crate::world::digest::blake3;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const SAID_LEN: usize = 24;
const NOTE_LEN: usize = 40;

/// Where the notes of one journal go.
#[derive(Debug)]
pub(super) struct Tail {
    file: Option<File>,
    id: [u8; 16],
}

impl Tail {
    /// On a full disk nothing is noted, and nothing claimed.
    pub(super) fn open(path: &Path, id: [u8; 16]) -> Self {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        if let Err(error) = &file {
            tracing::warn!(%error, path = %path.display(), "how far the journal is on disk cannot be noted");
        }
        Self { file: file.ok(), id }
    }

    /// Everything up to this record is on disk.
    pub(super) fn note(&self, seq: u64) {
        if let Some(file) = &self.file {
            // What cannot be noted is not claimed.
            let _ = file.write_all_at(&encode(self.id, seq), 0);
        }
    }
}

/// What somebody noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Noted {
    /// Of which journal.
    pub(super) id: [u8; 16],
    /// The last record of it that was on disk.
    pub(super) seq: u64,
}

/// The note that is there, if it is what was written.
pub(super) fn noted(path: &Path) -> io::Result<Option<Noted>> {
    let mut note = [0; NOTE_LEN];
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.read_exact_at(&mut note, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (mut id, mut seq) = ([0; 16], [0; 8]);
    id.copy_from_slice(&note[..16]);
    seq.copy_from_slice(&note[16..SAID_LEN]);
    let seq = u64::from_le_bytes(seq);
    Ok((encode(id, seq) == note).then_some(Noted { id, seq }))
}

fn encode(id: [u8; 16], seq: u64) -> [u8; NOTE_LEN] {
    let mut note = [0; NOTE_LEN];
    note[..16].copy_from_slice(&id);
    note[16..SAID_LEN].copy_from_slice(&seq.to_le_bytes());
    let sum = blake3(&note[..SAID_LEN]);
    note[SAID_LEN..].copy_from_slice(&sum.as_bytes()[..NOTE_LEN - SAID_LEN]);
    note
}

#[cfg(test)]
mod tests {
    use super::{Noted, Tail, noted};

    #[test]
    fn a_note_that_is_not_what_was_written_claims_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.tail");
        assert_eq!(noted(&path).unwrap(), None);
        let tail = Tail::open(&path, [7; 16]);
        assert_eq!(noted(&path).unwrap(), None, "an empty one");
        tail.note(900);
        tail.note(3);
        assert_eq!(noted(&path).unwrap(), Some(Noted { id: [7; 16], seq: 3 }));
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(noted(&path).unwrap(), None, "{at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert_eq!(noted(&path).unwrap(), None, "{at}");
        }
    }
}

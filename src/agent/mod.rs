//! What agents tell: by their session transcripts, read into what the session still believes, and live by their hooks.
//!
//! A transcript is another program's file in an unpublished format that drifts. So reading one never fails because of
//! what a line says: lines that make no sense are counted, shapes that are unknown become doubt. Only a file that
//! cannot be read at all is an error, and it names the file.
//!
//! Deliberately absent: any judgement. Whether a belief still holds is for the daemon to find out. The disk that a
//! transcript speaks of is read in one room, [`context`], which says what for; a hook ([`hook`]) reads what was just edited.

pub mod asked;
mod claude_code;
pub mod codex;
mod command;
pub mod context;
mod diff;
pub mod hook;
mod ledger;
mod line;
mod line_ends;
mod lines;
mod packed;
pub mod reading;
pub mod rebase;
mod shell;
mod shown;
mod spelling;
pub mod transcript;

use reading::Reading;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use transcript::{Transcript, TranscriptError};

/// How far a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Lines so far.
    pub lines: u64,
    /// Bytes of the file so far, packed as they are.
    pub bytes: u64,
    /// Bytes of the file, as it was opened.
    pub size: u64,
}

/// Reads the transcript at `path`, plain or packed; its first bytes decide which, not its name.
pub fn open(path: &Path) -> Result<Transcript, TranscriptError> {
    open_telling(path, |_| {})
}

/// The same; `told` hears after each line how far it is.
pub fn open_telling(path: &Path, mut told: impl FnMut(Progress)) -> Result<Transcript, TranscriptError> {
    let failed = |source| TranscriptError::Open { path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let bytes = Cell::new(0);
    let counted = Counted { file, bytes: &bytes };
    read(BufReader::new(counted), |lines, _| told(Progress { lines, bytes: bytes.get(), size }))
        .map_err(|source| TranscriptError::Read { path: path.into(), source })
}

/// Reads a transcript, plain or packed, to its end.
fn read(reader: impl BufRead, told: impl FnMut(u64, u64)) -> io::Result<Transcript> {
    let mut reading = Reading::default();
    reading.read(packed::unpacked(reader)?, told)?;
    Ok(reading.transcript())
}

/// Whether the file begins like an archive, which does not grow line by line.
pub fn is_packed(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(packed::is_packed(&start))
}

/// A file, and how much of it was read.
struct Counted<'told> {
    file: File,
    bytes: &'told Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

//! What agents leave behind: session transcripts, read into what the session still believes.
//!
//! A transcript is another program's file in an unpublished format that drifts. So reading one never fails because of
//! what a line says: lines that make no sense are counted, shapes that are unknown become doubt. Only a file that
//! cannot be read at all is an error, and it names the file.
//!
//! Deliberately absent: the clock, and any judgement. Whether a belief still holds is for the daemon to find out; the
//! disk that the transcript speaks of is read in one file, [`context`], which says what for.

pub mod asked;
pub mod claude_code;
mod command;
pub mod context;
pub mod hook;
mod line_ends;
pub mod rebase;
mod shell;
mod spelling;
pub mod transcript;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use transcript::{Transcript, TranscriptError};

/// Reads the transcript at `path`, plain or gzip; its first bytes decide which, not its name.
pub fn open(path: &Path) -> Result<Transcript, TranscriptError> {
    let file = File::open(path).map_err(|source| TranscriptError::Open { path: path.into(), source })?;
    claude_code::read(BufReader::new(file))
        .map_err(|source| TranscriptError::Read { path: path.into(), source })
}

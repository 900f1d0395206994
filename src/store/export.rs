//! Everything that the journal knows as lines of JSON, and such lines as the journal of a state that is empty.
//!
//! Promise: what is imported exports the same bytes again. Lines that were cut, changed, left out or put in another order
//! are refused, and so is what no client could have told; an import that fails leaves the journal as it was.
//!
//! ```text
//! {"staled_state":1}                              the format
//! {"kept":{"session":…,"head":…,"rows":[…]}}      a session; one that is long goes on in lines of its own
//! {"end":{"lines":2,"seal":"…"}}                  how many lines stand before it, and the seal of the last
//! ```
//!
//! The seal of a line is the BLAKE3 digest of the seal before it and the line, in hexadecimal; the first is that of nothing.

use super::journal::{Journal, JournalError, PAYLOAD_MAX};
use super::record::Record;
use super::replay::{apply, unforeseen};
use super::told::{self, Told, unanswered};
use super::{kept, swap};
use crate::index::Index;
use crate::index::storage::{Memory, StorageError};
use crate::memory::book::Book;
use crate::world::digest::blake3;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

/// The format of what is written here.
const FORMAT: u32 = 1;

/// What was exported or imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// How many sessions.
    pub sessions: u64,
    /// How many observations of the memory.
    pub observations: u64,
    /// How many sessions of the memory.
    pub memory_sessions: u64,
    /// How many results, invariants, tracked paths and inputs of commands.
    pub rows: u64,
    /// Forks that stay where they are: they are folders of this state.
    #[serde(skip_serializing_if = "is_none")]
    pub forks_left: u64,
    /// Rows whose registration was never answered, because it still went on or its daemon was killed: nobody knows any
    /// more what was on the disk then, so they are stale until they are told again.
    pub unanswered: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// A state cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What it says cannot be told.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// How far the journal was on disk cannot be read.
    #[error("cannot read how far the journal was on disk: {0}")]
    Tail(io::Error),
    /// The lines cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Lines cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// They are not what an export wrote.
    #[error("line {line}: {why}")]
    Refused {
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// They cannot be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The state has sessions already.
    #[error(
        "the state in {} is not empty: it has {sessions} session(s) and a memory of {observations} observation(s)",
        state.display()
    )]
    NotEmpty {
        /// The state folder.
        state: PathBuf,
        /// How many sessions it has.
        sessions: u64,
        /// How many observations.
        observations: u64,
    },
    /// The journal that is there cannot be read.
    #[error(transparent)]
    There(#[from] ExportError),
    /// The new journal cannot be made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The new journal cannot be put in place.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new journal cannot be put in place, nor the old one back.
    #[error(
        "cannot use {}: {source}; what was there is now {}, which could not be put back: {error}",
        folder.display(),
        old.display()
    )]
    NotPutBack {
        /// Where the old journal is now.
        old: PathBuf,
        /// Where it was.
        folder: PathBuf,
        /// Why the new one cannot be there.
        source: io::Error,
        /// Why the old one cannot be there again.
        error: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    staled_state: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: Seal,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    lines: u64,
    seal: String,
}

/// Lines so far, each sealed by everything before it.
#[derive(Default)]
struct Sealed {
    lines: u64,
    seal: String,
}

impl Sealed {
    fn take(&mut self, line: &[u8]) {
        self.lines += 1;
        self.seal = blake3(&[self.seal.as_bytes(), line].concat()).to_hex();
    }
}

/// Writes everything that a journal told.
pub fn export(told: &Told, out: &mut impl Write) -> Result<Moved, ExportError> {
    let mut sealed = Sealed::default();
    let mut line = |bytes: &[u8]| -> Result<(), ExportError> {
        sealed.take(bytes);
        out.write_all(bytes)?;
        Ok(out.write_all(b"\n")?)
    };
    line(&json(&Head { staled_state: FORMAT }))?;
    kept::to_be_taken_along(&told.index, &mut |record| line(&record.to_bytes()))?;
    let Sealed { lines, seal } = sealed;
    out.write_all(&json(&End { end: Seal { lines, seal } }))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(counted(&told.index)?)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("because it is made of strings and numbers")
}

fn counted(index: &Index<Memory>) -> Result<Moved, StorageError> {
    let mut moved = Moved::default();
    for (_, user) in Book::new(index.storage()).users()? {
        moved.observations += user.observations;
        moved.memory_sessions += u64::from(user.sessions);
    }
    moved.forks_left = index.forks()?.len() as u64;
    for session in index.sessions()? {
        let name = index.head(session)?.session;
        if name.is_of_fork() {
            continue;
        }
        let rows = index.rows(session)?;
        moved.sessions += u64::from(name.observation().is_none());
        moved.rows += rows.len() as u64;
        moved.unanswered += unanswered(&rows);
    }
    Ok(moved)
}

/// Makes the journal of this state folder from lines that an export wrote. Whoever calls has claimed the folder, so that
/// no daemon is using it.
pub fn import(state: &Path, lines: &mut impl BufRead, id: [u8; 16]) -> Result<Moved, ImportError> {
    let folder = state.join("journal");
    if folder.exists() {
        let there = counted(&told::now(state)?.index).map_err(ExportError::Storage)?;
        let Moved { sessions, observations, memory_sessions, .. } = there;
        if sessions + observations + memory_sessions > 0 {
            return Err(ImportError::NotEmpty { state: state.to_owned(), sessions, observations });
        }
    }
    let new = state.join("journal.new");
    swap::clear(&new)?;
    let moved = fill(&new, lines, id).and_then(|moved| {
        swap::put_in_place(state, &new)?;
        Ok(moved)
    });
    moved.inspect_err(|_| drop(fs::remove_dir_all(&new)))
}

fn fill(folder: &Path, lines: &mut impl BufRead, id: [u8; 16]) -> Result<Moved, ImportError> {
    let (mut journal, _) = Journal::open(folder, id, &mut |_| Ok(()))?;
    let mut index = Index::open(Memory::default(), "").map_err(ExportError::Storage)?;
    let mut sealed = Sealed::default();
    loop {
        let line = sealed.lines + 1;
        let refused = |why: String| ImportError::Refused { line, why };
        let Some(bytes) = next_line(lines).map_err(ImportError::Read)? else {
            return Err(refused("the end is missing: the export was cut short".to_owned()));
        };
        if line == 1 {
            check_head(&bytes).map_err(refused)?;
        } else if let Ok(End { end }) = serde_json::from_slice(&bytes) {
            check_end(&end, &sealed).map_err(refused)?;
            break;
        } else {
            let record = Record::from_bytes(&bytes).map_err(|error| refused(error.to_string()))?;
            let is_kept = match &record {
                Record::Kept(_) => true,
                Record::Remembered(remembered) => remembered.is_kept(),
                _ => false,
            };
            if !is_kept {
                return Err(refused("it is no line of an export".to_owned()));
            }
            // As this version writes it, so that nothing goes along that it does not know.
            journal.append(&record.to_bytes())?;
            unforeseen(|| apply(&mut index, record)).map_err(|error| refused(error.to_string()))?;
        }
        sealed.take(&bytes);
    }
    if next_line(lines).map_err(ImportError::Read)?.is_some() {
        let why = "something follows the end".to_owned();
        return Err(ImportError::Refused { line: sealed.lines + 2, why });
    }
    if let Some(why) = kept::check(&index).map_err(ExportError::Storage)? {
        return Err(ImportError::Refused { line: sealed.lines + 1, why });
    }
    // Which syncs everything.
    journal.roll()?;
    Ok(counted(&index).map_err(ExportError::Storage)?)
}

/// The next line without its end; `None` when there is none. One that is longer than any record is cut, and refused as what
/// it then is.
fn next_line(lines: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let len = lines.by_ref().take(PAYLOAD_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok((len > 0).then_some(line))
}

fn check_head(bytes: &[u8]) -> Result<(), String> {
    match serde_json::from_slice(bytes) {
        Ok(Head { staled_state: FORMAT }) => Ok(()),
        Ok(Head { staled_state }) => {
            Err(format!("format {staled_state} is not known to this version, which knows {FORMAT}"))
        }
        Err(_) => Err(format!("an export begins with {{\"staled_state\":{FORMAT}}}")),
    }
}

fn check_end(end: &Seal, sealed: &Sealed) -> Result<(), String> {
    match (end.lines == sealed.lines, end.seal == sealed.seal) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("it counts {} lines, and {} stand before it", end.lines, sealed.lines)),
        (true, false) => Err("its seal is not that of the lines before it: they were changed".to_owned()),
    }
}

//! Everything that the journal knows as lines of JSON, and such lines as the journal of a state that is empty.
//!
//! Promise: what is imported exports the same bytes again. Lines that were cut, changed, left out or put in another order
//! are refused, and so is what no client could have told; an import that fails leaves the state as it was. Reading needs no
//! daemon, and disturbs none. A journal that has lost records is told with every session in doubt.
//!
//! ```text
//! {"staled_state":1}                              the format
//! {"kept":{"session":…,"head":…,"rows":[…]}}      a session; one that is long goes on in lines of its own
//! {"end":{"lines":2,"seal":"…"}}                  how many lines stand before it, and the seal of the last
//! ```
//!
//! The seal of a line is the BLAKE3 digest of the seal before it and the line, in hexadecimal; the first is that of nothing.

use super::compacting::tell;
use super::journal::{self, Journal, JournalError, PAYLOAD_MAX};
use super::record::Record;
use super::replay::{apply, unforeseen};
use super::{kept, tail, whole};
use crate::index::Index;
use crate::index::row::Baseline;
use crate::index::storage::{Memory, StorageError};
use crate::world::digest::blake3;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format of what is written here.
const FORMAT: u32 = 1;

/// How often a journal is read again of which a compaction took something away, or a failed append.
const READ_TRIES: usize = 5;

/// How often, and how long after, it is read again while a registration is being answered.
const AWAITED_TRIES: usize = 20;
const AWAITED_PAUSE: Duration = Duration::from_millis(50);

/// What was exported or imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// How many sessions.
    pub sessions: u64,
    /// How many results, invariants, tracked paths and inputs of commands.
    pub rows: u64,
    /// Rows whose registration was never answered, because it still went on or its daemon was killed: nobody knows any
    /// more what was on the disk then, so they are stale until they are told again.
    pub unanswered: u64,
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
    #[error("the state in {} is not empty: it has {sessions} session(s)", state.display())]
    NotEmpty {
        /// The state folder.
        state: PathBuf,
        /// How many sessions it has.
        sessions: u64,
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

/// Writes everything that the journal of this state folder knows. Of a daemon that goes on meanwhile it is what was
/// written at some moment in between.
pub fn export(state: &Path, out: &mut impl Write) -> Result<Moved, ExportError> {
    let index = settled(state)?;
    let mut sealed = Sealed::default();
    let mut line = |bytes: &[u8]| -> Result<(), ExportError> {
        sealed.take(bytes);
        out.write_all(bytes)?;
        Ok(out.write_all(b"\n")?)
    };
    line(&json(&Head { staled_state: FORMAT }))?;
    kept::of(&index, &mut |record| line(&record.to_bytes()))?;
    let Sealed { lines, seal } = sealed;
    out.write_all(&json(&End { end: Seal { lines, seal } }))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(counted(&index)?)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("because it is made of strings and numbers")
}

fn counted(index: &Index<Memory>) -> Result<Moved, StorageError> {
    let mut moved = Moved::default();
    for session in index.sessions()? {
        let rows = index.rows(session)?;
        moved.sessions += 1;
        moved.rows += rows.len() as u64;
        moved.unanswered += rows.iter().filter(|row| row.baseline == Baseline::Awaited).count() as u64;
    }
    Ok(moved)
}

/// What the journal tells when no registration is being answered, or has not been for some time.
fn settled(state: &Path) -> Result<Index<Memory>, ExportError> {
    for _ in 1..AWAITED_TRIES {
        let index = known(state)?;
        if counted(&index)?.unanswered == 0 {
            return Ok(index);
        }
        std::thread::sleep(AWAITED_PAUSE);
    }
    known(state)
}

/// What the journal tells, in memory.
fn known(state: &Path) -> Result<Index<Memory>, ExportError> {
    let passes = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::UnexpectedEof);
    for _ in 1..READ_TRIES {
        match known_now(state) {
            Err(ExportError::Journal(JournalError::Io { source, .. })) if passes(source.kind()) => {}
            known => return known,
        }
    }
    known_now(state)
}

fn known_now(state: &Path) -> Result<Index<Memory>, ExportError> {
    let folder = &state.join("journal");
    // Before the journal is read: what was on disk then is in it.
    let id = journal::peek_id(folder)?;
    let noted = tail::noted(&super::tail_of(state)).map_err(ExportError::Tail)?;
    let noted = noted.filter(|noted| Some(noted.id) == id).map_or(0, |noted| noted.seq);
    let mut index = Index::open(Memory::default(), "")?;
    let read = journal::read(folder, &mut |piece| Ok(tell(&mut index, piece)?))?;
    if read.in_doubt || noted > read.last_seq {
        index.doubt_all()?;
    }
    Ok(index)
}

/// Makes the journal of this state folder from lines that an export wrote. Whoever calls has claimed the folder, so that
/// no daemon is using it.
pub fn import(state: &Path, lines: &mut impl BufRead, id: [u8; 16]) -> Result<Moved, ImportError> {
    let folder = state.join("journal");
    if folder.exists() {
        let sessions = counted(&known(state)?).map_err(ExportError::Storage)?.sessions;
        if sessions > 0 {
            return Err(ImportError::NotEmpty { state: state.to_owned(), sessions });
        }
    }
    let new = state.join("journal.new");
    clear(&new)?;
    let moved = fill(&new, lines, id).inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
    put_in_place(&new, &folder)?;
    // Both are of the old journal, and would not be believed beside the new one.
    let _ = fs::remove_dir_all(state.join("index"));
    let _ = fs::remove_file(super::tail_of(state));
    Ok(moved)
}

fn clear(folder: &Path) -> Result<(), ImportError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(unusable(folder, source)),
        _ => Ok(()),
    }
}

fn unusable(folder: &Path, source: io::Error) -> ImportError {
    ImportError::Folder { path: folder.to_owned(), source }
}

/// The old journal gives way whole, and is kept: what an opening has set aside in it is nowhere else. An end between the two
/// renames leaves a state without a journal, which is as empty as it was.
fn put_in_place(new: &Path, folder: &Path) -> Result<(), ImportError> {
    if folder.exists() {
        let old = free_name(folder);
        fs::rename(folder, &old).map_err(|source| unusable(folder, source))?;
    }
    fs::rename(new, folder)
        .and_then(|()| whole::sync_folder_of(folder))
        .map_err(|source| unusable(folder, source))
}

/// `journal.old`, or with the first number behind it that is not taken.
fn free_name(folder: &Path) -> PathBuf {
    let base = folder.with_extension("old");
    let others = (2_u64..).map(|number| folder.with_extension(format!("old-{number}")));
    std::iter::once(base.clone()).chain(others).find(|name| !name.exists()).unwrap_or(base)
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
            if !matches!(record, Record::Kept(_) | Record::Remembered(_)) {
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

//! Reading the log for people and for replay: by seq, or backwards until something fits, across all its files.
//!
//! Absent: any judgement. Lines that cannot be taken apart are passed over; [`verify`](super::verify()) is the judge.

use super::files::{self, Part, Positioned, Unreadable};
use super::{LINE_BYTES_MAX, backward, line};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// One answer of [`read`] holds no more than this, and at least one line.
pub const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Up to `limit` lines after this seq (from the first when `None`), oldest first, without their newlines.
pub fn read(path: &Path, after: Option<u64>, limit: usize) -> io::Result<Vec<String>> {
    let after = after.unwrap_or(0);
    let mut page = Page { after, limit, lines: Vec::new(), bytes: 0 };
    for part in parts_after(path, after)? {
        if !page.take_from(part.file()?)? {
            break;
        }
    }
    Ok(page.lines)
}

/// The files that may hold lines after this seq. Whoever follows the log asks for its end: one file is opened then.
fn parts_after(path: &Path, after: u64) -> io::Result<Vec<Part>> {
    if let Ok(current) = Part::at(path)
        && current.first <= after.saturating_add(1)
    {
        return Ok(vec![current]);
    }
    let parts = files::all(path)?;
    if parts.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no decision log"));
    }
    let begun = parts.iter().rposition(|part| part.first <= after.saturating_add(1)).unwrap_or(0);
    Ok(parts.into_iter().skip(begun).collect())
}

/// An answer as it grows.
struct Page {
    after: u64,
    limit: usize,
    lines: Vec<String>,
    bytes: usize,
}

impl Page {
    /// Whether there is room for more.
    fn take_from(&mut self, mut file: File) -> io::Result<bool> {
        let start = start_of_line_after(&file, self.after)?;
        file.seek(SeekFrom::Start(start))?;
        let mut reader = BufReader::new(file);
        while self.lines.len() < self.limit {
            let Some(line) = next_line(&mut reader)? else { return Ok(true) };
            let Some(text) = text_after(line, self.after) else { continue };
            self.bytes += text.len();
            if self.bytes > READ_BYTES_MAX && !self.lines.is_empty() {
                return Ok(false);
            }
            self.lines.push(text);
        }
        Ok(false)
    }
}

/// The newest whole line that `pred` takes, looking from the end; the whole log is read when none does.
pub fn last_line_where(path: &Path, mut pred: impl FnMut(&str) -> bool) -> io::Result<Option<String>> {
    for part in files::all(path)?.iter().rev() {
        let file = part.file()?;
        let mut end = backward::end_of_whole_lines(&file, file.metadata()?.len())?;
        while let Some((start, line)) = backward::line_before(&file, end)? {
            match String::from_utf8(line) {
                Ok(text) if pred(&text) => return Ok(Some(text)),
                _ => end = start,
            }
        }
    }
    Ok(None)
}

/// The files that were named, or all of the log.
pub(super) fn parts(path: &Path, named: &[PathBuf]) -> Result<Vec<Part>, Unreadable> {
    let parts = match named {
        [] => files::all(path)?,
        _ => named.iter().map(|path| Part::at(path)).collect::<Result<_, _>>()?,
    };
    if parts.is_empty() {
        return Err(Unreadable::at(path)(io::Error::new(io::ErrorKind::NotFound, "it is not there")));
    }
    Ok(parts)
}

/// One line of a log, and where it stands.
#[derive(Debug)]
pub struct Placed<'line> {
    /// Its file.
    pub file: &'line Path,
    /// Its number in the file, counted from 1.
    pub line: u64,
    /// Its text; `None` where that is not UTF-8.
    pub text: Option<&'line str>,
}

/// How much was read, and what was not.
#[derive(Debug, Default)]
pub struct Extent {
    /// How many files.
    pub files: usize,
    /// Files that end in the middle of a line.
    pub torn: Vec<PathBuf>,
}

/// Calls `each` for every whole line of these files, or when none is named of all files of the log that is written to at
/// `path`, oldest first. One line is in memory at a time.
pub fn each_line(
    path: &Path,
    named: &[PathBuf],
    mut each: impl FnMut(Placed<'_>),
) -> Result<Extent, Unreadable> {
    let mut extent = Extent::default();
    for part in parts(path, named)? {
        let (file, failed) = (part.file()?, Unreadable::at(&part.path));
        let len = file.metadata().map_err(&failed)?.len();
        let mut reader = BufReader::with_capacity(64 * 1024, Positioned::new(&file, len));
        let (mut line, mut bytes) = (0, 0);
        while let Some(text) = next_line(&mut reader).map_err(&failed)? {
            line += 1;
            bytes += text.len() as u64 + 1;
            each(Placed { file: &part.path, line, text: std::str::from_utf8(&text).ok() });
        }
        extent.files += 1;
        if bytes < len {
            extent.torn.push(part.path.clone());
        }
    }
    Ok(extent)
}

fn text_after(line: Vec<u8>, after: u64) -> Option<String> {
    line::parse(&line).filter(|link| link.seq > after)?;
    String::from_utf8(line).ok()
}

/// The next whole line without its newline; `None` at the end, a torn last line included.
pub(super) fn next_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        return Ok(Some(line));
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than the bound"));
    }
    Ok(None)
}

/// Where to start reading so as to miss no line after this seq: a search by halves, since seqs rise with the bytes.
/// A line that cannot be taken apart ends the search; then more is read than needed, never less.
fn start_of_line_after(file: &File, after: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, backward::end_of_whole_lines(file, file.metadata()?.len())?);
    // Everything before `low` is at or before `after`; what starts at `high` or later is after it.
    while after > 0 && low < high {
        let middle = low + (high - low) / 2;
        let start = backward::end_of_whole_lines(file, middle)?;
        let Some((end, seq)) = seq_at(file, start)? else { break };
        if seq <= after {
            low = end;
        } else {
            high = start;
        }
    }
    Ok(low)
}

/// The seq of the line that starts here, and where the next one starts.
fn seq_at(file: &File, start: u64) -> io::Result<Option<(u64, u64)>> {
    let mut file = file;
    file.seek(SeekFrom::Start(start))?;
    let Some(line) = next_line(&mut BufReader::new(file))? else { return Ok(None) };
    Ok(line::parse(&line).map(|link| (start + line.len() as u64 + 1, link.seq)))
}

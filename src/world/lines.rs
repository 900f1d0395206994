//! A look at some lines of a file: their text, and where the texts that readers saw stand if they no longer stand here.
//!
//! The whole file is looked at as any file is, and the lines are read from the same open file, so whatever makes a file
//! unsure makes its lines unsure. Memory and work are bounded, whatever the size of the file: texts are looked for near
//! their old place, nearest first, and one that is not found within the bounds counts as gone.

use super::digest;
use super::look::{LookOptions, Opens, look_beside};
use crate::index::found::{Found, LinesFound};
use crate::session::context::Seen;
use crate::session::digest::Digest;
use crate::session::line_ends::{feeds, normalised};
use crate::session::source::LineRange;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How far around their old place texts are looked for, in bytes to either side.
const AROUND_BYTES: u64 = 4 * 1024 * 1024;

/// How much is hashed in search of a text, in bytes.
const HASHED_BYTES_MAX: usize = 64 * 1024 * 1024;

const CHUNK_BYTES: usize = 64 * 1024;

/// Looks at lines of what stands at a canonical path.
#[must_use]
pub(super) fn look(
    path: &Path,
    range: LineRange,
    sought: &[Seen],
    options: &LookOptions,
    opens: &dyn Opens,
) -> Found {
    let mut read = None;
    let found = look_beside(path, &[], None, options, opens, &mut |file, size| {
        read = Some(read_lines(file, size, range, sought)?);
        Ok(())
    });
    match (found, read) {
        (Found::File(file), Some(lines)) => Found::Lines(LinesFound { canonical: file.canonical, ..lines }),
        (found, _) => found,
    }
}

fn read_lines(file: &File, size: u64, range: LineRange, sought: &[Seen]) -> io::Result<LinesFound> {
    let place = locate(file, size, range)?;
    let digest =
        if place.reached { Some(digest::stream(Text::of(file, &place)?, 0, &[])?.blake3) } else { None };
    let lost = |seen: &Seen| match seen {
        Seen::Digest(seen) if digest != Some(*seen) => Some(*seen),
        _ => None,
    };
    let sought: Vec<Digest> = sought.iter().filter_map(lost).collect();
    let elsewhere = match sought[..] {
        [] => Vec::new(),
        _ => Around::read(file, size, &place)?.search(range, &sought),
    };
    Ok(LinesFound { digest, elsewhere, sought, canonical: PathBuf::new() })
}

/// Where lines stand in a file, in bytes.
struct Place {
    /// The first byte of the first line; of the file's last line, if the file ends before the range.
    start: u64,
    /// Behind the last line's text.
    end: u64,
    /// The number of the line at `start`.
    line: u64,
    /// The file has the first line of the range.
    reached: bool,
}

/// Counts line feeds, which is all there is to know about lines.
fn locate(file: &File, size: u64, range: LineRange) -> io::Result<Place> {
    let mut place = Place { start: 0, end: size, line: 1, reached: range.start_line == 1 };
    let mut ends = 0;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < size {
        let len = read_some(file, &mut buffer, offset, size)?;
        for (at, _) in buffer[..len].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            ends += 1;
            let behind = offset + at as u64 + 1;
            if ends < range.start_line {
                (place.start, place.line) = (behind, ends + 1);
                place.reached = place.line == range.start_line;
            }
            if ends + 1 == range.start_line + range.lines {
                place.end = before_end(file, place.start, behind - 1)?;
                return Ok(place);
            }
        }
        offset += len as u64;
    }
    Ok(place)
}

/// Where a text ends that a line feed at `feed` ends: before the carriage return, if there is one.
fn before_end(file: &File, start: u64, feed: u64) -> io::Result<u64> {
    let mut last = [0];
    if feed > start {
        file.read_exact_at(&mut last, feed - 1)?;
    }
    Ok(feed - u64::from(last == *b"\r"))
}

fn read_some(file: &File, buffer: &mut [u8], offset: u64, end: u64) -> io::Result<usize> {
    let len = usize::try_from(end - offset).map_or(buffer.len(), |left| left.min(buffer.len()));
    match file.read_at(&mut buffer[..len], offset) {
        // It was cut short meanwhile, and its stat will say so.
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => read_some(file, buffer, offset, end),
        other => other,
    }
}

/// The text of lines, with every line end a line feed, read piece by piece.
struct Text<'file> {
    file: &'file File,
    offset: u64,
    end: u64,
    ready: Vec<u8>,
    given: usize,
    /// The last byte read was a carriage return, and what follows decides about it.
    held: bool,
}

impl<'file> Text<'file> {
    fn of(file: &'file File, place: &Place) -> io::Result<Self> {
        let mut text =
            Self { file, offset: place.start, end: place.end, ready: Vec::new(), given: 0, held: false };
        text.refill()?;
        Ok(text)
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut raw = vec![b'\r'; CHUNK_BYTES + 1];
        let held = usize::from(std::mem::take(&mut self.held));
        let mut len = held;
        if self.offset < self.end {
            let read = read_some(self.file, &mut raw[held..], self.offset, self.end)?;
            self.offset += read as u64;
            len += read;
            self.held = self.offset < self.end && raw[len - 1] == b'\r';
        }
        raw.truncate(len - usize::from(self.held));
        (self.ready, self.given) = (normalised(&raw), 0);
        Ok(())
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() && (self.offset < self.end || self.held) {
            self.refill()?;
        }
        let len = (&self.ready[self.given..]).read(buffer)?;
        self.given += len;
        Ok(len)
    }
}

/// The lines around a place, whole ones only.
struct Around {
    text: Vec<u8>,
    /// Where each line starts, and where one more would.
    starts: Vec<usize>,
    /// The number of the first line.
    first: u64,
    /// The last line is the file's last.
    to_the_end: bool,
}

impl Around {
    fn read(file: &File, size: u64, place: &Place) -> io::Result<Self> {
        let begin = place.start.saturating_sub(AROUND_BYTES);
        let end = place.start.saturating_add(AROUND_BYTES).min(size);
        let mut raw = vec![0; (end - begin) as usize];
        file.read_exact_at(&mut raw, begin)?;
        let whole = if begin == 0 { 0 } else { behind_feed(&raw) };
        let above = &raw[whole..((place.start - begin) as usize).max(whole)];
        let first = place.line - feeds(above);
        let text = normalised(&raw[whole..]);
        let feeds = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let mut starts: Vec<usize> = std::iter::once(0).chain(feeds).collect();
        if end == size {
            // As if a line feed ended the last line too.
            starts.push(text.len() + 1);
        }
        Ok(Self { text, starts, first, to_the_end: end == size })
    }

    /// The first line of each text that stands here, the place nearest to the range for each.
    fn search(&self, range: LineRange, sought: &[Digest]) -> Vec<(Digest, u64)> {
        let mut found: Vec<(Digest, u64)> = Vec::new();
        let mut hashed = 0;
        for line in self.nearest_first(range.start_line) {
            let Some(text) = self.window(line, range.lines) else { continue };
            hashed += text.len();
            if hashed > HASHED_BYTES_MAX || found.len() == sought.len() {
                break;
            }
            let digest = digest::blake3(text);
            if sought.contains(&digest) && !found.iter().any(|(held, _)| *held == digest) {
                found.push((digest, line));
            }
        }
        found
    }

    /// Every line but the range's own first, from there outward, downward before upward.
    fn nearest_first(&self, from: u64) -> impl Iterator<Item = u64> {
        let (first, behind) = (self.first, self.first + self.starts.len() as u64 - 1);
        let from = from.min(behind);
        let far = from.abs_diff(first).max(from.abs_diff(behind));
        let lines = (1..=far).flat_map(move |away| [from.checked_add(away), from.checked_sub(away)]);
        lines.flatten().filter(move |line| (first..behind).contains(line))
    }

    /// The text of so many lines from this one; of fewer where the file ends.
    fn window(&self, line: u64, lines: u64) -> Option<&[u8]> {
        let start = usize::try_from(line - self.first).ok()?;
        let all = self.starts.len() - 1;
        let wanted = usize::try_from(lines).ok().and_then(|lines| start.checked_add(lines));
        let end = match wanted.filter(|end| *end <= all) {
            Some(end) => end,
            None if self.to_the_end => all,
            None => return None,
        };
        Some(&self.text[self.starts[start]..self.starts[end] - 1])
    }
}

/// Where the first whole line starts.
fn behind_feed(raw: &[u8]) -> usize {
    raw.iter().position(|&byte| byte == b'\n').map_or(raw.len(), |at| at + 1)
}

//! A stream cut into lines, none of them larger than we are willing to hold.
//!
//! A line above the limit is passed over without being collected; a byte order mark and carriage returns at line ends
//! are not part of a line.

use std::io::{self, BufRead};

/// One line, or the fact that there was one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its bytes, or `None` when it is above the limit.
    pub(super) bytes: Option<Vec<u8>>,
    /// Counted from 1, empty lines included.
    pub(super) number: u64,
    /// Where it starts in the stream.
    pub(super) offset: u64,
    /// Where the next one starts.
    pub(super) end: u64,
    /// Whether a line feed ended it; without one it may still be growing.
    pub(super) ended: bool,
}

/// The lines of a reader.
pub(super) struct Lines<R> {
    reader: R,
    bytes_max: usize,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    /// `reader` goes on after so many lines, at this offset of the stream.
    pub(super) fn new(reader: R, bytes_max: usize, number: u64, offset: u64) -> Self {
        Self { reader, bytes_max, number, offset }
    }

    /// The next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        let (mut line, mut fits, start) = (Vec::new(), true, self.offset);
        let ended = loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break false;
            }
            let newline = chunk.iter().position(|&byte| byte == b'\n');
            let piece = &chunk[..newline.unwrap_or(chunk.len())];
            fits = fits && line.len() + piece.len() <= self.bytes_max;
            if fits {
                line.extend_from_slice(piece);
            } else {
                line = Vec::new();
            }
            let used = piece.len() + usize::from(newline.is_some());
            self.reader.consume(used);
            self.offset += used as u64;
            if newline.is_some() {
                break true;
            }
        };
        if self.offset == start {
            return Ok(None);
        }
        self.number += 1;
        let bytes = fits.then(|| trimmed(line, start == 0));
        Ok(Some(Found { bytes, number: self.number, offset: start, end: self.offset, ended }))
    }
}

fn trimmed(mut line: Vec<u8>, first: bool) -> Vec<u8> {
    while line.last() == Some(&b'\r') {
        line.pop();
    }
    if first && line.starts_with(b"\xef\xbb\xbf") {
        line.drain(..3);
    }
    line
}

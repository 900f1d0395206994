//! Claude Code's session transcripts (`projects/<slug>/<session>.jsonl`), read line by line into beliefs.
//!
//! Shape decides, never the version. The reader of the bytes is the only source of failure; a line that is no JSON, too
//! long, or unlike anything known is counted and passed over.

mod compaction;
mod facts;
mod ledger;
mod line;
mod lines;
mod live;
mod replay;
mod searches;
mod shown;
#[cfg(test)]
mod tests;

pub(super) use live::live;

use super::transcript::Transcript;
use line::Line;
use lines::Lines;
use replay::Replay;
use std::io::{self, BufRead, BufReader};

/// The longest line we hold; the longest seen in a thousand transcripts has 2 MiB.
const LINE_BYTES_MAX: usize = 64 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a transcript, plain or gzip, to its end.
///
/// A last line that has no line feed and does not parse is still being written: it is left alone and its offset told.
pub fn read(mut reader: impl BufRead) -> io::Result<Transcript> {
    // A line of JSON never starts like gzip, so a look at what is buffered already is enough.
    if reader.fill_buf()?.starts_with(&GZIP_MAGIC) {
        return replay(BufReader::new(flate2::bufread::MultiGzDecoder::new(reader)), LINE_BYTES_MAX);
    }
    replay(reader, LINE_BYTES_MAX)
}

fn replay(reader: impl BufRead, line_bytes_max: usize) -> io::Result<Transcript> {
    let mut lines = Lines::new(reader, line_bytes_max);
    let mut replay = Replay::default();
    while let Some(found) = lines.next()? {
        if found.bytes.as_ref().is_some_and(|bytes| bytes.trim_ascii().is_empty()) {
            continue;
        }
        let line = found.bytes.and_then(|bytes| Line::parse(&bytes, found.number));
        if line.is_none() && !found.ended {
            return Ok(replay.finish(Some(found.offset)));
        }
        replay.counts.lines += 1;
        match line {
            Some(line) => replay.step(&line),
            None => replay.counts.unparsable += 1,
        }
    }
    Ok(replay.finish(None))
}

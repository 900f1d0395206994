//! A transcript that is being read: line by line, by whichever agent wrote it, and further when it has grown.
//!
//! Shape decides who wrote it: the first line that only one of them writes. A last line that has no line feed and does
//! not parse is still being written: it is left alone, and read when there is more of it.

use super::claude_code;
use super::codex;
use super::line::Line;
use super::lines::Lines;
use super::transcript::{Counts, Transcript};
use std::io::{self, BufRead};

/// The longest line we hold; the longest seen in a thousand transcripts has 2 MiB.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// After so many lines that could be anybody's nobody is waited for.
const UNDECIDED_MAX: usize = 1_000;
/// Nor after so many bytes: those lines are held.
const UNDECIDED_BYTES_MAX: u64 = LINE_BYTES_MAX as u64;

/// What was read so far.
#[derive(Clone)]
pub struct Reading {
    line_bytes_max: usize,
    lines: u64,
    offset: u64,
    incomplete: bool,
    counts: Counts,
    writer: Writer,
}

#[derive(Clone)]
enum Writer {
    Unknown(Vec<Line>),
    ClaudeCode(Box<claude_code::Replay>),
    Codex(Box<codex::Replay>),
}

impl Default for Reading {
    fn default() -> Self {
        Self::with_lines_up_to(LINE_BYTES_MAX)
    }
}

impl Reading {
    pub(super) fn with_lines_up_to(line_bytes_max: usize) -> Self {
        let (counts, writer) = (Counts::default(), Writer::Unknown(Vec::new()));
        Self { line_bytes_max, lines: 0, offset: 0, incomplete: false, counts, writer }
    }

    /// Reads on to the end of what there is now; `reader` begins at [`Reading::offset`]. After each line `told` is
    /// called with the number of lines so far, and the offset.
    pub fn read(&mut self, reader: impl BufRead, mut told: impl FnMut(u64, u64)) -> io::Result<()> {
        let mut lines = Lines::new(reader, self.line_bytes_max, self.lines, self.offset);
        self.incomplete = false;
        while let Some(found) = lines.next()? {
            let empty = found.bytes.as_ref().is_some_and(|bytes| bytes.trim_ascii().is_empty());
            let line = found.bytes.filter(|_| !empty).and_then(|bytes| Line::parse(&bytes, found.number));
            if line.is_none() && !found.ended && !empty {
                self.incomplete = true;
                return Ok(());
            }
            (self.lines, self.offset) = (found.number, found.end);
            if !empty {
                self.line(line);
            }
            told(self.counts.lines, self.offset);
        }
        Ok(())
    }

    /// Where the next line begins, in bytes of the unpacked text.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Lines that are not empty, so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.counts.lines
    }

    /// What the lines so far tell.
    #[must_use]
    pub fn transcript(self) -> Transcript {
        let incomplete_tail = self.incomplete.then_some(self.offset);
        match self.decided() {
            (Writer::Codex(replay), counts) => replay.finish(counts, incomplete_tail),
            (Writer::ClaudeCode(replay), counts) => replay.finish(counts, incomplete_tail),
            (Writer::Unknown(_), counts) => claude_code::Replay::default().finish(counts, incomplete_tail),
        }
    }

    fn line(&mut self, line: Option<Line>) {
        self.counts.lines += 1;
        let Some(line) = line else {
            self.counts.unparsable += 1;
            return;
        };
        let kind = line.text("type").unwrap_or("(none)").to_owned();
        *self.counts.line_types.entry(kind).or_default() += 1;
        match &mut self.writer {
            Writer::ClaudeCode(replay) => replay.step(&line),
            Writer::Codex(replay) => replay.step(&line),
            Writer::Unknown(waiting) => {
                let codex = codex::wrote(&line);
                let many = waiting.len() >= UNDECIDED_MAX || self.offset > UNDECIDED_BYTES_MAX;
                let decided = codex || claude_code::wrote(&line) || many;
                waiting.push(line);
                if decided {
                    self.decide(codex);
                }
            }
        }
    }

    /// Says who wrote it, and lets them have the lines that came before.
    fn decide(&mut self, codex: bool) {
        let Writer::Unknown(waiting) = &mut self.writer else { return };
        let waiting = std::mem::take(waiting);
        self.writer = if codex {
            let mut replay = Box::<codex::Replay>::default();
            waiting.iter().for_each(|line| replay.step(line));
            Writer::Codex(replay)
        } else {
            let mut replay = Box::<claude_code::Replay>::default();
            waiting.iter().for_each(|line| replay.step(line));
            Writer::ClaudeCode(replay)
        };
    }

    fn decided(mut self) -> (Writer, Counts) {
        self.decide(false);
        (self.writer, self.counts)
    }
}

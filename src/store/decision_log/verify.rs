//! Checking the chain from its first line to its last, one line in memory at a time.
//!
//! Promise: an edit, a cut in the middle, an inserted, swapped or missing line is found, and the first bad line named. A
//! cut at the end is found only with a [`Receipt`]: a chain cannot know what should have followed it. Nor can it tell
//! a log that was rewritten whole; a receipt, kept elsewhere, can.

use super::line::{self, Link, Receipt};
use super::read::next_line;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// What a check of one file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many lines were found good, from the first on.
    pub lines: u64,
    /// What the file's first line says it follows, when that is the end of another file.
    pub follows: Option<Receipt>,
    /// The last good line.
    pub last: Option<Receipt>,
    /// The verdict proper.
    pub outcome: Outcome,
}

/// The verdict proper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every line is whole and follows the one before.
    Verified {
        /// Whether the receipt that was given is in the chain.
        anchored: bool,
    },
    /// A line is not what was written, or is not where it was written.
    Broken {
        /// The line, counted from 1; one more than there are when the receipt is missed at the end.
        line: u64,
        /// Where it starts.
        at_byte: u64,
        /// What is wrong, as the rest of a sentence.
        why: String,
    },
    /// Every whole line is good, and the file ends in the middle of another.
    TornTail {
        /// Where the torn line starts.
        at_byte: u64,
    },
}

/// Checks one file of the log.
pub fn verify(path: &Path, receipt: Option<&Receipt>) -> io::Result<Verdict> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(64 * 1024, io::Read::take(file, len));
    let mut chain = Chain { receipt, anchored: false, lines: 0, at_byte: 0, follows: None, last: None };
    loop {
        let line = match next_line(&mut reader) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Ok(chain.broken("it is longer than any line of a decision log".to_owned()));
            }
            Err(error) => return Err(error),
        };
        if let Err(why) = chain.take(&line) {
            return Ok(chain.broken(why));
        }
    }
    Ok(chain.end(len))
}

struct Chain<'a> {
    receipt: Option<&'a Receipt>,
    anchored: bool,
    lines: u64,
    at_byte: u64,
    follows: Option<Receipt>,
    last: Option<Receipt>,
}

impl Chain<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        let link = line::check(bytes)?;
        match &self.last {
            Some(last) => follows(&link, last)?,
            None => self.begin(bytes, &link)?,
        }
        let receipt = link.receipt();
        self.anchor(&receipt)?;
        self.last = Some(receipt);
        self.lines += 1;
        self.at_byte += bytes.len() as u64 + 1;
        Ok(())
    }

    fn begin(&mut self, bytes: &[u8], link: &Link) -> Result<(), String> {
        if !line::may_open_a_file(bytes, link) {
            return Err(format!("the file starts with line {} of the chain", link.seq));
        }
        let follows = link.follows();
        if follows != Receipt::genesis() {
            self.anchor(&follows)?;
            self.follows = Some(follows);
        }
        Ok(())
    }

    fn anchor(&mut self, standing: &Receipt) -> Result<(), String> {
        match self.receipt {
            Some(receipt) if receipt.seq == standing.seq && receipt != standing => {
                Err(format!("the receipt for seq {} names another line", receipt.seq))
            }
            Some(receipt) => {
                self.anchored |= receipt == standing;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn end(self, len: u64) -> Verdict {
        if let Some(receipt) = self.receipt.filter(|_| !self.anchored) {
            let why = format!("no line has seq {}, for which there is a receipt", receipt.seq);
            return self.broken(why);
        }
        let torn = self.at_byte < len;
        let (at_byte, anchored) = (self.at_byte, self.anchored);
        self.verdict(if torn { Outcome::TornTail { at_byte } } else { Outcome::Verified { anchored } })
    }

    fn broken(self, why: String) -> Verdict {
        let (line, at_byte) = (self.lines + 1, self.at_byte);
        self.verdict(Outcome::Broken { line, at_byte, why })
    }

    fn verdict(self, outcome: Outcome) -> Verdict {
        Verdict { lines: self.lines, follows: self.follows, last: self.last, outcome }
    }
}

fn follows(link: &Link, last: &Receipt) -> Result<(), String> {
    if link.seq != last.seq + 1 {
        return Err(format!("seq {} stands behind seq {}", link.seq, last.seq));
    }
    if link.prev != last.hash {
        return Err("it was written behind another line than the one before it".to_owned());
    }
    Ok(())
}

//! Checking the chain from its first line to its last, across its files, one line in memory at a time.
//!
//! Promise: an edit, a cut in the middle, an inserted, swapped or missing line is found, and the first bad line named. A
//! cut at the end is found only with a [`Receipt`]: a chain cannot know what should have followed it. Nor can it tell
//! a log that was rewritten whole; a receipt, kept elsewhere, can.

use super::files::{Part, Positioned, Unreadable};
use super::line::{self, Link, Receipt};
use super::read::{next_line, parts};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many files were looked into.
    pub files: usize,
    /// The file that the verdict is about: of a chain that holds, its last one.
    pub file: PathBuf,
    /// How many lines were found good, from the first on.
    pub lines: u64,
    /// What the first line says it follows, when that is the end of a file that is not here.
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
        /// Whether a receipt was given. One that is not in the chain breaks it, save where it is older than the first
        /// line that is kept.
        anchored: bool,
    },
    /// A line is not what was written, or is not where it was written.
    Broken {
        /// The line in its file, counted from 1; one more than there are when the receipt is missed at the end.
        line: u64,
        /// Where it starts.
        at_byte: u64,
        /// What is wrong, as the rest of a sentence.
        why: String,
        /// The receipt that is not in the chain, where that is what is wrong.
        receipt: Option<Receipt>,
    },
    /// Every whole line is good, and a file ends in the middle of another.
    TornTail {
        /// Where the torn line starts.
        at_byte: u64,
    },
}

/// Hash of the first line of the chain that is written to at `path`, by which anchors know the log.
pub fn id_at(path: &Path) -> Result<Option<String>, Unreadable> {
    let parts = parts(path, &[])?;
    let Some(part) = parts.first() else { return Ok(None) };
    let first = super::files::first_line(&part.file()?).map_err(Unreadable::at(&part.path))?;
    Ok(first.and_then(|line| line::id(&line)))
}

/// Checks one file of the log.
pub fn verify(path: &Path, receipt: Option<&Receipt>) -> Result<Verdict, Unreadable> {
    verify_files(path, &[path.to_owned()], receipt.map_or(&[], std::slice::from_ref))
}

/// Checks these files in this order, or when none is named all files of the log that is written to at `path`.
pub fn verify_files(path: &Path, named: &[PathBuf], receipts: &[Receipt]) -> Result<Verdict, Unreadable> {
    let mut receipts = receipts.to_vec();
    receipts.sort_by_key(|receipt| receipt.seq);
    let mut chain = Chain { receipts, ..Chain::default() };
    for part in parts(path, named)? {
        if let Err(why) = chain.take_file(&part)? {
            return Ok(chain.broken(why));
        }
    }
    Ok(chain.end())
}

/// What breaks a chain.
struct Fault {
    why: String,
    receipt: Option<Receipt>,
}

impl<T: Into<String>> From<T> for Fault {
    fn from(why: T) -> Self {
        Self { why: why.into(), receipt: None }
    }
}

#[derive(Default)]
struct Chain {
    /// By their numbers; those met are passed.
    receipts: Vec<Receipt>,
    met: usize,
    anchored: bool,
    files: usize,
    file: PathBuf,
    /// Of all files, and of this one.
    lines: u64,
    lines_here: u64,
    at_byte: u64,
    torn: Option<(PathBuf, u64)>,
    follows: Option<Receipt>,
    last: Option<Receipt>,
}

impl Chain {
    fn take_file(&mut self, part: &Part) -> Result<Result<(), Fault>, Unreadable> {
        self.files += 1;
        self.file.clone_from(&part.path);
        (self.lines_here, self.at_byte) = (0, 0);
        let (file, failed) = (part.file()?, Unreadable::at(&part.path));
        let len = file.metadata().map_err(&failed)?.len();
        let mut reader = BufReader::with_capacity(64 * 1024, Positioned::new(&file, len));
        loop {
            let line = match next_line(&mut reader) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Ok(Err("it is longer than any line of a decision log".into()));
                }
                Err(error) => return Err(failed(error)),
            };
            if let Err(why) = self.take(&line) {
                return Ok(Err(why));
            }
        }
        if self.at_byte < len {
            self.torn = Some((self.file.clone(), self.at_byte));
        }
        Ok(Ok(()))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let link = line::check(bytes)?;
        match &self.last {
            Some(last) if self.lines_here > 0 => follows(&link, last)?,
            Some(last) => joins(bytes, &link, last)?,
            None => self.begin(bytes, &link)?,
        }
        let receipt = link.receipt();
        self.anchor(&receipt)?;
        self.last = Some(receipt);
        self.lines += 1;
        self.lines_here += 1;
        self.at_byte += bytes.len() as u64 + 1;
        Ok(())
    }

    fn begin(&mut self, bytes: &[u8], link: &Link) -> Result<(), Fault> {
        if !line::may_open_a_file(bytes, link) {
            return Err(format!("the file starts with line {} of the chain", link.seq).into());
        }
        let follows = link.follows();
        self.met = self.receipts.partition_point(|receipt| receipt.seq < follows.seq);
        if follows != Receipt::genesis() {
            self.anchor(&follows)?;
            self.follows = Some(follows);
        }
        Ok(())
    }

    fn anchor(&mut self, standing: &Receipt) -> Result<(), Fault> {
        while let Some(receipt) = self.receipts.get(self.met).filter(|receipt| receipt.seq == standing.seq) {
            if receipt != standing {
                let why = format!("the receipt for seq {} names another line", receipt.seq);
                return Err(Fault { why, receipt: Some(receipt.clone()) });
            }
            self.anchored = true;
            self.met += 1;
        }
        Ok(())
    }

    fn end(self) -> Verdict {
        if let Some(receipt) = self.receipts.get(self.met) {
            let why = format!("no line has seq {}, for which there is a receipt", receipt.seq);
            let receipt = Some(receipt.clone());
            return self.broken(Fault { why, receipt });
        }
        let anchored = self.anchored;
        match self.torn.clone() {
            Some((file, at_byte)) => Verdict { file, ..self.verdict(Outcome::TornTail { at_byte }) },
            None => self.verdict(Outcome::Verified { anchored }),
        }
    }

    fn broken(self, Fault { why, receipt }: Fault) -> Verdict {
        let (line, at_byte) = (self.lines_here + 1, self.at_byte);
        self.verdict(Outcome::Broken { line, at_byte, why, receipt })
    }

    fn verdict(self, outcome: Outcome) -> Verdict {
        let Self { files, file, lines, follows, last, .. } = self;
        Verdict { files, file, lines, follows, last, outcome }
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

/// The first line of a file has to follow the last of the one before it. What is missing between them is named, and so
/// is the reason why the file before was left, where there was one.
fn joins(bytes: &[u8], link: &Link, last: &Receipt) -> Result<(), String> {
    let Err(why) = follows(link, last) else { return Ok(()) };
    let opening = line::opening(bytes).unwrap_or_default();
    let missing = match (link.seq.checked_sub(1), opening.previous_file) {
        (Some(before), Some(file)) if before > last.seq => {
            format!("; lines {} to {before} are missing, the last of them in {file}", last.seq + 1)
        }
        _ => String::new(),
    };
    let said = opening.why.map(|why| format!("; the daemon went on in this file because {why}"));
    Err(format!("{why}{missing}{}", said.unwrap_or_default()))
}

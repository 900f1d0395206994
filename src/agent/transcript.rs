//! What a transcript tells, whichever agent wrote it: the session, and one entry for each path it knows something of.
//!
//! File contents are carried, because only the caller can compare them with a disk that spells line ends otherwise, or
//! write them back; they are never printed, not even by `Debug`.

pub use super::asked::{Asked, Question, Unasked};
use crate::session::digest::Digest;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The transcript's file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// It could not be opened.
    #[error("cannot open the transcript {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It could not be read to its end, or is no sound archive.
    #[error("cannot read the transcript {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// An agent whose transcripts are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    #[default]
    ClaudeCode,
    /// Codex CLI.
    Codex,
}

impl Agent {
    /// Its name in commands and contexts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }
}

/// One session, as its transcript shows it.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// Who wrote it.
    pub agent: Agent,
    /// The commit that the session knows HEAD to be at; `None` where it did not say, or moved it since.
    pub head: Option<String>,
    /// The session that most lines name; copies of a forked session may carry lines of another.
    pub session_id: Option<String>,
    /// The first working directory, as spelled there.
    pub first_cwd: Option<PathBuf>,
    /// All working directories, in the order of their first appearance.
    pub cwds: Vec<PathBuf>,
    /// The last branch named.
    pub git_branch: Option<String>,
    /// The versions of the agent, sorted as text.
    pub versions: Vec<String>,
    /// How much was read, and what could not be.
    pub counts: Counts,
    /// One entry for each path, in the order of first appearance.
    pub entries: Vec<Entry>,
    /// Searches and commands that were answered, in the order of the last answer to each.
    pub asked: Vec<Asked>,
    /// The line of the last change that the agent made to a file.
    pub last_edit: Option<u64>,
    /// What was asked and is not among `asked`.
    pub unasked: Unasked,
    /// Absolute paths that a search named; the agent saw their names, not what is in them.
    pub mentioned: Vec<PathBuf>,
    /// Where the last line starts when it is not complete yet, in bytes of the unpacked text.
    pub incomplete_tail: Option<u64>,
    /// It holds a conversation that can be read. Without one nothing is known of what its session believes.
    pub conversation: bool,
    /// What the reader of the transcript should know, as sentences.
    pub warnings: Vec<String>,
}

/// How much of a transcript was read, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that are not empty, without an incomplete last one.
    pub lines: u64,
    /// Lines that are no JSON object, or too long to be looked at.
    pub unparsable: u64,
    /// Lines by type.
    pub line_types: BTreeMap<String, u64>,
    /// Results by tool and kind: `Read:full`, `Read:part`, `Edit:ok`, `Edit:nobase`, `Bash:other`, `Bash:err`.
    pub tool_results: BTreeMap<String, u64>,
    /// Results whose call is not in the file.
    pub unmatched_results: u64,
}

/// What whoever asked for a transcript should know of it, whichever agent wrote it.
pub(super) fn warnings(counts: &Counts, conversation: bool) -> Vec<String> {
    let Counts { unparsable, unmatched_results, .. } = counts;
    let cases = [
        (!conversation, "there is no conversation in this transcript; nothing was imported".to_owned()),
        (*unparsable > 0, format!("{unparsable} lines cannot be parsed; what they read is not known")),
        (*unmatched_results > 0, format!("{unmatched_results} results have no call in this file; skipped")),
    ];
    cases.into_iter().filter_map(|(applies, sentence)| applies.then_some(sentence)).collect()
}

/// What the session knows of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, any combination of which occurs")]
pub struct Entry {
    /// The path as the transcript spells it.
    pub path: PathBuf,
    /// The last tool that told something about it: `Read`, `Edit`, `Write`, `MultiEdit`, `Attachment`, …
    pub tool: String,
    /// When that was, in the transcript's own words.
    pub captured_at: Option<String>,
    /// The line that told it, counted from 1.
    pub line: u64,
    /// What is known.
    pub knowledge: Knowledge,
    /// The agent wrote it.
    pub edited: bool,
    /// The agent was once shown the whole of it.
    pub read_whole: bool,
    /// It is the session's plan.
    pub plan: bool,
    /// The parts seen since the whole was last known; each agrees with it unless it is `contradicted`.
    pub ranges: Vec<Range>,
    /// It is no longer in the context itself: from before a compaction that did not preserve it, or cleared.
    pub via_summary: bool,
    /// Only sub-agents saw it.
    pub via_sidechain: bool,
    /// The whole was known, and a later partial look showed that the file had changed: what lies outside `ranges` is in
    /// the agent's mind as it was, and out of date.
    pub contradicted: bool,
}

/// How well the content of a path is known.
#[derive(Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// All of it.
    Full {
        /// BLAKE3 of `content`.
        digest: Digest,
        /// Length of `content`.
        bytes: u64,
        /// The text as the agent was shown it: agents normalise line ends and drop a byte order mark.
        content: Vec<u8>,
    },
    /// The entry's ranges only.
    Partial,
    /// There was no such file.
    Absent,
    /// That there is something the agent looked at, but not which bytes: an image, an edit of an unseen file.
    Unknown,
}

impl fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { digest, bytes, .. } => write!(f, "Full({digest:?}, {bytes} bytes)"),
            Self::Partial => f.write_str("Partial"),
            Self::Absent => f.write_str("Absent"),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

/// Text that was shown; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(pub Vec<u8>);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Some consecutive lines of a file. A file that ends in a line feed has one more, empty, line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first line, counted from 1.
    pub start: u64,
    /// How many lines.
    pub lines: u64,
    /// BLAKE3 of the lines joined by line feeds, without one after the last.
    pub digest: Digest,
    /// How many lines the file had, or at least had where that was not told.
    pub total: u64,
    /// The lines as the agent was shown them.
    pub content: Content,
}

impl Range {
    /// Whether every line of `other` is also in `self`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.holds(other.start, other.lines)
    }

    /// Whether so many lines from `start` on are all in it.
    pub(super) fn holds(&self, start: u64, lines: u64) -> bool {
        self.start <= start && start.saturating_add(lines) <= self.end()
    }

    /// The first line after it; numbers in a transcript are anybody's, so this cannot overflow.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.lines)
    }
}

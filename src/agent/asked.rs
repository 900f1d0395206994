//! What a session asked of the tree by searches and commands, and that it was answered.
//!
//! Of an answer only the output of a command is carried, for it may be a file; what a search found is found again by
//! whoever looks.

use super::transcript::Content;

/// A search or a command whose answer the session was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What was asked.
    pub question: Question,
    /// Where, as the transcript spells it.
    pub cwd: Option<String>,
    /// When the last answer came, in the transcript's own words.
    pub captured_at: Option<String>,
    /// The line that brought it, counted from 1.
    pub line: u64,
    /// It is no longer in the context itself.
    pub via_summary: bool,
    /// Only sub-agents were answered.
    pub via_sidechain: bool,
    /// It ran and failed.
    pub failed: bool,
    /// What a command printed, where all of it was shown and it did not fail.
    pub shown: Option<Content>,
}

/// What was asked, in the words of the call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// Which files hold a pattern, and where.
    Grep {
        /// What was looked for.
        pattern: String,
        /// Below this folder, or in this file; where the session was unless given.
        path: Option<String>,
        /// In files with such names.
        glob: Option<String>,
        /// In files of this type, as ripgrep names types.
        kind: Option<String>,
    },
    /// Which names there are.
    Glob {
        /// What they look like.
        pattern: String,
        /// Below this folder.
        path: Option<String>,
    },
    /// What is in a folder.
    List {
        /// The folder.
        path: Option<String>,
        /// Names that were left out.
        ignore: Vec<String>,
    },
    /// A command.
    Command {
        /// Its text.
        text: String,
        /// The language of the text: `Bash`, `PowerShell`.
        shell: String,
    },
}

impl Question {
    /// The tool that asks so.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Grep { .. } => "Grep",
            Self::Glob { .. } => "Glob",
            Self::List { .. } => "LS",
            Self::Command { shell, .. } => shell,
        }
    }
}

/// Questions that got no answer to believe in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unasked {
    /// Commands that ran in the background: what they print comes later, and changes.
    pub background: u64,
    /// Refused by the user or the harness, or not run for another reason.
    pub refused: u64,
}

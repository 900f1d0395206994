//! What one command showed: a file, some of its lines, that there is none, or an answer that rests on the tree.
//!
//! A file only where the output is all that was printed and fits what the command says: a command that ended otherwise,
//! or printed more lines than it was told to, showed something else.

use super::output::is_cut;
use crate::agent::command::{Class, Part, classify, unnumbered};
use crate::agent::ledger::{Ledger, Moment};
use crate::agent::shown::Shown;
use crate::agent::transcript::{Asked, Content, Entry, Question};

/// A command of a shell that ran to its end.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// Its text.
    pub command: &'a str,
    /// Where it ran.
    pub cwd: Option<&'a str>,
    /// What it printed, and nothing else.
    pub output: &'a str,
    /// How it ended, where that was told.
    pub exit_code: Option<i64>,
    /// When, in the transcript's own words.
    pub captured_at: Option<&'a str>,
    /// The line that told it, counted from 1.
    pub line: u64,
}

/// What a session knows by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saw {
    /// A file, whole or in part, or that there is none.
    File(Box<Entry>),
    /// An answer.
    Asked(Box<Asked>),
}

/// What a session knows by a command.
#[must_use]
pub fn saw(ran: &Ran<'_>) -> Saw {
    let moment = Moment {
        line: ran.line,
        timestamp: ran.captured_at,
        uuid: None,
        call: None,
        sidechain: false,
        tool: "Bash",
    };
    let mut ledger = Ledger::default();
    if let Some(look) = look(ran) {
        look.enter(&mut ledger, moment);
    }
    match ledger.finish().pop() {
        Some(entry) => Saw::File(Box::new(entry)),
        None => Saw::Asked(Box::new(asked(ran, "Bash"))),
    }
}

/// The question that a command is, with its answer.
pub(super) fn asked(ran: &Ran<'_>, shell: &str) -> Asked {
    let failed = ran.exit_code.is_some_and(|code| code != 0);
    let whole = ran.exit_code == Some(0) && !is_cut(ran.output);
    Asked {
        question: Question::Command { text: ran.command.to_owned(), shell: shell.to_owned() },
        cwd: ran.cwd.map(str::to_owned),
        captured_at: ran.captured_at.map(str::to_owned),
        line: ran.line,
        via_summary: false,
        via_sidechain: false,
        failed,
        shown: whole.then(|| Content(ran.output.into())),
    }
}

/// A look at a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    path: String,
    seen: Seen,
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Whole(String),
    Lines(u64, String),
    Missing,
}

impl Look {
    /// Enters it in the ledger.
    pub(super) fn enter(&self, ledger: &mut Ledger, moment: Moment<'_>) {
        match &self.seen {
            Seen::Whole(content) => ledger.show_whole(moment, &self.path, content),
            Seen::Lines(start, content) => {
                let lines = content.split('\n').count() as u64;
                let shown = Shown { path: &self.path, content, start: *start, lines, total: None };
                ledger.show(moment, &shown);
            }
            Seen::Missing => ledger.miss(moment, &self.path),
        }
    }
}

/// The look at a file that a command was, if it plainly was one.
pub(super) fn look(ran: &Ran<'_>) -> Option<Look> {
    let Class::Look { path, part, numbered } = classify(ran.command, ran.cwd) else { return None };
    let path = path.to_string_lossy().into_owned();
    if ran.exit_code != Some(0) {
        let missing = ran.exit_code.is_some() && ran.output.trim_end().ends_with("No such file or directory");
        return missing.then_some(Look { path, seen: Seen::Missing });
    }
    if is_cut(ran.output) {
        return None;
    }
    let text = if numbered { unnumbered(ran.output, part)? } else { ran.output.to_owned() };
    Some(Look { path, seen: seen(text, part)? })
}

/// Which lines of a file a text is.
fn seen(text: String, part: Part) -> Option<Seen> {
    let count = text.split_terminator('\n').count() as u64;
    let (first, most) = match part {
        Part::Whole => (1, u64::MAX),
        Part::Lines(first, last) => (first, last.checked_sub(first)?.saturating_add(1)),
        Part::From(first) => (first, u64::MAX),
        // Which lines the last ones are depends on how many there are.
        Part::Last(_) => return None,
    };
    if count > most {
        return None;
    }
    // From the first line on, and fewer than were asked for: there are no more.
    if first == 1 && (count < most || !text.ends_with('\n')) {
        return Some(Seen::Whole(text));
    }
    let lines = text.strip_suffix('\n').unwrap_or(&text);
    // Beyond the end there is nothing to be seen.
    (count > 0).then(|| Seen::Lines(first, lines.to_owned()))
}

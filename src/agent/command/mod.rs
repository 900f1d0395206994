//! What a command's answer rests on, told by its text alone.
//!
//! Nothing is run and nothing is looked up. A command that is more than its parts known here rests on something nobody
//! can watch, and is said to; only one that plainly shows a file, or some of its lines, counts as a look at it.

mod git;
mod judged;
mod look;
mod programs;
#[cfg(test)]
mod tests;

use super::shell::{self, Word};
use super::spelling;
use judged::Judged;
pub(super) use look::unnumbered;
use std::path::PathBuf;

/// What a command is to a session that ran it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It told nothing about the world.
    Nothing,
    /// It changed something.
    Writes,
    /// It showed a file, and nothing else.
    Look {
        /// As the transcript spells it.
        path: PathBuf,
        /// How much of it.
        part: Part,
        /// With a number before each line.
        numbered: bool,
    },
    /// Its answer rests on these.
    Reads(Vec<Input>),
    /// Its answer rests on something that nobody can watch.
    Volatile(&'static str),
}

/// How much of a file a command shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// From one line to another, counted from 1.
    Lines(u64, u64),
    /// From a line to the end.
    From(u64),
    /// So many lines before the end.
    Last(u64),
}

/// Something that a command read, as the transcript spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The repository that a folder is in.
    Tree(PathBuf),
    /// A file, or everything below a folder.
    Path(PathBuf),
    /// Names in a folder.
    Names {
        /// The folder.
        path: PathBuf,
        /// And below it.
        deep: bool,
        /// What a long listing shows changes with the bytes.
        contents: bool,
    },
    /// HEAD of the repository that a folder is in.
    Head(PathBuf),
    /// Its index.
    Index(PathBuf),
}

/// Judges a command that ran in `cwd`.
pub(super) fn classify(text: &str, cwd: Option<&str>) -> Class {
    let Some(steps) = shell::steps(text) else { return Class::Volatile("a command of unknown reach") };
    let mut folder = cwd.map(str::to_owned);
    let mut judged = Judged::default();
    for step in &steps {
        let words = program_words(&step.words);
        if step.writes {
            judged.writes = true;
        }
        if words.is_empty() && !step.words.is_empty() {
            // A loop shows what is in it more than once, a branch perhaps not at all.
            judged.steps += 1;
        }
        if words.first().is_some_and(|word| word.text == "cd") {
            // In a shell of its own it moves only what is in there, and which that is was not kept.
            folder = if step.nested { None } else { enter(folder.as_deref(), &words[1..]) };
            continue;
        }
        judged.step(step, words, folder.as_deref());
    }
    judged.class()
}

/// Whether HEAD may be elsewhere after a command, as far as its text tells.
pub(super) fn moves_head(text: &str) -> bool {
    const MOVING: [&str; 11] = [
        "commit",
        "checkout",
        "switch",
        "merge",
        "rebase",
        "reset",
        "pull",
        "cherry-pick",
        "revert",
        "am",
        "bisect",
    ];
    let Some(steps) = shell::steps(text) else { return text.contains("git") };
    let moving = |words: &[Word]| {
        words.iter().any(|word| word.text == "git")
            && words.iter().any(|word| MOVING.contains(&word.text.as_str()))
    };
    steps.iter().any(|step| moving(&step.words))
}

/// The words from the program on: without assignments and the shell's own words.
fn program_words(words: &[Word]) -> &[Word] {
    const RESERVED: [&str; 11] =
        ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "[["];
    const ALONE: [&str; 6] = ["for", "done", "fi", "}", "in", "select"];
    let mut words = words;
    while let Some((first, rest)) = words.split_first() {
        if ALONE.contains(&first.text.as_str()) {
            return &[];
        }
        if !RESERVED.contains(&first.text.as_str()) && !is_assignment(&first.text) {
            break;
        }
        words = rest;
    }
    words
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Where a `cd` leads; nobody knows where without a plain operand.
fn enter(folder: Option<&str>, operands: &[Word]) -> Option<String> {
    match operands {
        [to] if to.literal && to.text != "-" => {
            let to = spelling::resolve(folder, &to.text)?;
            Some(to.to_string_lossy().into_owned())
        }
        _ => None,
    }
}

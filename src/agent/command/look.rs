//! Steps that show one file, or some of its lines, and nothing else.

use super::Part;
use crate::agent::shell::Word;

/// The one file that a step shows, and how much of it.
pub(super) fn look<'words>(program: &str, words: &'words [Word]) -> Option<(&'words Word, Part)> {
    let said: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let file = words.last()?;
    if !file.literal || file.text.starts_with('-') {
        return None;
    }
    let part = match (program, &said[..said.len() - 1]) {
        ("cat", []) => Part::Whole,
        ("head", options) => Part::Lines(1, count(options)?),
        ("tail", ["-n", from]) if from.starts_with('+') => Part::From(from[1..].parse().ok()?),
        ("tail", options) => Part::Last(count(options)?),
        ("sed", ["-n", script]) => printed(script)?,
        _ => return None,
    };
    matches!(part, Part::Whole | Part::Lines(1.., 1..) | Part::From(1..) | Part::Last(1..))
        .then_some((file, part))
}

/// How many lines `head` and `tail` are told to show.
fn count(options: &[&str]) -> Option<u64> {
    match options {
        [] => Some(10),
        ["-n", count] => count.parse().ok(),
        [option] => option.strip_prefix("-n").or_else(|| option.strip_prefix('-'))?.parse().ok(),
        _ => None,
    }
}

/// The lines that a script of `sed -n` prints, when it prints one run of them: `5p`, `5,9p`, `5,$p`.
fn printed(script: &str) -> Option<Part> {
    let range = script.strip_suffix('p')?;
    let (first, last) = range.split_once(',').unwrap_or((range, range));
    let first = first.parse().ok()?;
    match last {
        "$" => Some(Part::From(first)),
        last => last.parse().ok().filter(|&last| last >= first).map(|last| Part::Lines(first, last)),
    }
}

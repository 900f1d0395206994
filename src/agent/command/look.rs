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
        ("nl", ["-ba"]) => Part::Whole,
        ("head", options) => Part::Lines(1, count(options)?),
        ("tail", ["-n", from]) if from.starts_with('+') => Part::From(from[1..].parse().ok()?),
        ("tail", options) => Part::Last(count(options)?),
        ("sed", ["-n", script]) => printed(script)?,
        _ => return None,
    };
    matches!(part, Part::Whole | Part::Lines(1.., 1..) | Part::From(1..) | Part::Last(1..))
        .then_some((file, part))
}

/// Whether a step shows its file with a number before each line.
pub(super) fn numbers(program: &str, words: &[Word]) -> bool {
    program == "nl" && matches!(words, [option, file] if option.text == "-ba" && file.literal)
}

/// Which of the lines that it is fed a step lets through.
pub(super) fn filter(program: &str, words: &[Word]) -> Option<Part> {
    let said: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match (program, said.as_slice()) {
        ("sed", ["-n", script]) => printed(script),
        ("head", options) => Some(Part::Lines(1, count(options)?)),
        _ => None,
    }
}

/// The lines without the numbers before them; `None` where these are not those of the lines that were to be shown.
pub(in crate::agent) fn unnumbered(text: &str, part: Part) -> Option<String> {
    let first = match part {
        Part::Whole => 1,
        Part::Lines(first, _) | Part::From(first) => first,
        Part::Last(_) => return None,
    };
    let mut plain = String::new();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let (told, line) = line.split_once('\t')?;
        let told = told.trim_start().parse::<u64>().ok()?;
        (told.checked_sub(first) == Some(at as u64)).then_some(())?;
        plain.push_str(line);
    }
    Some(plain)
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

//! What a result shows of a file: the twins of Claude Code's structured results, and how an edit changes a text.

use super::line::{flag, text};
use serde_json::Value;

/// The lines of a file that a read or an attachment shows.
pub(super) struct Shown<'a> {
    pub(super) path: &'a str,
    pub(super) content: &'a str,
    pub(super) start: u64,
    pub(super) lines: u64,
    pub(super) total: u64,
}

impl<'a> Shown<'a> {
    /// From the `file` of a text result.
    pub(super) fn parse(file: &'a Value) -> Option<Self> {
        let number = |field: &str| file.get(field).and_then(Value::as_u64);
        Some(Self {
            path: text(file, "filePath")?,
            content: text(file, "content")?,
            start: number("startLine")?,
            lines: number("numLines")?,
            total: number("totalLines")?,
        })
    }

    /// Whether that is all of the file.
    pub(super) fn is_whole(&self) -> bool {
        self.start <= 1 && self.lines >= self.total
    }

    /// Whether `whole`, if it still were the content, would have shown the same.
    pub(super) fn agrees_with(&self, whole: &str) -> bool {
        let first = usize::try_from(self.start.max(1) - 1).unwrap_or(usize::MAX);
        let count = usize::try_from(self.lines).unwrap_or(usize::MAX);
        let same_length = whole.split('\n').count() as u64 == self.total;
        let mut there = whole.split('\n').skip(first).take(count);
        same_length && (count == 0 || (self.content.split('\n').all(|line| there.next() == Some(line))))
    }
}

/// One replacement.
pub(super) struct Edit<'a> {
    old: &'a str,
    new: &'a str,
    everywhere: bool,
}

impl<'a> Edit<'a> {
    /// From the result of `Edit`: what was applied, which may not be what was asked for.
    pub(super) fn parse(result: &'a Value) -> Option<Self> {
        Self::of(result, ["oldString", "newString", "replaceAll"])
    }

    /// From the result of `MultiEdit`: all of its edits, or `None` when one of them makes no sense.
    pub(super) fn parse_all(result: &'a Value) -> Option<Vec<Self>> {
        let edits = result.get("edits")?.as_array()?;
        edits.iter().map(|edit| Self::of(edit, ["old_string", "new_string", "replace_all"])).collect()
    }

    fn of(value: &'a Value, [old, new, everywhere]: [&str; 3]) -> Option<Self> {
        Some(Self { old: text(value, old)?, new: text(value, new)?, everywhere: flag(value, everywhere) })
    }

    /// Whether it makes the file rather than changes it, so that nothing need be known before.
    pub(super) fn creates(&self) -> bool {
        self.old.is_empty()
    }

    /// The text after the edit, or `None` when the edit cannot have been made in `base`.
    pub(super) fn apply(&self, base: &str) -> Option<String> {
        if self.creates() {
            return Some(self.new.into());
        }
        let with_newline = format!("{}\n", self.old);
        // Deleting whole lines takes their last line end along.
        let takes_newline = self.new.is_empty() && !self.old.ends_with('\n') && base.contains(&with_newline);
        let old = if takes_newline { with_newline.as_str() } else { self.old };
        if !base.contains(old) {
            return None;
        }
        Some(if self.everywhere { base.replace(old, self.new) } else { base.replacen(old, self.new, 1) })
    }
}

/// Whether every line of a numbered snippet stands in `whole` under its number. An empty snippet proves nothing.
pub(super) fn snippet_agrees(snippet: &str, whole: &str) -> bool {
    let lines: Vec<&str> = whole.split('\n').collect();
    !snippet.is_empty()
        && snippet.split('\n').all(|line| {
            let numbered = line.split_once(['\t', '→']);
            let place =
                numbered.and_then(|(number, text)| Some((number.trim().parse::<usize>().ok()?, text)));
            place.is_some_and(|(number, text)| lines.get(number.wrapping_sub(1)) == Some(&text))
        })
}

//! How an edit changes a text: the twins of what Claude Code tells of its edits.

use crate::agent::line::{flag, text};
use serde_json::Value;

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

/// The text after all of them, or `None` when they cannot have been made in `base`, or nothing is known of it.
pub(super) fn applied(edits: &[Edit<'_>], base: Option<String>) -> Option<String> {
    let base = base.or_else(|| edits.first().is_some_and(Edit::creates).then(String::new))?;
    edits.iter().try_fold(base, |text, edit| edit.apply(&text))
}

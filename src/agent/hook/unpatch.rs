//! A text as it was before an edit, from the text after it and what the harness tells of the edit.
//!
//! Promise: what is given back is such that the edit leads from it to the text at hand. Where that cannot be, somebody else
//! has written since, and nothing is given back. The patch alone does not do: harnesses spell tabs in it as spaces.

use super::event::text;
use serde_json::Value;

/// Places at which the new text may have come to stand that are tried; more of them cannot be told apart by eye either.
const PLACES_MAX: usize = 64;

/// What the text may have been before the edit, the likeliest first; empty where the edit does not lead to it. Without a
/// patch it may have been made anywhere.
pub(super) fn befores(after: &str, hunks: &[Hunk<'_>], result: &Value) -> Vec<String> {
    let taken_back = unpatch(after, hunks).filter(|before| !hunks.is_empty() && leads(before, after, result));
    if let Some(before) = taken_back {
        return vec![before];
    }
    let field = |name: &str| result.get(name).and_then(Value::as_str);
    let (Some(old), Some(new)) = (text(result, "oldString"), field("newString")) else { return Vec::new() };
    if result.get("replaceAll").and_then(Value::as_bool) == Some(true) {
        return if new.is_empty() || !after.contains(new) {
            Vec::new()
        } else {
            vec![after.replace(new, old)]
        };
    }
    let lines = |hunk: &Hunk<'_>| hunk.start..hunk.start + hunk.after().count() + 1;
    let line = |at: usize| after[..at].matches('\n').count() + 1;
    let here = |at: &usize| hunks.is_empty() || hunks.iter().any(|hunk| lines(hunk).contains(&line(*at)));
    let places: Vec<usize> = if new.is_empty() {
        let starts = std::iter::once(0).chain(after.match_indices('\n').map(|(at, _)| at + 1));
        starts.filter(here).take(PLACES_MAX).collect()
    } else {
        after.match_indices(new).map(|(at, _)| at).filter(here).take(PLACES_MAX).collect()
    };
    // Deleting whole lines takes their last line end along.
    let whole_line = format!("{old}\n");
    let takes_line_end = new.is_empty() && !old.ends_with('\n');
    let olds = if takes_line_end { vec![whole_line.as_str(), old] } else { vec![old] };
    let back = |at: &usize, old: &str| format!("{}{old}{}", &after[..*at], &after[at + new.len()..]);
    let mut befores: Vec<String> =
        olds.iter().flat_map(|old| places.iter().map(move |at| back(at, old)).collect::<Vec<_>>()).collect();
    // An edit is made only where what it replaces stands once.
    befores.retain(|before| before.matches(old).count() == 1);
    befores.dedup();
    befores
}

/// One hunk: where its lines stand after the edit, and the lines themselves.
pub(super) struct Hunk<'a> {
    /// The first line after the edit, counted from 1.
    pub(super) start: usize,
    lines: Vec<&'a str>,
}

impl<'a> Hunk<'a> {
    /// The hunks of a `structuredPatch`, in the order of the file; `None` when there is none, or one makes no sense.
    pub(super) fn all(result: &'a Value) -> Option<Vec<Self>> {
        let hunks = result.get("structuredPatch")?.as_array()?;
        let mut hunks: Vec<Self> = hunks.iter().map(Self::parse).collect::<Option<_>>()?;
        hunks.sort_by_key(|hunk| hunk.start);
        (!hunks.is_empty()).then_some(hunks)
    }

    fn parse(hunk: &'a Value) -> Option<Self> {
        let start = usize::try_from(hunk.get("newStart")?.as_u64()?).ok()?;
        let lines: Vec<&str> =
            hunk.get("lines")?.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
        // A remark about a missing line feed at the end is no line.
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.starts_with('\\')).collect();
        let known = |line: &&str| line.starts_with([' ', '+', '-']);
        (!lines.is_empty() && lines.iter().all(known)).then_some(Self { start: start.max(1), lines })
    }

    /// The lines that stand there after the edit.
    pub(super) fn after(&self) -> impl Iterator<Item = &'a str> {
        self.side('-')
    }

    fn before(&self) -> impl Iterator<Item = &'a str> {
        self.side('+')
    }

    fn side(&self, other: char) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |line| !line.starts_with(other)).map(|line| &line[1..])
    }
}

/// Whether the words of the edit lead from one text to the other, where there is one edit and it tells its words.
fn leads(before: &str, after: &str, result: &Value) -> bool {
    let field = |name: &str| result.get(name).and_then(Value::as_str);
    let (Some(old), Some(new)) = (field("oldString"), field("newString")) else { return true };
    let whole_line = format!("{old}\n");
    before.replacen(old, new, 1) == after
        || before.replace(old, new) == after
        || new.is_empty() && before.replacen(&whole_line, "", 1) == after
}

/// `after` with the hunks taken back.
fn unpatch(after: &str, hunks: &[Hunk<'_>]) -> Option<String> {
    let lines: Vec<&str> = after.split('\n').collect();
    let (mut before, mut at) = (Vec::with_capacity(lines.len()), 0);
    for hunk in hunks {
        let start = hunk.start - 1;
        before.extend(lines.get(at..start)?);
        at = start;
        for line in hunk.after() {
            if lines.get(at) != Some(&line) {
                return None;
            }
            at += 1;
        }
        before.extend(hunk.before());
    }
    before.extend(lines.get(at..)?);
    Some(before.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{Hunk, befores, unpatch};
    use serde_json::json;

    #[test]
    fn an_edit_is_taken_back_by_its_words_where_the_patch_spells_tabs_otherwise() {
        let result = |old: &str, new: &str, line: u64| {
            let lines = ["     x", "-    old", "+    new"];
            json!({ "oldString": old, "newString": new, "structuredPatch": [{ "newStart": line, "lines": lines }] })
        };
        for (after, old, new, line, want) in [
            ("a\n\tx\n\tnew\nz\n", "\told", "\tnew", 2, Some("a\n\tx\n\told\nz\n")),
            // Of two places, the one that the patch names.
            ("\tnew\n\n\n\n\tx\n\tnew\n", "\told", "\tnew", 5, Some("\tnew\n\n\n\n\tx\n\told\n")),
            ("a\n\tx\nz\n", "\tgone", "", 2, Some("a\n\tgone\n\tx\nz\n")),
            ("z\n\tnew", "\told", "\tnew", 1, Some("z\n\told")),
            ("a\n\tx\n\tother\nz\n", "\told", "\tnew", 2, None),
            // It stood twice then, and such an edit is not made.
            ("\told\n\tx\n\tnew\n", "\told", "\tnew", 2, None),
        ] {
            let result = result(old, new, line);
            let hunks = Hunk::all(&result).unwrap();
            assert_eq!(befores(after, &hunks, &result).first().map(String::as_str), want, "{after:?}");
        }
    }

    #[test]
    fn a_patch_is_taken_back_only_where_it_stands() {
        let result = json!({ "structuredPatch": [
            { "oldStart": 5, "oldLines": 2, "newStart": 4, "newLines": 3, "lines": [" e", "-f", "+F", "+G"] },
            { "oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 2, "lines": [" a", "-b", " c"] },
        ]});
        let hunks = Hunk::all(&result).unwrap();
        assert_eq!(unpatch("a\nc\nd\ne\nF\nG\nh\n", &hunks).as_deref(), Some("a\nb\nc\nd\ne\nf\nh\n"));
        for moved in ["a\nX\nc\nd\ne\nF\nG\nh\n", "a\nc\nd\ne\nF\nh\n", "a\nc", ""] {
            assert_eq!(unpatch(moved, &hunks), None, "{moved:?}");
        }
        for empty in [json!({}), json!({ "structuredPatch": [] }), json!({ "structuredPatch": [{}] })] {
            assert!(Hunk::all(&empty).is_none(), "{empty}");
        }
    }
}

//! A text as it was before an edit, from the text after it and the patch that the harness tells.
//!
//! Promise: what is given back is such that the patch leads from it to the text at hand, line by line. Where a line of the
//! patch does not stand where it must, somebody else has written since, and nothing is given back.

use serde_json::Value;

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

/// `after` with the hunks taken back.
pub(super) fn unpatch(after: &str, hunks: &[Hunk<'_>]) -> Option<String> {
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
    use super::{Hunk, unpatch};
    use serde_json::json;

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

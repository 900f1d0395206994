//! Commands that plainly show a file, or some of its lines: the same as a read, but for what the harness does to output.
//!
//! It takes blank lines off at both ends. So what was printed is compared with the disk without them, and where it is
//! the same the disk's own text is what was seen. Where it is not the file differs now, and what was printed stands for
//! what was seen: a digest that nothing has, unless the file becomes that again.

use super::files::{Known, moment, part, whole};
use super::{Import, belief, read_small, source};
use crate::agent::command::{Part, unnumbered};
use crate::agent::line_ends::{count, lines, printed};
use crate::agent::transcript::Asked;
use crate::protocol::context::Belief;
use crate::world::digest;
use std::borrow::Cow;
use std::path::Path;

impl Import<'_> {
    /// A command that showed a file, or a part of one.
    pub(super) fn look(&mut self, asked: &Asked, path: &Path, wanted: Part, numbered: bool) {
        let known = self.known.get(path).copied();
        if known.is_some_and(|known| is_overtaken(known, asked.line)) {
            self.notes.left_out.known_since += 1;
            return;
        }
        let disk = read_small(&self.places.root.join(path));
        let shown = asked.shown.as_ref().and_then(|shown| plain(&shown.0, wanted, numbered));
        let shown = shown.as_deref();
        let seen = match wanted {
            _ if disk.is_none() && self.missed(asked, path) => belief(whole(path), source(path, "absent")),
            Part::Whole => whole_file(path, disk.as_deref(), shown),
            wanted => some_lines(path, disk.as_deref(), shown, wanted),
        };
        // Without its content it adds nothing to a file that is known already.
        if seen.digest.is_none() && self.ids.contains_key(seen.id.as_deref().unwrap_or_default()) {
            return;
        }
        self.put(Belief {
            tool: Some(asked.question.tool().to_owned()),
            critical: Some(known.is_some_and(|known| known.critical)),
            captured_at: moment(asked.captured_at.as_ref()),
            ..seen
        });
    }
}

impl Import<'_> {
    /// Whether the command found no such file, and there is none.
    fn missed(&self, asked: &Asked, path: &Path) -> bool {
        let gone = std::fs::symlink_metadata(self.places.root.join(path)).is_err();
        let said = |shown: &[u8]| shown.trim_ascii_end().ends_with(b"No such file or directory");
        gone && (asked.failed || asked.shown.as_ref().is_some_and(|shown| said(&shown.0)))
    }
}

/// What was shown, without the numbers before its lines.
fn plain(shown: &[u8], wanted: Part, numbered: bool) -> Option<Cow<'_, [u8]>> {
    if !numbered {
        return Some(Cow::Borrowed(shown));
    }
    let text = std::str::from_utf8(shown).ok()?;
    Some(Cow::Owned(unnumbered(text, wanted)?.into_bytes()))
}

/// Whether the session knows better since: it wrote the file, or saw all of it, after the command.
fn is_overtaken(known: Known, line: u64) -> bool {
    known.line > line && (known.edited || known.settled)
}

fn whole_file(path: &Path, disk: Option<&[u8]>, shown: Option<&[u8]>) -> Belief {
    let digest = shown.map(|shown| match disk {
        Some(disk) if printed(shown, disk) => digest::blake3(disk),
        _ if shown.is_empty() => digest::blake3(shown),
        _ => digest::blake3(&[shown, b"\n"].concat()),
    });
    Belief { digest: digest.map(|digest| digest.to_string()), ..belief(whole(path), source(path, "file")) }
}

/// The lines that were shown; the file without a digest where it cannot be told which they are.
fn some_lines(path: &Path, disk: Option<&[u8]>, shown: Option<&[u8]>, wanted: Part) -> Belief {
    let there = disk.map_or(0, count);
    let (start, most) = match wanted {
        Part::Lines(first, last) => (first, last.saturating_sub(first).saturating_add(1)),
        Part::From(first) => (first, u64::MAX),
        Part::Last(last) => (there.saturating_sub(last) + 1, last),
        Part::Whole => (1, u64::MAX),
    };
    let here = most.min((there + 1).saturating_sub(start));
    let alike = disk.and_then(|disk| lines(disk, start, here)).filter(|_| here > 0);
    let (lines, digest) = match (alike, shown) {
        (Some(text), Some(shown)) if printed(shown, &text) => (here, Some(digest::blake3(&text))),
        (_, Some(shown)) if !shown.is_empty() => {
            (shown.split(|&byte| byte == b'\n').count() as u64, Some(digest::blake3(shown)))
        }
        _ => (here, None),
    };
    let digest = digest.map(|digest| digest.to_string());
    part(path, start, lines, digest).unwrap_or_else(|| belief(whole(path), source(path, "file")))
}

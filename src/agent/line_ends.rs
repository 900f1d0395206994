//! The same text, spelled differently by the disk.
//!
//! Agents show files with normalised line ends and without a byte order mark (measured: not one carriage return in
//! 6,906 contents, a Windows repository among them). A file whose bytes differ only in that is the file they saw.

use crate::session::line_ends::normalised;

/// How far a file had to be normalised to be what the agent saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rung {
    /// Not at all.
    Exact,
    /// Byte order mark dropped, or CRLF read as LF.
    LineEnds,
    /// One final line feed more or less, too.
    FinalNewline,
    /// Decoded from UTF-16, too.
    Utf16,
    /// What is no UTF-8 replaced, as it is where a tool shows it.
    Replaced,
}

/// The rung on which `disk` is what the agent saw, if there is one.
#[must_use]
pub(super) fn same(seen: &[u8], disk: &[u8]) -> Option<Rung> {
    if seen == disk {
        return Some(Rung::Exact);
    }
    let normalised = normalise(disk);
    if seen == normalised {
        return Some(Rung::LineEnds);
    }
    if trimmed(seen) == trimmed(&normalised) {
        return Some(Rung::FinalNewline);
    }
    let decoded = |text: &str| trimmed(seen) == trimmed(&normalise(text.as_bytes()));
    if utf16(disk).is_some_and(|text| decoded(&text)) {
        return Some(Rung::Utf16);
    }
    decoded(&String::from_utf8_lossy(disk)).then_some(Rung::Replaced)
}

/// The lines of `disk` from `start` on, if so many are there: joined by line feeds, without one after the last. A
/// carriage return before a line feed is part of the line's end.
#[must_use]
pub(super) fn lines(disk: &[u8], start: u64, count: u64) -> Option<Vec<u8>> {
    let first = usize::try_from(start.checked_sub(1)?).ok()?;
    let count = usize::try_from(count).ok()?;
    let all: Vec<&[u8]> = disk.split(|&byte| byte == b'\n').collect();
    let wanted = all.get(first..first.checked_add(count)?)?;
    let last = all.len() - 1;
    let ended = |(at, line): (usize, &&'_ [u8])| -> Vec<u8> {
        let ended = if first + at < last { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        ended.to_vec()
    };
    Some(wanted.iter().enumerate().map(ended).collect::<Vec<_>>().join(&b'\n'))
}

/// How many lines a tool counts in `disk`: none after a line feed at the very end.
#[must_use]
pub(super) fn count(disk: &[u8]) -> u64 {
    let parts = disk.split(|&byte| byte == b'\n').count() as u64;
    parts - u64::from(disk.is_empty() || disk.ends_with(b"\n"))
}

/// Whether `here` is what a command printed: the harness takes blank lines off at both ends.
#[must_use]
pub(super) fn printed(shown: &[u8], here: &[u8]) -> bool {
    fn core(text: &[u8]) -> &[u8] {
        let text = text.trim_ascii_end();
        let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
        let line = text[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        &text[line..]
    }
    core(&normalise(shown)) == core(&normalise(here))
}

/// `bytes` without the mark that may open a file.
#[must_use]
pub(super) fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn normalise(bytes: &[u8]) -> Vec<u8> {
    normalised(unmarked(bytes))
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

fn utf16(bytes: &[u8]) -> Option<String> {
    let (units, big_endian) = match bytes {
        [0xff, 0xfe, units @ ..] => (units, false),
        [0xfe, 0xff, units @ ..] => (units, true),
        _ => return None,
    };
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let units: Vec<u16> = units.chunks_exact(2).map(unit).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::{Rung, count, lines, printed, same};

    #[test]
    fn a_file_is_the_same_up_to_how_it_ends_its_lines() {
        for (seen, disk, rung) in [
            ("a\nb\n", &b"a\nb\n"[..], Some(Rung::Exact)),
            ("a\nb\n", b"a\r\nb\r\n", Some(Rung::LineEnds)),
            ("a\n", b"\xef\xbb\xbfa\n", Some(Rung::LineEnds)),
            ("a", b"a\n", Some(Rung::FinalNewline)),
            ("a\n", b"a", Some(Rung::FinalNewline)),
            ("a\n", b"\xff\xfea\0\r\0\n\0", Some(Rung::Utf16)),
            ("a\u{fffd}\n", b"a\xe9\r\n", Some(Rung::Replaced)),
            ("a\u{fffd}\n", b"b\xe9\n", None),
            ("a\n", b"b\n", None),
            ("a\rb", b"ab", None),
            ("a", b"a\n\n", None),
        ] {
            assert_eq!(same(seen.as_bytes(), disk), rung, "{seen:?} {disk:?}");
        }
    }

    #[test]
    fn lines_are_counted_as_they_are_read() {
        for (disk, start, wanted, text, total) in [
            ("a\nb\nc\n", 2, 2, Some("b\nc"), 3),
            ("a\nb\nc\n", 3, 2, Some("c\n"), 3),
            ("a\nb\nc\n", 4, 2, None, 3),
            ("a\r\nb\r\n", 1, 2, Some("a\nb"), 2),
            ("a\r\nb\r", 1, 2, Some("a\nb\r"), 2),
            ("", 1, 1, Some(""), 0),
            ("a", 0, 1, None, 1),
            ("a", 1, u64::MAX, None, 1),
        ] {
            assert_eq!(
                lines(disk.as_bytes(), start, wanted).as_deref(),
                text.map(str::as_bytes),
                "{disk:?} {start}"
            );
            assert_eq!(count(disk.as_bytes()), total, "{disk:?}");
        }
    }

    #[test]
    fn what_a_command_printed_is_told_without_its_blank_ends() {
        for (shown, here, want) in [
            ("a\nb", "a\nb\n", true),
            ("a\nb", "\n\na\nb\n\n\n", true),
            ("  a", "  a\n", true),
            ("a", "  a\n", false),
            ("a\nb", "a\r\nb\r\n", true),
            ("", "\n", true),
            ("a\n\nb", "a\nb", false),
        ] {
            assert_eq!(printed(shown.as_bytes(), here.as_bytes()), want, "{shown:?} {here:?}");
        }
    }
}

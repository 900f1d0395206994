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
    let decoded = utf16(disk)?;
    (trimmed(seen) == trimmed(&normalise(decoded.as_bytes()))).then_some(Rung::Utf16)
}

fn normalise(bytes: &[u8]) -> Vec<u8> {
    normalised(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
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
    use super::{Rung, same};

    #[test]
    fn a_file_is_the_same_up_to_how_it_ends_its_lines() {
        for (seen, disk, rung) in [
            ("a\nb\n", &b"a\nb\n"[..], Some(Rung::Exact)),
            ("a\nb\n", b"a\r\nb\r\n", Some(Rung::LineEnds)),
            ("a\n", b"\xef\xbb\xbfa\n", Some(Rung::LineEnds)),
            ("a", b"a\n", Some(Rung::FinalNewline)),
            ("a\n", b"a", Some(Rung::FinalNewline)),
            ("a\n", b"\xff\xfea\0\r\0\n\0", Some(Rung::Utf16)),
            ("a\n", b"b\n", None),
            ("a\rb", b"ab", None),
            ("a", b"a\n\n", None),
        ] {
            assert_eq!(same(seen.as_bytes(), disk), rung, "{seen:?} {disk:?}");
        }
    }
}

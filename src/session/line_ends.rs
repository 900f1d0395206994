//! The text of lines, whichever way they end: with a line feed, or with a carriage return and a line feed.

use super::source::LineRange;

/// A text with every CR LF read as LF.
#[must_use]
pub fn normalised(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        if byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            kept.push(byte);
        }
    }
    kept
}

/// How many line feeds there are.
#[must_use]
pub fn feeds(bytes: &[u8]) -> u64 {
    bytes.split(|&byte| byte == b'\n').count() as u64 - 1
}

/// What was seen of a range, as a look at the file would read it: the lines joined by line feeds, without one after the
/// last. Whoever cut them out of a file may have left the last one's end on. `None` when there are more lines than the
/// range has.
#[must_use]
pub fn lines_seen(content: &[u8], range: LineRange) -> Option<Vec<u8>> {
    let mut text = normalised(content);
    let ends = feeds(&text);
    if ends == range.lines && text.last() == Some(&b'\n') {
        text.pop();
        return Some(text);
    }
    (ends < range.lines).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{lines_seen, normalised};
    use crate::session::source::LineRange;

    #[test]
    fn only_a_carriage_return_before_a_line_feed_is_part_of_a_line_end() {
        for (text, read) in
            [("", ""), ("a\r\nb\n", "a\nb\n"), ("a\rb\r", "a\rb\r"), ("\r\r\n", "\r\n"), ("\r\n\r\n", "\n\n")]
        {
            assert_eq!(normalised(text.as_bytes()), read.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn the_last_line_of_a_range_may_have_its_end_on() {
        for (content, lines, seen) in [
            ("a\nb", 2, Some("a\nb")),
            ("a\nb\n", 2, Some("a\nb")),
            ("a\r\nb\r\n", 2, Some("a\nb")),
            // The third line is the empty one behind the last line feed.
            ("a\nb\n", 3, Some("a\nb\n")),
            ("a\nb\n", 10, Some("a\nb\n")),
            ("", 1, Some("")),
            ("\n", 1, Some("")),
            ("a\nb\nc", 2, None),
            ("a\nb\nc\n", 2, None),
        ] {
            let range = LineRange { start_line: 1, lines };
            assert_eq!(
                lines_seen(content.as_bytes(), range).as_deref(),
                seen.map(str::as_bytes),
                "{content:?}"
            );
        }
    }
}

//! What stands between two things of an object or a list: blanks, comments, and one comma.

/// What stands between two things, without the comma that parts them.
pub(super) fn without_comma(between: &str) -> String {
    let mut rest = between;
    while let Some(at) = rest.find([',', '/']) {
        let place = between.len() - rest.len() + at;
        rest = &rest[at..];
        if rest.starts_with(',') {
            return format!("{}{}", &between[..place], &between[place + 1..]);
        }
        rest = &rest[comment(rest)..];
    }
    between.to_owned()
}

/// The blanks that it ends with: how things are parted here, without what is said between them.
pub(super) fn blanks_before(between: &str) -> &str {
    &between[between.trim_end().len()..]
}

/// How long a comment is that begins here, without the end of its line.
fn comment(text: &str) -> usize {
    match text.strip_prefix("/*") {
        Some(rest) => rest.find("*/").map_or(text.len(), |end| end + 4),
        None => text.find(['\r', '\n']).unwrap_or(text.len()),
    }
}

/// How much there is up to the end of a comment that stands on the same line.
pub(super) fn comment_on_the_line(tail: &str) -> usize {
    let trimmed = tail.trim_start_matches([' ', '\t']);
    if !trimmed.starts_with('/') {
        return 0;
    }
    tail.len() - trimmed.len() + comment(trimmed)
}

#[cfg(test)]
mod tests {
    use super::{comment_on_the_line, without_comma};

    #[test]
    fn only_the_comma_that_parts_goes() {
        for (between, without) in [
            (",\n  ", "\n  "),
            (" /* a, b */ , // c, d\n", " /* a, b */  // c, d\n"),
            ("// a, b\n , ", "// a, b\n  "),
            ("/*,*/ ", "/*,*/ "),
        ] {
            assert_eq!(without_comma(between), without, "{between:?}");
        }
    }

    #[test]
    fn a_comment_ends_with_its_line_or_with_its_mark() {
        for (tail, length) in
            [(" // a\r\n}", 5), ("/* a\n */ }", 8), ("\n// a\n", 0), (" }", 0), (" /* a", 5)]
        {
            assert_eq!(comment_on_the_line(tail), length, "{tail:?}");
        }
    }
}

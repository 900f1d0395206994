//! The text of a statement with its white space collapsed, as far as that cannot change what it says.

/// Runs of white space become one space, and none stay at the ends. What is quoted stays as it is, and so does a comment:
/// a line's comment ends where its line does, so the line feed there stays one.
pub(super) fn normalised(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql.trim();
    while let Some(next) = rest.chars().next() {
        let len = token_len(rest, next);
        let (token, behind) = rest.split_at(len);
        if next.is_ascii_whitespace() {
            if !out.ends_with('\n') {
                out.push(' ');
            }
        } else {
            out.push_str(token);
        }
        rest = behind;
    }
    out
}

/// Bytes of what begins here: white space, something quoted, a comment, or one character.
fn token_len(text: &str, next: char) -> usize {
    let to = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match next {
        '\'' => to("'", 1),
        '"' => to("\"", 1),
        '`' => to("`", 1),
        '[' => to("]", 1),
        '-' if text.starts_with("--") => to("\n", 2),
        '/' if text.starts_with("/*") => to("*/", 2),
        _ if next.is_ascii_whitespace() => {
            text.find(|symbol: char| !symbol.is_ascii_whitespace()).unwrap_or(text.len())
        }
        _ => next.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn white_space_is_collapsed_where_it_says_nothing() {
        for (sql, read) in [
            ("CREATE TABLE a(\n\tx,\r\n  y)", "CREATE TABLE a( x, y)"),
            (" a  b ", "a b"),
            ("x  'a  ''  b'  y", "x 'a  ''  b' y"),
            ("\"a  b\"  [c  d]  `e  f`", "\"a  b\" [c  d] `e  f`"),
            ("a -- it's  so\n  b", "a -- it's  so\nb"),
            ("a -- it's so b", "a -- it's so b"),
            ("a /* it's\n  so */  b", "a /* it's\n  so */ b"),
            ("x 'unclosed  ", "x 'unclosed"),
            ("é  -  /  ü", "é - / ü"),
        ] {
            assert_eq!(normalised(sql), read, "{sql:?}");
        }
    }
}

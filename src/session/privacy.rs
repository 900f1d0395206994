//! `<private>…</private>` becomes `[REDACTED]` before anything is hashed, stored or logged.
//!
//! Fails closed: an opener that is never closed redacts to the end of the text. Nested openers count by depth; a
//! closer without an opener is dropped. Tags are matched without regard to case and may carry attributes and spaces.

const REPLACEMENT: &str = "[REDACTED]";
const NAME: &str = "private";
/// Rounds after which a text whose broken tags still hide others counts as private whole. Without a bound every round
/// would read a text of megabytes again, for as many rounds as there are tags in it.
const ROUNDS_MAX: usize = 8;

/// The text without its private parts. Stripping again changes nothing: what a dropped tag leaves may itself read as a
/// tag (`<pri</private>vate>`), and whoever reads the stored text later must find what was stored.
#[must_use]
pub fn strip(text: &str) -> String {
    let mut kept = strip_once(text);
    for _ in 0..ROUNDS_MAX {
        let again = strip_once(&kept);
        if again == kept {
            return kept;
        }
        kept = again;
    }
    REPLACEMENT.to_owned()
}

fn strip_once(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tail) = rest.split_at(start);
        if depth == 0 {
            kept.push_str(before);
        }
        let Some((tag, after)) = tag(tail) else {
            if depth == 0 {
                kept.push('<');
            }
            rest = &tail[1..];
            continue;
        };
        match tag {
            Tag::Open if depth == 0 => {
                kept.push_str(REPLACEMENT);
                depth = 1;
            }
            Tag::Open => depth += 1,
            Tag::Close => depth = depth.saturating_sub(1),
        }
        rest = after;
    }
    if depth == 0 {
        kept.push_str(rest);
    }
    kept
}

enum Tag {
    Open,
    Close,
}

/// The private tag that `text` begins with, and what follows it. An opener whose `>` never comes runs to the end of
/// the text: what stands behind it may be the secret.
fn tag(text: &str) -> Option<(Tag, &str)> {
    let body = text.strip_prefix('<')?.trim_start();
    let (kind, body) = match body.strip_prefix('/') {
        Some(body) => (Tag::Close, body.trim_start()),
        None => (Tag::Open, body),
    };
    let name = body.get(..NAME.len())?;
    let after = &body[NAME.len()..];
    let ends = after.chars().next().is_none_or(|next| next == '>' || next == '/' || next.is_whitespace());
    if !name.eq_ignore_ascii_case(NAME) || !ends {
        return None;
    }
    Some((kind, after.split_once('>').map_or("", |(_, rest)| rest)))
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn private_text_is_replaced_however_it_is_tagged() {
        for (text, kept) in [
            ("plain", "plain"),
            ("a <b> < c", "a <b> < c"),
            ("x <private>s</private> y", "x [REDACTED] y"),
            ("x <PRIVATE why='a'>s</Private  > y", "x [REDACTED] y"),
            ("<private>a<private>b</private>c</private>d", "[REDACTED]d"),
            ("x <private>never closed", "x [REDACTED]"),
            ("x <private never ended", "x [REDACTED]"),
            ("stray </private> closer", "stray  closer"),
            ("<privateer>ship</privateer>", "<privateer>ship</privateer>"),
            ("< private >s< / private >t", "[REDACTED]t"),
            ("é<private>ü</private>ß", "é[REDACTED]ß"),
            ("<pri</private>vate>s", "[REDACTED]"),
            ("<</private>private>s</private>t", "[REDACTED]"),
            ("<pri</pri</private>vate>vate>s", "[REDACTED]"),
        ] {
            assert_eq!(strip(text), kept, "{text}");
        }
    }

    #[test]
    fn tags_that_hide_in_each_other_without_end_are_private_and_cost_no_time() {
        let depth = 100_000;
        let text = ["</pri".repeat(depth), "</private>".to_owned(), "vate>".repeat(depth), "s".to_owned()];
        assert_eq!(strip(&text.concat()), "[REDACTED]");
    }
}

//! How values read: text of unknown origin made harmless, paths, states, moments, numbers.

use super::paint::Tone;
use crate::decision::reason;
use crate::index::freshness::Doubt;
use crate::protocol::path::Reference;
use crate::protocol::time;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Text as a terminal may show it: control characters, which could redraw the screen or fake a line, are spelled out, and
/// so is what turns a line around, begins another one, or cannot be seen at all.
pub(super) fn harmless(text: &str) -> String {
    let odd = |symbol: char| {
        symbol.is_control()
            || matches!(symbol, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(symbol, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    if !text.chars().any(odd) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(
            |symbol| if odd(symbol) { symbol.escape_default().collect::<Vec<_>>() } else { vec![symbol] },
        )
        .collect()
}

/// A path as a shell reads it back, whatever is in its name. What a terminal may not show is spelled as bytes.
pub(super) fn quoted(path: &Path) -> String {
    if let Some(text) = path.to_str().filter(|text| harmless(text) == *text) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let spelled = path.as_os_str().as_bytes().iter().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\x{byte:02x}"),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", spelled.collect::<String>())
}

/// A text field; empty when there is none.
pub(super) fn text(object: &Value, field: &str) -> String {
    harmless(object[field].as_str().unwrap_or_default())
}

/// A number field; 0 when there is none.
pub(super) fn number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_default()
}

/// A list field; empty when there is none.
pub(super) fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A path or another label as it travels, for people: lossy where it is not UTF-8.
pub(super) fn path(value: &Value) -> String {
    serde_json::from_value::<Reference>(value.clone())
        .map_or_else(|_| String::new(), |path| harmless(&path.0.to_string_lossy()))
}

/// The beginning of a long text.
pub(super) fn head(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of a long text, which of a path says most.
pub(super) fn end(text: &str, chars: usize) -> String {
    let len = text.chars().count();
    if len <= chars {
        text.to_owned()
    } else {
        format!("…{}", text.chars().skip(len - chars).collect::<String>())
    }
}

/// `1 row`, `2 rows`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// What changed, in few words: the first path of a tree and how many more, where lines stand now, or `was → now`.
pub(super) fn change(row: &Value) -> String {
    if let Some(paths) = row["changed"]["paths"].as_array().filter(|paths| !paths.is_empty()) {
        let more = row["changed"]["number"].as_u64().unwrap_or(0).saturating_sub(1);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return format!("{}{more}", end(&path(&paths[0]), 40));
    }
    if let Some(line) = row["start_line"].as_u64() {
        return format!("at line {line} now");
    }
    if row["cause"] == "input" {
        return text(row, "input");
    }
    let said = |field: &str| row[field].as_str().map(harmless);
    match (said("was"), said("now")) {
        (None, None) => String::new(),
        (was, None) if row["status"] == "fresh" => reason::short(was.as_deref()),
        (was, now) => format!("{} → {}", reason::short(was.as_deref()), reason::short(now.as_deref())),
    }
}

/// State of a row, with its colour. The public contract reports unknown as stale; the cause tells them apart.
pub(super) fn state(row: &Value) -> (&'static str, Tone) {
    let cause = row["cause"].as_str().unwrap_or_default();
    match row["status"].as_str() {
        Some("fresh") => ("fresh", Tone::Good),
        Some("unknown") => ("unknown", Tone::Doubt),
        _ if Doubt::named(cause).is_some() => ("unknown", Tone::Doubt),
        _ => ("stale", Tone::Bad),
    }
}

/// Colour of a transition.
pub(super) fn transition_tone(transition: &str) -> Tone {
    match transition {
        "resume" => Tone::Good,
        "fork" => Tone::Apart,
        "fresh" => Tone::Bad,
        _ => Tone::Faint,
    }
}

/// Microseconds since the epoch.
pub(super) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// `3 min ago`, of a moment as it travels.
pub(super) fn ago(moment: &str, now_micros: i64) -> String {
    match time::from_text(moment) {
        Ok(then) => {
            format!("{} ago", span(u64::try_from((now_micros - then.micros) / 1_000_000).unwrap_or(0)))
        }
        Err(_) => harmless(moment),
    }
}

/// `3 min`, of seconds.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// `2026-11-29T10:07:12Z`: a moment as it travels, to the second.
pub(super) fn to_the_second(moment: &str) -> String {
    match moment.split_once('.') {
        Some((seconds, _)) => harmless(&format!("{seconds}Z")),
        None => harmless(moment),
    }
}

#[cfg(test)]
mod tests {
    use super::{ago, end, harmless, head, path, quoted, span, to_the_second};
    use serde_json::json;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(harmless("a\u{2028}b\u{200b}\u{e0041}"), "a\\u{2028}b\\u{200b}\\u{e0041}");
        assert_eq!(path(&json!({"bytes": "/w=="})), "\u{fffd}");
    }

    #[test]
    fn a_shell_reads_every_path_as_it_is() {
        let names: [&[u8]; 6] =
            [b"/a b", b"/it's", b"/$HOME;`x`", b"/\xff'\\1", b"/line\n2", "/\u{202e}ab".as_bytes()];
        for name in names {
            let quoted = quoted(Path::new(OsStr::from_bytes(name)));
            assert_eq!(harmless(&quoted), quoted);
            let read = Command::new("bash").arg("-c").arg(format!("printf %s {quoted}")).output().unwrap();
            assert_eq!(read.stdout, name, "{quoted}");
        }
        assert_eq!(quoted(Path::new("/plain")), "'/plain'");
    }

    #[test]
    fn long_texts_keep_the_end_that_matters() {
        assert_eq!(
            (head("äbcd", 2).as_str(), end("abcd", 2).as_str(), end("ab", 2).as_str()),
            ("äb…", "…cd", "ab")
        );
    }

    #[test]
    fn moments_read_well() {
        assert_eq!(ago("1970-01-01T00:00:00Z", 200_000_000), "3 min ago");
        assert_eq!(ago("1970-01-01T01:00:00Z", 0), "0 s ago");
        assert_eq!([span(59), span(7_200), span(86_400 * 2)], ["59 s", "2 h", "2 days"]);
        assert_eq!(to_the_second("2026-11-29T10:07:12.345678Z"), "2026-11-29T10:07:12Z");
    }
}

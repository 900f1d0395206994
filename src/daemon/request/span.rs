//! What is traced of a request: a span at level debug, and one line in it when it is answered.
//!
//! Promise: nothing that a client says is in it but the names of the session and of the request, each short, without what
//! is private and without what a terminal or a parser could take for more than text. At other levels it costs a look at
//! one number.

use crate::protocol::convert;
use crate::protocol::request::{Request, Verb};
use crate::session::privacy::strip;
use serde_json::value::RawValue;
use std::time::Instant;
use tracing::Span;

/// Characters of a request's id that are shown; UUIDs fit.
const ID_CHARS_MAX: usize = 40;

/// The span of a request that could be read.
pub(super) fn of(request: &Request, connection: u64) -> Span {
    let verb = request.verb.as_ref().ok();
    tracing::debug_span!(
        "request",
        method = verb.map(Verb::method),
        connection,
        id = request.id.as_deref().map(shown),
        session = verb.and_then(Verb::session).and_then(named)
    )
}

/// The span of a line that is no request.
pub(super) fn of_no_request(connection: u64) -> Span {
    tracing::debug_span!("request", connection)
}

/// Said in the span: what became of the request, by one word, and how long it took.
pub(super) fn answered(outcome: &str, began: Instant) {
    tracing::debug!(outcome, micros = began.elapsed().as_micros() as u64, "answered");
}

/// What is no name of a session is not shown.
fn named(session: &str) -> Option<String> {
    convert::session(session).ok().map(|session| session.to_string())
}

fn shown(id: &RawValue) -> String {
    let text = serde_json::from_str::<String>(id.get()).unwrap_or_else(|_| id.get().to_owned());
    let plain = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
    strip(&text).chars().take(ID_CHARS_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::shown;
    use serde_json::value::RawValue;

    #[test]
    fn an_id_is_shown_short_safe_and_without_what_is_private() {
        for (id, short) in [
            ("7", "7"),
            ("null", "null"),
            ("\"a-1\"", "a-1"),
            ("\"\\u001b[31m a\\nb é\"", "?[31m?a?b??"),
            ("\"x<private>s</private>\"", "x[REDACTED]"),
            ("\"x\\u003cprivate>s\"", "x[REDACTED]"),
        ] {
            let id = RawValue::from_string(id.to_owned()).unwrap();
            assert_eq!(shown(&id), short);
        }
        let long = RawValue::from_string(format!("\"{}\"", "é".repeat(1_000))).unwrap();
        assert_eq!(shown(&long), "?".repeat(40));
        let long = RawValue::from_string("9".repeat(1_000)).unwrap();
        assert_eq!(shown(&long), "9".repeat(40));
    }
}

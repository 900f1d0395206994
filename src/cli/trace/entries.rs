//! The log as entries of systemd's journal: every field of an event and of its spans is a field of the entry.
//!
//! `log.level = "debug"` and `journalctl -t staled STALED_SESSION=s-01` show what became of one session's requests. The
//! message has the fields again, for `journalctl` shows nothing else by default. Long values are cut, and an entry that
//! the journal did not take is counted in the next one that it takes.

use crate::daemon::Journald;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// What `journalctl -t` filters by, and what every field of ours begins with.
const IDENTIFIER: &str = "staled";
const PREFIX: &str = "STALED_";

/// Of one value: a path fits, and an entry stays far below what fits into a datagram.
const VALUE_BYTES_MAX: usize = 4_096;

/// Writes the log to the journal.
pub(super) struct Entries {
    journald: Journald,
    lost: AtomicU64,
}

impl Entries {
    pub(super) fn to(journald: Journald) -> Self {
        Self { journald, lost: AtomicU64::new(0) }
    }

    fn send(&self, level: Level, fields: &mut Fields) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            fields.add("lost", lost.to_string());
        }
        if self.journald.send(entry(level, fields).as_slice()).is_err() {
            // Nothing is said of it: that would be an entry too.
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Entries {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        fields.add("span", span.name().to_owned());
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                of_span.0.iter().for_each(|(name, value)| fields.add(name, value.clone()));
            }
        }
        self.send(*event.metadata().level(), &mut fields);
    }
}

/// Names and values, each name once: what is nearer to the event was there first and stays.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn add(&mut self, name: &'static str, mut value: String) {
        value.truncate(cut(&value));
        if self.0.iter().all(|(known, _)| *known != name) {
            self.0.push((name, value));
        }
    }
}

/// Where a value is cut, between two characters.
fn cut(value: &str) -> usize {
    let bound = value.len().min(VALUE_BYTES_MAX);
    (0..=bound).rfind(|&at| value.is_char_boundary(at)).unwrap_or(0)
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), format!("{value:?}"));
    }
}

/// In the journal's own protocol.
fn entry(level: Level, fields: &Fields) -> Vec<u8> {
    let priority = match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    };
    let mut entry = Vec::new();
    put(&mut entry, "MESSAGE", &message(fields));
    put(&mut entry, "PRIORITY", priority);
    put(&mut entry, "SYSLOG_IDENTIFIER", IDENTIFIER);
    for (name, value) in fields.0.iter().filter(|(name, _)| *name != "message") {
        put(&mut entry, &[PREFIX, &name.to_ascii_uppercase().replace('.', "_")].concat(), value);
    }
    entry
}

/// A value with a line break is told by its length.
fn put(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

/// The message with every field behind it, on one line.
fn message(fields: &Fields) -> String {
    let mut message = String::new();
    if let Some((_, text)) = fields.0.iter().find(|(name, _)| *name == "message") {
        message.push_str(&text.replace('\n', "\\n"));
    }
    for (name, value) in fields.0.iter().filter(|(name, _)| *name != "message") {
        let plain = value.chars().all(|letter| letter.is_ascii_graphic() && letter != '"');
        // A string takes everything.
        let _ = if plain { write!(message, " {name}={value}") } else { write!(message, " {name}={value:?}") };
    }
    message
}

#[cfg(test)]
mod tests {
    use super::{Fields, VALUE_BYTES_MAX, entry};
    use tracing::Level;

    #[test]
    fn a_value_is_cut_between_characters_and_the_nearer_of_two_stays() {
        let mut fields = Fields::default();
        fields.add("message", "said".to_owned());
        fields.add("path", format!("a{}", "é".repeat(VALUE_BYTES_MAX)));
        fields.add("path", "farther".to_owned());
        let entry = String::from_utf8(entry(Level::ERROR, &fields)).unwrap();
        let path = format!("a{}", "é".repeat(VALUE_BYTES_MAX / 2 - 1));
        let said =
            format!("MESSAGE=said path={path:?}\nPRIORITY=3\nSYSLOG_IDENTIFIER=staled\nSTALED_PATH={path}\n");
        assert_eq!(entry, said);
    }

    #[test]
    fn a_line_break_makes_no_field_of_its_own() {
        let mut fields = Fields::default();
        fields.add("message", "one\nPRIORITY=0".to_owned());
        fields.add("dotted.name", "x\ny".to_owned());
        let entry = entry(Level::WARN, &fields);
        let mut said =
            b"MESSAGE=one\\nPRIORITY=0 dotted.name=\"x\\ny\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=staled\n"
                .to_vec();
        said.extend_from_slice(b"STALED_DOTTED_NAME\n\x03\0\0\0\0\0\0\0x\ny\n");
        assert_eq!(entry.escape_ascii().to_string(), said.escape_ascii().to_string());
    }
}

//! One line of a transcript, asked by shape.
//!
//! The formats are not published and drift, so nothing here depends on a version and nothing is an error: a field that
//! is missing or of another kind is `None`.

use serde_json::Value;

/// A parsed line.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) value: Value,
    /// Its number in the file, counted from 1.
    pub(super) number: u64,
}

impl Line {
    /// Parses a line, or `None` when it is no JSON object.
    pub(super) fn parse(bytes: &[u8], number: u64) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        value.is_object().then_some(Self { value, number })
    }

    /// A line that was never written down.
    pub(super) fn of(value: Value, number: u64) -> Self {
        Self { value, number }
    }

    /// The text of a field.
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        text(&self.value, field)
    }

    /// A field that is itself structured.
    pub(super) fn part(&self, field: &str) -> Option<&Value> {
        self.value.get(field)
    }
}

/// The text of a field of `value`.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

/// Whether a field of `value` is true.
pub(super) fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}

/// The texts of a list in `value`.
pub(super) fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let list = value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str)
}

//! One fault, and the list that the rules fill.
//!
//! The readers here turn "this value must be such" into one fault at most, so that a rule reads like the
//! contract it enforces. They never repair a value.

use std::fmt;

use serde_json::{Map, Value};

use super::place::Label;

/// One reason why a report is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, as a JSON path: `$.staleness_results[0].status`.
    pub path: String,
    /// Why, in one sentence.
    pub message: String,
}

impl Fault {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The faults found so far, in the order of finding.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    /// What one rule finds by itself.
    pub(super) fn gather(rule: impl FnOnce(&mut Self)) -> Vec<Fault> {
        let mut faults = Self::default();
        rule(&mut faults);
        faults.into_vec()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.0
    }

    pub(super) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault::new(path, message));
    }

    /// The field of an object, or a fault that it is missing.
    pub(super) fn field<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Option<&'a Value> {
        let value = object.get(name);
        if value.is_none() {
            self.add(format!("{at}.{name}"), format!("The required field `{name}` is missing."));
        }
        value
    }

    /// A field that must be text with something to read in it.
    pub(super) fn text<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Option<&'a str> {
        let text = self.field(object, at, name)?.as_str().filter(|text| !is_blank(text));
        if text.is_none() {
            self.add(format!("{at}.{name}"), format!("`{name}` must be text that is not blank."));
        }
        text
    }

    /// A field that must be one of a few words.
    pub(super) fn word<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        at: &str,
        name: &str,
        words: &[&str],
    ) -> Option<&'a str> {
        let value = self.field(object, at, name)?;
        let word = value.as_str().filter(|word| words.contains(word));
        if word.is_none() {
            let message = format!("`{name}` is {}; it must be one of {}.", shown(value), words.join(", "));
            self.add(format!("{at}.{name}"), message);
        }
        word
    }

    /// A field that must be true or false.
    pub(super) fn flag(&mut self, object: &Map<String, Value>, at: &str, name: &str) -> Option<bool> {
        let flag = self.field(object, at, name)?.as_bool();
        if flag.is_none() {
            self.add(format!("{at}.{name}"), format!("`{name}` must be true or false."));
        }
        flag
    }

    /// A field that must be exactly this boolean: not 0, not "false", not absent.
    pub(super) fn exactly(&mut self, object: &Map<String, Value>, at: &str, name: &str, wanted: bool) {
        if self.field(object, at, name).is_some_and(|value| *value != Value::Bool(wanted)) {
            self.add(format!("{at}.{name}"), format!("`{name}` must be exactly {wanted}."));
        }
    }

    /// A field that must be an array.
    pub(super) fn list<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Option<&'a [Value]> {
        let list = self.field(object, at, name)?.as_array();
        if list.is_none() {
            self.add(format!("{at}.{name}"), format!("`{name}` must be an array."));
        }
        list.map(Vec::as_slice)
    }

    /// A value that must be a path or label: text that is not blank, or `{"bytes": "<base64>"}`.
    pub(super) fn label(&mut self, value: &Value, at: impl Into<String>) -> Option<Label> {
        let label = Label::read(value);
        if label.is_none() {
            self.add(at, "A path must be text that is not blank, or {\"bytes\": \"<base64>\"}.");
        }
        label
    }

    /// A value that must be an object.
    pub(super) fn object<'a>(&mut self, value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.add(at, "This must be a JSON object.");
        }
        object
    }
}

/// Nothing to read: white space, controls and the characters of no width count as nothing.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    let invisible = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || invisible(c))
}

/// A value as a sentence can bear it: short values as they are, long ones by their kind.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        plain => plain.to_string(),
    }
}

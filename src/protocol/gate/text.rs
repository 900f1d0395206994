//! A file's text, judged: one report, or a decision log line by line.
//!
//! Text that is not JSON is not judged at all: it is unusable, and says where.

use std::fmt;

use serde_json::Value;

use super::fault::Fault;
use super::{check, strict};

/// The text is not JSON, so there is nothing to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Line of the first byte that cannot be read, from 1.
    pub line: usize,
    /// Column of it in bytes, from 1; 0 when the text ends before the line begins.
    pub column: usize,
    /// What is wrong there.
    pub cause: String,
}

impl Unusable {
    fn new(error: &serde_json::Error, lines_before: usize) -> Self {
        let cause = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self {
            line: lines_before + error.line(),
            column: error.column(),
            cause: cause.strip_suffix(&place).unwrap_or(&cause).to_owned(),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at line {} column {}: {}", self.line, self.column, self.cause)
    }
}

impl std::error::Error for Unusable {}

/// Each report in the text with its faults, under the suffix that its name gets: nothing for a text that is one
/// JSON value, `:LINE` for a line of a log.
///
/// Lines of a log that carry an `event` other than `decision` are not decisions and are left out, so the result
/// of a log without decisions is empty. A text that is one value is left out only when it cannot be meant as a
/// report, that is without `schema` and `transition`: an added `event` must not carry a report past the gate.
pub fn check_text(text: &str) -> Result<Vec<(String, Vec<Fault>)>, Unusable> {
    match strict::read(text) {
        Ok((value, doubled)) if is_event(&value) && !claims_a_report(&value) && doubled.is_empty() => {
            Ok(Vec::new())
        }
        Ok((value, doubled)) => Ok(vec![(String::new(), judge(&value, doubled))]),
        Err(_) if is_log(text) => check_log(text),
        Err(error) => Err(Unusable::new(&error, 0)),
    }
}

/// The faults of one report, judged from its text.
pub fn check_report(text: &str) -> Result<Vec<Fault>, Unusable> {
    let (value, doubled) = strict::read(text).map_err(|error| Unusable::new(&error, 0))?;
    Ok(judge(&value, doubled))
}

/// A log is known by its first line, which is an object by itself, and by having more than that.
fn is_log(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().is_some_and(|line| strict::read(line).is_ok_and(|(value, _)| value.is_object()));
    first && lines.next().is_some()
}

fn check_log(text: &str) -> Result<Vec<(String, Vec<Fault>)>, Unusable> {
    let mut judged = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (value, doubled) = strict::read(line).map_err(|error| Unusable::new(&error, index))?;
        if !is_event(&value) || !doubled.is_empty() {
            judged.push((format!(":{}", index + 1), judge(&value, doubled)));
        }
    }
    Ok(judged)
}

/// Whatever else an object with doubled keys says depends on who reads it, so only the doubling is told.
fn judge(value: &Value, doubled: Vec<Fault>) -> Vec<Fault> {
    if doubled.is_empty() { check(value) } else { doubled }
}

fn is_event(value: &Value) -> bool {
    value.get("event").and_then(Value::as_str).is_some_and(|event| event != "decision")
}

fn claims_a_report(value: &Value) -> bool {
    ["schema", "transition"].iter().any(|name| value.get(name).is_some())
}

//! What the log tells about a decision: its own line, and what happened around it that concerns its session.
//!
//! That is what the session was told before and after, what it said itself (a fact that failed), what became of its
//! forks, and what concerns everybody: gaps and epochs.

use crate::cli::shell::Stop;
use crate::cli::why::decision;
use crate::client::Client;
use crate::client::log::{Entry, backward_from, forward_from};
use crate::client::story::OfDecision;
use serde_json::Value;

/// Lines that are shown of what was before.
const BEFORE_MAX: usize = 20;
/// Lines that are shown of what came after.
const AFTER_MAX: usize = 10;
/// Lines of the log that are looked through on each side.
const LINES_MAX: usize = 10_000;

/// A decision and what is around it.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Its own line.
    pub(super) decision: Value,
    /// Lines before it, the oldest first.
    pub(super) before: Vec<Value>,
    /// Lines after it, the oldest first.
    pub(super) after: Vec<Value>,
    /// There is more before them than is shown.
    pub(super) more_before: bool,
    /// There is more after them than is shown.
    pub(super) more_after: bool,
}

/// Finds a decision by its name, or the beginning of it.
pub(super) fn find(name: &str, client: &mut Client) -> Result<Told, Stop> {
    let story = OfDecision::find(name, client)?.ok_or_else(|| decision::unknown(name))?;
    let mut told = Told { decision: story.decision.line, ..Told::default() };
    let seq = told.decision["seq"].as_u64().unwrap_or(0);
    let mut before = Around::of(&told.decision, BEFORE_MAX);
    backward_from(client, seq.saturating_sub(1), |entry| before.take(entry))?;
    before.lines.reverse();
    (told.before, told.more_before) = (before.lines, before.more);
    let mut after = Around::of(&told.decision, AFTER_MAX);
    forward_from(client, seq, |entry| after.take(entry))?;
    (told.after, told.more_after) = (after.lines, after.more);
    Ok(told)
}

/// Lines that concern a session, as they come.
struct Around {
    session: Value,
    max: usize,
    looked: usize,
    lines: Vec<Value>,
    more: bool,
}

impl Around {
    fn of(decision: &Value, max: usize) -> Self {
        Self { session: decision["session"].clone(), max, looked: 0, lines: Vec::new(), more: false }
    }

    /// Takes a line if it is one of these; whether it has seen enough.
    fn take(&mut self, entry: Entry) -> bool {
        self.looked += 1;
        let is_one = entry.line["session"] == self.session || entry.line["session"].is_null();
        self.more = self.looked > LINES_MAX || is_one && self.lines.len() == self.max;
        if is_one && !self.more {
            self.lines.push(entry.line);
        }
        self.more
    }
}

//! The decision log read through the daemon, newest page first: what is asked about is most often recent.

use crate::cli::shell::{Stop, parse};
use crate::cli::tail::{PAGE_LEN, last_seq, page};
use crate::client::Client;
use serde_json::Value;

/// One line of the log.
pub(super) struct Entry {
    /// As it stands there.
    pub(super) raw: String,
    /// What it says.
    pub(super) line: Value,
}

impl Entry {
    pub(super) fn is_decision(&self) -> bool {
        self.line["event"].is_null()
    }
}

/// Walks from the newest line to the oldest until `each` says that it has seen enough.
pub(super) fn backward(client: &mut Client, each: impl FnMut(Entry) -> bool) -> Result<(), Stop> {
    let last = last_seq(client)?;
    backward_from(client, last, each)
}

/// The same, beginning with this line.
pub(super) fn backward_from(
    client: &mut Client,
    mut last: u64,
    mut each: impl FnMut(Entry) -> bool,
) -> Result<(), Stop> {
    while last > 0 {
        let after = last.saturating_sub(u64::from(PAGE_LEN));
        for entry in between(client, after, last)?.into_iter().rev() {
            if each(entry) {
                return Ok(());
            }
        }
        last = after;
    }
    Ok(())
}

/// Walks from the line behind this one to the newest until `each` says that it has seen enough.
pub(super) fn forward_from(
    client: &mut Client,
    mut after: u64,
    mut each: impl FnMut(Entry) -> bool,
) -> Result<(), Stop> {
    let last = last_seq(client)?;
    while after < last {
        let until = last.min(after.saturating_add(u64::from(PAGE_LEN)));
        for entry in between(client, after, until)? {
            if each(entry) {
                return Ok(());
            }
        }
        after = until;
    }
    Ok(())
}

/// The lines behind one seq up to another; an answer may hold fewer than asked for.
fn between(client: &mut Client, mut after: u64, last: u64) -> Result<Vec<Entry>, Stop> {
    let mut entries = Vec::new();
    while after < last {
        let lines = page(client, after, PAGE_LEN)?;
        if lines.is_empty() {
            break;
        }
        for raw in lines {
            let line = parse(raw.get())?;
            after = line["seq"].as_u64().unwrap_or(u64::MAX);
            if after <= last {
                entries.push(Entry { raw: raw.get().to_owned(), line });
            }
        }
    }
    Ok(entries)
}

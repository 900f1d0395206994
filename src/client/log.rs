//! The decision log, read through the daemon: by pages behind a seq, or newest line first.
//!
//! What is asked about is most often recent, so whoever looks for something begins at the end.

use super::{Client, ClientError};
use crate::protocol::request::LogRead;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Lines asked for at once.
pub const PAGE_LEN: u32 = 1_000;

/// One line of the log.
#[derive(Debug)]
pub struct Entry {
    /// As it stands there.
    pub raw: String,
    /// What it says.
    pub line: Value,
}

impl Entry {
    /// Whether it is a decision, and no event between decisions.
    #[must_use]
    pub fn is_decision(&self) -> bool {
        self.line["event"].is_null()
    }
}

/// Walks from the newest line to the oldest until `each` says that it has seen enough.
pub fn backward(client: &mut Client, each: impl FnMut(Entry) -> bool) -> Result<(), ClientError> {
    let last = last_seq(client)?;
    backward_from(client, last, each)
}

/// The same, beginning with this line.
pub fn backward_from(
    client: &mut Client,
    mut last: u64,
    mut each: impl FnMut(Entry) -> bool,
) -> Result<(), ClientError> {
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
pub fn forward_from(
    client: &mut Client,
    mut after: u64,
    mut each: impl FnMut(Entry) -> bool,
) -> Result<(), ClientError> {
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
fn between(client: &mut Client, mut after: u64, last: u64) -> Result<Vec<Entry>, ClientError> {
    let mut entries = Vec::new();
    while after < last {
        let lines = page(client, after, PAGE_LEN)?;
        if lines.is_empty() {
            break;
        }
        for raw in lines {
            let line: Value = super::parse(raw.get())?;
            after = line["seq"].as_u64().unwrap_or(u64::MAX);
            if after <= last {
                entries.push(Entry { raw: raw.get().to_owned(), line });
            }
        }
    }
    Ok(entries)
}

/// Up to `limit` lines of the log behind a seq.
pub fn page(client: &mut Client, after: u64, limit: u32) -> Result<Vec<Box<RawValue>>, ClientError> {
    ask(client, &LogRead { after: Some(after), limit: Some(limit), tail: false })
}

/// The seq of the last line; 0 when there is none.
pub fn last_seq(client: &mut Client) -> Result<u64, ClientError> {
    let lines = ask(client, &LogRead { after: None, limit: Some(1), tail: true })?;
    let seq = lines.last().and_then(|line| serde_json::from_str::<Value>(line.get()).ok()?["seq"].as_u64());
    Ok(seq.unwrap_or(0))
}

#[derive(Deserialize)]
struct Page {
    lines: Vec<Box<RawValue>>,
}

fn ask(client: &mut Client, ask: &LogRead) -> Result<Vec<Box<RawValue>>, ClientError> {
    let page: Page = super::parse(&client.ask("log.read", ask)?)?;
    Ok(page.lines)
}

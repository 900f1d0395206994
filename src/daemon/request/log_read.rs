//! `log.read`: lines of the decision log, as they stand in the file.

use super::{Answer, Daemon};
use crate::daemon::blocking::blocking;
use crate::protocol::answer::{LogLines, to_json};
use crate::protocol::refusal::Refusal;
use crate::protocol::request::LogRead;
use crate::store::decision_log::read;
use serde_json::value::RawValue;

const LINES_MAX: u32 = 1_000;

pub(super) async fn log_read(daemon: &Daemon, ask: &LogRead) -> Answer {
    let limit = ask.limit.unwrap_or(100);
    if limit == 0 || limit > LINES_MAX {
        return Err(Refusal::invalid_params(format!("limit is {limit}; it must be from 1 to {LINES_MAX}")));
    }
    let after = match (ask.tail, ask.after) {
        (true, after) => Some(after.unwrap_or(0).max(daemon.log.last_seq().saturating_sub(u64::from(limit)))),
        (false, after) => after,
    };
    let path = daemon.log.path().to_owned();
    // However few lines are wanted, much may have to be read to find them.
    let lines = blocking("a reading of the decision log", move || read(&path, after, limit as usize)).await;
    let lines = lines.map_err(|undone| Refusal::application("log_failed", undone))?;
    let lines = lines.map_err(|error| Refusal::application("log_failed", error))?;
    let lines: Vec<Box<RawValue>> =
        lines.into_iter().filter_map(|line| RawValue::from_string(line).ok()).collect();
    Ok(to_json(&LogLines { lines: lines.iter().map(AsRef::as_ref).collect() }))
}

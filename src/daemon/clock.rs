//! The only place that reads the wall clock for the daemon's records, and makes names from it.

use crate::session::moment::Moment;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Now.
pub(super) fn now() -> Moment {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Moment::from_micros(micros)
}

/// A new name that sorts by time.
pub(super) fn new_uuid() -> Uuid {
    Uuid::now_v7()
}

/// The name of a new epoch.
pub(super) fn new_epoch() -> String {
    new_uuid().to_string()
}

/// The name of a new decision.
pub(super) fn new_decision() -> String {
    format!("d-{}", new_uuid())
}

/// The moment as part of a file name: `20261129T100712Z`.
pub(super) fn file_stamp() -> String {
    let text = crate::protocol::time::to_text(now());
    let digits: String =
        text.chars().take_while(|&symbol| symbol != '.').filter(|symbol| !"-:".contains(*symbol)).collect();
    format!("{digits}Z")
}

/// The same to the microsecond: `20261129T100712345678Z`.
pub(super) fn fine_stamp() -> String {
    let text = crate::protocol::time::to_text(now());
    text.chars().filter(|symbol| !"-:.".contains(*symbol)).collect()
}

//! Moments on the wire: RFC 3339 in UTC, with microseconds.

use crate::session::moment::Moment;
use jiff::Timestamp;

/// `2026-11-29T10:07:12.345678Z`; a moment outside the calendar prints as its nearest end.
#[must_use]
pub fn to_text(moment: Moment) -> String {
    let clamped = moment.micros.clamp(Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_microsecond());
    let timestamp = Timestamp::from_microsecond(clamped).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{timestamp:.6}")
}

/// The moment that a text names, in any offset.
pub fn from_text(text: &str) -> Result<Moment, String> {
    let refused = |error| format!("{text:?} is not a moment such as 2026-11-29T10:07:12Z: {error}");
    let timestamp: Timestamp = text.parse().map_err(refused)?;
    Ok(Moment::from_micros(timestamp.as_microsecond()))
}

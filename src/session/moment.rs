//! A moment in wall-clock time. Someone else reads the clock; this only carries what it said.

/// Microseconds since the Unix epoch; negative before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub micros: i64,
}

impl Moment {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self { micros }
    }
}

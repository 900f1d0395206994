//! `Clock = (epoch, tick)`: a position in the daemon's timeline of events.
//!
//! Ticks of one epoch are ordered. Ticks of different epochs say nothing about each other: between them something may
//! have been lost.

/// A position in the timeline of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Begins anew at start and at every gap.
    pub epoch: String,
    /// Rises with every batch of events and every change of what is tracked.
    pub tick: u64,
}

impl Clock {
    /// The beginning of an epoch.
    #[must_use]
    pub fn start(epoch: &str) -> Self {
        Self { epoch: epoch.to_owned(), tick: 0 }
    }
}

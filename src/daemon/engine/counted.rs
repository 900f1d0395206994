//! What there is to count in an engine, read once for whoever shows it: `status`, and `metrics`.
//!
//! Numbers only, as they stand, and nothing of the world.

use super::Engine;

/// Counts at one moment.
pub(in crate::daemon) struct Counted {
    pub(in crate::daemon) sessions: usize,
    pub(in crate::daemon) sources: usize,
    pub(in crate::daemon) suspects: usize,
    pub(in crate::daemon) watches: usize,
    pub(in crate::daemon) events: u64,
    pub(in crate::daemon) gaps: u64,
    pub(in crate::daemon) missed_events: u64,
    pub(in crate::daemon) scrub_passes: u64,
    pub(in crate::daemon) compactions: u64,
}

impl Engine {
    pub(in crate::daemon) fn counted(&self) -> Counted {
        Counted {
            sessions: self.index.told_sessions(),
            sources: self.index.sources_len(),
            suspects: self.index.pending_len(),
            watches: self.world.watches_len(),
            events: self.world.events(),
            gaps: self.health.gaps,
            missed_events: self.health.missed_events,
            scrub_passes: self.health.scrub_passes,
            compactions: self.health.compactions,
        }
    }
}

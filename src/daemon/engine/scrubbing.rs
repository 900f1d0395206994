//! The scrub: what is held to be true is looked at again now and then, although nothing was heard.
//!
//! A difference is a missed event only when a barrier after the look finds the source untouched. Then nothing that was
//! heard since can be believed either: it is counted, said loudly, and a new epoch begins.

use super::Engine;
use crate::index::SourceId;
use crate::index::scrub::Held;
use crate::index::storage::StorageError;
use std::time::{Duration, Instant};

/// Between two batches at most: small ones, so that nobody waits for them.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Where the scrub stands.
pub(super) struct Scrub {
    /// How long one pass over everything takes; zero is off.
    pass_length: Duration,
    after: Option<SourceId>,
    pub(super) at: Option<Instant>,
}

impl Scrub {
    pub(super) fn new(pass_length: Duration) -> Self {
        Self { pass_length, after: None, at: None }
    }

    /// There is something to scrub.
    pub(super) fn begin(&mut self) {
        if !self.pass_length.is_zero() {
            self.at.get_or_insert(Instant::now() + self.pause(1));
        }
    }

    fn pause(&self, sources: usize) -> Duration {
        let least = PAUSE_MAX.min(self.pass_length / 8);
        (self.pass_length / u32::try_from(sources.max(1)).unwrap_or(u32::MAX)).max(least)
    }

    /// How many of so many sources are due at once.
    fn share(&self, sources: usize) -> usize {
        let share = sources as f64 * self.pause(sources).as_secs_f64() / self.pass_length.as_secs_f64();
        (share.ceil() as usize).max(1)
    }
}

impl Engine {
    /// Hands out the next few sources to be looked at.
    pub(super) fn scrub_some(&mut self) -> Result<(), StorageError> {
        let sources = self.index.sources_len();
        self.scrub.at = (sources > 0).then(|| Instant::now() + self.scrub.pause(sources));
        let (held, after) = self.index.held_after(self.scrub.after, self.scrub.share(sources))?;
        if !self.world.scrub(held, self.health.scrub_passes) {
            // The same ones come next time: a pass has been over everything, or it is none.
            return Ok(());
        }
        self.health.scrub_passes += u64::from(after.is_none());
        self.scrub.after = after;
        Ok(())
    }

    /// Something looks different. Behind a barrier it is either announced by now, or it was missed.
    pub(super) fn suspect_missed(&mut self, held: Held) {
        self.behind_barrier(move |engine| match engine.index.still_holds(&held) {
            Ok(true) => engine.missed(&held),
            Ok(false) => {}
            Err(error) => engine.failed = Some(error),
        });
    }

    fn missed(&mut self, held: &Held) {
        let path = held.key.path.display().to_string();
        self.health.missed_events += 1;
        tracing::error!(path, missed_events = self.health.missed_events, "a change without an event");
        if let Err(error) = self.log.event("missed_event", &[("path", &path)]) {
            tracing::error!(%error, "the missed event could not be logged");
        }
        if let Err(error) = self.begin_epoch(&format!("the scrub found a change without an event at {path}"))
        {
            self.failed = Some(error);
        }
    }
}

//! A failure of the decision log: from when it stands, when the next file may be tried, and when it is over.
//!
//! Promise: one failure, however many files it costs. It is over when a sync has passed in the file that follows, and
//! the engine is told of it once. Files are tried ever more seldom while one after the other fails, also where some of
//! them seemed sound at first.
//!
//! Absent: files and clocks; the owner of the log has them.

use std::time::{Duration, Instant};

/// How long a file that failed is left alone before the next one is tried: at first, and at the most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A log that held for so long is tried anew at once when it fails. More than the longest pause, or a disk that keeps
/// failing would seem calm.
const CALM: Duration = Duration::from_secs(10);

/// The failure that stands, if one does.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Why the last line could not be logged; none when it could.
    why: Option<String>,
    /// Whether the file was told why it was begun.
    said: bool,
    /// Whether the file follows one that failed, and no sync has passed in it.
    unproven: bool,
    /// Whether a sync failed, and not only a write.
    of_sync: bool,
    /// What the sync failed of, for the engine.
    untold: Option<String>,
    pace: Pace,
}

impl Trouble {
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The first reason is the one that is told.
    pub(super) fn begin(&mut self, why: &str) {
        self.why.get_or_insert_with(|| why.to_owned());
    }

    /// A file that follows one that failed, and fails too, is no failure of its own.
    pub(super) fn sync_failed(&mut self, error: &str) {
        if !std::mem::replace(&mut self.of_sync, true) {
            self.untold = Some(error.to_owned());
        }
        self.begin(&unsynced(error));
    }

    pub(super) fn take_untold(&mut self) -> Option<String> {
        self.untold.take()
    }

    pub(super) fn may_try(&self, now: Instant) -> bool {
        self.pace.may_try(now)
    }

    /// A new file was tried, whatever came of it. `now` is the end of that, for a disk that fails may be slow at it.
    pub(super) fn tried(&mut self, now: Instant) {
        self.pace.tried(now);
    }

    /// The log has gone on in a new file.
    pub(super) fn left_the_file(&mut self) {
        (self.said, self.unproven) = (false, true);
    }

    pub(super) fn is_unproven(&self) -> bool {
        self.unproven
    }

    pub(super) fn proven(&mut self) {
        // Somebody who cuts the file once a minute makes no file by himself, as a disk that fails does.
        let pace = if self.of_sync { std::mem::take(&mut self.pace) } else { Pace::default() };
        *self = Self { untold: self.untold.take(), pace, ..Self::default() };
    }

    /// What a `healed` line has to say.
    pub(super) fn unsaid(&self) -> Option<&str> {
        self.why().filter(|_| !self.said)
    }

    /// Where the file never was in doubt, that a line could be written is all that was missing.
    pub(super) fn healed_said(&mut self) {
        self.said = true;
        if !self.unproven {
            self.proven();
        }
    }
}

/// Why a file was left whose sync failed.
pub(super) fn unsynced(error: &str) -> String {
    format!("the file before could not be synced: {error}")
}

#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    pause: Duration,
}

impl Pace {
    fn may_try(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.pause)
    }

    fn tried(&mut self, now: Instant) {
        let calm = self.last.is_none_or(|last| now.saturating_duration_since(last) >= CALM);
        self.pause = if calm { PAUSE_MIN } else { (self.pause * 2).min(PAUSE_MAX) };
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_fail_one_after_the_other_are_tried_ever_more_seldom() {
        let mut now = Instant::now();
        let mut trouble = Trouble::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            trouble.sync_failed("EIO");
            let begun = now;
            while !trouble.may_try(now) {
                now += PAUSE_MIN;
            }
            pauses.push((now - begun).as_millis());
            trouble.tried(now);
            trouble.left_the_file();
            // It seemed sound, which a disk that fails now and then is at first.
            trouble.proven();
        }
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!(trouble.may_try(now + CALM));
        trouble.tried(now + CALM);
        assert!(trouble.may_try(now + CALM + PAUSE_MIN), "it held for a while");
    }

    #[test]
    fn a_file_that_fails_after_another_is_the_same_failure_until_one_has_held() {
        let mut trouble = Trouble::default();
        trouble.sync_failed("first");
        assert_eq!(trouble.take_untold().as_deref(), Some("first"));
        trouble.left_the_file();
        trouble.sync_failed("second");
        trouble.healed_said();
        assert_eq!((trouble.take_untold(), trouble.why()), (None, Some(&*unsynced("first"))));
        trouble.proven();
        assert_eq!(trouble.why(), None);
        trouble.sync_failed("third");
        assert_eq!(trouble.take_untold().as_deref(), Some("third"));
    }
}

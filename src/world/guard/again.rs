//! Beginning again after events were lost: a new watcher, and what changed meanwhile is found by its times.

use super::arming::Telling;
use super::clock::{Clock, FileTime};
use super::keeper::{Keeper, Message};
use super::watcher::Watcher;
use super::{Done, Seen, lock};
use crate::world::cookie::Cookies;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// How much the clock may run otherwise than time does before it counts as set.
const CLOCK_SLACK: i128 = 1_000_000_000;

impl Keeper {
    /// Makes everything anew after events were lost: what changed since the last barrier came back is told by its times.
    pub(super) fn begin_again(&mut self, why: &str, inbox: &Receiver<Message>) {
        let later = self.drain(inbox);
        (self.told)(Seen::Gap { why: why.to_owned() });
        self.ear.full.store(false, Ordering::SeqCst);
        self.generation += 1;
        self.watcher = None;
        self.watcher = Watcher::new(&self.ear, self.generation).ok();
        // Those who come from here on have a cookie of the new watcher.
        let (now, owed) = self.owed();
        let clock_was_set = self.clock_was_set(now);
        for no in self.places.keys().copied().collect::<Vec<_>>() {
            let since = self.good_for(no);
            self.places.entry(no).or_default().armed.clear();
            if clock_was_set {
                self.limit(no, "the clock was set while events were lost".to_owned());
            }
            self.arm_place(no, Telling::Unwatched(since));
        }
        if let Some(now) = now {
            (self.good, self.good_at) = (now, Instant::now());
        }
        let good = self.good;
        owed.into_iter().for_each(|done| done(good));
        for message in later {
            // Nothing of these begins again: that would have been done just now.
            self.take(message, inbox);
        }
    }

    /// Takes the events that wait, for they are better news than what is found without them, and keeps what else does.
    fn drain(&mut self, inbox: &Receiver<Message>) -> Vec<Message> {
        let mut later = Vec::new();
        let count = self.ear.waiting.load(Ordering::SeqCst);
        for message in inbox.try_iter().take(count.saturating_mul(2).max(1_024)) {
            match message {
                Message::Event(..) => {
                    self.take(message, inbox);
                }
                // One that comes back after the loss does not say that nothing was lost before it.
                Message::Cookie(..) | Message::Lost(_) => {}
                other => later.push(other),
            }
        }
        later
    }

    /// Everybody who waits for a barrier by now, and what time it is.
    fn owed(&mut self) -> (Option<FileTime>, Vec<Done>) {
        let mut barriers = lock(&self.barriers);
        // Somebody may have taken the files away.
        if let (Ok(cookies), Ok(clock)) = (Cookies::open(&self.ear.cookies), Clock::open(&self.ear.cookies)) {
            (barriers.cookies, barriers.clock) = (cookies, clock);
        }
        let now = barriers.clock.now().ok();
        let mut owed = barriers.flying.take().map_or_else(Vec::new, |flying| flying.done);
        owed.append(&mut barriers.waiting);
        (now, owed)
    }

    fn clock_was_set(&self, now: Option<FileTime>) -> bool {
        let passed = self.good_at.elapsed().as_nanos() as i128;
        now.is_none_or(|now| (now.0 - self.good.0 - passed).abs() > CLOCK_SLACK)
    }
}

//! Who is told of what happens, and what waits for each of them.
//!
//! Whoever tells never waits and never holds more than the bound for anybody: what a slow reader has not fetched makes
//! room for what is newer, and is counted. The count stands where the gap is: before the oldest line that was kept.

use crate::protocol::event::{Topic, lost};
use crate::session::SessionId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What somebody wants to be told.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) topics: Vec<Topic>,
    /// Only what concerns this session; a gap concerns all of them.
    pub(super) session: Option<SessionId>,
}

impl Wanted {
    fn includes(&self, topic: Topic, about: Option<&SessionId>) -> bool {
        let concerned = match (&self.session, about) {
            (Some(wanted), Some(about)) => wanted == about,
            _ => true,
        };
        concerned && self.topics.contains(&topic)
    }
}

/// Everybody who is told.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    members: Mutex<Vec<(Wanted, Arc<Mailbox>)>>,
    /// How many there are, to be asked without the lock: most daemons have none most of the time.
    len: AtomicUsize,
}

#[derive(Debug)]
struct Mailbox {
    lines_max: usize,
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Arc<str>>,
    lost: u64,
}

impl Subscribers {
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether anybody wants to know, so that a line which nobody wants is never made.
    pub(super) fn want(&self, topic: Topic, about: Option<&SessionId>) -> bool {
        self.len() > 0 && self.members().iter().any(|(wanted, _)| wanted.includes(topic, about))
    }

    /// Puts a whole line into the mailbox of everybody who wants to know.
    pub(super) fn tell(&self, topic: Topic, about: Option<&SessionId>, line: String) {
        let line: Arc<str> = line.into();
        for (_, mailbox) in self.members().iter().filter(|(wanted, _)| wanted.includes(topic, about)) {
            mailbox.put(Arc::clone(&line));
        }
    }

    /// Tells somebody from now on, until the subscription goes.
    pub(super) fn subscribe(self: &Arc<Self>, wanted: Wanted, lines_max: usize) -> Subscription {
        let (waiting, ready) = (Mutex::default(), Notify::new());
        let mailbox = Arc::new(Mailbox { lines_max, waiting, ready });
        let mut members = self.members();
        members.push((wanted, Arc::clone(&mailbox)));
        self.len.store(members.len(), Ordering::Relaxed);
        Subscription { subscribers: Arc::clone(self), mailbox }
    }

    fn members(&self) -> MutexGuard<'_, Vec<(Wanted, Arc<Mailbox>)>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailbox {
    fn put(&self, line: Arc<str>) {
        let mut waiting = self.waiting();
        if waiting.lines.len() >= self.lines_max {
            waiting.lines.pop_front();
            waiting.lost += 1;
        }
        waiting.lines.push_back(line);
        drop(waiting);
        self.ready.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection's place among the subscribers.
#[derive(Debug)]
pub(super) struct Subscription {
    subscribers: Arc<Subscribers>,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    /// Waits until there may be something to take. May be dropped at any time: nothing is taken before [`Self::take`].
    pub(super) async fn ready(&self) {
        self.mailbox.ready.notified().await;
    }

    /// Whole lines, oldest first: everything that waits, behind a word of what was lost.
    pub(super) fn take(&self) -> String {
        let Waiting { lines, lost: count } = std::mem::take(&mut *self.mailbox.waiting());
        let mut text = if count > 0 { lost(count) } else { String::new() };
        text.reserve(lines.iter().map(|line| line.len()).sum());
        lines.iter().for_each(|line| text.push_str(line));
        text
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut members = self.subscribers.members();
        members.retain(|(_, mailbox)| !Arc::ptr_eq(mailbox, &self.mailbox));
        self.subscribers.len.store(members.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Subscribers, Wanted};
    use crate::protocol::event::Topic;
    use crate::session::SessionId;
    use std::sync::Arc;

    fn wanted(topics: &[Topic], session: Option<&str>) -> Wanted {
        Wanted { topics: topics.to_vec(), session: session.and_then(SessionId::new) }
    }

    #[test]
    fn the_oldest_make_room_and_are_counted_where_they_are_missing() {
        let subscribers = Arc::new(Subscribers::default());
        let subscription = subscribers.subscribe(wanted(&[Topic::Gap], None), 3);
        let put = |range: std::ops::Range<u32>| {
            range.for_each(|n| subscribers.tell(Topic::Gap, None, format!("{n}\n")));
        };
        put(0..3);
        assert_eq!(subscription.take(), "0\n1\n2\n");
        assert_eq!(subscription.take(), "");
        put(0..8);
        let (lost, kept) = (super::lost(5), "5\n6\n7\n");
        assert_eq!(subscription.take(), format!("{lost}{kept}"));
        put(8..9);
        assert_eq!(subscription.take(), "8\n", "what was told as lost is not lost again");
    }

    #[test]
    fn everybody_is_told_what_was_wanted_until_the_subscription_goes() {
        let subscribers = Arc::new(Subscribers::default());
        let (s, t) = (SessionId::new("s"), SessionId::new("t"));
        let of_s = subscribers.subscribe(wanted(&[Topic::Staleness, Topic::Gap], Some("s")), 9);
        let all = subscribers.subscribe(wanted(&[Topic::Staleness], None), 9);
        subscribers.tell(Topic::Staleness, s.as_ref(), "s".to_owned());
        subscribers.tell(Topic::Staleness, t.as_ref(), "t".to_owned());
        subscribers.tell(Topic::Decision, s.as_ref(), "d".to_owned());
        subscribers.tell(Topic::Gap, None, "g".to_owned());
        assert_eq!((of_s.take().as_str(), all.take().as_str()), ("sg", "st"));
        assert!(subscribers.want(Topic::Staleness, t.as_ref()) && subscribers.want(Topic::Gap, None));
        drop(all);
        assert!(!subscribers.want(Topic::Staleness, t.as_ref()) && subscribers.want(Topic::Gap, None));
        drop(of_s);
        assert_eq!((subscribers.len(), subscribers.want(Topic::Gap, None)), (0, false));
    }
}

//! Checks that wait for a verifier, those that somebody waits for first.

use crate::index::{Check, KeyKind, SourceId, Stamp};
use std::collections::{HashMap, VecDeque};

/// Checks wait here, those that somebody is waiting for first. A source waits with its latest check only, and never
/// has two verifiers at it: the slower one would bind the source to where its path led a while ago, and what then
/// happened where it leads now would mark nobody.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) latest: HashMap<SourceId, Check>,
    pub(super) urgent: VecDeque<SourceId>,
    later: VecDeque<SourceId>,
    busy: HashMap<SourceId, Stamp>,
    pub(super) closed: bool,
}

impl Queue {
    pub(super) fn add(&mut self, check: Check, urgent: bool) {
        let source = check.source;
        if self.busy.get(&source).is_some_and(|&stamp| stamp >= check.stamp) {
            return;
        }
        let waits = self.latest.contains_key(&source);
        if self.latest.get(&source).is_none_or(|held| held.stamp < check.stamp) {
            self.latest.insert(source, check);
        }
        if urgent {
            self.urgent.push_back(source);
        } else if !waits {
            self.later.push_back(source);
        }
    }

    pub(super) fn hurry(&mut self, source: SourceId) {
        if self.latest.contains_key(&source) {
            self.urgent.push_back(source);
        }
    }

    pub(super) fn begin(&mut self) -> Option<Check> {
        loop {
            let source = self.urgent.pop_front().or_else(|| self.later.pop_front())?;
            if self.busy.contains_key(&source) {
                continue;
            }
            if let Some(check) = self.latest.remove(&source) {
                self.busy.insert(source, check.stamp);
                return Some(check);
            }
        }
    }

    /// Another waiting check for somebody who has begun one and can do several together. Only of those that nobody
    /// hurries, or only of those that somebody does: the first must not wait for the second.
    pub(super) fn begin_beside(&mut self, urgent: bool) -> Option<Check> {
        let waiting = if urgent { &self.urgent } else { &self.later };
        let passed_over = urgent == self.urgent.is_empty();
        let next = waiting.front().and_then(|source| self.latest.get(source));
        if passed_over || next.is_some_and(|check| !is_quick(check)) { None } else { self.begin() }
    }

    /// Begun, and not answered after all.
    pub(super) fn give_back(&mut self, check: Check) {
        let source = check.source;
        self.busy.remove(&source);
        self.latest.entry(source).or_insert(check);
        self.urgent.push_front(source);
    }

    /// A check that came while its source was busy is the next.
    pub(super) fn end(&mut self, source: SourceId) {
        self.busy.remove(&source);
        if self.latest.contains_key(&source) {
            self.urgent.push_front(source);
        }
    }
}

/// Whether a check takes no longer than a look at one file.
pub(super) fn is_quick(check: &Check) -> bool {
    check.key.kind == KeyKind::Path
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use crate::index::{Check, Depth, KeyKind, SourceId, SourceKey, Stamp};

    fn check(source: u64, stamp: u64) -> Check {
        let key = SourceKey { kind: KeyKind::Path, path: format!("/{source}").into() };
        let (source, stamp) = (SourceId(source), Stamp(stamp));
        let depth = Depth::Names;
        Check {
            source,
            stamp,
            key,
            depth,
            wanted: Vec::new(),
            sought: Vec::new(),
            known: None,
            moved: None,
            order: None,
        }
    }

    fn taken(check: Option<Check>) -> Option<(u64, u64)> {
        check.map(|check| (check.source.0, check.stamp.0))
    }

    #[test]
    fn what_somebody_waits_for_comes_first_and_takes_nothing_else_along() {
        let mut queue = Queue::default();
        (1..=3).for_each(|source| queue.add(check(source, source), false));
        queue.hurry(SourceId(3));
        queue.hurry(SourceId(9));
        assert_eq!(taken(queue.begin()), Some((3, 3)));
        assert_eq!(taken(queue.begin_beside(true)), None);
        assert_eq!(taken(queue.begin()), Some((1, 1)));
        queue.add(check(4, 4), true);
        assert_eq!(taken(queue.begin_beside(false)), None, "somebody waits for another by now");
        assert_eq!(taken(queue.begin()), Some((4, 4)));
        assert_eq!(taken(queue.begin_beside(false)), Some((2, 2)));
    }

    #[test]
    fn what_is_given_back_is_next_with_its_latest_check() {
        let mut queue = Queue::default();
        (1..=3).for_each(|source| queue.add(check(source, source), false));
        let (first, second) = (queue.begin().unwrap(), queue.begin().unwrap());
        queue.add(check(2, 7), false);
        queue.give_back(second);
        assert_eq!(taken(queue.begin()), Some((2, 7)), "once, and by the later stamp");
        queue.give_back(first);
        assert_eq!(taken(queue.begin()), Some((1, 1)));
        assert_eq!(taken(queue.begin()), Some((3, 3)));
        assert_eq!(taken(queue.begin()), None);
    }
}

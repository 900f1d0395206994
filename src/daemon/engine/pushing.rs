//! What the engine tells subscribers: after the index has applied it, in the order in which it was applied.

use super::Engine;
use crate::index::Change;
use crate::index::row::SessionNo;
use crate::index::storage::StorageError;
use crate::protocol::event::{self, Topic};
use crate::session::SessionId;
use crate::session::moment::Moment;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl Engine {
    /// Tells those who want to know which rows changed.
    pub(in crate::daemon) fn push_changes(&self, changes: &[Change], at: Moment) -> Result<(), StorageError> {
        if changes.is_empty() || self.subscribers.len() == 0 {
            return Ok(());
        }
        // A checkout changes thousands of rows of one session at once: its name is looked up once.
        let mut names: HashMap<SessionNo, Option<SessionId>> = HashMap::new();
        for change in changes {
            let name = match names.entry(change.session) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let name = self.index.head(change.session)?.session;
                    // What a fork is measured by is told as what became of the fork.
                    let told = !name.is_of_fork() && self.wants_changes(&name);
                    unknown.insert(told.then_some(name))
                }
            };
            let Some(name) = name else { continue };
            let line = event::staleness(name, change, self.index.clock(), at);
            self.subscribers.tell(Topic::Staleness, Some(name), line);
        }
        Ok(())
    }

    /// Whether anybody wants to know which rows of a session change.
    pub(in crate::daemon) fn wants_changes(&self, session: &SessionId) -> bool {
        self.subscribers.want(Topic::Staleness, Some(session))
    }

    /// Tells those who want to know that a new epoch has begun.
    pub(super) fn push_gap(&self, epoch: &str, why: &str) {
        if self.subscribers.want(Topic::Gap, None) {
            self.subscribers.tell(Topic::Gap, None, event::gap(epoch, why));
        }
    }
}

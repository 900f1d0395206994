//! A change, applied: the only place that writes what is kept.
//!
//! Applied twice in a row a change does no more than once, so that a record may be told again.

use super::book::{Book, NEXT_OBSERVATION, USERS};
use super::change::Change;
use super::keys;
use super::observation::{Marks, Observation};
use super::session::Session;
use super::user::User;
use crate::index::pack::{Pack, to_bytes};
use crate::index::storage::{Storage, StorageError, Table};

/// Applies a change.
pub fn apply(storage: &mut impl Storage, change: &Change) -> Result<(), StorageError> {
    if let Some(next) = change.next_observation {
        take_numbers(storage, next)?;
    }
    // What only says which numbers are taken is nobody's.
    if change.sessions.is_empty() && change.saved.is_none() && change.forgotten.is_none() {
        return Ok(());
    }
    let user = match Book::new(storage).user(&change.user)? {
        Some(user) => user,
        // There is nobody of whom anything could be forgotten.
        None if change.sessions.is_empty() && change.saved.is_none() => return Ok(()),
        None => new_user(storage)?,
    };
    let mut step = Step { storage, user };
    for session in &change.sessions {
        step.put_session(session)?;
    }
    if let Some(observation) = &change.saved {
        step.save(observation)?;
    }
    if let Some(id) = change.forgotten {
        step.forget(id)?;
    }
    let user = step.user;
    put(storage, Table::Users, change.user.as_bytes(), &user)?;
    if change.forgotten.is_some() {
        storage.shred(Table::Words, &user.no.to_be_bytes())?;
    }
    Ok(())
}

fn new_user(storage: &mut impl Storage) -> Result<User, StorageError> {
    let no = Book::new(storage).users_len()?;
    if storage.get(Table::Meta, NEXT_OBSERVATION)?.is_none() {
        put(storage, Table::Meta, NEXT_OBSERVATION, &1_u64)?;
    }
    put(storage, Table::Meta, USERS, &(no + 1))?;
    Ok(User { no, ..User::default() })
}

fn take_numbers(storage: &mut impl Storage, next: u64) -> Result<(), StorageError> {
    if Book::new(storage).next_observation()? < next {
        put(storage, Table::Meta, NEXT_OBSERVATION, &next)?;
    }
    Ok(())
}

fn put(storage: &mut impl Storage, table: Table, key: &[u8], value: &impl Pack) -> Result<(), StorageError> {
    storage.put(table, key, &to_bytes(value))
}

struct Step<'storage, S> {
    storage: &'storage mut S,
    user: User,
}

impl<S: Storage> Step<'_, S> {
    fn put_session(&mut self, session: &Session) -> Result<(), StorageError> {
        let Session { no, span, summary } = session;
        put(self.storage, Table::UserSessions, &keys::session(self.user.no, *no), span)?;
        if let Some(summary) = summary {
            put(self.storage, Table::Words, &keys::summary(self.user.no, *no), summary)?;
        }
        self.user.sessions = self.user.sessions.max(no + 1);
        match (span.ended_at, self.user.active) {
            (None, _) => self.user.active = Some(*no),
            (Some(_), Some(active)) if active == *no => self.user.active = None,
            (Some(_), _) => {}
        }
        Ok(())
    }

    fn save(&mut self, observation: &Observation) -> Result<(), StorageError> {
        let Observation { id, marks, words } = observation;
        let no = self.user.no;
        match Book::new(self.storage).observation(no, *id)? {
            Some(before) => {
                self.unlink(&before)?;
                if before.marks.revision != marks.revision {
                    self.user.revisions += 1;
                    let key = keys::revision(no, *id, before.marks.revision);
                    put(self.storage, Table::Revisions, &key, &before.marks)?;
                }
            }
            None => self.user.observations += 1,
        }
        take_numbers(self.storage, id + 1)?;
        put(self.storage, Table::Observations, &keys::observation(no, *id), marks)?;
        put(self.storage, Table::Words, &keys::words(no, *id, marks.revision), words)?;
        self.link(observation)
    }

    /// Everything by which an observation is found.
    fn link(&mut self, observation: &Observation) -> Result<(), StorageError> {
        let Observation { id, marks, words } = observation;
        let no = self.user.no;
        self.storage.put(Table::Wordings, &keys::worded(no, &marks.kind, &words.content, *id), &[])?;
        self.storage.put(Table::SavedIn, &keys::saved_in(no, marks.session, *id), &[])?;
        match &words.topic_key {
            Some(topic_key) => put(self.storage, Table::Topics, &keys::topic(no, topic_key), id),
            None => Ok(()),
        }
    }

    fn unlink(&mut self, observation: &Observation) -> Result<(), StorageError> {
        let Observation { id, marks, words } = observation;
        let no = self.user.no;
        self.storage.remove(Table::Wordings, &keys::worded(no, &marks.kind, &words.content, *id))?;
        self.storage.remove(Table::SavedIn, &keys::saved_in(no, marks.session, *id))?;
        match &words.topic_key {
            Some(topic_key) => self.storage.remove(Table::Topics, &keys::topic(no, topic_key)),
            None => Ok(()),
        }
    }

    fn forget(&mut self, id: u64) -> Result<(), StorageError> {
        let no = self.user.no;
        let Some(observation) = Book::new(self.storage).observation(no, id)? else { return Ok(()) };
        self.unlink(&observation)?;
        for key in Book::new(self.storage).keys(Table::Revisions, &keys::observation(no, id))? {
            let past: Marks = Book::new(self.storage).must(Table::Revisions, &key)?;
            self.storage.remove(Table::Words, &keys::words(no, id, past.revision))?;
            self.storage.remove(Table::Revisions, &key)?;
            self.user.revisions -= 1;
        }
        self.storage.remove(Table::Words, &keys::words(no, id, observation.marks.revision))?;
        self.storage.remove(Table::Observations, &keys::observation(no, id))?;
        self.user.observations -= 1;
        Ok(())
    }
}

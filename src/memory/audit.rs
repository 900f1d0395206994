//! Whether everything is there that must be: a storage may lose keys without a word.
//!
//! The counts of every user are compared with what is found, and everything by which an observation is found with the
//! observation. Words are read only when they are asked for: those that are missing are noticed then.

use super::book::{Book, NEXT_OBSERVATION};
use super::keys;
use super::observation::Marks;
use super::session::Span;
use super::user::User;
use crate::index::pack;
use crate::index::storage::{Storage, StorageError, Table};
use std::collections::HashMap;

/// What stands in the tables of one user.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    sessions: u64,
    active: Option<u32>,
    observations: u64,
    revisions: u64,
    keyed: u64,
    wordings: u64,
    topics: u64,
    saved_in: u64,
    /// What is told in two tables, added by the one and taken by the other: who has a topic key, and which sessions were
    /// saved in.
    balance: u64,
}

/// Whether everything is there, as far as it can be told without reading any words.
pub fn audit<S: Storage>(storage: &S) -> Result<(), StorageError> {
    let book = Book::new(storage);
    let users = book.users()?;
    let mut found = found(storage, book)?;
    // Where there are users, it was kept which number comes next: else what was all forgotten would be counted anew.
    let counted = users.is_empty() || storage.get(Table::Meta, NEXT_OBSERVATION)?.is_some();
    if !counted {
        return Err(missing("which number the next observation gets".to_owned()));
    }
    if users.len() as u64 != u64::from(book.users_len()?) {
        return Err(missing(format!("{} users where there were {}", users.len(), book.users_len()?)));
    }
    for (_, user) in &users {
        let found = found.remove(&user.no).unwrap_or_default();
        let expected = expected(user, found.keyed);
        if found != expected {
            return Err(missing(format!("{found:?} of user {} where {expected:?} must be", user.no)));
        }
    }
    match found.keys().next() {
        Some(no) => Err(missing(format!("nobody is user {no}"))),
        None => Ok(()),
    }
}

fn expected(user: &User, keyed: u64) -> Found {
    let User { active, sessions, observations, revisions, .. } = *user;
    let (wordings, topics, saved_in) = (observations, keyed, observations);
    Found {
        sessions: u64::from(sessions),
        active,
        observations,
        revisions,
        keyed,
        wordings,
        topics,
        saved_in,
        balance: 0,
    }
}

fn missing(reason: String) -> StorageError {
    StorageError::contents("count", Table::Users, format!("keys are missing: {reason}"))
}

fn found<S: Storage>(storage: &S, book: Book<'_, S>) -> Result<HashMap<u32, Found>, StorageError> {
    let mut found: HashMap<u32, Found> = HashMap::new();
    let (mut unreadable, mut last) = (false, 0);
    let mut count = |table: Table, each: &mut dyn FnMut(&mut Found, &[u8], &[u8]) -> bool| {
        storage.scan(table, &[], &mut |key, value| {
            let user = key.first_chunk().map(|no| found.entry(u32::from_be_bytes(*no)).or_default());
            unreadable |= !user.is_some_and(|user| each(user, key, value));
        })
    };
    count(Table::UserSessions, &mut |user, key, value| {
        user.sessions += 1;
        let Some(span) = pack::from_bytes::<Span>(value) else { return false };
        let no = keys::last_no(key).filter(|_| span.ended_at.is_none());
        let only = user.active.is_none() || no.is_none();
        user.active = no.or(user.active);
        only
    })?;
    count(Table::Observations, &mut |user, key, value| {
        user.observations += 1;
        let (Some(id), Some(marks)) = (keys::last_id(key), pack::from_bytes::<Marks>(value)) else {
            return false;
        };
        last = last.max(id);
        user.keyed += u64::from(marks.is_keyed);
        let keyed = if marks.is_keyed { id } else { 0 };
        user.balance = user.balance.wrapping_add(keyed).wrapping_add(u64::from(marks.session));
        true
    })?;
    count(Table::Revisions, &mut |user, key, value| {
        user.revisions += 1;
        pack::from_bytes::<Marks>(value).is_some_and(|marks| keys::last_no(key) == Some(marks.revision))
    })?;
    count(Table::Wordings, &mut |user, _, value| {
        user.wordings += 1;
        value.is_empty()
    })?;
    count(Table::Topics, &mut |user, _, value| {
        user.topics += 1;
        let Some(id) = pack::from_bytes::<u64>(value) else { return false };
        user.balance = user.balance.wrapping_sub(id);
        true
    })?;
    count(Table::SavedIn, &mut |user, key, value| {
        user.saved_in += 1;
        let Some(session) = keys::saved_session(key) else { return false };
        user.balance = user.balance.wrapping_sub(u64::from(session));
        value.is_empty()
    })?;
    if unreadable {
        return Err(missing("something does not add up".to_owned()));
    }
    if last >= book.next_observation()? {
        return Err(missing(format!("the next observation would be one that there is, {last}")));
    }
    Ok(found)
}

/// The same, with all words read, and found by them: what a test may ask.
pub fn audit_words<S: Storage>(storage: &S) -> Result<(), StorageError> {
    audit(storage)?;
    let book = Book::new(storage);
    let (mut words, mut topics) = (0, 0);
    for (_, user) in book.users()? {
        for no in 0..user.sessions {
            words += u64::from(book.session(user.no, no)?.summary.is_some());
        }
        for observation in book.all(user.no)? {
            let (id, marks, said) = (observation.id, &observation.marks, &observation.words);
            let wordings = book.by_wording(user.no, &marks.kind, &said.content)?;
            let saved = book.saved_in(user.no, marks.session)?;
            let topic = said.topic_key.as_deref().map(|topic| book.by_topic(user.no, topic)).transpose()?;
            if !wordings.contains(&id) || !saved.contains(&id) || topic.is_some_and(|found| found != Some(id))
            {
                return Err(missing(format!("observation {id} is not found by what it says")));
            }
            topics += usize::from(said.topic_key.is_some());
            words += 1 + book.history(user.no, id)?.len() as u64;
        }
    }
    let held = (book.keys(Table::Words, &[])?.len() as u64, book.keys(Table::Topics, &[])?.len());
    if held == (words, topics) {
        Ok(())
    } else {
        Err(missing(format!("{held:?} where {words} and {topics} must be")))
    }
}

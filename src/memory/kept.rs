//! The memory told whole: the changes that make it again, for compaction and export.

use super::book::Book;
use super::change::Change;
use super::user::User;
use crate::index::storage::{Storage, StorageError};

/// The changes that everything kept follows from, user by user in the order of their numbers.
pub fn changes<S: Storage, E: From<StorageError>>(
    book: Book<'_, S>,
    each: &mut dyn FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    let next = book.next_observation()?;
    if next > 1 {
        each(Change { next_observation: Some(next), ..Change::default() })?;
    }
    let mut users = book.users()?;
    users.sort_by_key(|(_, user)| user.no);
    for (name, user) in users {
        sessions(book, &name, &user, each)?;
        observations(book, &name, &user, each)?;
    }
    Ok(())
}

fn sessions<S: Storage, E: From<StorageError>>(
    book: Book<'_, S>,
    name: &str,
    user: &User,
    each: &mut dyn FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    for no in 0..user.sessions {
        each(Change { sessions: vec![book.session(user.no, no)?], ..Change::of(name) })?;
    }
    Ok(())
}

fn observations<S: Storage, E: From<StorageError>>(
    book: Book<'_, S>,
    name: &str,
    user: &User,
    each: &mut dyn FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = 0;
    loop {
        let page = book.page(user.no, from)?;
        let Some(last) = page.last() else { return Ok(()) };
        from = last.id + 1;
        for latest in page {
            let mut revisions = book.history(user.no, latest.id)?;
            revisions.push(latest);
            for revision in revisions {
                each(Change { saved: Some(revision), ..Change::of(name) })?;
            }
        }
    }
}

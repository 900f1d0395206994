//! What a session begins with: the last sessions, and what was remembered in them.

use super::book::Book;
use super::session::Session;
use super::user::User;
use crate::index::storage::{Storage, StorageError};

/// How many ended sessions a new one is told of.
const SESSIONS: usize = 5;

/// The sessions of a user that ended last, the latest first.
pub fn ended<S: Storage>(book: Book<'_, S>, user: &User) -> Result<Vec<Session>, StorageError> {
    sessions(book, user, SESSIONS, |session| session.span.ended_at.is_some())
}

/// The sessions of a user, the latest first. They follow each other, so the latest is the one with the highest number.
pub fn sessions<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    most: usize,
    wanted: impl Fn(&Session) -> bool,
) -> Result<Vec<Session>, StorageError> {
    let mut sessions = Vec::new();
    for no in (0..user.sessions).rev() {
        if sessions.len() == most {
            break;
        }
        sessions.extend(Some(book.session(user.no, no)?).filter(|session| wanted(session)));
    }
    Ok(sessions)
}

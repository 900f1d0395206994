//! What a session begins with: the last sessions, and what was remembered in them.

use super::book::Book;
use super::observation::{Marks, SUMMARY};
use super::score;
use super::session::Session;
use super::user::User;
use crate::index::storage::{Storage, StorageError};
use crate::session::moment::Moment;

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

/// What was remembered, and how much it counts at the start of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// The observation.
    pub id: u64,
    /// Whether it rests on sources.
    pub has_sources: bool,
    /// 0 to 1.
    pub score: f64,
    /// How new it is.
    pub recency: f64,
    /// How often it was revised.
    pub revision: f64,
    /// What its type counts.
    pub weight: f64,
}

/// What was last saved in the active session and the last ones that ended, summaries apart, best first. Ties go to the
/// newer one, then to the lower number.
pub fn memories<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    now: Moment,
) -> Result<Vec<Memory>, StorageError> {
    let ended = ended(book, user)?.into_iter().map(|session| session.no);
    let mut memories = Vec::new();
    for session in user.active.into_iter().chain(ended) {
        for id in book.saved_in(user.no, session)? {
            let Some(marks) = book.marks(user.no, id)?.filter(|marks| marks.kind != SUMMARY) else {
                continue;
            };
            memories.push((marks.updated_at, memory(id, &marks, now)));
        }
    }
    memories.sort_by(|(a_at, a), (b_at, b)| {
        b.score.total_cmp(&a.score).then(b_at.cmp(a_at)).then(a.id.cmp(&b.id))
    });
    Ok(memories.into_iter().map(|(_, memory)| memory).collect())
}

fn memory(id: u64, marks: &Marks, now: Moment) -> Memory {
    let recency = score::recency(now, marks.updated_at);
    let revision = score::revision(marks.revision);
    let weight = score::type_weight(&marks.kind);
    let has_sources = marks.has_sources;
    Memory { id, has_sources, score: score::context(recency, revision, weight), recency, revision, weight }
}

//! What a session begins with: the last sessions, and what was remembered in them.

use super::book::Book;
use super::observation::{Marks, SUMMARY};
use super::recall::{Entry, Recall};
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
/// newer one, then to the lower number. A recall of the user spares reading what it holds.
pub fn memories<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    recall: Option<&Recall>,
    now: Moment,
) -> Result<Vec<Memory>, StorageError> {
    let ended = ended(book, user)?.into_iter().map(|session| session.no);
    let sessions: Vec<u32> = user.active.into_iter().chain(ended).collect();
    let mut memories: Vec<(Moment, Memory)> = match recall {
        Some(recall) => {
            let recent = recall.entries().filter(|entry| sessions.contains(&entry.session));
            recent.filter(|entry| *entry.kind != *SUMMARY).map(|entry| recalled(entry, now)).collect()
        }
        None => read(book, user, &sessions, now)?,
    };
    memories.sort_by(|(a_at, a), (b_at, b)| {
        b.score.total_cmp(&a.score).then(b_at.cmp(a_at)).then(a.id.cmp(&b.id))
    });
    Ok(memories.into_iter().map(|(_, memory)| memory).collect())
}

fn read<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    sessions: &[u32],
    now: Moment,
) -> Result<Vec<(Moment, Memory)>, StorageError> {
    let mut memories = Vec::new();
    for &session in sessions {
        for id in book.saved_in(user.no, session)? {
            let Some(marks) = book.marks(user.no, id)?.filter(|marks| marks.kind != SUMMARY) else {
                continue;
            };
            let Marks { kind, revision, updated_at, has_sources, .. } = marks;
            memories.push((updated_at, memory(id, &kind, revision, updated_at, has_sources, now)));
        }
    }
    Ok(memories)
}

fn recalled(entry: &Entry, now: Moment) -> (Moment, Memory) {
    let Entry { id, kind, revision, updated_at, has_sources, .. } = entry;
    (*updated_at, memory(*id, kind, *revision, *updated_at, *has_sources, now))
}

fn memory(id: u64, kind: &str, revision: u32, updated_at: Moment, has_sources: bool, now: Moment) -> Memory {
    let recency = score::recency(now, updated_at);
    let (revision, weight) = (score::revision(revision), score::type_weight(kind));
    Memory { id, has_sources, score: score::context(recency, revision, weight), recency, revision, weight }
}

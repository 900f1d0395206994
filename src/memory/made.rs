//! The summary that is made of what was saved in a session, when it ends for want of activity.
//!
//! It can be made again at any later time: what was the last revision in that session then still is.

use super::book::Book;
use super::observation::{Marks, Observation};
use super::session::Session;
use super::user::User;
use crate::index::storage::{Storage, StorageError};
use std::collections::BTreeMap;

/// As long as a made summary may be, in bytes.
const SUMMARY_BYTES_MAX: usize = 64 * 1024;

/// The summary of the active session.
pub(super) fn summary<S: Storage>(
    book: Book<'_, S>,
    user: u32,
    session: u32,
) -> Result<String, StorageError> {
    let saved = book.saved_in(user, session)?.into_iter().map(|id| book.must_have(user, id));
    Ok(made_of(saved.collect::<Result<_, _>>()?))
}

/// The sessions whose made summary tells of this observation, with what it says without. To cut it out of the text would
/// not do: it may be the beginning of another's, and what was cut out of it earlier would hide it.
pub(super) fn without<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    observation: &Observation,
) -> Result<Vec<Session>, StorageError> {
    let mut told = book.history(user.no, observation.id)?;
    told.push(observation.clone());
    let mut sessions: Vec<u32> = told.iter().map(|revision| revision.marks.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut without = Vec::new();
    for no in sessions {
        let session = book.session(user.no, no)?;
        if session.span.is_auto_generated {
            let mut saved = were_saved_in(book, user.no, no)?;
            saved.remove(&observation.id);
            let summary = Some(made_of(saved.into_values().collect()));
            without.push(Session { summary, ..session });
        }
    }
    Ok(without)
}

/// Of each observation the last revision in a session, by number.
fn were_saved_in<S: Storage>(
    book: Book<'_, S>,
    user: u32,
    session: u32,
) -> Result<BTreeMap<u64, Observation>, StorageError> {
    // They come by number and revision, so that the last one stays.
    let saved: BTreeMap<u64, Marks> = book.past_in(user, session)?.into_iter().collect();
    let mut whole = BTreeMap::new();
    for (id, marks) in saved {
        let words = book.words(user, id, marks.revision)?;
        whole.insert(id, Observation { id, marks, words });
    }
    for id in book.saved_in(user, session)? {
        whole.insert(id, book.must_have(user, id)?);
    }
    Ok(whole)
}

/// In the order of saving.
fn made_of(mut saved: Vec<Observation>) -> String {
    if saved.is_empty() {
        return "Nenhuma memoria registrada.".to_owned();
    }
    saved.sort_by_key(|observation| (observation.marks.updated_at, observation.id));
    let mut summary = "Memorias registradas: ".to_owned();
    for (at, observation) in saved.iter().enumerate() {
        let item = format!("[{}] {}", observation.marks.kind, observation.words.title);
        if summary.len() + item.len() > SUMMARY_BYTES_MAX {
            summary.push_str(", …");
            break;
        }
        summary.push_str(if at == 0 { "" } else { ", " });
        summary.push_str(&item);
    }
    summary
}

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
    made_of(book, user, saved_in(book, user, session)?)
}

/// The sessions whose made summary tells of this observation, with what it says without. To cut it out of the text would
/// not do: it may be the beginning of another's, and what was cut out of it earlier would hide it.
pub(super) fn without<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    observation: &Observation,
) -> Result<Vec<Session>, StorageError> {
    let mut told: Vec<u32> = vec![observation.marks.session];
    told.extend(book.past_of(user.no, observation.id)?.iter().map(|(_, marks)| marks.session));
    // Of each session and observation the last revision: they come by number and revision, so that the last one stays.
    let mut saved: BTreeMap<u32, BTreeMap<u64, Marks>> = BTreeMap::new();
    for no in told {
        if book.span(user.no, no)?.is_auto_generated {
            saved.insert(no, BTreeMap::new());
        }
    }
    if saved.is_empty() {
        return Ok(Vec::new());
    }
    for (id, marks) in book.past_of_all(user.no)? {
        if let Some(saved) = saved.get_mut(&marks.session) {
            saved.insert(id, marks);
        }
    }
    let mut without = Vec::new();
    for (no, mut left) in saved {
        left.extend(saved_in(book, user.no, no)?);
        left.remove(&observation.id);
        let summary = Some(made_of(book, user.no, left)?);
        without.push(Session { summary, ..book.session(user.no, no)? });
    }
    Ok(without)
}

fn saved_in<S: Storage>(
    book: Book<'_, S>,
    user: u32,
    session: u32,
) -> Result<BTreeMap<u64, Marks>, StorageError> {
    let marks = |id| Ok((id, book.must_have_marks(user, id)?));
    book.saved_in(user, session)?.into_iter().map(marks).collect()
}

/// In the order of saving. Words are read one by one, and no further than the summary goes.
fn made_of<S: Storage>(
    book: Book<'_, S>,
    user: u32,
    saved: BTreeMap<u64, Marks>,
) -> Result<String, StorageError> {
    if saved.is_empty() {
        return Ok("Nenhuma memoria registrada.".to_owned());
    }
    let mut saved: Vec<(u64, Marks)> = saved.into_iter().collect();
    saved.sort_by_key(|(id, marks)| (marks.updated_at, *id));
    let mut summary = "Memorias registradas: ".to_owned();
    for (at, (id, marks)) in saved.iter().enumerate() {
        let title = book.words(user, *id, marks.revision)?.title;
        let item = format!("[{}] {title}", marks.kind);
        if summary.len() + item.len() > SUMMARY_BYTES_MAX {
            summary.push_str(", …");
            break;
        }
        summary.push_str(if at == 0 { "" } else { ", " });
        summary.push_str(&item);
    }
    Ok(summary)
}

//! Whether a memory could have been told: as for sessions, a seal says only that lines were not changed by accident.
//!
//! Promise: what passes is found, searched and forgotten like any other. Everything is found by what it says, revisions follow
//! each other, what rests on sources has them and nothing else has, and no text has private parts.

use crate::index::Index;
use crate::index::storage::{Storage, StorageError};
use crate::memory::audit::audit_words;
use crate::memory::book::Book;
use crate::memory::observation::Observation;
use crate::memory::session::Session;
use crate::memory::user::User;
use crate::protocol::gate::is_blank;
use crate::protocol::memory::inward;
use crate::session::privacy::strip;
use std::collections::HashSet;

/// Above every configuration.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// What is wrong with this memory, if anything.
pub(super) fn check(index: &Index<impl Storage>) -> Result<Option<String>, StorageError> {
    if let Err(error) = audit_words(index.storage()) {
        return Ok(Some(error.reason));
    }
    let book = Book::new(index.storage());
    let mut grounded = HashSet::new();
    for (name, user) in book.users()? {
        if inward::user(&name).ok().as_deref() != Some(&name) {
            return Ok(Some(format!("{name:?} is no name of a user")));
        }
        if let Some(why) = check_sessions(book, &user)? {
            return Ok(Some(format!("user {name}: {why}")));
        }
        let mut from = 0;
        loop {
            let page = book.page(user.no, from)?;
            let Some(last) = page.last() else { break };
            from = last.id + 1;
            for observation in page {
                grounded.extend(observation.marks.has_sources.then_some(observation.id));
                if let Some(why) = check_observation(book, &user, &observation)? {
                    return Ok(Some(format!("observation {}: {why}", observation.id)));
                }
            }
        }
    }
    check_sources(index, &grounded)
}

fn check_sessions<S: Storage>(book: Book<'_, S>, user: &User) -> Result<Option<String>, StorageError> {
    let mut ids = HashSet::new();
    for no in 0..user.sessions {
        let Session { span, summary, .. } = book.session(user.no, no)?;
        if span.ended_at.is_none() && user.active != Some(no) {
            return Ok(Some(format!("session {no} has not ended, and is not the active one")));
        }
        if !is_name(&span.id) || !ids.insert(span.id) {
            return Ok(Some(format!("session {no} has an id that nobody made")));
        }
        if summary.is_some_and(|summary| !is_content(&summary)) {
            return Ok(Some(format!("session {no} has a summary that could not have been told")));
        }
    }
    Ok(None)
}

fn check_observation<S: Storage>(
    book: Book<'_, S>,
    user: &User,
    latest: &Observation,
) -> Result<Option<String>, StorageError> {
    // On the wire it is a number with a sign.
    if i64::try_from(latest.id).is_err() {
        return Ok(Some("nobody could ask for that number".to_owned()));
    }
    let mut revisions = book.history(user.no, latest.id)?;
    revisions.push(latest.clone());
    let keys = revisions.iter().filter_map(|revision| revision.words.topic_key.as_ref());
    if keys.collect::<HashSet<_>>().len() > 1 {
        return Ok(Some("it stood under two topic keys".to_owned()));
    }
    for (at, Observation { marks, words, .. }) in revisions.iter().enumerate() {
        if marks.revision as usize != at + 1 {
            return Ok(Some(format!("revision {} stands where {} must be", marks.revision, at + 1)));
        }
        if marks.session >= user.sessions {
            return Ok(Some(format!("there is no session {}", marks.session)));
        }
        let names = [Some(&marks.kind), words.topic_key.as_ref()];
        let named = names.into_iter().flatten().all(|name| is_name(name));
        let titled = words.title.len() <= inward::TITLE_BYTES_MAX && is_content(&words.title);
        if !named || !titled || !is_content(&words.content) {
            return Ok(Some("it says what could not have been told".to_owned()));
        }
    }
    Ok(None)
}

/// What rests on sources has a session of the index, and no other session is one of our own.
fn check_sources(
    index: &Index<impl Storage>,
    grounded: &HashSet<u64>,
) -> Result<Option<String>, StorageError> {
    let mut found = HashSet::new();
    for session in index.sessions()? {
        let Some(id) = index.head(session)?.session.observation() else { continue };
        if !index.believes(session)? {
            return Ok(Some(format!("observation {id} rests on sources that are not there")));
        }
        found.insert(id);
    }
    let differs = grounded.symmetric_difference(&found).min();
    Ok(differs.map(|id| format!("what observation {id} rests on, and whether it does, do not agree")))
}

fn is_name(text: &str) -> bool {
    text.len() <= inward::NAME_BYTES_MAX && is_content(text)
}

fn is_content(text: &str) -> bool {
    !is_blank(text) && text.len() <= CONTENT_BYTES_MAX && strip(text) == text
}

//! What users ask for that changes something: start, save, summary, end, expiry, forgetting. Each step reads and answers
//! with a [`Change`]; until that is applied nothing is changed.
//!
//! One session of a user is active at most. It expires when nothing happened in it for as long as the timeout; a clock that
//! went backwards never ends one, and never moves its last activity back.

use super::book::Book;
use super::change::Change;
use super::made;
use super::observation::{Marks, Observation, SUMMARY, Words};
use super::session::{Session, Span};
use super::user::User;
use crate::index::storage::{Storage, StorageError, Table};
use crate::session::moment::Moment;

/// What a step is told of the outside.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// The moment of the step.
    pub now: Moment,
    /// How long nothing happens in a session that has expired, in microseconds.
    pub timeout_micros: i64,
    /// What a session is called that begins with the step.
    pub new_session: String,
}

/// An observation to be saved, without its private parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Save {
    /// Its type.
    pub kind: String,
    /// What it says.
    pub words: Words,
    /// The revision that it is meant to follow; 0 where there must be none. Anything goes when it does not say.
    pub if_revision: Option<u32>,
    /// Whether it rests on sources. When it does not say, what is there already goes on resting on what it rests on.
    pub has_sources: Option<bool>,
}

/// What became of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is new.
    Created,
    /// It took the place of an earlier revision.
    Updated,
    /// It was there already.
    Deduped,
}

impl Outcome {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deduped => "deduped",
        }
    }
}

/// A save that was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// What became of it.
    pub outcome: Outcome,
    /// The observation as it is then.
    pub observation: Observation,
    /// The session of its last material update.
    pub session: String,
    /// A session began with it.
    pub opened: bool,
}

/// A step was refused, or failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// Somebody else saved in between.
    #[error("the observation is at revision {held}, not at {told}; read it again, and save over that")]
    Conflict {
        /// The revision that it has; 0 where there is none.
        held: u32,
        /// The revision that the save was meant to follow.
        told: u32,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Begins a session, or goes on with the active one. Says whether it is new.
pub fn start<S: Storage>(
    book: Book<'_, S>,
    user: &str,
    at: &Circumstances,
) -> Result<(Change, Session, bool), StorageError> {
    let mut change = Change::of(user);
    let (session, is_new) = touched(book, book.user(user)?, at, &mut change)?;
    Ok((change, session, is_new))
}

/// Saves an observation: over the one of its topic key, as the same that is there already, or as a new one.
pub fn save<S: Storage>(
    book: Book<'_, S>,
    user: &str,
    save: Save,
    at: &Circumstances,
) -> Result<(Change, Saved), StepError> {
    let held = book.user(user)?;
    let target = match &held {
        Some(held) => target(book, held.no, &save)?,
        None => Target::None,
    };
    let revision = target.observation().map_or(0, |observation| observation.marks.revision);
    if let Some(told) = save.if_revision.filter(|&told| told != revision) {
        return Err(StepError::Conflict { held: revision, told });
    }
    let mut change = Change::of(user);
    let no = held.as_ref().map(|held| held.no);
    let (session, opened) = touched(book, held, at, &mut change)?;
    let (outcome, observation) = match target {
        Target::Same(same) => (Outcome::Deduped, same),
        Target::Over(before) => (Outcome::Updated, updated(before, &save, &session, at)),
        Target::None => (Outcome::Created, created(book.next_observation()?, &save, &session, at)),
    };
    let had_sources = observation.marks.has_sources;
    let observation = with_sources(observation, save.has_sources);
    let session = match no {
        Some(no) if outcome == Outcome::Deduped => book.span(no, observation.marks.session)?.id,
        _ => session.span.id,
    };
    if outcome != Outcome::Deduped || observation.marks.has_sources != had_sources {
        change.saved = Some(observation.clone());
    }
    Ok((change, Saved { outcome, observation, session, opened }))
}

/// Ends the active session with this summary; none when no session is active, or only an expired one.
pub fn end<S: Storage>(
    book: Book<'_, S>,
    user: &str,
    summary: String,
    at: &Circumstances,
) -> Result<Option<(Change, Session)>, StorageError> {
    let Some(active) = active(book, book.user(user)?.as_ref())? else { return Ok(None) };
    if has_expired(&active.span, at) {
        return Ok(None);
    }
    // Under a clock that went backwards it would have ended before the last thing that was done in it.
    let ended_at = Some(active.span.last_activity_at.max(at.now));
    let span = Span { ended_at, ..active.span };
    let session = Session { summary: Some(summary), span, ..active };
    let change = Change { sessions: vec![session.clone()], ..Change::of(user) };
    Ok(Some((change, session)))
}

/// Ends the active session if it has expired.
pub fn expire<S: Storage>(
    book: Book<'_, S>,
    user: &str,
    at: &Circumstances,
) -> Result<Option<Change>, StorageError> {
    let Some(held) = book.user(user)? else { return Ok(None) };
    let Some(active) = active(book, Some(&held))?.filter(|active| has_expired(&active.span, at)) else {
        return Ok(None);
    };
    let ended = expired(book, held.no, active, at)?;
    Ok(Some(Change { sessions: vec![ended], ..Change::of(user) }))
}

/// Forgets an observation with its history, and takes it out of the summaries that were made of it; none when the user has
/// none of that number.
pub fn forget<S: Storage>(book: Book<'_, S>, user: &str, id: u64) -> Result<Option<Change>, StorageError> {
    let Some(held) = book.user(user)? else { return Ok(None) };
    let Some(observation) = book.observation(held.no, id)? else { return Ok(None) };
    let sessions = made::without(book, &held, &observation)?;
    Ok(Some(Change { sessions, forgotten: Some(id), ..Change::of(user) }))
}

/// What a save is about.
enum Target {
    /// Nothing that is there.
    None,
    /// An observation that it takes the place of.
    Over(Observation),
    /// An observation that says the same.
    Same(Observation),
}

impl Target {
    fn observation(&self) -> Option<&Observation> {
        match self {
            Self::None => None,
            Self::Over(observation) | Self::Same(observation) => Some(observation),
        }
    }
}

fn target<S: Storage>(book: Book<'_, S>, user: u32, save: &Save) -> Result<Target, StorageError> {
    let Words { content, topic_key, .. } = &save.words;
    if let Some(topic_key) = topic_key
        && let Some(id) = book.by_topic(user, topic_key)?
    {
        let held = book.must_have(user, id)?;
        if held.words.topic_key.as_ref() != Some(topic_key) {
            return Err(book.doubt(Table::Topics, "an observation stands under a key that it has not"));
        }
        let same = held.words.content == *content;
        return Ok(if same { Target::Same(held) } else { Target::Over(held) });
    }
    for id in book.by_wording(user, &save.kind, content)? {
        let held = book.must_have(user, id)?;
        match (topic_key, &held.words.topic_key) {
            (None, _) => return Ok(Target::Same(held)),
            // The key is attached to it.
            (Some(_), None) => return Ok(Target::Over(held)),
            (Some(_), Some(_)) => {}
        }
    }
    Ok(Target::None)
}

fn created(id: u64, save: &Save, session: &Session, at: &Circumstances) -> Observation {
    let marks = Marks {
        kind: save.kind.clone(),
        revision: 1,
        created_at: at.now,
        updated_at: at.now,
        session: session.no,
        is_keyed: save.words.topic_key.is_some(),
        has_sources: false,
    };
    Observation { id, marks, words: save.words.clone() }
}

fn updated(before: Observation, save: &Save, session: &Session, at: &Circumstances) -> Observation {
    let Observation { id, marks: before, .. } = before;
    let (revision, kind) = (before.revision + 1, save.kind.clone());
    let is_keyed = save.words.topic_key.is_some();
    let marks = Marks { kind, revision, updated_at: at.now, session: session.no, is_keyed, ..before };
    Observation { id, marks, words: save.words.clone() }
}

fn with_sources(observation: Observation, told: Option<bool>) -> Observation {
    let has_sources = told.unwrap_or(observation.marks.has_sources);
    Observation { marks: Marks { has_sources, ..observation.marks }, ..observation }
}

/// The active session with something done in it just now, or a new one; says whether it is new.
fn touched<S: Storage>(
    book: Book<'_, S>,
    user: Option<User>,
    at: &Circumstances,
    change: &mut Change,
) -> Result<(Session, bool), StorageError> {
    let active = active(book, user.as_ref())?;
    let user = user.unwrap_or_default();
    let (session, is_new) = match active {
        Some(active) if !has_expired(&active.span, at) => {
            let last_activity_at = active.span.last_activity_at.max(at.now);
            (Session { span: Span { last_activity_at, ..active.span }, ..active }, false)
        }
        lapsed => {
            if let Some(lapsed) = lapsed {
                change.sessions.push(expired(book, user.no, lapsed, at)?);
            }
            (begun(user.sessions, at), true)
        }
    };
    change.sessions.push(session.clone());
    Ok((session, is_new))
}

fn active<S: Storage>(book: Book<'_, S>, user: Option<&User>) -> Result<Option<Session>, StorageError> {
    let Some((user, active)) = user.and_then(|user| Some((user.no, user.active?))) else { return Ok(None) };
    book.session(user, active).map(Some)
}

fn begun(no: u32, at: &Circumstances) -> Session {
    let span = Span {
        id: at.new_session.clone(),
        started_at: at.now,
        last_activity_at: at.now,
        ended_at: None,
        is_auto_generated: false,
    };
    Session { no, span, summary: None }
}

/// When a session expires in which nothing happens any more.
#[must_use]
pub fn expires_at(span: &Span, timeout_micros: i64) -> Moment {
    Moment::from_micros(span.last_activity_at.micros.saturating_add(timeout_micros))
}

fn has_expired(span: &Span, at: &Circumstances) -> bool {
    at.now >= expires_at(span, at.timeout_micros)
}

fn expired<S: Storage>(
    book: Book<'_, S>,
    user: u32,
    session: Session,
    at: &Circumstances,
) -> Result<Session, StorageError> {
    let summary = made::summary(book, user, session.no)?;
    let ended_at = Some(expires_at(&session.span, at.timeout_micros));
    let span = Span { ended_at, is_auto_generated: true, ..session.span };
    Ok(Session { span, summary: Some(summary), ..session })
}

/// A session's summary as an observation to be saved.
#[must_use]
pub fn summary(title: String, summary: String) -> Save {
    let words = Words { title, content: summary, topic_key: None };
    Save { kind: SUMMARY.to_owned(), words, ..Save::default() }
}

//! What the journal keeps of the memory: its changes, each with the sources that the observation in it rests on.

use crate::index::storage::{Storage, StorageError};
use crate::index::{Index, RegisterError, Registered, SourceId};
use crate::memory::{self, change::Change, observation, session};
use crate::protocol::context::Context;
use crate::protocol::convert;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::session::moment::Moment;
use crate::world::digest;
use serde::{Deserialize, Serialize};

/// A change of the memory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<Session>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_observation: Option<u64>,
    /// What the observation rests on from now on, as the session of the index that stands for it. Without results it rests on
    /// nothing any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Box<Context>>,
    /// When the sources were told, in microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    no: u32,
    id: String,
    started_at: i64,
    last_activity_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_auto_generated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Observation {
    id: u64,
    #[serde(rename = "type")]
    kind: String,
    revision: u32,
    created_at: i64,
    updated_at: i64,
    session: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_sources: bool,
    title: String,
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic_key: Option<String>,
}

/// What applying a change did to the index.
#[derive(Debug, Default)]
pub struct Resting {
    /// The registration of the observation's sources, if they were told.
    pub registered: Option<Registered>,
    /// Sources that nobody rests on any more.
    pub released: Vec<SourceId>,
}

/// Applies a change, and with it what its observation rests on.
pub fn apply(
    index: &mut Index<impl Storage>,
    change: &Change,
    sources: Option<&Update>,
    at: Moment,
) -> Result<Resting, RegisterError> {
    memory::apply(index.storage_mut(), change)?;
    let gone = sources.filter(|update| update.results.is_empty()).map(|update| update.session.clone());
    let gone = gone.or_else(|| change.forgotten.map(SessionId::of_observation));
    if let Some(session) = gone.and_then(|name| index.session(&name)) {
        let released = index.drop_session(session)?;
        return Ok(Resting { released, ..Resting::default() });
    }
    let Some(update) = sources.filter(|update| !update.results.is_empty()) else {
        return Ok(Resting::default());
    };
    let registered = index.register(update, usize::MAX, at)?;
    let released = registered.released.clone();
    Ok(Resting { registered: Some(registered), released })
}

impl Remembered {
    /// Whether it is a session or a revision as it is kept, and does nothing else.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.forgotten.is_none() && self.sources.is_none()
    }

    /// A change as the journal keeps it.
    #[must_use]
    pub fn new(change: &Change, sources: Option<&Update>, at: Moment) -> Self {
        let Change { user, sessions, saved, forgotten, next_observation } = change;
        Self {
            user: user.clone(),
            sessions: sessions.iter().map(Session::of).collect(),
            saved: saved.as_ref().map(Observation::of),
            forgotten: *forgotten,
            next_observation: *next_observation,
            sources: sources.map(|update| Box::new(convert::context(update))),
            at: sources.map(|_| at.micros),
        }
    }

    /// Which session of the index its sources were told for, and when.
    pub(super) fn told(self) -> Option<(String, Moment)> {
        self.sources.and_then(|sources| sources.session).zip(self.at.map(Moment::from_micros))
    }

    /// Takes the record into an index as it was taken when it was told.
    pub(super) fn apply(self, index: &mut Index<impl Storage>) -> Result<(), ApplyError> {
        let at = Moment::from_micros(self.at.unwrap_or_default());
        let Self { user, sessions, saved, forgotten, next_observation, sources, .. } = self;
        let change = Change {
            user,
            sessions: sessions.into_iter().map(Session::back).collect(),
            saved: saved.map(Observation::back),
            forgotten,
            next_observation,
        };
        let sources = sources.map(|context| {
            let session = context.session.as_deref().and_then(SessionId::stored);
            let session = session.ok_or_else(|| Refusal::invalid_params("sources of no observation"))?;
            convert::update(*context, digest::blake3, session)
        });
        apply(index, &change, sources.transpose()?.as_ref(), at)?;
        Ok(())
    }
}

/// A change cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// Its sources say what could not have been told.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The index did not take it.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl From<StorageError> for ApplyError {
    fn from(error: StorageError) -> Self {
        Self::Register(error.into())
    }
}

impl Session {
    fn of(session: &session::Session) -> Self {
        let session::Session { no, span, summary } = session.clone();
        Self {
            no,
            id: span.id,
            started_at: span.started_at.micros,
            last_activity_at: span.last_activity_at.micros,
            ended_at: span.ended_at.map(|at| at.micros),
            is_auto_generated: span.is_auto_generated,
            summary,
        }
    }

    fn back(self) -> session::Session {
        let span = session::Span {
            id: self.id,
            started_at: Moment::from_micros(self.started_at),
            last_activity_at: Moment::from_micros(self.last_activity_at),
            ended_at: self.ended_at.map(Moment::from_micros),
            is_auto_generated: self.is_auto_generated,
        };
        // What has ended has a summary, and what has not has none: the two stand in different tables.
        let summary = self.ended_at.map(|_| self.summary.unwrap_or_default());
        session::Session { no: self.no, span, summary }
    }
}

impl Observation {
    fn of(observation: &observation::Observation) -> Self {
        let observation::Observation { id, marks, words } = observation.clone();
        Self {
            id,
            kind: marks.kind,
            revision: marks.revision,
            created_at: marks.created_at.micros,
            updated_at: marks.updated_at.micros,
            session: marks.session,
            has_sources: marks.has_sources,
            title: words.title,
            content: words.content,
            topic_key: words.topic_key,
        }
    }

    fn back(self) -> observation::Observation {
        let marks = observation::Marks {
            kind: self.kind,
            revision: self.revision,
            created_at: Moment::from_micros(self.created_at),
            updated_at: Moment::from_micros(self.updated_at),
            session: self.session,
            is_keyed: self.topic_key.is_some(),
            has_sources: self.has_sources,
        };
        let Self { title, content, topic_key, .. } = self;
        observation::Observation {
            id: self.id,
            marks,
            words: observation::Words { title, content, topic_key },
        }
    }
}

//! What the memory answers.

use super::cut;
use crate::memory::observation::Observation;
use crate::memory::session::Session;
use crate::protocol::context::Source;
use crate::protocol::convert::source_out;
use crate::protocol::path::WirePath;
use crate::protocol::time;
use serde::Serialize;
use std::path::PathBuf;

/// A list.
#[derive(Debug, Serialize)]
pub struct Results<T> {
    /// Its entries.
    pub results: Vec<T>,
}

/// `mem_save` and `mem_session_summary`
#[derive(Debug, Serialize)]
pub struct Saved {
    /// The observation's number.
    pub id: u64,
    /// `created`, `updated` or `deduped`.
    pub outcome: &'static str,
    /// The session of its last material update.
    pub session_id: String,
    /// Its topic key.
    pub topic_key: Option<String>,
    /// Its revision.
    pub revision_count: u32,
    /// `implicit` when a session began with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_opened: Option<&'static str>,
    /// What is known of the sources that were told with it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// What is known of the sources of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// `fresh`, `stale`, `unknown` or `none`.
    pub evidence: &'static str,
    /// Sources that are not fresh.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
}

impl Evidence {
    /// Whether it speaks against the observation.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        !matches!(self.evidence, "fresh" | "none")
    }
}

/// A source that is not fresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The source as it was spelled.
    pub path: WirePath,
    /// `stale` or `unknown`.
    pub status: &'static str,
    /// Why.
    pub cause: Option<&'static str>,
    /// What was there when it was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// What is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// `mem_session_end`, and one of `mem_list_sessions`
#[derive(Debug, Serialize)]
pub struct SessionOut {
    /// Its id.
    pub id: String,
    /// Whose.
    pub user_id: String,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The last start, save or summary in it.
    pub last_activity_at: String,
    /// What was done in it.
    pub summary: Option<String>,
    /// `active` or `completed`.
    pub status: &'static str,
    /// It ended for want of activity.
    pub is_auto_generated: bool,
}

impl SessionOut {
    /// A session as it travels.
    #[must_use]
    pub fn new(user: &str, session: Session) -> Self {
        let Session { span, summary, .. } = session;
        Self {
            id: span.id,
            user_id: user.to_owned(),
            started_at: time::to_text(span.started_at),
            ended_at: span.ended_at.map(time::to_text),
            last_activity_at: time::to_text(span.last_activity_at),
            summary,
            status: if span.ended_at.is_some() { "completed" } else { "active" },
            is_auto_generated: span.is_auto_generated,
        }
    }
}

/// `mem_session_start`
#[derive(Debug, Serialize)]
pub struct Started {
    /// The active session.
    pub session_id: String,
    /// Whether it began just now.
    pub is_new: bool,
    /// The last sessions that ended, the latest first.
    pub sessions_context: Vec<Ended>,
    /// What was remembered in them and in this one, best first.
    pub memories: Vec<Compact>,
}

/// A session that ended.
#[derive(Debug, Serialize)]
pub struct Ended {
    /// Its id.
    pub session_id: String,
    /// When it ended.
    pub date: Option<String>,
    /// What was done in it.
    pub summary: Option<String>,
    /// The summary was made from what was saved.
    pub is_auto_generated: bool,
}

impl From<Session> for Ended {
    fn from(session: Session) -> Self {
        let Session { span, summary, .. } = session;
        let date = span.ended_at.map(time::to_text);
        Self { session_id: span.id, date, summary, is_auto_generated: span.is_auto_generated }
    }
}

/// How long an excerpt is, in bytes.
const EXCERPT_BYTES: usize = 160;

/// An observation in few words.
#[derive(Debug, Serialize)]
pub struct Compact {
    /// Its number.
    pub id: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its title.
    pub title: String,
    /// How its content begins.
    pub excerpt: String,
    /// Its topic key.
    pub topic_key: Option<String>,
    /// Its revision.
    pub revision_count: u32,
    /// When it was last saved.
    pub updated_at: String,
    /// What is known of its sources.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// 0 to 1; nothing where nothing was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What the score is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_parts: Option<Parts>,
    /// It is what the timeline is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_anchor: Option<bool>,
}

/// What a score is made of, each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parts {
    /// How well it answers the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// How new it is.
    pub recency: f64,
    /// How often it was revised.
    pub revision: f64,
    /// What its type counts.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<f64>,
}

impl Compact {
    /// An observation without a score.
    #[must_use]
    pub fn new(observation: Observation, evidence: Evidence) -> Self {
        let Observation { id, marks, words } = observation;
        let excerpt = cut(&words.content, EXCERPT_BYTES);
        let rest = if excerpt.len() < words.content.len() { "…" } else { "" };
        Self {
            id,
            kind: marks.kind,
            title: words.title,
            excerpt: format!("{excerpt}{rest}"),
            topic_key: words.topic_key,
            revision_count: marks.revision,
            updated_at: time::to_text(marks.updated_at),
            evidence,
            score: None,
            score_parts: None,
            is_anchor: None,
        }
    }
}

/// `mem_get_observation`
#[derive(Debug, Serialize)]
pub struct Whole {
    /// Its number.
    pub id: u64,
    /// The session of its last material update.
    pub session_id: String,
    /// Whose.
    pub user_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its title.
    pub title: String,
    /// All of it.
    pub content: String,
    /// Its topic key.
    pub topic_key: Option<String>,
    /// Its revision.
    pub revision_count: u32,
    /// When it was first saved.
    pub created_at: String,
    /// When it was last saved.
    pub updated_at: String,
    /// What it rests on.
    pub sources: Vec<Grounded>,
    /// What is known of that.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// What it was before, the first revision first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Past>>,
    /// How many of the first revisions are left out, where all together would be too long for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_omitted: Option<usize>,
}

/// What an observation rests on: a file's path, or any other source whole.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Grounded {
    /// A file.
    Path(WirePath),
    /// Another source.
    Source(Box<Source>),
}

impl Grounded {
    /// A source as it travels.
    #[must_use]
    pub fn new(source: &crate::session::source::Source) -> Self {
        match source {
            crate::session::source::Source::File { path } => Self::Path(WirePath(PathBuf::from(path))),
            other => Self::Source(Box::new(source_out(other))),
        }
    }
}

/// An earlier revision.
#[derive(Debug, Serialize)]
pub struct Past {
    /// Which.
    pub revision_count: u32,
    /// Its type then.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its title then.
    pub title: String,
    /// Its content then.
    pub content: String,
    /// Its topic key then.
    pub topic_key: Option<String>,
    /// When it was saved.
    pub updated_at: String,
}

impl From<Observation> for Past {
    fn from(observation: Observation) -> Self {
        let Observation { marks, words, .. } = observation;
        Self {
            revision_count: marks.revision,
            kind: marks.kind,
            title: words.title,
            content: words.content,
            topic_key: words.topic_key,
            updated_at: time::to_text(marks.updated_at),
        }
    }
}

/// `mem_stats`
#[derive(Debug, Serialize)]
pub struct Stats {
    /// How many observations.
    pub observations: u64,
    /// How many sessions.
    pub sessions: u64,
    /// How many observations of each type.
    pub by_type: std::collections::BTreeMap<String, u64>,
    /// How many rest on sources that changed.
    pub stale: u64,
    /// How many rest on sources of which nothing can be told.
    pub unknown: u64,
}

/// `mem_forget`
#[derive(Debug, Serialize)]
pub struct Forgotten {
    /// The observation's number.
    pub id: u64,
    /// It is gone; its bytes are once the journal has been compacted.
    pub forgotten: bool,
}

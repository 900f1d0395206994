//! Twins of what travels to the memory and back.

pub mod answer;
pub mod inward;

use super::context::Source;
use super::path::WirePath;
use serde::{Deserialize, Serialize};

/// One variant a method.
#[derive(Debug)]
pub enum Ask {
    /// `mem_session_start`
    Start(Start),
    /// `mem_save`
    Save(Save),
    /// `mem_session_summary`
    Summary(Summary),
    /// `mem_session_end`
    End(Summary),
    /// `mem_search`
    Search(Search),
    /// `mem_get_observation`
    Get(Get),
    /// `mem_timeline`
    Timeline(Around),
    /// `mem_stats`
    Stats(OfUser),
    /// `mem_list_sessions`
    ListSessions(ListSessions),
    /// `mem_forget`
    Forget(Forget),
}

impl Ask {
    /// The method that asks for it.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Start(_) => "mem_session_start",
            Self::Save(_) => "mem_save",
            Self::Summary(_) => "mem_session_summary",
            Self::End(_) => "mem_session_end",
            Self::Search(_) => "mem_search",
            Self::Get(_) => "mem_get_observation",
            Self::Timeline(_) => "mem_timeline",
            Self::Stats(_) => "mem_stats",
            Self::ListSessions(_) => "mem_list_sessions",
            Self::Forget(_) => "mem_forget",
        }
    }
}

/// The text up to the last character that ends within so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Parameters of `mem_stats`: a user, and nothing else.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfUser {
    /// Whose memory.
    pub user_id: String,
}

/// Parameters of `mem_session_start`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Whose session.
    pub user_id: String,
    /// What becomes of memories whose evidence is not fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Stale>,
}

/// What becomes of observations whose evidence is stale or unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stale {
    /// They are there, labelled.
    #[default]
    Include,
    /// They come after all others.
    Demote,
    /// They are left out.
    Exclude,
}

/// Parameters of `mem_save`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// Whose.
    pub user_id: String,
    /// What is to be remembered.
    pub content: String,
    /// One of the configured types.
    #[serde(rename = "type")]
    pub kind: String,
    /// Cut at 80 bytes.
    pub title: String,
    /// A save under the same key takes the place of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_key: Option<String>,
    /// What it rests on. Left out, what is there already rests on what it did; empty, on nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<Ground>>,
    /// The revision that it is meant to follow; 0 where there must be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u32>,
}

/// What an observation rests on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ground {
    /// A file, by its absolute path.
    Path(WirePath),
    /// Any source.
    Source(Box<Source>),
    /// A source, and what the agent saw there.
    Seen(Box<Seen>),
}

/// A source, and what the agent saw there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The source.
    pub source: Source,
    /// As a result's digest.
    pub digest: String,
}

/// Parameters of `mem_session_summary` and `mem_session_end`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Whose session.
    pub user_id: String,
    /// What was done in it.
    pub summary: String,
}

/// Parameters of `mem_search`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Whose memory.
    pub user_id: String,
    /// Anything; no text is an error but a blank one.
    pub query: String,
    /// At most so many, 1 to 100; 10 when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only these types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// All but these types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types_exclude: Option<Vec<String>>,
    /// What becomes of observations whose evidence is not fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Stale>,
}

/// Parameters of `mem_get_observation`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Whose.
    pub user_id: String,
    /// Which.
    pub observation_id: i64,
    /// With its earlier revisions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history: bool,
}

/// Parameters of `mem_timeline`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Around {
    /// Whose.
    pub user_id: String,
    /// The anchor.
    pub observation_id: i64,
}

/// Parameters of `mem_forget`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Whose.
    pub user_id: String,
    /// Which observation.
    pub id: i64,
}

/// Parameters of `mem_list_sessions`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Whose.
    pub user_id: String,
    /// At most so many, 1 to 100; 10 when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

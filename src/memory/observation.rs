//! An observation: one thing that is remembered, and what it was before.

use crate::index::pack::pack_struct;
use crate::session::moment::Moment;

/// What a session's summary goes by. Clients cannot save it as an observation of their own.
pub const SUMMARY: &str = "summary";

/// One revision of an observation, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Its number, from 1; never another's.
    pub id: u64,
    /// What it is, without its words.
    pub marks: Marks,
    /// What it says.
    pub words: Words,
}

/// What a revision is, without its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// Its type.
    pub kind: String,
    /// Counts the revisions, from 1.
    pub revision: u32,
    /// When the first revision was saved.
    pub created_at: Moment,
    /// When this one was.
    pub updated_at: Moment,
    /// Number of the session in which this one was.
    pub session: u32,
    /// Whether it has a topic key.
    pub is_keyed: bool,
    /// Whether it rests on sources that are watched.
    pub has_sources: bool,
}

/// What a revision says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// At most 80 bytes.
    pub title: String,
    /// All of it.
    pub content: String,
    /// What it is about: a save under the same key takes its place.
    pub topic_key: Option<String>,
}

pack_struct!(Marks { kind, revision, created_at, updated_at, session, is_keyed, has_sources });
pack_struct!(Words { title, content, topic_key });

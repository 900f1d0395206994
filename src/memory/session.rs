//! A session of the memory: from a user's first save or start until it is ended, or nothing happened for too long.

use crate::index::pack::pack_struct;
use crate::session::moment::Moment;

/// A session, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number among the user's, from 0.
    pub no: u32,
    /// What it is, without its summary.
    pub span: Span,
    /// What was done in it, once it has ended.
    pub summary: Option<String>,
}

/// When a session was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What clients call it.
    pub id: String,
    /// When it began.
    pub started_at: Moment,
    /// The last start, save or summary in it.
    pub last_activity_at: Moment,
    /// When it ended.
    pub ended_at: Option<Moment>,
    /// It was ended for want of activity, and its summary made from what was saved.
    pub is_auto_generated: bool,
}

pack_struct!(Span { id, started_at, last_activity_at, ended_at, is_auto_generated });

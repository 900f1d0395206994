//! A user of the memory.

use crate::index::pack::pack_struct;

/// A user, and how much there is of what is kept for them. A storage that lost keys without a word holds less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Number that begins the keys of everything kept for the user.
    pub no: u32,
    /// Number of the session that has not ended.
    pub active: Option<u32>,
    /// How many sessions there are; the number that the next one gets.
    pub sessions: u32,
    /// How many observations there are.
    pub observations: u64,
    /// How many earlier revisions there are of them.
    pub revisions: u64,
}

pack_struct!(User { no, active, sessions, observations, revisions });

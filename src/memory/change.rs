//! What a step does to the memory, said by its outcome alone: sessions and an observation as they are from then on.
//!
//! The journal keeps changes, never what was asked: a later version may expire sessions or tell duplicates otherwise, and
//! what was acknowledged must come out of old records as it was.

use super::observation::Observation;
use super::session::Session;

/// What a step does to what is kept for one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub user: String,
    /// Sessions that began, went on or ended; each as it is now, in this order.
    pub sessions: Vec<Session>,
    /// An observation as it is now. The revision before it, if it was another one, becomes history.
    pub saved: Option<Observation>,
    /// An observation that is gone, with its history.
    pub forgotten: Option<u64>,
    /// Numbers below this are taken, whether or not what they stood for is still there.
    pub next_observation: Option<u64>,
}

impl Change {
    pub(super) fn of(user: &str) -> Self {
        Self { user: user.to_owned(), ..Self::default() }
    }

    /// Whether there is nothing to keep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::of(&self.user)
    }
}

//! What users told to be remembered: sessions and observations, one user's apart from every other's.
//!
//! Pure steps over the index's storage: a step is asked with everything explicit and answers with a [`change::Change`],
//! which the journal keeps and which is then applied; nothing is written otherwise. Texts come here without their private
//! parts. What an observation rests on is no business of this room: its sources are rows of a session of the index, under
//! [`crate::session::SessionId::of_observation`].

pub mod observation;
pub mod recall;
pub mod score;
pub mod session;
pub mod terms;
pub mod user;
pub mod change;
mod made;
pub mod step;
pub mod book;
mod keys;
mod apply;
pub mod recent;
pub mod kept;
pub mod audit;

pub use apply::apply;

#[cfg(test)]
mod tests;

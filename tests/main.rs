//! The one test crate.

mod gate;
mod transcripts;

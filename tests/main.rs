//! The one test crate.

mod daemon;
mod gate;
mod git_head;
mod harness;
mod sim;
mod store;
mod transcripts;

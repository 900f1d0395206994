//! The one test crate.

mod config;
mod crash;
mod daemon;
mod gate;
mod git_head;
mod harness;
mod layout;
mod store;
mod transcripts;

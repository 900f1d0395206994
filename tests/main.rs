//! The one test crate.

mod adversary;
mod cli;
mod config;
mod crash;
mod daemon;
mod fork;
mod fork_isolation;
mod fork_hands;
mod fuzz;
mod gate;
mod git_head;
mod harness;
mod hook;
mod layout;
mod lies;
mod mcp;
mod memory;
mod memory_evidence;
mod readme;
mod reports;
mod sim;
mod soak;
mod store;
mod systemd;
mod transcripts;

//! Forks from the command line: what confines a command, what merges, and what is said of both.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod again;
mod confine;
mod cut_off;
mod exec;
mod merge;
mod refused;
mod stub;
mod unread;
mod whole;

//! What an agent believes: its session, its cached results, its invariants, its facts.
//!
//! Pure values: nothing here reads a file, a clock or a socket.

pub mod digest;

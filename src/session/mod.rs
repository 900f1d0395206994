//! What an agent believes: its session, its cached results, its invariants, its facts.
//!
//! Pure values: nothing here reads a file, a clock or a socket.

pub mod context;
pub mod digest;
pub mod line_ends;
pub mod moment;
pub mod privacy;
pub mod source;

use std::fmt;

/// The client's name for a session: 1 to 200 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Longest name, in bytes.
    pub const BYTES_MAX: usize = 200;

    /// Takes a name of 1 to 200 bytes without control characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let legal = !name.is_empty() && name.len() <= Self::BYTES_MAX && !name.chars().any(char::is_control);
        legal.then(|| Self(name.to_owned()))
    }

    /// The name as the client spelled it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

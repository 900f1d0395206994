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

/// What the daemon's own names begin with: a control character, which no client's name has.
const OWN: char = '\u{1}';

impl SessionId {
    /// Longest name, in bytes.
    pub const BYTES_MAX: usize = 200;

    /// Takes a name of 1 to 200 bytes without control characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let legal = !name.is_empty() && name.len() <= Self::BYTES_MAX && !name.chars().any(char::is_control);
        legal.then(|| Self(name.to_owned()))
    }

    /// The daemon's own name for what an observation of the memory rests on. No client can spell it.
    #[must_use]
    pub fn of_observation(observation: u64) -> Self {
        Self(format!("{OWN}observation {observation}"))
    }

    /// The observation that this name is for, if it is the daemon's own.
    #[must_use]
    pub fn observation(&self) -> Option<u64> {
        self.0.strip_prefix(OWN)?.strip_prefix("observation ")?.parse().ok()
    }

    /// A name that stands in the store: a client's, or the daemon's own.
    #[must_use]
    pub fn stored(name: &str) -> Option<Self> {
        let own = || Self(name.to_owned()).observation().map(Self::of_observation);
        Self::new(name).or_else(|| own().filter(|own| own.0 == name))
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

//! What an agent believes: its session, its cached results, its invariants, its facts.
//!
//! Pure values: nothing here reads a file, a clock or a socket.

pub mod context;
pub mod digest;
pub mod line_ends;
pub mod moment;
pub mod privacy;
pub mod reroot;
pub mod source;

use std::fmt;

/// The client's name for a session: 1 to 200 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// What the daemon's own names begin with: a control character, which no client's name has.
const OWN: char = '\u{1}';

/// What a session of a fork stands for that no client told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The parent's tree, as it was when the fork was made.
    Base,
    /// The fork's workspace, as it was then.
    Work,
}

impl Side {
    const ALL: [Self; 2] = [Self::Base, Self::Work];

    fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Work => "work",
        }
    }
}

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

    /// The daemon's own name for what a fork is measured by: the world that it started from, or its own workspace.
    #[must_use]
    pub fn of_fork(fork: u64, side: Side) -> Self {
        Self(format!("{OWN}fork {fork} {}", side.word()))
    }

    fn fork(&self) -> Option<(u64, Side)> {
        let (fork, side) = self.0.strip_prefix(OWN)?.strip_prefix("fork ")?.split_once(' ')?;
        Some((fork.parse().ok()?, Side::ALL.into_iter().find(|known| known.word() == side)?))
    }

    /// Whether the name is the daemon's own for a side of a fork.
    #[must_use]
    pub fn is_of_fork(&self) -> bool {
        self.fork().is_some()
    }

    /// The fork whose base this name is for.
    #[must_use]
    pub fn base_of_fork(&self) -> Option<u64> {
        self.fork().filter(|(_, side)| *side == Side::Base).map(|(fork, _)| fork)
    }

    /// Whether the name is the daemon's own: whoever lists sessions for people passes over it.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.starts_with(OWN)
    }

    /// A name that stands in the store: a client's, or the daemon's own.
    #[must_use]
    pub fn stored(name: &str) -> Option<Self> {
        let read = Self(name.to_owned());
        let observation = || read.observation().map(Self::of_observation);
        let fork = || read.fork().map(|(fork, side)| Self::of_fork(fork, side));
        Self::new(name).or_else(|| observation().or_else(fork).filter(|own| own.0 == name))
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

//! The keys of the configuration, section by section, with their defaults; `config/staled.toml` says what each means.

use serde::Deserialize;

/// `[decision]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decision {
    /// 0 is off.
    pub scratchpad_bytes_max: u64,
    /// When the client does not say.
    pub deadline_ms: u64,
    /// Whatever the client says.
    pub deadline_ms_max: u64,
}

impl Default for Decision {
    fn default() -> Self {
        Self { scratchpad_bytes_max: 0, deadline_ms: 250, deadline_ms_max: 10_000 }
    }
}

/// `[context]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// Of one session.
    pub results_max: usize,
    /// How long a registration waits for its looks.
    pub register_deadline_ms: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self { results_max: 100_000, register_deadline_ms: 60_000 }
    }
}

/// `[verify]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Verify {
    /// Threads that look.
    pub threads: usize,
    /// Hashed one at a time above this.
    pub big_file_bytes: u64,
    /// On local filesystems.
    pub racy_local_ms: u32,
    /// On others.
    pub racy_other_ms: u32,
    /// Between looks at what could not be told.
    pub retry_ms: u64,
    /// One pass of the scrub; 0 is off.
    pub scrub_pass_s: u64,
    /// Compares every decision with the disk.
    pub paranoid: bool,
    /// A cookie that is not back by then means that the watcher is dead.
    pub cookie_ms_max: u64,
    /// On filesystems that do not report changes.
    pub unwatchable: Unwatchable,
}

/// What is said of sources on filesystems that do not report changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unwatchable {
    /// That they cannot be told.
    Unknown,
    /// What a look finds that is made for the question.
    Verify,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            threads: 2,
            big_file_bytes: 256 * 1024 * 1024,
            racy_local_ms: 10,
            racy_other_ms: 2_000,
            retry_ms: 5_000,
            scrub_pass_s: 3_600,
            paranoid: false,
            cookie_ms_max: 1_000,
            unwatchable: Unwatchable::Unknown,
        }
    }
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// At once.
    pub connections_max: usize,
    /// On one connection.
    pub pending_max: usize,
    /// One line.
    pub request_bytes_max: usize,
    /// From its first byte to its last.
    pub line_timeout_ms: u64,
    /// Without a request.
    pub idle_timeout_ms: u64,
    /// For one answer.
    pub write_timeout_ms: u64,
    /// Of one subscriber.
    pub subscriber_events_max: usize,
    /// From the signal to the end.
    pub drain_timeout_ms: u64,
    /// Whether the daemon confines itself.
    pub confine: Confine,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            connections_max: 256,
            pending_max: 64,
            request_bytes_max: crate::protocol::REQUEST_BYTES_MAX,
            line_timeout_ms: 10_000,
            idle_timeout_ms: 60_000,
            write_timeout_ms: 5_000,
            subscriber_events_max: 1_000,
            drain_timeout_ms: 10_000,
            confine: Confine::Auto,
        }
    }
}

/// Whether the daemon gives up what it does not need: writing outside its folders, running programs, TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confine {
    /// As far as the kernel can.
    Auto,
    /// All of it, or the daemon does not start.
    Required,
    /// Not at all.
    Off,
}

/// `[memory]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Without activity, before a session is ended.
    pub session_timeout_hours: u64,
    /// What may be saved.
    pub observation_types: Vec<String>,
    /// Of one observation or summary.
    pub content_bytes_max: usize,
    /// What searches keep at hand of all users together.
    pub search_cache_bytes: usize,
}

impl Default for Memory {
    fn default() -> Self {
        let types = ["profile", "preference", "decision", "pattern", "discovery"];
        Self {
            session_timeout_hours: 24,
            observation_types: types.map(str::to_owned).to_vec(),
            content_bytes_max: 64 * 1024,
            search_cache_bytes: 256 * 1024 * 1024,
        }
    }
}

/// `[fork]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fork {
    /// Of one session, at a time.
    pub branches_max: usize,
    /// Of one file that is copied byte by byte.
    pub file_bytes_max: u64,
    /// How long an access that was allowed accounts for what happens there.
    pub access_s: u64,
    /// How long git may take for one step.
    pub git_timeout_s: u64,
}

impl Default for Fork {
    fn default() -> Self {
        Self { branches_max: 16, file_bytes_max: 1 << 30, access_s: 600, git_timeout_s: 600 }
    }
}

/// `[hook]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// For an edit of a file that is itself stale.
    pub target: Gate,
    /// For an edit of another file while a critical result is stale.
    pub others: Gate,
    /// For the whole hook; after it the agent goes on.
    pub deadline_ms: u64,
}

impl Default for Hook {
    fn default() -> Self {
        Self { target: Gate::Deny, others: Gate::Warn, deadline_ms: 100 }
    }
}

/// What is done when an edit of an agent meets something stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// The edit is refused, and the agent is told why.
    Deny,
    /// The user is asked.
    Ask,
    /// The agent is told.
    Warn,
    /// Nothing.
    Off,
}

/// `[journal]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Journal {
    /// Of closed segments, before they are compacted.
    pub compact_bytes: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Self { compact_bytes: 64 * 1024 * 1024 }
    }
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// When a decision reaches the disk.
    pub sync: Sync,
    /// In mode `interval`.
    pub sync_interval_ms: u64,
    /// The decision log goes on in a new file above this.
    pub file_bytes_max: u64,
    /// Rotated files kept; 0 keeps all.
    pub files_max: usize,
    /// Lines from one anchor to the next; 0 is off.
    pub anchor_lines: u64,
    /// Of the daemon's own log, on stderr or in systemd's journal.
    pub level: Level,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            sync: Sync::Interval,
            sync_interval_ms: 100,
            file_bytes_max: 64 * 1024 * 1024,
            files_max: 0,
            anchor_lines: 1_000,
            level: Level::Info,
        }
    }
}

/// When a line of the decision log reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Before the answer.
    Always,
    /// In the background, a little later.
    Interval,
    /// When the kernel likes.
    Off,
}

impl Sync {
    /// The word of the file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Interval => "interval",
            Self::Off => "off",
        }
    }
}

/// How much the daemon says in its own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What stops it.
    Error,
    /// What it had to heal or refuse.
    Warn,
    /// Its life.
    Info,
    /// Every request, every batch of events, every change.
    Debug,
    /// Whatever else there is to say.
    Trace,
}

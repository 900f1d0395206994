//! The configuration file, turned into each room's own options. No room knows the file.

mod keys;

pub use keys::{
    Confine, Context, Decision, Fork, Gate, Hook, Journal, Level, Log, Memory, Server, Sync, Unwatchable,
    Verify,
};

use crate::decision::policy::Policy;
use crate::world::WorldOptions;
use crate::world::look::{self, LookOptions};
use serde::Deserialize;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every key with its default; `config/staled.toml` says what each means.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Decisions.
    pub decision: Decision,
    /// Contexts.
    pub context: Context,
    /// Verification.
    pub verify: Verify,
    /// The socket.
    pub server: Server,
    /// The memory.
    pub memory: Memory,
    /// Forks.
    pub fork: Fork,
    /// Hooks of agents.
    pub hook: Hook,
    /// The journal.
    pub journal: Journal,
    /// The decision log and the daemon's own log.
    pub log: Log,
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file does not say what a configuration may say.
    #[error("the configuration {} is not usable: {message}", path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// Why, naming the key.
        message: String,
    },
}

impl ConfigError {
    /// Whether the same would be met at every start until somebody writes another file. What the system refuses at the
    /// moment may pass: a disk that fails, descriptors that are used up, a home that nobody may enter yet.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Invalid { .. } => true,
            Self::Read { source, .. } => {
                self.is_absence() || matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::IsADirectory)
            }
        }
    }

    /// Whether there is no such file.
    fn is_absence(&self) -> bool {
        matches!(self, Self::Read { source, .. }
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    }
}

impl Config {
    /// The file that was named, or the first of the usual ones that exists, or the defaults.
    pub fn load(named: Option<&Path>) -> Result<Self, ConfigError> {
        if let Some(path) = named {
            return Self::read(path);
        }
        for path in usual_places() {
            match Self::read(&path) {
                Err(error) if error.is_absence() => {}
                // One that cannot be reached may say something else than the defaults.
                read => return read,
            }
        }
        Ok(Self::default())
    }

    fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|message| ConfigError::Invalid { path: path.to_owned(), message })
    }

    /// The configuration that a text says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let bounds = [
            ("verify.threads", self.verify.threads as u64, 1, 64),
            ("verify.retry_ms", self.verify.retry_ms, 100, 3_600_000),
            ("verify.scrub_pass_s", self.verify.scrub_pass_s, 0, 30 * 86_400),
            ("verify.cookie_ms_max", self.verify.cookie_ms_max, 10, 60_000),
            ("decision.deadline_ms_max", self.decision.deadline_ms_max, 1, 600_000),
            ("server.connections_max", self.server.connections_max as u64, 1, 100_000),
            ("server.pending_max", self.server.pending_max as u64, 1, 10_000),
            ("server.request_bytes_max", self.server.request_bytes_max as u64, 1_024, 1 << 30),
            ("server.line_timeout_ms", self.server.line_timeout_ms, 1, 3_600_000),
            ("server.idle_timeout_ms", self.server.idle_timeout_ms, 1, 86_400_000),
            ("server.write_timeout_ms", self.server.write_timeout_ms, 1, 3_600_000),
            ("server.subscriber_events_max", self.server.subscriber_events_max as u64, 1, 1_000_000),
            ("server.drain_timeout_ms", self.server.drain_timeout_ms, 1, 600_000),
            ("context.results_max", self.context.results_max as u64, 1, 10_000_000),
            ("memory.session_timeout_hours", self.memory.session_timeout_hours, 1, 24 * 3_650),
            ("memory.observation_types", self.memory.observation_types.len() as u64, 1, 100),
            ("memory.content_bytes_max", self.memory.content_bytes_max as u64, 80, 1 << 20),
            ("memory.search_cache_bytes", self.memory.search_cache_bytes as u64, 0, 1 << 40),
            ("fork.branches_max", self.fork.branches_max as u64, 1, 1_000),
            ("fork.file_bytes_max", self.fork.file_bytes_max, 0, 1 << 50),
            ("fork.access_s", self.fork.access_s, 1, 86_400),
            ("fork.git_timeout_s", self.fork.git_timeout_s, 1, 86_400),
            ("hook.deadline_ms", self.hook.deadline_ms, 1, 60_000),
            ("journal.compact_bytes", self.journal.compact_bytes, 4_096, 1 << 40),
            ("log.file_bytes_max", self.log.file_bytes_max, 4_096, 1 << 40),
            ("log.files_max", self.log.files_max as u64, 0, 100_000),
            ("log.anchor_lines", self.log.anchor_lines, 0, 1_000_000),
            ("log.sync_interval_ms", self.log.sync_interval_ms, 1, 60_000),
        ];
        match bounds.iter().find(|(_, value, least, most)| value < least || value > most) {
            Some((key, value, least, most)) => {
                Err(format!("{key} is {value}; it must be from {least} to {most}"))
            }
            None => Ok(()),
        }
    }

    /// The keys in which `new` differs and that count from the next start only: what was built from them stands.
    #[must_use]
    pub fn kept_until_restart(&self, new: &Self) -> Vec<&'static str> {
        let (a, b) = (&self.verify, &new.verify);
        let (c, d) = (&self.memory, &new.memory);
        let differs = [
            ("verify.threads", a.threads != b.threads),
            ("verify.big_file_bytes", a.big_file_bytes != b.big_file_bytes),
            ("verify.racy_local_ms", a.racy_local_ms != b.racy_local_ms),
            ("verify.racy_other_ms", a.racy_other_ms != b.racy_other_ms),
            ("verify.retry_ms", a.retry_ms != b.retry_ms),
            ("verify.scrub_pass_s", a.scrub_pass_s != b.scrub_pass_s),
            ("verify.paranoid", a.paranoid != b.paranoid),
            ("verify.cookie_ms_max", a.cookie_ms_max != b.cookie_ms_max),
            ("verify.unwatchable", a.unwatchable != b.unwatchable),
            ("server.connections_max", self.server.connections_max != new.server.connections_max),
            ("server.confine", self.server.confine != new.server.confine),
            ("memory.session_timeout_hours", c.session_timeout_hours != d.session_timeout_hours),
            ("memory.search_cache_bytes", c.search_cache_bytes != d.search_cache_bytes),
            ("journal.compact_bytes", self.journal.compact_bytes != new.journal.compact_bytes),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }

    /// What the world needs to know.
    #[must_use]
    pub fn world_options(&self) -> WorldOptions {
        WorldOptions {
            threads: self.verify.threads,
            look: LookOptions {
                big_file_bytes: self.verify.big_file_bytes,
                racy_local_ns: i64::from(self.verify.racy_local_ms) * 1_000_000,
                racy_other_ns: i64::from(self.verify.racy_other_ms) * 1_000_000,
                unwatchable: match self.verify.unwatchable {
                    Unwatchable::Unknown => look::Unwatchable::Unknown,
                    Unwatchable::Verify => look::Unwatchable::Verify,
                },
            },
            stumbled: None,
        }
    }

    /// What a decision needs to know.
    #[must_use]
    pub fn policy(&self, state: &Path) -> Policy {
        Policy { scratchpad_bytes_max: self.decision.scratchpad_bytes_max, forks: state.join("forks") }
    }

    /// How long a decision may wait, given what the client asked for.
    #[must_use]
    pub fn deadline(&self, asked_ms: Option<u64>) -> Duration {
        let ms = asked_ms.unwrap_or(self.decision.deadline_ms).min(self.decision.deadline_ms_max);
        Duration::from_millis(ms)
    }
}

/// Where a user keeps configurations: `$XDG_CONFIG_HOME`, or `.config` in the home. A variable that is empty counts as
/// not set.
#[must_use]
pub fn config_home() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")))
}

fn usual_places() -> Vec<PathBuf> {
    let user = config_home().map(|folder| folder.join("staled/config.toml"));
    user.into_iter().chain([PathBuf::from("/etc/staled/config.toml")]).collect()
}

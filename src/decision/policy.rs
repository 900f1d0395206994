//! The thresholds of a decision.

use std::path::PathBuf;

/// What a decision depends on beside the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A scratchpad above this many bytes makes a session start over; 0 never does.
    pub scratchpad_bytes_max: u64,
    /// Folder under which a fork's workspaces and scratchpads would be made.
    pub forks: PathBuf,
}

impl Default for Policy {
    fn default() -> Self {
        Self { scratchpad_bytes_max: 0, forks: PathBuf::from("forks") }
    }
}

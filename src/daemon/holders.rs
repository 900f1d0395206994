//! Who holds a session: the process that last said so, as long as it lives.
//!
//! The same session resumed in two terminals ends in a forked transcript. The daemon does not forbid it; it names the
//! other holder. A process is told from a later one with the same id by the moment it started.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Holders {
    held: Mutex<HashMap<String, Process>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    started: u64,
}

impl Holders {
    /// The other live holder of a session, if there is one. Without one, `pid` holds it from now on.
    pub(super) fn other(&self, session: &str, pid: Option<u32>) -> Option<u32> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, process| process.is_alive());
        match (held.get(session), pid) {
            (Some(holder), pid) if pid != Some(holder.pid) => Some(holder.pid),
            (None, Some(pid)) => {
                held.extend(Process::now(pid).map(|process| (session.to_owned(), process)));
                None
            }
            _ => None,
        }
    }
}

impl Process {
    /// The process with this id, if there is one.
    fn now(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything; the start time is the 20th field behind it.
        let started = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
        Some(Self { pid, started })
    }

    fn is_alive(self) -> bool {
        Self::now(self.pid) == Some(self)
    }
}

//! Who holds a session: the process that last said so, as long as it lives.
//!
//! The same session resumed in two terminals ends in a forked transcript. The daemon does not forbid it; it names the
//! other holder. The process is held by a descriptor, which never means a later one with the same id, and which needs no
//! /proc: where systemd hides what may not be traced, a confined daemon sees nobody else there.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Holders {
    held: Mutex<HashMap<String, Process>>,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    descriptor: OwnedFd,
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
        let descriptor = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, descriptor }).filter(Self::is_alive)
    }

    /// The descriptor can be read from the process's end on.
    fn is_alive(&self) -> bool {
        let mut ended = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }
}

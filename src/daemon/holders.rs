//! Who holds a session: the process that last said so, as long as it lives.
//!
//! The same session resumed in two terminals ends in a forked transcript. The daemon does not forbid it; it names the
//! other holder. The process is held by a descriptor, which never means a later one with the same id, and which needs no
//! /proc: where systemd hides what may not be traced, a confined daemon sees nobody else there.
//!
//! A process costs one descriptor, however many sessions it holds.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// As many processes as are never looked through for dead ones.
const FEW: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Holders {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    sessions: HashMap<String, Arc<Process>>,
    /// Those of the sessions, by their ids. One whose sessions all ended stays until the next sweep, without a descriptor.
    processes: HashMap<u32, Weak<Process>>,
    /// How many processes the last sweep left.
    left: usize,
    /// Whether it was said that a holder could not be held.
    warned: bool,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    descriptor: OwnedFd,
}

impl Holders {
    /// The other live holder of a session, if there is one. Without one, `pid` holds it from now on.
    ///
    /// Only for a session that exists: what is noted here stays until the session or the process ends.
    pub(super) fn other(&self, session: &str, pid: Option<u32>) -> Option<u32> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match (held.holder(session), pid) {
            (Some(holder), pid) => Some(holder).filter(|_| pid != Some(holder)),
            (None, Some(pid)) => {
                held.note(session, pid);
                None
            }
            (None, None) => None,
        }
    }

    /// The process no longer holds the session; whether it did.
    pub(super) fn release(&self, session: &str, pid: u32) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = held.sessions.get(session).is_some_and(|holder| holder.pid == pid);
        holds && held.sessions.remove(session).is_some()
    }

    /// The session ended, and nobody holds it any more.
    pub(super) fn forget(&self, session: &str) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).sessions.remove(session);
    }
}

impl Held {
    /// The live holder of a session. A dead one is forgotten.
    fn holder(&mut self, session: &str) -> Option<u32> {
        let holder = self.sessions.get(session)?;
        if holder.is_alive() {
            return Some(holder.pid);
        }
        self.sessions.remove(session);
        None
    }

    fn note(&mut self, session: &str, pid: u32) {
        if self.processes.len() >= FEW.max(2 * self.left) {
            self.sweep();
        }
        match self.process(pid) {
            Ok(process) => self.sessions.extend(process.map(|process| (session.to_owned(), process))),
            Err(error) if !self.warned => {
                self.warned = true;
                tracing::warn!(%error, pid, "who holds a session cannot be kept; this is said once");
            }
            Err(_) => {}
        }
    }

    /// The live process with this id, if there is one.
    fn process(&mut self, pid: u32) -> Result<Option<Arc<Process>>, Errno> {
        let known = self.processes.get(&pid).and_then(Weak::upgrade).filter(|process| process.is_alive());
        if known.is_some() {
            return Ok(known);
        }
        let process = Process::now(pid)?.map(Arc::new);
        self.processes.extend(process.iter().map(|process| (pid, Arc::downgrade(process))));
        Ok(process)
    }

    /// Forgets the dead. It comes when the processes have doubled, so each pays for little of it.
    fn sweep(&mut self) {
        self.sessions.retain(|_, holder| holder.is_alive());
        self.processes.retain(|_, process| process.strong_count() > 0);
        self.left = self.processes.len();
    }
}

impl Process {
    /// The process with this id, if there is one.
    fn now(pid: u32) -> Result<Option<Self>, Errno> {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Some(Self { pid, descriptor }).filter(Self::is_alive)),
            // There is none, or it is a thread of another.
            Err(Errno::SRCH | Errno::INVAL) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The descriptor can be read from the process's end on.
    fn is_alive(&self) -> bool {
        let mut ended = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }
}

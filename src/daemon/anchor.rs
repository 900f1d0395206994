//! Anchors: the head of the decision log, told to systemd's journal, where who may rewrite the log cannot follow.
//!
//! Promise: an anchor names only what is on disk, so a power cut makes no log look cut. Each is one datagram that never
//! waits: where nobody listens nothing happens, and a journal that takes no more costs the anchor, which is counted.
//!
//! Absent: reading them back; `staled log verify --journal` does.

use super::journald::{Journald, is_absent, is_full};
use crate::store::decision_log::{DecisionLog, Receipt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// By which journald's catalogues and filters know an anchor; never another one.
const MESSAGE_ID: &str = "da8a5f30e3b54f60accffa84d7bd8ca1";

/// When the next anchor is due, and where it goes. The owner of the log has it.
pub(super) struct Anchors {
    journal: Arc<Journal>,
    /// 0 is off.
    every: u64,
    /// The line from which on one is due: the first that is appended, at the start and after a change of `every`.
    due: u64,
}

impl Anchors {
    pub(super) fn new(every: u64) -> Self {
        Self::told_to(Journal::to(Journald::usual()), every)
    }

    fn told_to(journal: Journal, every: u64) -> Self {
        let mut anchors = Self { journal: Arc::new(journal), every: 0, due: u64::MAX };
        anchors.configure(every);
        anchors
    }

    /// As if systemd's journal listened there.
    #[cfg(test)]
    pub(super) fn at(path: std::path::PathBuf, every: u64) -> Self {
        Self::told_to(Journal::to(Journald::at(path)), every)
    }

    pub(super) fn configure(&mut self, every: u64) {
        if every != self.every {
            self.every = every;
            self.make_due();
        }
    }

    /// Asked for every line.
    pub(super) fn is_due(&self, seq: u64) -> bool {
        seq >= self.due
    }

    /// The anchor of the log's head as it stands, to be sent when it is on disk; none when they are off.
    pub(super) fn take(&mut self, log: &DecisionLog) -> Option<Anchor> {
        let head = log.last().filter(|_| self.every > 0)?.clone();
        self.due = head.seq.saturating_add(self.every);
        Some(Anchor { journal: Arc::clone(&self.journal), log: log.id().to_owned(), head })
    }

    /// The next line is anchored, whichever it is.
    pub(super) fn make_due(&mut self) {
        self.due = if self.every == 0 { u64::MAX } else { 0 };
    }

    /// `journald` when it took the last anchor or has only no room, else `nothing`; and how many anchors were lost.
    pub(super) fn reach(&self) -> (&'static str, u64) {
        let reached = self.every > 0 && self.journal.listens.load(Ordering::Relaxed);
        (if reached { "journald" } else { "nothing" }, self.journal.lost.load(Ordering::Relaxed))
    }
}

/// One anchor.
pub(super) struct Anchor {
    journal: Arc<Journal>,
    log: String,
    head: Receipt,
}

impl Anchor {
    pub(super) fn send(&self) {
        self.journal.send(self.text().as_bytes());
    }

    /// In the journal's own protocol: one field a line, as none of them can hold a line break.
    fn text(&self) -> String {
        let Self { log, head: Receipt { seq, hash }, .. } = self;
        format!(
            "MESSAGE=The decision log stands at line {seq}.\nMESSAGE_ID={MESSAGE_ID}\nPRIORITY=6\n\
             SYSLOG_IDENTIFIER=staled\nSTALED_ANCHOR_SEQ={seq}\nSTALED_ANCHOR_HASH={hash}\nSTALED_LOG={log}\n"
        )
    }
}

/// The way to the journal, and what became of what was sent.
struct Journal {
    journald: Journald,
    listens: AtomicBool,
    lost: AtomicU64,
}

impl Journal {
    fn to(journald: Journald) -> Self {
        Self { journald, listens: AtomicBool::new(false), lost: AtomicU64::new(0) }
    }

    fn send(&self, text: &[u8]) {
        let sent = self.journald.send(text);
        self.listens.store(sent.as_ref().map_or_else(is_full, |()| true), Ordering::Relaxed);
        match sent {
            Ok(()) => {}
            // There is no journal here.
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!(%error, "an anchor of the decision log was lost, for the journal did not take it");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_full_journal_costs_the_anchor_and_never_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let journal = Journal::to(Journald::at(path.clone()));
        let state = || (journal.listens.load(Ordering::Relaxed), journal.lost.load(Ordering::Relaxed));
        journal.send(b"A=1\n");
        assert_eq!(state(), (false, 0), "no journal is no loss");
        let journald = UnixDatagram::bind(&path).unwrap();
        let mut sent = 0;
        while state().1 == 0 {
            journal.send(b"A=1\n");
            sent += 1;
            assert!(sent < 1_000_000, "its queue has no end");
        }
        assert_eq!(state(), (true, 1));
        journald.recv(&mut [0; 16]).unwrap();
        journal.send(b"A=1\n");
        assert_eq!(state(), (true, 1), "there is room again");
        drop(journald);
        journal.send(b"A=1\n");
        assert_eq!(state(), (false, 1), "a journal that went away is none");
    }
}

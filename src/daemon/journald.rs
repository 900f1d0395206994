//! The way to systemd's journal: one datagram an entry, sent by the journal's own protocol.
//!
//! Promise: sending never waits, whatever the journal does, and nobody is held up by it. Whoever sends counts what was
//! lost. Absent: what is told; see [`super::anchor`] for the heads of the decision log, and `serve` for the daemon's own
//! log. The crate `tracing-journald` is not used: its socket waits, so a journal that is stopped stops whoever traces.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where journald listens, and the variable that names another place.
const SOCKET: &str = "/run/systemd/journal/socket";
const SOCKET_VARIABLE: &str = "STALED_JOURNAL_SOCKET";

/// A socket from which entries are sent.
#[derive(Debug)]
pub struct Journald {
    socket: io::Result<UnixDatagram>,
    path: PathBuf,
}

impl Journald {
    /// To where journald listens, or to where the environment says instead.
    #[must_use]
    pub fn usual() -> Self {
        let named = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
        Self::at(named.unwrap_or_else(|| OsString::from(SOCKET)).into())
    }

    pub(super) fn at(path: PathBuf) -> Self {
        // Not connected: journald may come later, and come again.
        let socket = UnixDatagram::unbound();
        let socket = socket.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        Self { socket, path }
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anybody listens, asked without sending anything.
    pub fn listens(&self) -> io::Result<()> {
        UnixDatagram::unbound()?.connect(&self.path)
    }

    /// Sends one entry: a line `NAME=value` for each field.
    pub fn send(&self, entry: &[u8]) -> io::Result<()> {
        match &self.socket {
            Ok(socket) => socket.send_to(entry, &self.path).map(drop),
            Err(error) => Err(error.kind().into()),
        }
    }
}

/// Whether it is there and only has no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Whether there is no journal.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

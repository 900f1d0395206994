//! The socket that systemd holds for us: taken over when it was meant for this process, and never removed.
//!
//! It is judged as strictly as one that we bind: a Unix stream socket that listens, at a path whose folder nobody else can
//! write to. One that is not is refused, and no other is bound in its place: its clients would wait there for ever.

use crate::protocol::answer::refusal_line;
use crate::protocol::refusal::Refusal;
use listenfd::ListenFd;
use rustix::net::sockopt::socket_peercred;
use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A socket that was bound by whoever started the daemon, and that stays when the daemon ends.
#[derive(Debug)]
pub struct Activated {
    pub(super) listener: UnixListener,
    socket: PathBuf,
}

/// What was handed over cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// More than the one socket, or none.
    #[error("{0} descriptors were handed over in LISTEN_FDS, and the daemon takes one socket")]
    Count(String),
    /// The kernel says that it is something else.
    #[error("what was handed over is no listening Unix stream socket: {0}")]
    NotListening(io::Error),
    /// It has no place in the filesystem, so no folder guards it.
    #[error("the socket that was handed over has no absolute path")]
    NoPath,
    /// Its folder cannot be looked at.
    #[error("cannot look at the folder of {}: {source}", socket.display())]
    Folder {
        /// Which socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else could put another socket in its place.
    #[error("the folder of {} must belong to uid {uid} or root, and nobody else may write to it; it belongs to uid {owner} with mode {mode:o}", socket.display())]
    NotOurs {
        /// Which socket.
        socket: PathBuf,
        /// Who we are.
        uid: u32,
        /// Whose the folder is.
        owner: u32,
        /// What others may do.
        mode: u32,
    },
}

impl Activated {
    /// Takes the socket over, if there is one for this process. It changes the environment, so it is called before any
    /// thread is started.
    pub fn take() -> Result<Option<Self>, ActivationError> {
        // A variable that a parent forgot to remove names descriptors that are not what it says.
        if std::env::var("LISTEN_PID").ok() != Some(std::process::id().to_string()) {
            return Ok(None);
        }
        let said = std::env::var("LISTEN_FDS").unwrap_or_default();
        if said != "1" {
            return Err(ActivationError::Count(if said.is_empty() { "no".to_owned() } else { said }));
        }
        let listener = ListenFd::from_env().take_unix_listener(0).map_err(ActivationError::NotListening)?;
        let listener = listener.ok_or_else(|| ActivationError::Count("no".to_owned()))?;
        Self::judge(listener).map(Some)
    }

    /// Where clients find it.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Tells everybody who waits at the socket that nobody will serve it, and why. Whoever is left waiting there has systemd
    /// start the daemon again, for the same end, whatever its exit code says.
    pub fn turn_away(&self, why: &dyn fmt::Display) {
        let line = refusal_line(
            None,
            &Refusal::application("store_failed", format!("the daemon cannot run: {why}")),
        );
        let own = rustix::process::geteuid();
        while let Ok((mut stream, _)) = self.listener.accept() {
            let ours = socket_peercred(&stream).is_ok_and(|peer| peer.uid == own);
            // One that does not read is told nothing, and is not waited for.
            if ours && stream.set_nonblocking(true).is_ok() {
                let _ = stream.write_all(line.as_bytes());
            }
        }
    }

    fn judge(listener: UnixListener) -> Result<Self, ActivationError> {
        let no = |error: rustix::io::Errno| ActivationError::NotListening(error.into());
        if !rustix::net::sockopt::socket_acceptconn(&listener).map_err(no)? {
            return Err(ActivationError::NotListening(io::ErrorKind::NotConnected.into()));
        }
        listener.set_nonblocking(true).map_err(ActivationError::NotListening)?;
        let address = listener.local_addr().map_err(ActivationError::NotListening)?;
        let socket =
            address.as_pathname().filter(|path| path.is_absolute()).ok_or(ActivationError::NoPath)?;
        guarded(socket)?;
        Ok(Self { socket: socket.to_owned(), listener })
    }
}

fn guarded(socket: &Path) -> Result<(), ActivationError> {
    let folder = socket.parent().ok_or(ActivationError::NoPath)?;
    let found = std::fs::symlink_metadata(folder)
        .map_err(|source| ActivationError::Folder { socket: socket.to_owned(), source })?;
    let (uid, owner, mode) = (rustix::process::geteuid().as_raw(), found.uid(), found.mode() & 0o7777);
    if !found.is_dir() || (owner != uid && owner != 0) || mode & 0o022 != 0 {
        return Err(ActivationError::NotOurs { socket: socket.to_owned(), uid, owner, mode });
    }
    Ok(())
}

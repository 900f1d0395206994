//! State and runtime folders: found, made, checked to be ours, and claimed for one daemon.

use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for a lock that another process holds.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where a daemon keeps its state and its socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Journal, index, decision log, forks.
    pub state: PathBuf,
    /// Socket, cookies, pid file.
    pub runtime: PathBuf,
    /// The socket.
    pub socket: PathBuf,
}

/// A folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Nothing says where it should be.
    #[error("nowhere to put the {what} folder: set {variable}, or HOME")]
    Nowhere {
        /// Which folder.
        what: &'static str,
        /// The variable that would say.
        variable: &'static str,
    },
    /// It cannot be made or opened.
    #[error("cannot use the folder {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else could write there.
    #[error("{} must be a folder of uid {uid} that nobody else may enter (chmod 700); it belongs to uid {owner} with mode {mode:o}", path.display())]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Who we are.
        uid: u32,
        /// Whose it is.
        owner: u32,
        /// What others may do.
        mode: u32,
    },
    /// Another daemon holds the state.
    #[error("another daemon is running on {}", path.display())]
    Taken {
        /// Whose lock.
        path: PathBuf,
    },
}

/// Keeps both folders claimed as long as it lives.
#[derive(Debug)]
pub(super) struct Claim {
    _locks: [File; 2],
}

/// Keeps the state folder claimed as long as it lives.
#[derive(Debug)]
pub struct StateClaim {
    _lock: File,
}

impl Folders {
    /// The usual places: what systemd says, else what XDG says, else below HOME. Never /tmp.
    pub fn usual() -> Result<Self, FolderError> {
        let state = variable("STATE_DIRECTORY")
            .or_else(|| variable("XDG_STATE_HOME").map(|folder| folder.join("staled")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/state/staled")))
            .ok_or(FolderError::Nowhere { what: "state", variable: "XDG_STATE_HOME" })?;
        let runtime = usual_runtime().unwrap_or_else(|| state.join("run"));
        Ok(Self { socket: runtime.join("staled.sock"), state, runtime })
    }

    /// Both folders below one, for tests and trials.
    #[must_use]
    pub fn below(folder: &Path) -> Self {
        let runtime = folder.join("run");
        Self { state: folder.join("state"), socket: runtime.join("staled.sock"), runtime }
    }

    /// Where the cookies are.
    #[must_use]
    pub fn cookies(&self) -> PathBuf {
        self.runtime.join("cookies")
    }

    /// Where the cookies of the isolation watch are.
    #[must_use]
    pub fn fork_cookies(&self) -> PathBuf {
        self.runtime.join("fork-cookies")
    }

    /// Where it is noted at which sources a look panicked.
    #[must_use]
    pub fn stumbled(&self) -> PathBuf {
        self.state.join("stumbled")
    }

    /// Makes the folders and checks that they are ours, without claiming them.
    pub(super) fn make(&self) -> Result<(), FolderError> {
        make_ours(&self.state)?;
        make_ours(&self.runtime)
    }

    /// Makes the folders, checks that they are ours, and claims both: two daemons with a state each could otherwise
    /// take each other's socket. A second daemon touches nothing.
    pub(super) fn claim(&self) -> Result<Claim, FolderError> {
        let locks = [lock(&self.state, "lock")?, lock(&self.runtime, "staled.lock")?];
        // For people. The locks are what counts, and a full disk is no reason not to serve.
        if let Err(error) =
            std::fs::write(self.runtime.join("staled.pid"), format!("{}\n", std::process::id()))
        {
            tracing::warn!(%error, "the pid file could not be written");
        }
        Ok(Claim { _locks: locks })
    }

    /// Makes the state folder, checks that it is ours, and claims it alone: no daemon uses it for as long as the claim
    /// lives.
    pub fn claim_state(&self) -> Result<StateClaim, FolderError> {
        lock(&self.state, "lock").map(|lock| StateClaim { _lock: lock })
    }

    /// Removes the socket, which must be one that we bound: whoever holds another still listens there.
    pub(super) fn remove_socket(&self) {
        let _ = std::fs::remove_file(&self.socket);
    }

    /// Removes the pid file. Whatever stays is replaced at the next start.
    pub(super) fn remove_pid(&self) {
        let _ = std::fs::remove_file(self.runtime.join("staled.pid"));
    }
}

/// The usual runtime folder, where a client looks for the socket too.
#[must_use]
pub fn usual_runtime() -> Option<PathBuf> {
    variable("RUNTIME_DIRECTORY").or_else(|| variable("XDG_RUNTIME_DIR").map(|folder| folder.join("staled")))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn lock(folder: &Path, name: &str) -> Result<File, FolderError> {
    make_ours(folder)?;
    let path = folder.join(name);
    let io = |source| FolderError::Io { path: path.clone(), source };
    let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            // One that is just ending, or a child of its process that has not yet executed, holds it a moment longer.
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err(FolderError::Taken { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}

fn make_ours(folder: &Path) -> Result<(), FolderError> {
    let io = |source| FolderError::Io { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| io(error.into()))?;
    let found = File::from(opened).metadata().map_err(io)?;
    let (uid, owner, mode) = (rustix::process::geteuid().as_raw(), found.uid(), found.mode() & 0o7777);
    if owner != uid || mode & 0o077 != 0 {
        return Err(FolderError::NotOurs { path: folder.to_owned(), uid, owner, mode });
    }
    Ok(())
}

//! The socket's post: whether clients who go where the socket should be still find the one that we serve.
//!
//! Promise: a socket that is removed, renamed or replaced is bound anew at once, for nobody but the holder of the folder's
//! lock has a right to that place. Where that fails it is said once, and tried again until it works. When the folder
//! itself is another one, the lock and the cookies are gone with the old one: the process ends and says so, and its next
//! start makes all of them again. At the end a socket that is not ours stays.
//!
//! The kernel tells of it, so nothing wakes up as long as nothing happens. Where it cannot (no inotify instance is left)
//! that is said once, and tried again every minute. A socket that systemd holds can be put back by nobody but systemd: that
//! it is gone is said.

use super::{Fatal, Folders, server};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// What may change what a name in the folder leads to, and what may change the folder.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

type Inode = (u64, u64);

/// How long a socket that was bound anew is left alone: somebody who takes it again and again must not keep us busy.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two tries to bind the socket anew.
const RETRY: Duration = Duration::from_secs(1);

/// Between two tries to have the kernel tell.
const AGAIN: Duration = Duration::from_secs(60);

/// Where the socket was bound, and what stands there since.
pub(super) struct Post {
    folders: Folders,
    /// None where systemd holds it.
    bound: Option<Mutex<Option<Inode>>>,
    socket: PathBuf,
    folder: Option<Inode>,
}

impl Post {
    /// As it stands now. `socket` is one that was handed over, or none where we have bound our own.
    pub(super) fn take(folders: &Folders, handed: Option<&Path>) -> Self {
        let socket = handed.unwrap_or(&folders.socket).to_owned();
        let bound = handed.is_none().then(|| Mutex::new(inode(&socket)));
        Self { folders: folders.clone(), bound, folder: socket.parent().and_then(inode), socket }
    }

    /// Sees to it that the socket stays, and gives each that it binds to whoever serves. Returns when there is nothing
    /// left to keep.
    pub(super) async fn keep(&self, serving: mpsc::Sender<UnixListener>) -> Fatal {
        let folder = self.socket.parent().unwrap_or(&self.folders.runtime);
        let mut sentry = Sentry::default();
        sentry.post(folder);
        loop {
            // Looked at whether or not anybody tells of it: a folder that is gone cannot be watched, and is the worst news.
            match self.put_back_at_last().await {
                Ok(None) => {}
                Ok(Some(listener)) => {
                    tracing::error!(socket = %self.socket.display(), "the socket was taken away; bound anew");
                    // Who serves ends with the process, and so do we.
                    let _ = serving.send(listener).await;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(fatal) => return fatal,
            }
            if sentry.is_silent().await {
                tokio::time::sleep(AGAIN).await;
                sentry.post(folder);
            }
        }
    }

    /// Tries until the socket stands where it should, or its folder is another one.
    async fn put_back_at_last(&self) -> Result<Option<UnixListener>, Fatal> {
        let mut said = false;
        loop {
            if self.socket.parent().and_then(inode) != self.folder {
                return Err(self.fatal(io::Error::other("its folder was replaced; start again")));
            }
            match self.put_back() {
                Ok(bound) => return Ok(bound),
                Err(error) if !said => {
                    tracing::error!(%error, "the socket was taken away and cannot be bound anew; tried again");
                    said = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn fatal(&self, source: io::Error) -> Fatal {
        Fatal::Socket { path: self.socket.clone(), source }
    }

    /// Binds the socket where it does not stand any more.
    fn put_back(&self) -> Result<Option<UnixListener>, Fatal> {
        let Some(bound) = &self.bound else {
            if inode(&self.socket).is_none() {
                let socket = self.socket.display();
                tracing::error!("nobody finds {socket} any more; restart the socket unit that holds it");
            }
            return Ok(None);
        };
        if self.is_ours() {
            return Ok(None);
        }
        let listener = server::bind(&self.folders)?;
        // Before it counts as ours: one that cannot be served is bound again.
        let listener = UnixListener::from_std(listener).map_err(|error| self.fatal(error))?;
        *bound.lock().unwrap_or_else(PoisonError::into_inner) = inode(&self.socket);
        Ok(Some(listener))
    }

    /// Whether the socket that we bound is the one that clients find.
    fn is_ours(&self) -> bool {
        let bound = self.bound.as_ref().map(|bound| *bound.lock().unwrap_or_else(PoisonError::into_inner));
        bound.flatten().is_some_and(|bound| inode(&self.socket) == Some(bound))
    }

    /// Removes the socket if it is the one that we bound.
    pub(super) fn leave(&self) {
        if self.is_ours() {
            self.folders.remove_socket();
        }
    }
}

/// Of the name itself: a symlink to the right place is not the right place.
fn inode(path: &Path) -> Option<Inode> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Whom the kernel tells what happens in the folder.
#[derive(Default)]
struct Sentry {
    events: Option<pipe::Receiver>,
    /// That nobody could be posted was said.
    said: bool,
}

impl Sentry {
    fn post(&mut self, folder: &Path) {
        self.events = match watch(folder) {
            Ok(events) => Some(events),
            Err(error) => {
                if !std::mem::replace(&mut self.said, true) {
                    let remedy = "raise fs.inotify.max_user_instances or fs.inotify.max_user_watches";
                    tracing::warn!(%error, remedy, "nobody sees to it that the socket stays; tried again");
                }
                None
            }
        };
    }

    /// Comes back when something has happened there, or, with true, when nobody would tell.
    async fn is_silent(&self) -> bool {
        let Some(events) = &self.events else { return true };
        let heard = heard(events).await;
        if let Err(error) = &heard {
            tracing::warn!(%error, "the kernel does not say any more whether the socket stays; it is asked anew");
        }
        heard.is_err()
    }
}

/// Read as a pipe is: tokio takes every other kind of descriptor only from unsafe code.
fn watch(folder: &Path) -> io::Result<pipe::Receiver> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, folder, CHANGES)?;
    pipe::Receiver::from_owned_fd_unchecked(events)
}

/// Waits until something has happened there. What it was does not matter: whoever is woken looks.
async fn heard(events: &pipe::Receiver) -> io::Result<()> {
    let mut buffer = [0; 4096];
    events.readable().await?;
    loop {
        match events.try_read(&mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

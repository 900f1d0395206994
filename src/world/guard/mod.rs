//! The watch over whole trees that are ours: everything that changes in them is told, and where.
//!
//! Promise: when a barrier is done, every change that was complete before it was asked for has been told, or the doubt has:
//! that events were lost, that there are not enough watches, that something changed while nobody watched. What is not
//! told is who did it, for the kernel does not say. A write through a mapping is told when the mapping ends, and one
//! through a hard link that was made elsewhere not at all; below `.git/objects` nothing is watched.

mod again;
mod arming;
mod clock;
mod keeper;
mod links;
mod walk;
mod watcher;

pub use clock::FileTime;

use super::cookie::Cookies;
use super::dart::Died;
use clock::Clock;
use keeper::{Keeper, Message};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One place: some trees that belong together.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// What it goes by.
    pub no: u64,
    /// The trees. None is inside another, of any place.
    pub folders: Vec<PathBuf>,
    /// Trees that are not guarded, but whose files must not be the same as any here.
    pub apart_from: Vec<PathBuf>,
}

/// Something that was seen. Paths are those of the place, whatever led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Something was made, written, changed, moved or removed here.
    Changed {
        /// In which place.
        no: u64,
        /// What.
        path: PathBuf,
    },
    /// The same, at some time when nobody watched.
    Unwatched {
        /// In which place.
        no: u64,
        /// What; the folder, where something in it came or went.
        path: PathBuf,
    },
    /// Something was moved from one place to another. Both are told as changed too.
    Moved {
        /// The place and the path that it left.
        from: (u64, PathBuf),
        /// Where it is now.
        to: (u64, PathBuf),
    },
    /// A file is the same as one of another place, or of a tree that the place is to be apart from.
    Linked {
        /// In which place.
        no: u64,
        /// Which file.
        path: PathBuf,
        /// The same elsewhere.
        other: PathBuf,
    },
    /// Events were lost. What that left to be seen has been told as unwatched.
    Gap {
        /// Why.
        why: String,
    },
    /// Not all of a place is watched.
    Limit {
        /// Which place.
        no: u64,
        /// Why, and what to do about it.
        why: String,
    },
}

/// The trees cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The folder of the cookies cannot be made or used.
    #[error("the cookie folder {} cannot be used: {source}", folder.display())]
    Cookies {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No thread can be started.
    #[error("no thread can be started that watches forks: {0}")]
    Threads(io::Error),
    /// A tree is not there.
    #[error("{} cannot be watched: {source}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The thread that watches has died.
    #[error("the thread that watches forks has died")]
    Dead,
}

/// Run when everything has been told that had happened by then, with the time of the barrier.
pub type Done = Box<dyn FnOnce(FileTime) + Send>;

/// The watch. It ends with this.
pub struct Guard {
    orders: Sender<Message>,
    barriers: Arc<Mutex<Barriers>>,
}

/// Barriers that are on their way. One cookie flies at a time, and everybody who comes meanwhile shares the next.
struct Barriers {
    cookies: Cookies,
    clock: Clock,
    flying: Option<Flying>,
    waiting: Vec<Done>,
}

struct Flying {
    cookie: usize,
    time: FileTime,
    since: Instant,
    done: Vec<Done>,
}

impl Barriers {
    /// Sends the next cookie if somebody waits for one and none is on its way.
    fn send(&mut self) -> io::Result<()> {
        if self.flying.is_some() || self.waiting.is_empty() {
            return Ok(());
        }
        // What happens between the two is told, and may be told once more.
        let time = self.clock.now()?;
        let cookie = self.cookies.touch()?;
        let done = std::mem::take(&mut self.waiting);
        self.flying = Some(Flying { cookie, time, since: Instant::now(), done });
        Ok(())
    }
}

fn lock(barriers: &Mutex<Barriers>) -> MutexGuard<'_, Barriers> {
    barriers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// Starts watching nothing. What is seen is told on a thread of its own, which waits for `told`.
    pub fn start(
        cookie_folder: &Path,
        told: Box<dyn Fn(Seen) + Send>,
        died: &Died,
    ) -> Result<Self, GuardError> {
        let refused = |source| GuardError::Cookies { folder: cookie_folder.to_owned(), source };
        let cookies = Cookies::open(cookie_folder).map_err(refused)?;
        let folder = std::fs::canonicalize(cookie_folder).map_err(refused)?;
        let clock = Clock::open(&folder).map_err(refused)?;
        let barriers = Arc::new(Mutex::new(Barriers { cookies, clock, flying: None, waiting: Vec::new() }));
        let (orders, inbox) = channel();
        let keeper = Keeper::new(folder, Arc::clone(&barriers), orders.clone(), told, died.clone())
            .map_err(GuardError::Threads)?;
        let dart = died.clone();
        let keep = move || {
            let _dart = dart.dart("guard");
            keeper.run(&inbox);
        };
        std::thread::Builder::new().name("guard".to_owned()).spawn(keep).map_err(GuardError::Threads)?;
        Ok(Self { orders, barriers })
    }

    /// Watches a place, and comes back when all of it is watched, or that it is not has been told. With `quiet_since`, the
    /// time of a barrier until which it was watched, what changed from then on is told as unwatched.
    pub fn guard(&self, mut place: Guarded, quiet_since: Option<FileTime>) -> Result<(), GuardError> {
        for folder in &mut place.folders {
            let found = std::fs::canonicalize(&*folder);
            let refused = |source| GuardError::Folder { folder: folder.clone(), source };
            *folder = found.map_err(refused)?;
        }
        let (armed, told) = channel();
        self.orders.send(Message::Guard(place, quiet_since, armed)).map_err(|_| GuardError::Dead)?;
        told.recv().map_err(|_| GuardError::Dead)
    }

    /// Has `done` run as soon as everything has been told that is complete now.
    pub fn barrier(&self, done: Done) {
        let mut barriers = lock(&self.barriers);
        barriers.waiting.push(done);
        if let Err(error) = barriers.send() {
            let why = format!("no cookie can be touched: {error}");
            // A keeper that is gone has told of its end.
            let _ = self.orders.send(Message::Lost(why));
        }
    }

    /// Ends the watches of a place. What is told of it from now on is old.
    pub fn forget(&self, no: u64) {
        let _ = self.orders.send(Message::Forget(no));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.orders.send(Message::Stop);
    }
}

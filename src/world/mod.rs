//! Eyes: what happens in the filesystem, and what stands there.
//!
//! The promise: when a cookie comes back, every source at which something happened before the cookie was made has been
//! marked. Events are hints; a look decides. What cannot be watched truthfully is unknown, never fresh by silence.

pub mod digest;
pub mod look;
mod cookie;
pub mod dart;
mod eyes;
mod filesystem;
pub mod guard;
mod lf;
mod lines;
mod listing;
mod login;
mod marks;
mod mounts;
mod opening;
pub mod plain;
pub mod probe;
mod queue;
mod roots;
pub mod route;
mod schema;
mod scrub;
mod stumbles;
mod verify;
mod watch;
mod way;

pub use eyes::head_found;
pub use filesystem::{Kind as FilesystemKind, named_at as filesystem_at};
pub use login::login_name;
pub use marks::Batch;
pub use watch::Wake;

use crate::index::found::{Found, Inode};
use crate::index::freshness::Doubt;
use crate::index::{Check, Depth, KeyKind, Looked, SourceId};
use cookie::{Cookies, Dividers};
use dart::Died;
use eyes::Eyes;
use look::LookOptions;
use mounts::Mounts;
use route::{End, resolve};
use scrub::Scrubber;
use std::collections::BTreeSet;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stumbles::Stumbles;
use verify::Verifiers;
use watch::{Arms, Board};

/// What changes how the world is looked at.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// Threads that verify.
    pub threads: usize,
    /// How a look treats what it finds.
    pub look: LookOptions,
    /// The file in which it is noted where a look panicked, so that later processes do not look there.
    pub stumbled: Option<PathBuf>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self { threads: 2, look: LookOptions::default(), stumbled: None }
    }
}

/// The world cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The folder of the cookies cannot be made or used.
    #[error("the cookie folder {} cannot be used: {source}", folder.display())]
    Cookies {
        /// Which folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No watcher can be made.
    #[error("nothing can be watched ({source}); raise {}", limit_behind(source))]
    Watcher {
        /// Why.
        source: notify::Error,
    },
    /// The mount table cannot be read.
    #[error("/proc/self/mountinfo cannot be read: {0}")]
    Mounts(io::Error),
    /// No thread can be started.
    #[error("no verifier thread can be started: {0}")]
    Threads(io::Error),
}

/// An instance may be had, and no watch for its first folder.
fn limit_behind(error: &notify::Error) -> &'static str {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => "fs.inotify.max_user_watches",
        _ => "fs.inotify.max_user_instances",
    }
}

/// The watcher, its marks, and the verifiers.
pub struct World {
    // First: its threads use all the others.
    verifiers: Verifiers,
    scrubber: Scrubber,
    arms: Arc<Arms>,
    board: Arc<Board>,
    cookies: Cookies,
    dividers: Arc<Dividers>,
    stumbles: Arc<Stumbles>,
    mounts: Mounts,
    folder: PathBuf,
    blind: Option<WorldError>,
}

/// The cookie that a barrier waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie(usize);

impl Cookie {
    /// Whether this cookie is among those that came back.
    #[must_use]
    pub fn is_among(self, batch: &Batch) -> bool {
        batch.cookies.contains(&self.0)
    }
}

impl World {
    /// Opens the eyes. `folder` is the cookie folder, in the runtime folder. After `died` was told nothing more may be
    /// believed.
    pub fn start(folder: &Path, options: &WorldOptions, wake: Wake, died: &Died) -> Result<Self, WorldError> {
        let refused = |source| WorldError::Cookies { folder: folder.to_owned(), source };
        let cookies = Cookies::open(folder).map_err(refused)?;
        let dividers = Arc::new(Dividers::open(folder).map_err(refused)?);
        let folder = std::fs::canonicalize(folder).map_err(refused)?;
        let mounts = Mounts::open().map_err(WorldError::Mounts)?;
        let board = Arc::new(Board::new(folder.clone(), wake, died.clone()));
        let arms = Arc::new(Arms::new(Arc::clone(&board)));
        // Without a watcher everything is unknown, which is an answer; a daemon that does not start has none.
        let blind =
            arms.rebuild("the watcher was started").err().map(|source| WorldError::Watcher { source });
        let stumbles = Arc::new(Stumbles::open(options.stumbled.clone()));
        let eyes = Eyes {
            board: Arc::clone(&board),
            arms: Arc::clone(&arms),
            dividers: Arc::clone(&dividers),
            stumbles: Arc::clone(&stumbles),
            options: options.look.clone(),
        };
        let verifiers = Verifiers::start(options.threads, eyes).map_err(WorldError::Threads)?;
        let scrubber = Scrubber::start(&board, &stumbles, &options.look).map_err(WorldError::Threads)?;
        Ok(Self { verifiers, scrubber, arms, board, cookies, dividers, stumbles, mounts, folder, blind })
    }

    /// Why there is no watcher.
    #[must_use]
    pub fn blind(&self) -> Option<&WorldError> {
        self.blind.as_ref()
    }

    /// Has these checks answered; urgent ones first. Their sources are followed from now on.
    pub fn verify(&self, checks: Vec<Check>, urgent: bool) {
        if checks.is_empty() {
            return;
        }
        let mut marks = self.board.marks();
        checks.iter().for_each(|check| marks.follow(check.source));
        drop(marks);
        self.verifiers.submit(checks, urgent);
    }

    /// Has what is held looked at again, without an event, and says whether it will be: not while there is enough to look
    /// at. What looks different comes in a later batch.
    #[must_use]
    pub fn scrub(&self, held: Vec<crate::index::scrub::Held>, pass: u64) -> bool {
        self.scrubber.submit(held, pass)
    }

    /// Ends the watches that nobody else needs.
    pub fn unfollow(&self, sources: &[SourceId]) {
        for &source in sources {
            let unused = self.board.marks().unfollow(source);
            self.arms.disarm(&unused);
        }
    }

    /// Has looks at these sources, where any are waiting, pass all others.
    pub fn hurry(&self, sources: &[SourceId]) {
        self.verifiers.hurry(sources);
    }

    /// How many answers there are to take, when there is nothing else to take.
    #[must_use]
    pub fn answers_alone(&self) -> Option<usize> {
        self.board.marks().answers_alone()
    }

    /// Makes a cookie. When it is among a batch's, everything that happened before this call has been taken. Mounts send
    /// no events, so they are asked about first.
    pub fn cookie(&mut self) -> io::Result<Cookie> {
        let points = self.mounts.moved()?;
        if !points.is_empty() {
            tracing::info!(?points, "mounts changed");
            self.board.note(|marks| points.iter().for_each(|point| marks.remount(point)));
        }
        self.cookies.touch().map(Cookie)
    }

    /// Takes what happened since the last time, in one step.
    #[must_use]
    pub fn take(&self) -> Batch {
        self.board.marks().take()
    }

    /// Makes the watcher anew, cookies and all. The caller begins a new epoch.
    pub fn rebuild(&mut self) -> Result<(), WorldError> {
        let refused = |source| WorldError::Cookies { folder: self.folder.clone(), source };
        self.cookies = Cookies::open(&self.folder).map_err(refused)?;
        self.dividers.reopen(&self.folder).map_err(refused)?;
        self.arms
            .rebuild("the watcher stopped answering and was made anew")
            .map_err(|source| WorldError::Watcher { source })?;
        self.blind = None;
        Ok(())
    }

    /// Those of the sources that are asked about now for which the last look does not stand: somebody opened them since,
    /// or their filesystem does not report. Nobody is asked which sources they are when there are none such anywhere.
    pub fn take_doubtful<E>(
        &self,
        asked: impl FnOnce() -> Result<Arc<HashSet<SourceId>>, E>,
    ) -> Result<Vec<(SourceId, Depth)>, E> {
        if !self.board.marks().any_doubtful() {
            return Ok(Vec::new());
        }
        let asked = asked()?;
        Ok(self.board.marks().take_doubtful(&asked))
    }

    /// How many of these sources lie on overlayfs, which does not report what is done to its layers.
    #[must_use]
    pub fn on_overlay(&self, sources: &HashSet<SourceId>) -> usize {
        self.board.marks().on_overlay(sources)
    }

    /// Paths that nobody looks at, because a look there ended an earlier process.
    pub fn left_alone(&self) -> impl Iterator<Item = &Path> {
        self.stumbles.all()
    }

    /// Watches held in the kernel.
    #[must_use]
    pub fn watches_len(&self) -> usize {
        self.board.marks().watches_len()
    }

    /// Events seen so far, opens and reads not counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.board.marks().events
    }
}

/// Answers a check by one plain look, with no watch behind it: true of this moment, and of no later one.
#[must_use]
pub fn rescan(check: &Check, options: &LookOptions) -> Looked {
    if let Some(order) = &check.order {
        return match listing::list(&check.key.path, order, options, &Unwatched) {
            Ok(listed) => listed.map_or_else(Looked::Found, Looked::Listing),
            Err(_) => Found::Unknown(Doubt::Unsettled).into(),
        };
    }
    let found = match &check.key.kind {
        KeyKind::Tree(filter) => return roots::survey(&check.key.path, filter).1,
        KeyKind::Head => {
            let found = head_found(probe::git::head(&check.key.path).head);
            return probe::between::compared(&check.key.path, found, &check.sought);
        }
        KeyKind::Path | KeyKind::Lines(_) | KeyKind::Schema | KeyKind::Folder => {
            match resolve(&check.key.path).end {
                End::Something(path) => eyes::look_at(&path, check, None, options, &look::Unheard),
                End::Nothing => Found::Missing,
                End::Denied => Found::Unknown(Doubt::Unreadable),
            }
        }
    };
    found.into()
}

/// One plain look watches nothing.
struct Unwatched;

impl listing::Armed for Unwatched {
    fn arm_folder(&self) -> Result<(), watch::Unarmed> {
        Ok(())
    }

    fn arm_linked(&self, _: &[PathBuf], _: Option<&BTreeSet<OsString>>) -> Result<(), watch::Unarmed> {
        Ok(())
    }

    fn inode(&self) -> Option<Inode> {
        None
    }
}

//! The thread behind a guard: it takes what happened in the order in which it happened, watches what came, and tells.
//!
//! Whatever comes to be is armed first and listed then, so what was made in it before it was watched is told as well, and
//! told before any cookie that was touched later: the cookie waits in the same queue. Notify forgets a watch whenever its
//! path is told to have gone, also when something else goes by that path by then; so whatever is told to have gone is
//! looked at, and armed again if it is there.

use super::arming::Telling;
use super::links::Links;
use super::walk::{folder_at, is_left_out};
use super::watcher::{Ear, Watcher};
use super::{Barriers, FileTime, Guarded, Seen, lock};
use crate::world::dart::{Died, fault};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a cookie is sent although nobody asked, so that it is known until when all went well.
const PULSE: Duration = Duration::from_secs(2);

/// A cookie that is not back by then has been lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends of moves whose other end is still to come.
const MOVES_MAX: usize = 1_024;

/// How often in a row everything is armed anew because something was exchanged meanwhile; then what is next is heard first.
const ASTRAY_MAX: usize = 10;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It was written, or its rights changed.
    Bytes,
    /// It came to be.
    Came,
    /// It is there no more; or a folder of that name is not.
    Left,
}

/// What the thread is told.
pub(super) enum Message {
    /// By which watcher, what, where, and which move it is an end of.
    Event(u64, Change, PathBuf, Option<usize>),
    /// By which watcher, and which.
    Cookie(u64, usize),
    /// Events were lost.
    Lost(String),
    /// To be told on.
    Linked(Seen),
    /// Watch this; say when.
    Guard(Guarded, Option<FileTime>, Sender<()>),
    Forget(u64),
    Stop,
}

#[derive(Default)]
pub(super) struct Place {
    pub(super) folders: Vec<PathBuf>,
    pub(super) armed: BTreeSet<PathBuf>,
    /// It was being made before.
    pub(super) since: Option<FileTime>,
    /// That not all of it is watched has been told.
    pub(super) limited: bool,
}

pub(super) struct Keeper {
    pub(super) ear: Ear,
    pub(super) generation: u64,
    pub(super) watcher: Option<Watcher>,
    pub(super) barriers: Arc<Mutex<Barriers>>,
    pub(super) told: Box<dyn Fn(Seen) + Send>,
    pub(super) places: BTreeMap<u64, Place>,
    pub(super) roots: HashMap<PathBuf, u64>,
    /// Everything until then has been told.
    pub(super) good: FileTime,
    pub(super) good_at: Instant,
    pub(super) moves: HashMap<usize, (u64, PathBuf)>,
    pub(super) links: Links,
    /// Something was armed under a wrong name, and has lost its watch with that.
    pub(super) astray: bool,
}

impl Keeper {
    pub(super) fn new(
        cookies: PathBuf,
        barriers: Arc<Mutex<Barriers>>,
        inbox: Sender<Message>,
        told: Box<dyn Fn(Seen) + Send>,
        died: Died,
    ) -> io::Result<Self> {
        let good = lock(&barriers).clock.now()?;
        let links = Links::start(inbox.clone(), &died)?;
        let ear = Ear { cookies, inbox, waiting: Arc::default(), full: Arc::default(), died };
        // Without a watcher nothing can be told, which is told of whatever is to be guarded.
        let watcher = Watcher::new(&ear, 0).ok();
        let (places, roots, moves) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        let good_at = Instant::now();
        Ok(Self {
            ear,
            generation: 0,
            watcher,
            barriers,
            told,
            places,
            roots,
            good,
            good_at,
            moves,
            links,
            astray: false,
        })
    }

    pub(super) fn run(mut self, inbox: &Receiver<Message>) {
        loop {
            // Nobody's pulse is taken while there is nothing to guard.
            let idle = self.places.is_empty() && self.watcher.is_some();
            let wait = if idle { PATIENCE } else { PULSE };
            let goes_on = match inbox.recv_timeout(wait) {
                Ok(message) => self.take(message, inbox),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            fault("guard");
            if !goes_on {
                return;
            }
            self.pulse(inbox);
        }
    }

    /// Whether to go on.
    pub(super) fn take(&mut self, message: Message, inbox: &Receiver<Message>) -> bool {
        match message {
            Message::Event(generation, change, path, tracker) => {
                self.ear.waiting.fetch_sub(1, Ordering::SeqCst);
                if generation == self.generation {
                    self.event(change, &path, tracker);
                }
            }
            Message::Cookie(generation, cookie) if generation == self.generation => self.cookie(cookie),
            Message::Cookie(..) => {}
            Message::Lost(why) => self.begin_again(&why, inbox),
            Message::Linked(seen) => (self.told)(seen),
            Message::Guard(place, quiet_since, armed) => {
                self.guard(place, quiet_since);
                // Whoever asked may have gone.
                let _ = armed.send(());
            }
            Message::Forget(no) => self.forget(no),
            Message::Stop => return false,
        }
        for _ in 0..ASTRAY_MAX {
            if !std::mem::take(&mut self.astray) {
                break;
            }
            self.arm_all_anew();
        }
        true
    }

    fn event(&mut self, change: Change, path: &Path, tracker: Option<usize>) {
        let Some((no, root)) = self.place_of(path) else { return };
        if path.parent().is_some_and(|folder| is_left_out(&root, folder)) {
            return;
        }
        let found = std::fs::symlink_metadata(path).ok();
        if change == Change::Bytes && found.is_none() && is_nameless(path) {
            return;
        }
        (self.told)(Seen::Changed { no, path: path.to_owned() });
        if let Some(tracker) = tracker {
            self.moved(change, no, path, tracker);
        }
        match (change, found) {
            (Change::Left, _) => self.left(no, &root, path),
            (Change::Came, Some(found)) if found.is_dir() => self.arm_tree(no, &root, path, Telling::All),
            (_, Some(found)) => self.links.suspect(no, path, &found),
            (_, None) => {}
        }
    }

    fn moved(&mut self, change: Change, no: u64, path: &Path, tracker: usize) {
        if change == Change::Left {
            if self.moves.len() >= MOVES_MAX {
                self.moves.clear();
            }
            self.moves.insert(tracker, (no, path.to_owned()));
        } else if let Some(from) = self.moves.remove(&tracker).filter(|from| from.0 != no) {
            (self.told)(Seen::Moved { from, to: (no, path.to_owned()) });
        }
    }

    fn left(&mut self, no: u64, root: &Path, path: &Path) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let gone: Vec<PathBuf> = place
            .armed
            .range(path.to_owned()..)
            .take_while(|armed| armed.starts_with(path))
            .cloned()
            .collect();
        for folder in &gone {
            place.armed.remove(folder);
            self.watcher.iter_mut().for_each(|watcher| watcher.disarm(folder));
        }
        if !gone.is_empty() && folder_at(path).is_some() {
            let since = self.good_for(no);
            self.arm_tree(no, root, path, Telling::Since(since));
        }
    }

    /// The place that a path is in, and which of its trees.
    fn place_of(&self, path: &Path) -> Option<(u64, PathBuf)> {
        path.ancestors().find_map(|above| Some((*self.roots.get(above)?, above.to_owned())))
    }

    fn cookie(&mut self, cookie: usize) {
        let mut barriers = lock(&self.barriers);
        let Some(flying) = barriers.flying.take_if(|flying| flying.cookie == cookie) else { return };
        let sent = barriers.send();
        drop(barriers);
        (self.good, self.good_at) = (flying.time, Instant::now());
        flying.done.into_iter().for_each(|done| done(flying.time));
        if let Err(error) = sent {
            let _ = self.ear.inbox.send(Message::Lost(format!("no cookie can be touched: {error}")));
        }
    }

    fn guard(&mut self, guarded: Guarded, quiet_since: Option<FileTime>) {
        let Guarded { no, folders, apart_from } = guarded;
        let since = lock(&self.barriers).clock.now().ok();
        self.links.know(no, &folders, apart_from);
        self.roots.extend(folders.iter().map(|folder| (folder.clone(), no)));
        self.places.insert(no, Place { folders, since, ..Place::default() });
        self.arm_place(no, quiet_since.map_or(Telling::Nothing, Telling::Unwatched));
    }

    fn forget(&mut self, no: u64) {
        let Some(place) = self.places.remove(&no) else { return };
        self.links.forget(no);
        self.roots.retain(|_, place| *place != no);
        let homes = place.folders.iter().filter_map(|folder| folder.parent());
        let homes = homes.filter(|home| !self.roots.keys().any(|root| root.parent() == Some(*home)));
        let Some(watcher) = &mut self.watcher else { return };
        place.armed.iter().map(PathBuf::as_path).chain(homes).for_each(|folder| watcher.disarm(folder));
    }

    /// Since when what changed in a place may not have been told.
    pub(super) fn good_for(&self, no: u64) -> FileTime {
        self.places.get(&no).and_then(|place| place.since).map_or(self.good, |since| since.max(self.good))
    }

    fn pulse(&mut self, inbox: &Receiver<Message>) {
        let mut barriers = lock(&self.barriers);
        // Without a watcher it does not come back at all.
        let patience = self.watcher.as_ref().map_or(Duration::ZERO, |_| PATIENCE);
        let overdue = barriers.flying.as_ref().is_some_and(|flying| flying.since.elapsed() >= patience);
        if !overdue && !self.places.is_empty() && barriers.flying.is_none() && self.good_at.elapsed() > PULSE
        {
            barriers.waiting.push(Box::new(|_| {}));
            // Whoever needs one says why there is none.
            let _ = barriers.send();
        }
        drop(barriers);
        if overdue {
            self.begin_again("the watcher stopped answering", inbox);
        }
    }
}

/// A file that never had a name goes by its number. It is in no folder until it is given one, and that is told.
fn is_nameless(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix('#'));
    name.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a suspect is known by.
pub(super) fn inode(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

//! The thread behind a guard: it takes what happened in the order in which it happened, watches what came, and tells.
//!
//! Whatever comes to be is armed first and listed then, so what was made in it before it was watched is told as well, and
//! told before any cookie that was touched later: the cookie waits in the same queue. Notify forgets a watch whenever its
//! path is told to have gone, also when something else goes by that path by then; so whatever is told to have gone is
//! looked at, and armed again if it is there.

use super::clock::Clock;
use super::links::Links;
use super::walk::{Entry, folder_at, is_left_out, list};
use super::watcher::{Ear, Unarmed, Watcher};
use super::{Barriers, Done, FileTime, Guarded, Seen, lock};
use crate::world::cookie::Cookies;
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

/// How much the clock may run otherwise than time does before it counts as set.
const CLOCK_SLACK: i128 = 1_000_000_000;

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
struct Place {
    folders: Vec<PathBuf>,
    armed: BTreeSet<PathBuf>,
    /// It was being made before.
    since: Option<FileTime>,
    /// That not all of it is watched has been told.
    limited: bool,
}

/// What of a folder's entries is told when it is armed.
#[derive(Clone, Copy)]
enum Telling {
    /// All of them: they came with it.
    All,
    /// Those that changed since, by somebody whom nobody watched.
    Unwatched(FileTime),
    /// Those that changed since; they may have been told before.
    Since(FileTime),
    /// None.
    Nothing,
}

pub(super) struct Keeper {
    ear: Ear,
    generation: u64,
    watcher: Option<Watcher>,
    barriers: Arc<Mutex<Barriers>>,
    told: Box<dyn Fn(Seen) + Send>,
    places: BTreeMap<u64, Place>,
    roots: HashMap<PathBuf, u64>,
    /// Everything until then has been told.
    good: FileTime,
    good_at: Instant,
    moves: HashMap<usize, (u64, PathBuf)>,
    links: Links,
    /// Something was armed under a wrong name, and has lost its watch with that.
    astray: bool,
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
            let wait = if self.places.is_empty() { Duration::from_secs(3_600) } else { PULSE };
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
    fn take(&mut self, message: Message, inbox: &Receiver<Message>) -> bool {
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

    /// Some folder has lost its watch, and which one is not known. What changed there meanwhile
    /// is told; what was removed in that moment is not.
    fn arm_all_anew(&mut self) {
        for no in self.places.keys().copied().collect::<Vec<_>>() {
            let since = self.good_for(no);
            for folder in self.places[&no].folders.clone() {
                self.arm_tree(no, &folder, &folder, Telling::Since(since));
            }
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

    fn arm_place(&mut self, no: u64, telling: Telling) {
        for folder in self.places[&no].folders.clone() {
            if let Some(home) = folder.parent() {
                // For what takes the tree's place.
                if let Some(Unarmed::Never(why)) = self.arm(home) {
                    self.limit(no, why);
                }
            }
            match std::fs::symlink_metadata(&folder) {
                Ok(found) => self.tell(no, telling, &Entry { path: folder.clone(), found }),
                Err(_) => (self.told)(Seen::Unwatched { no, path: folder.clone() }),
            }
            self.arm_tree(no, &folder, &folder, telling);
        }
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

    /// Watches a folder and everything below it.
    fn arm_tree(&mut self, no: u64, root: &Path, folder: &Path, telling: Telling) {
        let mut ahead = vec![folder.to_owned()];
        while let Some(folder) = ahead.pop() {
            if is_left_out(root, &folder) {
                continue;
            }
            match self.arm(&folder) {
                None => {
                    self.places.entry(no).or_default().armed.insert(folder.clone());
                }
                Some(Unarmed::Gone) => continue,
                Some(Unarmed::Astray) => {
                    // Notify would take this for the name of what it led to, and drop that watch when this name goes.
                    self.watcher.iter_mut().for_each(|watcher| watcher.disarm(&folder));
                    self.astray = true;
                    continue;
                }
                Some(Unarmed::Never(why)) => self.limit(no, why),
            }
            match list(&folder) {
                Ok(entries) => {
                    for entry in entries {
                        if is_left_out(root, &entry.path) {
                            continue;
                        }
                        self.tell(no, telling, &entry);
                        if entry.found.is_dir() {
                            ahead.push(entry.path);
                        } else if matches!(telling, Telling::All) {
                            self.links.suspect(no, &entry.path, &entry.found);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.limit(no, format!("{} cannot be listed: {error}", folder.display())),
            }
        }
    }

    fn arm(&mut self, folder: &Path) -> Option<Unarmed> {
        match &mut self.watcher {
            Some(watcher) => watcher.arm(folder).err(),
            None => {
                Some(Unarmed::Never("there is no watcher (raise fs.inotify.max_user_instances)".to_owned()))
            }
        }
    }

    fn limit(&mut self, no: u64, why: String) {
        let place = self.places.entry(no).or_default();
        if !std::mem::replace(&mut place.limited, true) {
            (self.told)(Seen::Limit { no, why });
        }
    }

    fn tell(&self, no: u64, telling: Telling, entry: &Entry) {
        let path = entry.path.clone();
        match telling {
            Telling::All => (self.told)(Seen::Changed { no, path }),
            // An older folder that changed is one in which something came or went, which has been told by name.
            Telling::Since(since) if entry.changed() >= since && !entry.is_older_folder(since) => {
                (self.told)(Seen::Changed { no, path });
            }
            Telling::Unwatched(since) if entry.changed() >= since => {
                (self.told)(Seen::Unwatched { no, path });
            }
            _ => {}
        }
    }

    /// Since when what changed in a place may not have been told.
    fn good_for(&self, no: u64) -> FileTime {
        self.places.get(&no).and_then(|place| place.since).map_or(self.good, |since| since.max(self.good))
    }

    /// Makes everything anew after events were lost: what changed since the last barrier came back is told by its times.
    fn begin_again(&mut self, why: &str, inbox: &Receiver<Message>) {
        let later = self.drain(inbox);
        (self.told)(Seen::Gap { why: why.to_owned() });
        self.ear.full.store(false, Ordering::SeqCst);
        self.generation += 1;
        self.watcher = None;
        self.watcher = Watcher::new(&self.ear, self.generation).ok();
        // Those who come from here on have a cookie of the new watcher.
        let (now, owed) = self.owed();
        let clock_was_set = self.clock_was_set(now);
        for no in self.places.keys().copied().collect::<Vec<_>>() {
            let since = self.good_for(no);
            self.places.entry(no).or_default().armed.clear();
            if clock_was_set {
                self.limit(no, "the clock was set while events were lost".to_owned());
            }
            self.arm_place(no, Telling::Unwatched(since));
        }
        if let Some(now) = now {
            (self.good, self.good_at) = (now, Instant::now());
        }
        let good = self.good;
        owed.into_iter().for_each(|done| done(good));
        for message in later {
            // Nothing of these begins again: that would have been done just now.
            self.take(message, inbox);
        }
    }

    /// Takes the events that wait, for they are better news than what is found without them, and keeps what else does.
    fn drain(&mut self, inbox: &Receiver<Message>) -> Vec<Message> {
        let mut later = Vec::new();
        let count = self.ear.waiting.load(Ordering::SeqCst);
        for message in inbox.try_iter().take(count.saturating_mul(2).max(1_024)) {
            match message {
                Message::Event(..) => {
                    self.take(message, inbox);
                }
                // One that comes back after the loss does not say that nothing was lost before it.
                Message::Cookie(..) | Message::Lost(_) => {}
                other => later.push(other),
            }
        }
        later
    }

    /// Everybody who waits for a barrier by now, and what time it is.
    fn owed(&mut self) -> (Option<FileTime>, Vec<Done>) {
        let mut barriers = lock(&self.barriers);
        // Somebody may have taken the files away.
        if let (Ok(cookies), Ok(clock)) = (Cookies::open(&self.ear.cookies), Clock::open(&self.ear.cookies)) {
            (barriers.cookies, barriers.clock) = (cookies, clock);
        }
        let now = barriers.clock.now().ok();
        let mut owed = barriers.flying.take().map_or_else(Vec::new, |flying| flying.done);
        owed.append(&mut barriers.waiting);
        (now, owed)
    }

    fn clock_was_set(&self, now: Option<FileTime>) -> bool {
        let passed = self.good_at.elapsed().as_nanos() as i128;
        now.is_none_or(|now| (now.0 - self.good.0 - passed).abs() > CLOCK_SLACK)
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

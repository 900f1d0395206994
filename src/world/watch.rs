//! notify's events to marks, and paths to watches.
//!
//! The handler runs on notify's own thread and takes one short lock. It never asks the watcher anything (which waits
//! for that same thread). Loss is checked first, before the kind and before the paths: an overflow has neither.

use super::cookie::DIVIDER;
use super::dart::{Died, fault};
use super::marks::{Bound, Marks, Spot, WayId};
use crate::index::Depth;
use crate::index::freshness::Doubt;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Called, from any thread, when there is something to take.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The marks, and who is woken by them.
pub(super) struct Board {
    marks: Mutex<Marks>,
    wake: Wake,
    pub(super) died: Died,
    cookies: PathBuf,
    /// Of the watcher that may speak. An older one's thread ends on its own time, and its late cookies would let through
    /// who waits for a new one.
    generation: AtomicU64,
}

impl Board {
    pub(super) fn new(cookies: PathBuf, wake: Wake, died: Died) -> Self {
        Self { marks: Mutex::new(Marks::default()), wake, died, cookies, generation: AtomicU64::new(0) }
    }

    /// A panic while the lock was held is itself a loss of events, and is noted as such by whoever panicked.
    pub(super) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the marks, and wakes whoever takes them if there was nothing to take before, or only answers.
    pub(super) fn note(&self, change: impl FnOnce(&mut Marks)) {
        let mut marks = self.marks();
        let before = marks.news();
        change(&mut marks);
        let news = marks.news() > before;
        drop(marks);
        if news {
            (self.wake)();
        }
    }

    /// Whatever older watchers still have to say is lost from here on, and the caller says so.
    fn begin_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn handle(&self, generation: u64, event: notify::Result<Event>) {
        fault("watcher");
        if generation != self.generation.load(Ordering::SeqCst) {
            return;
        }
        match event {
            Ok(event) if event.need_rescan() => {
                let why = "the kernel's event queue overflowed (raise fs.inotify.max_queued_events)";
                self.note(|marks| marks.gap(why.to_owned()));
            }
            Ok(event) => self.handle_event(&event),
            Err(error) => self.note(|marks| marks.gap(format!("the watcher reported an error: {error}"))),
        }
    }

    fn handle_event(&self, event: &Event) {
        if matches!(event.kind, EventKind::Access(AccessKind::Open(_))) {
            let mut marks = self.marks();
            return event.paths.iter().for_each(|path| marks.opened(path));
        }
        let Some((depth, killing)) = weight(event.kind) else { return };
        self.note(|marks| {
            // What we do to our own files is no news of the world.
            let ours = event.paths.iter().all(|path| self.own(path).is_some());
            marks.events += u64::from(!ours);
            if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
                (event.kind, event.paths.as_slice())
            {
                marks.renamed(from, to);
            }
            for path in &event.paths {
                // Only a touch: somebody who removes a cookie, say, must not pass for the one that comes back.
                let touched = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
                match self.own(path) {
                    Some(Own::Cookie(index)) if touched => marks.cookie(index),
                    Some(Own::Divider(index)) if touched => marks.divided(index),
                    Some(_) => {}
                    None => marks.strike(path, depth, killing),
                }
            }
        });
    }

    fn own(&self, path: &Path) -> Option<Own> {
        let folder = self.cookies.as_os_str().as_bytes();
        let name = path.as_os_str().as_bytes().strip_prefix(folder)?.strip_prefix(b"/")?;
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
        match name.strip_prefix(DIVIDER) {
            Some(digits) => number(digits).map(Own::Divider),
            None => number(name).map(Own::Cookie),
        }
    }
}

/// A file of our own, by its number.
enum Own {
    Cookie(usize),
    Divider(usize),
}

/// What an event may have changed, and whether notify forgets watches over it. `None` for reads. Everything else is a hint that something happened, never what.
fn weight(kind: EventKind) -> Option<(Depth, bool)> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) | EventKind::Modify(ModifyKind::Data(_)) => {
            Some((Depth::Bytes, false))
        }
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Metadata(_)) | EventKind::Create(_) => Some((Depth::Names, false)),
        _ => Some((Depth::Names, true)),
    }
}

/// The watcher, behind the one lock that all arming goes through: whoever finds a path armed may rely on it.
pub(super) struct Arms {
    board: Arc<Board>,
    watcher: Mutex<Option<RecommendedWatcher>>,
}

/// Arming did not succeed.
pub(super) enum Unarmed {
    /// Something moved in the meantime; resolve again.
    Moved,
    /// It cannot be watched.
    Never(Doubt),
}

impl Arms {
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self { board, watcher: Mutex::new(None) }
    }

    /// Makes a new inotify instance. Every watch of the old one is gone, which is a gap; it is noted while nobody can
    /// arm, or a watch made on the old instance would pass for one of the new.
    pub(super) fn rebuild(&self, why: &str) -> notify::Result<()> {
        let mut held = self.lock();
        let generation = self.board.begin_generation();
        drop(held.take());
        self.board.note(|marks| marks.gap(why.to_owned()));
        let board = Arc::clone(&self.board);
        let mut watcher = RecommendedWatcher::new(
            move |event| {
                let handled = catch_unwind(AssertUnwindSafe(|| board.handle(generation, event)));
                if handled.is_err() {
                    // Before anything that comes later on this thread, cookies above all, can be taken for news.
                    board.died.tell("watcher");
                    board.note(|marks| marks.gap("the event handler failed".to_owned()));
                }
            },
            Config::default(),
        )?;
        watcher.watch(&self.board.cookies, RecursiveMode::NonRecursive)?;
        *held = Some(watcher);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<RecommendedWatcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms everything that a source is heard under, top down, so that what is looked at next is already watched.
    pub(super) fn arm(&self, bound: &Bound) -> Result<(), Unarmed> {
        let mut watcher = self.lock();
        let Some(watcher) = watcher.as_mut() else { return Err(Unarmed::Never(Doubt::WatcherDead)) };
        bound.arms.iter().try_for_each(|path| self.arm_one(watcher, path))
    }

    /// The same for several sources, asking for the lock once. A hint: each must still be armed by itself, which then
    /// costs nothing.
    pub(super) fn arm_ahead<'bound>(&self, all: impl Iterator<Item = &'bound Bound>) {
        let mut watcher = self.lock();
        let Some(watcher) = watcher.as_mut() else { return };
        for path in all.flat_map(|bound| &bound.arms) {
            // Whoever arms it by itself is told why it cannot be.
            let _ = self.arm_one(watcher, path);
        }
    }

    /// The same for the folders of a way, which is told when all of them are armed while nobody else is arming.
    pub(super) fn arm_way(&self, way: WayId, folders: &[PathBuf]) -> Result<(), Unarmed> {
        let mut watcher = self.lock();
        let Some(watcher) = watcher.as_mut() else { return Err(Unarmed::Never(Doubt::WatcherDead)) };
        folders.iter().try_for_each(|path| self.arm_one(watcher, path))?;
        self.board.marks().way_is_armed(way);
        Ok(())
    }

    fn arm_one(&self, watcher: &mut RecommendedWatcher, path: &Path) -> Result<(), Unarmed> {
        {
            let mut marks = self.board.marks();
            if !marks.is_used(path) {
                // Everybody has left since it was bound, and has taken its watch away: one that is made now would stay.
                // Who leaves from here on takes that away when we are done.
                return Err(Unarmed::Never(Doubt::Unsettled));
            }
            if !marks.begin_arming(path) {
                return Ok(());
            }
        }
        let before = Spot::at(path);
        if before.through_link {
            // What it leads to would be watched, under this name: its right one would lose the watch, and be looked at
            // again, and so would the folder that both are in, whose look alone can say that this is no folder any more.
            // Each look here would overtake that one, for ever.
            self.board.marks().end_arming(path, before, before, false);
            return Err(Unarmed::Moved);
        }
        let asked = catch_unwind(AssertUnwindSafe(|| watcher.watch(path, RecursiveMode::NonRecursive)));
        let after = Spot::at(path);
        let mut outcome = match asked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(unarmed(&error)),
            Err(_) => Err(Unarmed::Never(Doubt::WatcherDead)),
        };
        self.board.note(|marks| {
            if !marks.end_arming(path, before, after, outcome.is_ok()) && outcome.is_ok() {
                outcome = Err(Unarmed::Moved);
            }
        });
        outcome
    }

    /// Takes watches away that nobody uses. One that somebody uses again by now stays.
    pub(super) fn disarm(&self, unused: &[PathBuf]) {
        if unused.is_empty() {
            return;
        }
        let mut watcher = self.lock();
        let Some(watcher) = watcher.as_mut() else { return };
        for path in unused {
            let mut forgotten = false;
            self.board.note(|marks| forgotten = marks.begin_disarming(path));
            if forgotten {
                // Failing means that the kernel or notify has dropped it already.
                let _ = catch_unwind(AssertUnwindSafe(|| watcher.unwatch(path)));
            }
        }
    }
}

fn unarmed(error: &notify::Error) -> Unarmed {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => Unarmed::Never(Doubt::WatchLimit),
        notify::ErrorKind::PathNotFound => Unarmed::Moved,
        notify::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Unarmed::Never(Doubt::Unreadable)
        }
        _ => Unarmed::Moved,
    }
}

#[cfg(test)]
mod tests {
    use super::{Arms, Board, Bound, Died, Unarmed};
    use crate::index::SourceId;
    use notify::Event;
    use notify::event::{EventKind, MetadataKind, ModifyKind, RemoveKind};
    use std::path::PathBuf;
    use std::sync::Arc;

    #[test]
    fn only_a_touch_heard_by_the_watcher_in_force_is_a_cookie() {
        let board = Board::new(PathBuf::from("/run/cookies"), Arc::new(|| {}), Died::default());
        let (old, new) = (board.begin_generation(), board.begin_generation());
        let touched = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
        for (generation, kind, came_back) in
            [(old, touched, false), (new, EventKind::Remove(RemoveKind::File), false), (new, touched, true)]
        {
            let event = Event::new(kind).add_path(PathBuf::from("/run/cookies/7"));
            board.handle(generation, Ok(event));
            assert_eq!(board.marks().take().cookies.contains(&7), came_back, "{generation} {kind:?}");
        }
    }

    #[test]
    fn a_path_that_became_a_symlink_takes_no_watch_from_what_it_leads_to() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        ["cookies", "real"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        let board = Arc::new(Board::new(at("cookies"), Arc::new(|| {}), Died::default()));
        let arms = Arms::new(Arc::clone(&board));
        arms.rebuild("it is made").unwrap();
        let bound = |name: &str| Bound { arms: vec![at(name)], ..Bound::default() };
        for (source, name) in [(1, "real"), (2, "link")] {
            board.marks().follow(SourceId(source));
            assert!(board.marks().bind(SourceId(source), bound(name)).is_some());
        }
        assert!(arms.arm(&bound("real")).is_ok());
        for _ in 0..3 {
            assert!(matches!(arms.arm(&bound("link")), Err(Unarmed::Moved)));
            assert_eq!(board.marks().watches_len(), 1, "the folder has lost its watch");
        }
    }

    #[test]
    fn what_everybody_has_left_is_not_watched_any_more() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        ["cookies", "real"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        let board = Arc::new(Board::new(at("cookies"), Arc::new(|| {}), Died::default()));
        let arms = Arms::new(Arc::clone(&board));
        arms.rebuild("it is made").unwrap();
        let bound = Bound { arms: vec![at("real")], ..Bound::default() };
        board.marks().follow(SourceId(1));
        assert!(board.marks().bind(SourceId(1), bound.clone()).is_some());
        let unused = board.marks().unfollow(SourceId(1));
        arms.disarm(&unused);
        // A verifier that had bound it before comes late.
        assert!(matches!(arms.arm(&bound), Err(Unarmed::Never(_))));
        assert_eq!(board.marks().watches_len(), 0);
    }
}

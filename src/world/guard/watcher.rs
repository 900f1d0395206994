//! The inotify instance behind a guard: what the kernel tells goes into one queue, in the order in which it happened.

use super::keeper::{Change, Message};
use super::walk::folder_at;
use crate::world::dart::Died;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

/// How many events may wait. Whatever is beyond is lost, and that it was is told.
const WAITING_MAX: usize = 1 << 20;

/// Where the events go.
#[derive(Clone)]
pub(super) struct Ear {
    pub(super) cookies: PathBuf,
    pub(super) inbox: Sender<Message>,
    /// Events that are in the queue.
    pub(super) waiting: Arc<AtomicUsize>,
    /// That there were too many has been told, and not heard yet.
    pub(super) full: Arc<AtomicBool>,
    pub(super) died: Died,
}

impl Ear {
    fn hear(&self, generation: u64, event: notify::Result<Event>) {
        match event {
            Ok(event) if event.need_rescan() => {
                self.lost(
                    "the kernel's event queue overflowed (raise fs.inotify.max_queued_events)".to_owned(),
                );
            }
            Ok(event) => self.note(generation, &event),
            Err(error) => self.lost(format!("the watcher reported an error: {error}")),
        }
    }

    fn lost(&self, why: String) {
        // A keeper that is gone has told of its end.
        let _ = self.inbox.send(Message::Lost(why));
    }

    fn note(&self, generation: u64, event: &Event) {
        let Some(change) = change(event.kind) else { return };
        let Some(path) = event.paths.first() else { return };
        if path.starts_with(&self.cookies) {
            if let (Change::Bytes, Some(cookie)) = (change, number(path)) {
                let _ = self.inbox.send(Message::Cookie(generation, cookie));
            }
            return;
        }
        if self.waiting.load(Ordering::SeqCst) >= WAITING_MAX {
            if !self.full.swap(true, Ordering::SeqCst) {
                self.lost("more happened than could be kept up with".to_owned());
            }
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _ = self.inbox.send(Message::Event(generation, change, path.clone(), event.tracker()));
    }
}

fn number(path: &Path) -> Option<usize> {
    path.file_name()?.to_str()?.parse().ok()
}

/// What an event says, if it says that something changed. `Both` repeats what was told of each end.
fn change(kind: EventKind) -> Option<Change> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Change::Bytes),
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => None,
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(Change::Left),
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => Some(Change::Bytes),
        EventKind::Remove(_) => Some(Change::Left),
        _ => Some(Change::Came),
    }
}

/// Why a folder is not watched.
pub(super) enum Unarmed {
    /// It is not there any more, or is no folder; whatever took its place sends an event.
    Gone,
    /// It was exchanged for something else, whose watch may now go by a wrong name.
    Astray,
    /// It cannot be.
    Never(String),
}

/// One inotify instance.
pub(super) struct Watcher {
    watcher: RecommendedWatcher,
}

impl Watcher {
    /// A new instance, which watches the cookies only.
    pub(super) fn new(ear: &Ear, generation: u64) -> notify::Result<Self> {
        let (theirs, cookies) = (ear.clone(), ear.cookies.clone());
        let mut watcher = RecommendedWatcher::new(
            move |event| {
                if catch_unwind(AssertUnwindSafe(|| theirs.hear(generation, event))).is_err() {
                    theirs.died.tell("guard's watcher");
                }
            },
            Config::default(),
        )?;
        watcher.watch(&cookies, RecursiveMode::NonRecursive)?;
        Ok(Self { watcher })
    }

    /// Watches one folder. Watching it once more does no harm, and is what is to be done whenever its name was told of.
    pub(super) fn arm(&mut self, folder: &Path) -> Result<(), Unarmed> {
        let Some(before) = folder_at(folder) else { return Err(Unarmed::Gone) };
        match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {}
            Err(error) => return Err(unarmed(folder, &error)),
        }
        // It follows symlinks: one that took the folder's place meanwhile has led it away.
        if folder_at(folder) == Some(before) { Ok(()) } else { Err(Unarmed::Astray) }
    }

    /// Ends the watch of one folder.
    pub(super) fn disarm(&mut self, folder: &Path) {
        // Failing means that it is not watched.
        let _ = self.watcher.unwatch(folder);
    }
}

fn unarmed(folder: &Path, error: &notify::Error) -> Unarmed {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => Unarmed::Never(format!(
            "{} is not watched: there are not enough watches (raise fs.inotify.max_user_watches)",
            folder.display()
        )),
        notify::ErrorKind::PathNotFound => Unarmed::Gone,
        notify::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => Unarmed::Gone,
        kind => Unarmed::Never(format!("{} is not watched: {kind:?}", folder.display())),
    }
}

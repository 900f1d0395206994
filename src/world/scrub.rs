//! Looking again, without any event, whether what is held to be true is: by stat, and by bytes now and then.
//!
//! A thread of its own at the lowest pace. It only ever says that something looks different; whether that is a missed
//! event is for the engine to find out, behind a barrier.

use super::dart::fault;
use super::listing::glance_at;
use super::look::{self, LookOptions};
use super::stumbles::Stumbles;
use super::watch::Board;
use crate::index::found::Found;
use crate::index::scrub::Held;
use crate::index::{Check, Depth, KeyKind, Looked, Stamp};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// How many batches may wait; more are not asked for.
const BATCHES_MAX: usize = 1;

pub(super) struct Scrubber {
    inbox: SyncSender<(Vec<Held>, u64)>,
}

impl Scrubber {
    pub(super) fn start(
        board: &Arc<Board>,
        stumbles: &Arc<Stumbles>,
        options: &LookOptions,
    ) -> std::io::Result<Self> {
        let (inbox, outbox) = sync_channel(BATCHES_MAX);
        let (board, stumbles, options) = (Arc::clone(board), Arc::clone(stumbles), options.clone());
        let scrub = move || {
            let _dart = board.died.dart("scrub");
            run(&outbox, &board, &stumbles, &options);
        };
        std::thread::Builder::new().name("scrub".to_owned()).spawn(scrub)?;
        Ok(Self { inbox })
    }

    /// Has these looked at, and says so; not while the last ones are still being looked at. Those whose turn it is in this
    /// pass are looked at byte by byte.
    pub(super) fn submit(&self, held: Vec<Held>, pass: u64) -> bool {
        // A reader that is gone has told of its end already.
        !matches!(self.inbox.try_send((held, pass)), Err(TrySendError::Full(_)))
    }
}

fn run(outbox: &Receiver<(Vec<Held>, u64)>, board: &Board, stumbles: &Stumbles, options: &LookOptions) {
    while let Ok((batch, pass)) = outbox.recv() {
        let differs = |held: &Held| {
            let path = &held.key.path;
            let looked = AssertUnwindSafe(|| {
                fault("scrub");
                stumbles.holds(path) || is_so(held, pass, options)
            });
            !catch_unwind(looked).unwrap_or_else(|panic| {
                stumbles.note(path);
                resume_unwind(panic)
            })
        };
        let differing: Vec<Held> = batch.into_iter().filter(differs).collect();
        if !differing.is_empty() {
            board.note(|marks| marks.differ(differing));
        }
    }
}

/// One in so many is looked at byte by byte in each pass.
const BYTES_EVERY: u64 = 8;

/// Whether what is held looks true.
fn is_so(held: &Held, pass: u64, options: &LookOptions) -> bool {
    let bytes = (held.source.0 + pass).is_multiple_of(BYTES_EVERY);
    match (&held.key.kind, &held.found) {
        (KeyKind::Folder, _) => glance_at(&held.key.path, &held.entries, &held.views, bytes, options),
        (KeyKind::Path, Found::File(file)) if !bytes && look::has_stat(&file.canonical, &file.stat) => true,
        _ => looks_alike(&super::rescan(&check(held), options), &held.found),
    }
}

fn check(held: &Held) -> Check {
    let wanted = match &held.found {
        Found::File(file) => file.also.iter().map(crate::session::digest::Digest::algorithm).collect(),
        _ => Vec::new(),
    };
    let (source, key) = (held.source, held.key.clone());
    // Nothing is sought: where a text stands instead was told by the look that missed it.
    let (stamp, depth, sought) = (Stamp(0), Depth::Names, Vec::new());
    Check { source, stamp, key, depth, wanted, sought, known: None, moved: None, order: None }
}

/// Whether a look found what is held; how it was found does not matter.
fn looks_alike(looked: &Looked, held: &Found) -> bool {
    match (looked, held) {
        (Looked::Found(Found::File(now)), Found::File(held)) => now.digest == held.digest,
        (Looked::Found(Found::Lines(now)), Found::Lines(held)) => now.digest == held.digest,
        // Where it went is watched; here it is asked only whether it is gone.
        (Looked::Found(Found::Missing), Found::Renamed { .. }) => true,
        // What cannot be told now is no difference.
        (Looked::Found(Found::Unknown(_)), _) => true,
        (Looked::Found(now), held) => now == held,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCHES_MAX, Scrubber, sync_channel};

    #[test]
    fn a_reader_that_is_busy_takes_no_more_and_says_so() {
        let (inbox, outbox) = sync_channel(BATCHES_MAX);
        let scrubber = Scrubber { inbox };
        let taken = (0..3).filter(|_| scrubber.submit(Vec::new(), 0)).count();
        assert_eq!(taken, BATCHES_MAX);
        outbox.recv().unwrap();
        assert!(scrubber.submit(Vec::new(), 0));
        drop(outbox);
        assert!(scrubber.submit(Vec::new(), 0), "nobody is waited for who is gone");
    }
}

//! The trees of forks, a few at a time, each by a thread that may wait for the disk.

use super::{by_hand, place};
use crate::daemon::Daemon;
use crate::daemon::handle::EngineHandle;
use crate::fork::{Load, Made, Parent, Progress};
use crate::protocol::fork::Fork;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many forks are copied at a time.
const AT_ONCE: usize = 2;
/// Between two words about how far a fork is.
const PROGRESS_FILES: u64 = 1_000;

/// Copies the trees, a few at a time.
pub(super) async fn copies(
    daemon: &Daemon,
    intended: &[Fork],
    parent: &Arc<Parent>,
    load: Load,
) -> Result<Vec<Fork>, Refusal> {
    let (parent, intended) = (Arc::clone(parent), intended.to_vec());
    let engine = daemon.engine.clone();
    let made = by_hand(daemon, "the making of forks", move |hands| {
        let next = AtomicU64::new(0);
        let one = |fork: &Fork| {
            let (told, session) = (AtomicU64::new(0), fork.session.clone());
            let progress = |at: Progress| {
                let step = at.files / PROGRESS_FILES;
                if told.swap(step, Ordering::Relaxed) != step {
                    say_progress(&engine, fork.fork.clone(), session.clone(), at);
                }
            };
            hands.make(&parent, &load, &place(fork), &progress).map(|made| finished(fork, made, &load))
        };
        // Each takes the next that nobody has taken; what one could not do ends all.
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                let Some(fork) = intended.get(at) else { return Ok(done) };
                match one(fork) {
                    Ok(made) => done.push((at, made)),
                    Err(error) => {
                        next.store(intended.len() as u64, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        };
        let parts: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE.min(intended.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("because a panic is told by its thread"))
                .collect()
        });
        let mut made = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        made.sort_by_key(|(at, _)| *at);
        Ok(made.into_iter().map(|(_, fork)| fork).collect())
    });
    made.await
}

fn say_progress(engine: &EngineHandle, fork: String, session: String, at: Progress) {
    let files = at.files.to_string();
    let (all, bytes) = (at.files_all.to_string(), at.bytes.to_string());
    // Nobody waits for it, and an engine that has ended tells nobody.
    engine.post(move |engine| {
        let more = [("fork", fork.as_str()), ("files", &files), ("files_all", &all), ("bytes", &bytes)];
        engine.push_fork("progress", &session, &more);
    });
}

fn finished(fork: &Fork, made: Made, load: &Load) -> Fork {
    let wire = |paths: &[PathBuf]| paths.iter().map(|path| path.as_path().into()).collect::<Vec<WirePath>>();
    Fork {
        // Without a slash at its end.
        root: WirePath(made.root.components().collect()),
        base: made.base,
        independent: made.independent,
        left_out: made.left_out,
        missing: wire(&load.missing),
        shared_by_symlink: wire(&made.shared_by_symlink),
        ..fork.clone()
    }
}

//! What everybody in the soak shares: who may move when, who believes what, and the tale for when something is wrong.

use crate::adversary::head;
use crate::adversary::layout::{self, Place};
use crate::adversary::sessions::Session;
use staled::store::decision_log::Receipt;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Things told when something is wrong.
const TOLD: usize = 60;

/// A session as its client has it. `open` is one about which the last request was not answered, so that it may be
/// either way.
pub(super) struct Held {
    pub(super) session: Session,
    pub(super) open: bool,
}

/// The shared part. Locks are taken in this order: `calm`, `clients`, `still`.
pub(super) struct Stage {
    pub(super) world: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) places: Vec<Place>,
    pub(super) commits: Vec<String>,
    /// Held for reading by whoever does anything; for writing by who wants everybody to rest.
    pub(super) calm: RwLock<()>,
    /// Held for writing by who changes files; for reading by who compares an answer with them.
    pub(super) still: RwLock<()>,
    pub(super) clients: Vec<Mutex<Vec<Held>>>,
    /// The process that changes files, which may hold some open.
    pub(super) operator: u32,
    pub(super) counts: Counts,
    told: Mutex<VecDeque<String>>,
    receipts: Mutex<Vec<Receipt>>,
    over: AtomicBool,
}

/// How much was done.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: AtomicU64,
    pub(super) claims: AtomicU64,
    pub(super) stale: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) died: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) checkouts: AtomicU64,
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Stage {
    pub(super) fn new(
        world: PathBuf,
        socket: PathBuf,
        places: Vec<Place>,
        clients: usize,
        operator: u32,
    ) -> Self {
        Self {
            places,
            commits: head::commits(&world),
            socket,
            calm: RwLock::default(),
            still: RwLock::default(),
            clients: (0..clients).map(|_| Mutex::default()).collect(),
            operator,
            counts: Counts::default(),
            told: Mutex::default(),
            receipts: Mutex::default(),
            over: AtomicBool::new(false),
            world,
        }
    }

    /// What sessions have as their root.
    pub(super) fn root(&self) -> PathBuf {
        self.world.join("r")
    }

    pub(super) fn held(&self, client: usize) -> MutexGuard<'_, Vec<Held>> {
        self.clients[client].lock().expect("no client failed")
    }

    pub(super) fn note(&self, line: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push_back(line);
        if told.len() > TOLD {
            told.pop_front();
        }
    }

    /// A decision was logged under this number, so it has to be there for good.
    pub(super) fn keep(&self, receipt: Receipt) {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).push(receipt);
    }

    pub(super) fn receipts(&self) -> Vec<Receipt> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What happened last.
    pub(super) fn tale(&self) -> String {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.make_contiguous().join("\n")
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Ends it for everybody when it is dropped, also by a panic.
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending(&self.over)
    }
}

pub(super) struct Ending<'stage>(&'stage AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The adversary's places, and those of the project.
pub(super) fn places(world: &std::path::Path) -> Vec<Place> {
    let mut places = layout::places(world);
    places.extend(super::churn::places());
    places
}

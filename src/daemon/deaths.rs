//! The first thread that died of a panic: nothing is said about the world after it, and the process ends.
//!
//! The engine asks between taking what happened and letting anybody through, so what the dead one kept to itself is in no
//! answer. Another process starts with nothing lost: what was acknowledged is in the journal, and everything is looked at
//! again.

use crate::world::dart::Died;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Shared by the engine and by everybody who may have to tell.
#[derive(Debug, Clone)]
pub(super) struct Deaths {
    first: Arc<OnceLock<String>>,
    wake: Arc<Notify>,
}

impl Deaths {
    /// `wake` is the engine's.
    pub(super) fn new(wake: &Arc<Notify>) -> Self {
        Self { first: Arc::default(), wake: Arc::clone(wake) }
    }

    /// The thread that died, if one did.
    pub(super) fn first(&self) -> Option<&str> {
        self.first.get().map(String::as_str)
    }

    /// What threads are given to tell of their end.
    pub(super) fn listener(&self) -> Died {
        let deaths = self.clone();
        Died::new(move |thread| {
            // The first one is the cause; what follows from it is not told.
            let _ = deaths.first.set(thread.to_owned());
            deaths.wake.notify_one();
        })
    }
}

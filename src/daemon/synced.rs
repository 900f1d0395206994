//! Waiting for a sync, for as long as a disk may take and no longer.
//!
//! Promise: who waited is told that it passed, or else why nothing may be answered. A disk that hangs keeps nobody for
//! ever: what was written stays written and may yet be synced, but nobody is told that it was.

use crate::store::syncer::Synced;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longer than any disk takes that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// It is not known to be on disk.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsynced {
    #[error("could not be synced: {0}")]
    Failed(Arc<io::Error>),
    #[error("was not synced within {} s, so its disk hangs; ask again when it does not", .0.as_secs())]
    Late(Duration),
    #[error("is no longer synced")]
    Gone,
}

/// Waits for the syncer's word.
pub(super) async fn synced(word: oneshot::Receiver<Synced>) -> Result<(), Unsynced> {
    synced_within(PATIENCE, word).await
}

async fn synced_within(patience: Duration, word: oneshot::Receiver<Synced>) -> Result<(), Unsynced> {
    match tokio::time::timeout(patience, word).await {
        Ok(Ok(synced)) => synced.map_err(Unsynced::Failed),
        Ok(Err(_)) => Err(Unsynced::Gone),
        Err(_) => Err(Unsynced::Late(patience)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Unsynced, synced_within};
    use std::time::Duration;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_syncer_that_says_nothing_is_waited_for_no_longer_than_that() {
        let (silent, word) = oneshot::channel();
        let waiting = synced_within(Duration::from_millis(1), word);
        let late = tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it gives up");
        assert!(matches!(late, Err(Unsynced::Late(_))), "{late:?}");
        drop(silent);
    }

    #[tokio::test]
    async fn what_the_syncer_says_is_passed_on() {
        let (syncer, word) = oneshot::channel();
        syncer.send(Ok(())).unwrap();
        assert!(synced_within(Duration::ZERO, word).await.is_ok());
        let (syncer, word) = oneshot::channel();
        drop(syncer);
        let gone = synced_within(Duration::from_secs(60), word).await;
        assert!(matches!(gone, Err(Unsynced::Gone)), "{gone:?}");
    }
}

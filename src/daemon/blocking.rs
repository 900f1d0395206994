//! Work that may wait for a disk, on a thread of its own and not on the one that answers everybody.
//!
//! Promise: of work that panicked no more is told than that it did. What a panic says may hold what a client told, and
//! that belongs in no answer and no log.

use tokio::task::{JoinError, spawn_blocking};

/// The work has no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Undone {
    /// The process goes on without it.
    #[error("{0} panicked, which is a mistake in staled; where it happened stands in the daemon's own log")]
    Panicked(&'static str),
    /// Nobody waits for it any more.
    #[error("{0} was cut short by the end of the daemon")]
    CutShort(&'static str),
}

impl Undone {
    /// What is left of an error that would tell all.
    pub(super) fn of(what: &'static str, error: &JoinError) -> Self {
        if error.is_panic() { Self::Panicked(what) } else { Self::CutShort(what) }
    }
}

/// Does the work, which goes by this name where it fails.
pub(super) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Undone> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Undone::of(what, &error)).inspect_err(|undone| tracing::error!("{undone}"))
}

#[cfg(test)]
mod tests {
    use super::{Undone, blocking};

    #[tokio::test]
    async fn what_a_panic_says_is_not_told() {
        let undone = blocking("a reading", || -> () { panic!("a client's secret") }).await.unwrap_err();
        assert_eq!(undone, Undone::Panicked("a reading"));
        let told = format!("{undone} {undone:?}");
        assert!(told.contains("a reading panicked") && !told.contains("secret"), "{told}");
    }

    #[tokio::test]
    async fn what_was_done_is_given_back() {
        assert_eq!(blocking("an addition", || 1 + 1).await, Ok(2));
    }
}

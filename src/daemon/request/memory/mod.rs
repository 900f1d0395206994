//! `mem_*`: what is told is planned and journaled in one turn of the engine, and answered when it is on the disk; what is
//! asked is answered once the evidence that it speaks of is settled.

mod ask;
mod facts;
mod pick;
mod save;
mod sessions;

use super::{Answer, Daemon};
use crate::daemon::engine::Engine;
use crate::memory::step::StepError;
use crate::protocol::memory::Ask;
use crate::protocol::memory::inward::Bounds;
use crate::protocol::refusal::Refusal;
use crate::store::syncer::Synced;
use tokio::sync::oneshot;

pub(super) use facts::seen_with_memory;

pub(super) async fn memory(daemon: &Daemon, ask: Ask) -> Answer {
    match ask {
        Ask::Start(ask) => sessions::start(daemon, ask).await,
        Ask::Save(ask) => save::save(daemon, ask).await,
        Ask::Summary(ask) => save::summary(daemon, ask).await,
        Ask::End(ask) => sessions::end(daemon, ask).await,
        Ask::Search(ask) => ask::search(daemon, ask).await,
        Ask::Get(ask) => ask::get(daemon, ask).await,
        Ask::Timeline(ask) => ask::timeline(daemon, ask).await,
        Ask::Stats(ask) => ask::stats(daemon, ask).await,
        Ask::ListSessions(ask) => sessions::list(daemon, ask).await,
        Ask::Forget(ask) => save::forget(daemon, ask).await,
    }
}

/// What this daemon is configured to take.
fn bounds(memory: &crate::config::Memory) -> Bounds<'_> {
    Bounds { types: &memory.observation_types, content_bytes_max: memory.content_bytes_max }
}

/// An answer that is told once what it says is on the disk.
type Durable = (String, oneshot::Receiver<Synced>);

fn durable(engine: &Engine, answer: String) -> Durable {
    (answer, engine.synced())
}

impl From<StepError> for Refusal {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Conflict { .. } => Self::application("revision_conflict", error),
            StepError::Storage(error) => error.into(),
        }
    }
}

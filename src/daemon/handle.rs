//! What others may ask of the engine: to run a piece of work once it has seen enough.

use super::engine::Engine;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use std::future::Future;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// What must have been seen before the work runs.
#[derive(Debug, Clone)]
pub(super) enum Need {
    /// Nothing; the work does not speak of the world.
    Nothing,
    /// Everything that happened before now.
    Barrier,
    /// That, and every source of this session verified.
    Settled(SessionId),
    /// Every source verified.
    Everything,
}

/// How much was seen when the work ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All that was needed.
    Clear,
    /// The barrier passed, but some sources were not verified before the deadline.
    Unsettled,
    /// The barrier did not pass before the deadline: nothing that is known may be believed.
    Blind,
}

pub(super) type Work = Box<dyn FnOnce(&mut Engine, Sight) + Send>;

/// What travels to the engine.
pub(super) enum Message {
    When { need: Need, deadline: Instant, work: Work },
    Stop,
}

/// The way to the engine.
#[derive(Clone)]
pub(super) struct EngineHandle {
    outbox: mpsc::UnboundedSender<Message>,
}

impl EngineHandle {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Message>) {
        // Unbounded, because connections and their pending requests are bounded already.
        let (outbox, inbox) = mpsc::unbounded_channel();
        (Self { outbox }, inbox)
    }

    /// Runs `work` in the engine when what it needs has been seen, or at the deadline with what has been seen by then.
    pub(super) async fn when<T: Send + 'static>(
        &self,
        need: Need,
        deadline: Instant,
        work: impl FnOnce(&mut Engine, Sight) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (sender, receiver) = oneshot::channel();
        // Whoever asked may have gone away.
        let work: Work = Box::new(move |engine, sight| drop(sender.send(work(engine, sight))));
        let stopped =
            || Refusal::application("shutting_down", "the daemon is stopping; ask again when it is back");
        self.outbox.send(Message::When { need, deadline, work }).map_err(|_| stopped())?;
        receiver.await.map_err(|_| stopped())
    }

    /// Done when every source has been looked at since the start.
    pub(super) fn settled_all(&self) -> impl Future<Output = ()> + Send + 'static {
        let handle = self.clone();
        let far = Instant::now() + std::time::Duration::from_secs(24 * 60 * 60);
        async move {
            // An engine that has stopped will never be settled, and nobody waits for it then.
            let _ = handle.when(Need::Everything, far, |_, _| ()).await;
        }
    }

    pub(super) fn stop(&self) {
        // An engine that is gone needs no telling.
        let _ = self.outbox.send(Message::Stop);
    }
}

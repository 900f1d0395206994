//! What others may ask of the engine: to run a piece of work once it has seen enough.

use super::engine::Engine;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Between two questions to an engine whose store has failed.
const DOWN_PAUSE: Duration = Duration::from_millis(100);

/// What must have been seen before the work runs.
#[derive(Debug, Clone)]
pub(super) enum Need {
    /// Nothing; the work does not speak of the world.
    Nothing,
    /// Everything that happened before now.
    Barrier,
    /// That, and every source of this session verified.
    Settled(SessionId),
    /// The barrier, and every source of all of these.
    AllSettled(Vec<SessionId>),
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
    When {
        need: Need,
        deadline: Instant,
        work: Work,
    },
    /// Whether anything is seen, which can be told without a store.
    Seen {
        deadline: Instant,
        done: oneshot::Sender<Sight>,
    },
    Stop,
}

/// Why the store failed last. Whoever was waiting then, or asks before it is open again, is told.
#[derive(Debug, Clone, Default)]
pub(super) struct Down(Arc<Mutex<Failed>>);

#[derive(Debug, Default)]
struct Failed {
    why: String,
    epoch: String,
}

impl Down {
    pub(super) fn say(&self, why: &impl Display) {
        self.lock().why = why.to_string();
    }

    /// The epoch in which it failed.
    pub(super) fn last_epoch(&self, epoch: &str) {
        epoch.clone_into(&mut self.lock().epoch);
    }

    /// That epoch; empty when there has been none.
    pub(super) fn epoch(&self) -> String {
        self.lock().epoch.clone()
    }

    fn refusal(&self) -> Refusal {
        let why = &self.lock().why;
        Refusal::application("store_failed", format!("{why}; it is tried again by itself, ask again"))
    }

    fn lock(&self) -> MutexGuard<'_, Failed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the engine.
#[derive(Clone)]
pub(super) struct EngineHandle {
    outbox: mpsc::UnboundedSender<Message>,
    down: Down,
}

impl EngineHandle {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Message>) {
        // Unbounded, because connections and their pending requests are bounded already.
        let (outbox, inbox) = mpsc::unbounded_channel();
        (Self { outbox, down: Down::default() }, inbox)
    }

    /// Where it is said why the store failed.
    pub(super) fn down(&self) -> Down {
        self.down.clone()
    }

    /// Whether there will never be an answer again.
    pub(super) fn has_ended(&self) -> bool {
        self.outbox.is_closed()
    }

    /// Work that is dropped was not done: its engine has ended, or its store has failed.
    fn undone(&self) -> Refusal {
        if self.has_ended() {
            Refusal::application("shutting_down", "the daemon is stopping; ask again when it is back")
        } else {
            self.down.refusal()
        }
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
        self.outbox.send(Message::When { need, deadline, work }).map_err(|_| self.undone())?;
        receiver.await.map_err(|_| self.undone())
    }

    /// Runs `work` in the engine when it comes to it, for nobody who waits; not at all in one that has ended.
    pub(super) fn post(&self, work: impl FnOnce(&mut Engine) + Send + 'static) {
        let work: Work = Box::new(move |engine, _| work(engine));
        let message = Message::When { need: Need::Nothing, deadline: Instant::now(), work };
        drop(self.outbox.send(message));
    }

    /// Whether a cookie comes back by then, with or without a store.
    pub(super) async fn seen(&self, deadline: Instant) -> Result<Sight, Refusal> {
        let (done, seen) = oneshot::channel();
        self.outbox.send(Message::Seen { deadline, done }).map_err(|_| self.undone())?;
        seen.await.map_err(|_| self.undone())
    }

    /// Done when every source has been looked at since the start.
    pub(super) fn settled_all(&self) -> impl Future<Output = ()> + Send + 'static {
        let handle = self.clone();
        let far = Instant::now() + Duration::from_secs(24 * 60 * 60);
        async move {
            // An engine that has stopped will never be settled, and nobody waits for it then.
            while handle.when(Need::Everything, far, |_, _| ()).await.is_err() && !handle.has_ended() {
                tokio::time::sleep(DOWN_PAUSE).await;
            }
        }
    }

    pub(super) fn stop(&self) {
        // An engine that is gone needs no telling.
        let _ = self.outbox.send(Message::Stop);
    }
}

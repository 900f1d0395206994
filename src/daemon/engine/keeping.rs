//! The engine, kept: one whose store failed is taken apart, and made again from what is on disk as a start makes it.
//!
//! Promise: from the failure until the store is open again whoever asks is told `store_failed`, and nothing is decided. A
//! disk that is full or closed is tried again until it is not. What was read and cannot be what was written sets the index
//! aside. A panic is not kept: it ends the process.

use super::super::Fatal;
use super::super::blocking::blocking;
use super::super::clock;
use super::super::folders::Folders;
use super::super::handle::{Down, Message};
use super::super::log::Log;
use super::vigil::Vigil;
use super::{Engine, Failure, Parts, Remains};
use crate::config::Config;
use crate::index::Check;
use crate::index::storage::Trouble;
use crate::store::{self, Opened, Opening, StoreError};
use crate::world::dart::Died;
use crate::world::{Wake, World, WorldError, WorldOptions};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between a failure and the next try, doubled every time.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// An engine that lived so long has not failed for the reason of the one before it.
const STEADY: Duration = Duration::from_secs(60);

/// Why the first epoch begins.
pub(in crate::daemon) const STARTED: &str = "the daemon started";

/// What an engine is made from.
#[derive(Clone)]
pub(in crate::daemon) struct Making {
    pub(in crate::daemon) folders: Folders,
    pub(in crate::daemon) config: Arc<Config>,
    pub(in crate::daemon) wake: Wake,
    pub(in crate::daemon) died: Died,
    pub(in crate::daemon) log: Log,
}

/// A store and eyes of which an engine can be made.
pub(in crate::daemon) struct Made {
    opened: Opened,
    world: World,
    epoch: String,
}

#[derive(Debug, thiserror::Error)]
pub(in crate::daemon) enum Unmade {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    World(#[from] WorldError),
}

impl Unmade {
    /// Whether it will be met every time.
    pub(in crate::daemon) fn is_final(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_final())
    }

    /// Whether it may pass by itself.
    pub(in crate::daemon) fn passes(&self) -> bool {
        matches!(self, Self::Store(error) if error.passes())
    }
}

impl From<Unmade> for Fatal {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Store(error) => error.into(),
            Unmade::World(error) => error.into(),
        }
    }
}

impl Making {
    /// Opens the store and the eyes, and logs that an epoch begins and why. Blocks, for a minute if sled hangs.
    pub(in crate::daemon) fn make(&self, why: &str) -> Result<Made, Unmade> {
        let (opened, epoch) = self.open_store(None)?;
        Ok(self.made(opened, self.open_eyes()?, epoch, why))
    }

    fn open_store(&self, distrust: Option<&str>) -> Result<(Opened, String), StoreError> {
        let epoch = clock::new_epoch();
        let opening = Opening {
            state: &self.folders.state,
            new_id: *clock::new_uuid().as_bytes(),
            epoch: &epoch,
            stamp: &clock::file_stamp(),
            distrust,
            compact_bytes: self.config.journal.compact_bytes,
        };
        Ok((store::open(&opening, &self.died)?, epoch))
    }

    pub(super) fn open_eyes(&self) -> Result<World, WorldError> {
        let (cookies, wake) = (self.folders.cookies(), Arc::clone(&self.wake));
        let stumbled = Some(self.folders.stumbled());
        let options = WorldOptions { stumbled, ..self.config.world_options() };
        World::start(&cookies, &options, wake, &self.died)
    }

    fn made(&self, opened: Opened, world: World, epoch: String, why: &str) -> Made {
        self.say("epoch", &[("epoch", &epoch), ("why", why)]);
        for what in &opened.healed {
            tracing::warn!("{what}");
            self.say("healed", &[("what", what)]);
        }
        Made { opened, world, epoch }
    }

    /// A log that takes nothing keeps every decision from being answered. It need not keep the daemon from living.
    fn say(&self, event: &str, fields: &[(&str, &str)]) {
        if let Err(error) = self.log.event(event, fields) {
            tracing::error!(%error, event, "an event could not be logged");
        }
    }

    fn begin(&self, parts: Parts, made: Made, why: &str) -> (Engine, Vec<Check>) {
        let Made { opened: Opened { index, checks, ledger, .. }, world, epoch } = made;
        let engine = Engine::new(index, ledger, world, parts, &self.config);
        engine.push_gap(&epoch, why);
        (engine, checks)
    }
}

/// Keeps an engine until it is told to stop. `made` is none when the first store could not be opened, and may be later.
pub(in crate::daemon) async fn keep(
    making: Making,
    mut parts: Parts,
    down: Down,
    mut made: Option<Made>,
) -> Result<(), Fatal> {
    let mut why = STARTED.to_owned();
    let (mut distrust, mut pause) = (None, PAUSE);
    let mut vigil = Vigil::default();
    loop {
        let found = match made.take() {
            Some(made) => made,
            None => {
                let cause = (why.as_str(), distrust.take());
                let again = made_again(&making, &mut parts, &down, vigil, cause, &mut pause).await?;
                let Some(made) = again else { return Ok(()) };
                made
            }
        };
        let begun = Instant::now();
        let (mut engine, checks) = making.begin(parts, found, &why);
        let failure = match engine.run(checks).await {
            Ok(()) => {
                close(engine.into_parts().1).await;
                return Ok(());
            }
            Err(Failure::Died(thread)) => {
                // Not waited for here: who asks is refused at once, and the process waits as long as it does for any.
                let (_, remains) = engine.into_parts();
                drop(tokio::task::spawn_blocking(move || drop(remains)));
                return Err(Fatal::Died(thread));
            }
            Err(Failure::Store(failure)) => failure,
        };
        tracing::error!(%failure, "the store failed, and is opened again");
        down.say(&failure);
        down.last_epoch(&engine.index.clock().epoch);
        let stopping = engine.stopping;
        let remains;
        (parts, remains) = engine.into_parts();
        vigil = Vigil::default();
        if stopping {
            close(remains).await;
            return Ok(());
        }
        if let_go(&making, &mut parts, &mut vigil, remains).await.is_none() {
            return Ok(());
        }
        pause = if begun.elapsed() > STEADY { PAUSE } else { pause };
        why = format!("the store was opened again, for {failure}");
        parts.health.gaps += 1;
        parts.health.last_gap = Some(why.clone());
        distrust = (failure.trouble == Trouble::Contents).then(|| failure.to_string());
    }
}

/// The end. sled panics when the last sync of its drop fails; the journal has everything, so the end is no worse for it.
async fn close(remains: Remains) {
    if blocking("the closing of the index", move || drop(remains)).await.is_err() {
        tracing::warn!("the index could not be closed; what it lacks is in the journal");
    }
}

/// Gives up what an engine had; none when told to stop. sled may block or panic when it is dropped after an error, and
/// neither matters any more. The old eyes go before there are others: both would take each other's cookies for their own.
async fn let_go(making: &Making, parts: &mut Parts, vigil: &mut Vigil, remains: Remains) -> Option<()> {
    let Remains { world, index, ledger } = remains;
    let _ = refusing(parts, vigil, blocking("the closing of the eyes", move || drop(world))).await?;
    vigil.open(making);
    let _ =
        refusing(parts, vigil, blocking("the closing of the store", move || drop((index, ledger)))).await?;
    Some(())
}

/// Tries until there is a store again; none when told to stop first. A thread that died meanwhile ends it too.
async fn made_again(
    making: &Making,
    parts: &mut Parts,
    down: &Down,
    mut vigil: Vigil,
    (why, mut distrust): (&str, Option<String>),
    pause: &mut Duration,
) -> Result<Option<Made>, Fatal> {
    loop {
        if let Some(thread) = parts.deaths.first() {
            return Err(Fatal::Died(thread.to_owned()));
        }
        vigil.open(making);
        let Some(()) = refusing(parts, &mut vigil, tokio::time::sleep(*pause)).await else { return Ok(None) };
        *pause = (*pause * 2).min(PAUSE_MAX);
        // The same doubt every time: until there is a store again, nobody has set the old index aside for sure.
        let (opening, doubt) = (making.clone(), distrust.clone());
        let trying = blocking("the opening of the store", move || opening.open_store(doubt.as_deref()));
        let Some(tried) = refusing(parts, &mut vigil, trying).await else { return Ok(None) };
        match tried {
            Ok(Ok((opened, epoch))) => {
                // The index that was doubted is out of the way, and this is another one.
                distrust = None;
                match std::mem::take(&mut vigil).end().map_or_else(|| making.open_eyes(), Ok) {
                    Ok(world) => return Ok(Some(making.made(opened, world, epoch, why))),
                    Err(error) => {
                        tracing::error!(%error, "nothing can be seen; tried again");
                        down.say(&error);
                        let dropped = blocking("the closing of the store", move || drop(opened));
                        let Some(_) = refusing(parts, &mut vigil, dropped).await else { return Ok(None) };
                    }
                }
            }
            Ok(Err(error)) if error.ends_the_process() => return Err(error.into()),
            Ok(Err(error)) => {
                tracing::error!(%error, "the store cannot be opened; tried again");
                down.say(&error);
            }
            Err(panicked) => {
                down.say(&panicked);
                distrust = Some(panicked.to_string());
            }
        }
    }
}

/// Does something while whoever asks is refused, and told no more than whether anything is seen; none when told to stop. To
/// drop a question is to refuse it.
async fn refusing<T>(parts: &mut Parts, vigil: &mut Vigil, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        vigil.turn();
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            message = parts.inbox.recv() => match message {
                None | Some(Message::Stop) => return None,
                Some(Message::When { .. }) => {}
                Some(Message::Seen { deadline, done }) => vigil.ask(deadline, done),
            },
            () = parts.wake.notified() => {}
            () = tokio::time::sleep_until(vigil.due().into()) => {}
        }
    }
}

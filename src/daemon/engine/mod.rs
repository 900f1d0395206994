//! The loop; sole owner of the index, the journal and the eyes.
//!
//! World before requests: each turn takes what happened, applies it, and only then runs what was waiting. A request is
//! served after a cookie made later than the request has come back; one cookie serves everybody who waits for it.
//!
//! It ends with the first failure of its index, and whoever waited is told so: see [`keeping`].

mod counted;
pub(super) mod forking;
mod journaling;
pub(super) mod keeping;
mod pushing;
mod remembering;
mod scrubbing;
mod span;
mod vigil;
mod waiting;

pub(super) use remembering::no_evidence;

use super::clock;
use super::deaths::Deaths;
use super::handle::{Message, Sight};
use super::log::Log;
use super::metrics::Metrics;
use super::subscribers::Subscribers;
use crate::config::Config;
use crate::index::freshness::{Cause, Doubt, Freshness};
use crate::index::row::SessionNo;
use crate::index::storage::StorageError;
use crate::index::view::{Listed, View};
use crate::index::{Change, Check, Depth, Index};
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::store::Ledger;
use crate::store::record::settled;
use crate::store::sled_index::SledIndex;
use crate::world::dart::fault;
use crate::world::{Batch, World};
pub(super) use counted::Counted;
use remembering::Remembering;
use scrubbing::Scrub;
use span::traced;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use waiting::{Flight, Waiter};

/// Checks of one registration that are few enough to pass others in the queue.
const URGENT_CHECKS_MAX: usize = 256;

/// How many times longer than at first the wait between two looks at what cannot be told becomes.
const RETRY_GROWTH_MAX: u32 = 16;

/// Each batch of answers writes the rows and counts that it touched once. So while more than this many looks are still
/// to be answered, answers that come alone wait a moment for others.
const ANSWERS_FEW: usize = 64;
const ANSWERS_PAUSE: Duration = Duration::from_millis(1);

/// The engine.
pub(super) struct Engine {
    pub(super) index: Index<SledIndex>,
    pub(super) ledger: Ledger,
    pub(super) world: World,
    pub(super) health: Health,
    subscribers: Arc<Subscribers>,
    metrics: Arc<Metrics>,
    log: Log,
    wake: Arc<Notify>,
    deaths: Deaths,
    inbox: mpsc::UnboundedReceiver<Message>,
    queued: Vec<Waiter>,
    flight: Option<Flight>,
    verifying: Vec<Waiter>,
    cookie_max: Duration,
    retry: Duration,
    /// Longer after every time that brought nothing: a limit that is reached stays so for hours.
    retry_after: Duration,
    retry_at: Option<Instant>,
    scrub: Scrub,
    remembering: Remembering,
    stopping: bool,
    /// How many events the index has been told of. There may have been more, which it is told of in the next turn.
    pub(super) events_taken: u64,
    /// Why the index may not be read any more.
    failed: Option<StorageError>,
    /// When the journal may be begun anew, after it failed.
    anew_at: Option<Instant>,
}

/// Why an engine ended that nobody had told to.
pub(super) enum Failure {
    /// Its store failed, and may be opened again.
    Store(StorageError),
    /// A thread died that it relies on.
    Died(String),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Store(error)
    }
}

/// A store and eyes that are no longer used. Dropping them may block, and sled may panic in it.
pub(super) struct Remains {
    index: Index<SledIndex>,
    ledger: Ledger,
    world: World,
}

/// What happened to the engine so far.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) gaps: u64,
    pub(super) last_gap: Option<String>,
    /// Changes that the scrub found and no event had announced.
    pub(super) missed_events: u64,
    /// How often the journal was compacted.
    pub(super) compactions: u64,
    /// How often the scrub has begun again from the first source, with whatever store.
    pub(super) scrub_passes: u64,
    /// Why nothing can be seen at the moment.
    pub(super) blind: Option<String>,
}

/// What an engine is made of, apart from its store and its eyes.
pub(super) struct Parts {
    pub(super) log: Log,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) wake: Arc<Notify>,
    pub(super) deaths: Deaths,
    pub(super) inbox: mpsc::UnboundedReceiver<Message>,
    pub(super) health: Health,
}

impl Engine {
    pub(super) fn new(
        index: Index<SledIndex>,
        ledger: Ledger,
        world: World,
        parts: Parts,
        config: &Config,
    ) -> Self {
        let Parts { log, subscribers, metrics, wake, deaths, inbox, health } = parts;
        let blind = world.blind().map(ToString::to_string);
        if let Some(why) = &blind {
            tracing::error!(why, "nothing can be watched; tried again");
        }
        let retry = Duration::from_millis(config.verify.retry_ms);
        Self {
            index,
            ledger,
            world,
            health: Health { blind, ..health },
            subscribers,
            metrics,
            log,
            wake,
            deaths,
            inbox,
            queued: Vec::new(),
            flight: None,
            verifying: Vec::new(),
            cookie_max: Duration::from_millis(config.verify.cookie_ms_max),
            retry,
            retry_after: retry,
            retry_at: None,
            scrub: Scrub::new(Duration::from_secs(config.verify.scrub_pass_s)),
            remembering: Remembering::new(
                Duration::from_secs(config.memory.session_timeout_hours * 3_600),
                config.memory.search_cache_bytes,
            ),
            stopping: false,
            events_taken: 0,
            failed: None,
            anew_at: None,
        }
    }

    /// Lives until told to stop, or until the index fails or a thread dies.
    pub(super) async fn run(&mut self, checks: Vec<Check>) -> Result<(), Failure> {
        // Nothing is followed yet, and everything is looked at from here on. So whatever these eyes have seen is told by
        // those looks: the gap of their own start, unless they were opened before the store was.
        let _ = self.world.take();
        self.world.verify(checks, false);
        while !self.stopping {
            self.turn()?;
            self.check_store()?;
            self.rest().await;
        }
        if let Err(error) = self.index.storage_mut().flush() {
            // The journal has everything, and the next start applies what is missing.
            tracing::warn!(%error, "the index could not be flushed");
        }
        Ok(())
    }

    /// What is left of an engine that has ended, apart from its store and its eyes.
    pub(super) fn into_parts(self) -> (Parts, Remains) {
        let Self { index, ledger, world, health, subscribers, metrics, log, wake, deaths, inbox, .. } = self;
        let parts = Parts { log, subscribers, metrics, wake, deaths, inbox, health };
        (parts, Remains { index, ledger, world })
    }

    fn turn(&mut self) -> Result<(), Failure> {
        fault("engine");
        let batch = self.world.take();
        // Asked after the taking: who died before a cookie came back has been told of by now.
        if let Some(thread) = self.deaths.first() {
            return Err(Failure::Died(thread.to_owned()));
        }
        self.events_taken = batch.events;
        traced(&batch, || self.absorb(&batch))?;
        self.heed_the_log()?;
        self.heed_the_journal()?;
        self.land(&batch);
        self.drain_inbox();
        self.launch();
        self.release();
        self.expire()?;
        self.tend_journal();
        self.tend_memory()?;
        Ok(self.tend_trees()?)
    }

    /// A disk that lost what was written to the decision log may have lost what was read from it, so everything is looked
    /// at again.
    fn heed_the_log(&mut self) -> Result<(), StorageError> {
        match self.log.sync_lost() {
            Some(error) => self.begin_epoch(&format!("the decision log could not be synced: {error}")),
            None => Ok(()),
        }
    }

    /// A journal that failed is begun anew before anybody is let through, so that who waits waits for the looks that
    /// follow. What cannot be done yet is tried again with the next question, which is then refused.
    fn heed_the_journal(&mut self) -> Result<(), StorageError> {
        if self.ledger.failed().is_some() && self.trust_journal().is_err() {
            return self.check_store();
        }
        Ok(())
    }

    /// Has the folders looked at that are due, and forgets those that no tree has any more.
    fn tend_trees(&mut self) -> Result<(), StorageError> {
        let released = self.index.take_released();
        self.world.unfollow(&released);
        let orders = self.index.orders()?;
        self.world.verify(orders, false);
        Ok(())
    }

    /// Sleeps until something happened, somebody asks, or a deadline passes.
    async fn rest(&mut self) {
        let next = self.next_deadline();
        let (wake, world, pending) = (&self.wake, &self.world, self.index.pending_len());
        let woken = async {
            wake.notified().await;
            if world.answers_alone().is_some_and(|answers| pending > answers + ANSWERS_FEW) {
                // Anything but an answer wakes at once.
                let _ = tokio::time::timeout(ANSWERS_PAUSE, wake.notified()).await;
            }
        };
        let timer = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = woken => {}
            message = self.inbox.recv() => match message {
                Some(message) => self.take_in(message),
                None => self.stopping = true,
            },
            () = timer => {}
        }
    }

    /// Returns how many sources became suspect by its marks; by a gap all of them do.
    fn absorb(&mut self, batch: &Batch) -> Result<usize, StorageError> {
        let mut touched = 0;
        if let Some(why) = &batch.gap {
            self.begin_epoch(why)?;
        }
        if !batch.moved.is_empty() {
            let moved = batch.moved.iter().map(|(&source, &depth)| (source, depth));
            let checks = self.index.touch(moved)?;
            touched = checks.len();
            self.world.verify(checks, false);
        }
        if !batch.stirred.is_empty() {
            self.index.stir(batch.stirred.iter().map(|(&folder, names)| (folder, names.clone())))?;
        }
        for held in &batch.differing {
            self.suspect_missed(held.clone());
        }
        if !batch.answers.is_empty() {
            self.scrub.begin();
            if batch.answers.iter().any(|answer| answer.found.is_unsure()) {
                self.retry_at.get_or_insert(Instant::now() + self.retry_after);
            }
            let at = clock::now();
            let outcome = self.index.settle(batch.answers.clone(), at)?;
            if outcome.changed.iter().any(|change| matches!(change.to, Freshness::Unknown(_))) {
                self.retry_after = self.retry;
                self.retry_at = self.retry_at.map(|at| at.min(Instant::now() + self.retry));
            }
            for change in &outcome.changed {
                tracing::debug!(id = %change.id, from = ?change.from, to = ?change.to, "changed");
            }
            self.metrics.changed(&outcome.changed);
            self.push_changes(&outcome.changed, at)?;
            self.heed_bases(&outcome.changed)?;
            self.keep_proofs(&outcome.changed)?;
        }
        Ok(touched)
    }

    /// What was born stale and then was what the agent saw is judged otherwise from then on. Only the journal tells
    /// that to an index that is made again.
    fn keep_proofs(&mut self, changes: &[Change]) -> Result<(), StorageError> {
        let proven = |change: &&Change| {
            change.from == Freshness::Stale(Cause::BornStale) && change.to == Freshness::Fresh
        };
        // One record a session: reading all rows for each of them again would hold everybody up for minutes when a
        // checkout makes thousands of rows true at once.
        let mut ids: HashMap<SessionNo, HashSet<&str>> = HashMap::new();
        for change in changes.iter().filter(proven) {
            ids.entry(change.session).or_default().insert(&change.id);
        }
        for (session, ids) in ids {
            let name = self.index.head(session)?.session;
            let mut rows = self.index.rows(session)?;
            rows.retain(|row| ids.contains(row.id.as_str()));
            for record in settled(name.as_str(), &rows) {
                if let Err(error) = self.journaled(&record, |_| Ok::<_, Refusal>(())) {
                    // It costs the word of a cause after a restart, and no decision.
                    tracing::warn!(%error, session = %name, "that rows were fresh could not be journaled");
                }
            }
        }
        Ok(())
    }

    /// Events were, or may have been, lost: a new epoch, everything suspect, every watch made again.
    pub(super) fn begin_epoch(&mut self, why: &str) -> Result<(), StorageError> {
        let epoch = clock::new_epoch();
        tracing::warn!(%epoch, why, "gap");
        self.health.gaps += 1;
        self.health.last_gap = Some(why.to_owned());
        if let Err(error) = self.log.event("gap", &[("epoch", &epoch), ("why", why)]) {
            tracing::error!(%error, "the gap could not be logged");
        }
        let checks = self.index.lose_sync(&epoch)?;
        self.push_gap(&epoch, why);
        self.world.verify(checks, false);
        // A cookie made before the gap may have been lost in it. Whoever waited for it waits for the next one.
        if let Some(flight) = self.flight.take() {
            self.queued.extend(flight.waiters);
        }
        Ok(())
    }

    /// Looks again at what could not be told, and at nothing when everything is told.
    fn look_again(&mut self) -> Result<(), StorageError> {
        if self.world.blind().is_some() {
            self.rebuild_world();
        }
        let undecided = self.index.undecided()?;
        self.retry_after = if undecided.is_empty() {
            self.retry
        } else {
            (self.retry_after * 2).min(self.retry * RETRY_GROWTH_MAX)
        };
        self.retry_at = (!undecided.is_empty()).then(|| Instant::now() + self.retry_after);
        if !undecided.is_empty() {
            let checks = self.index.touch(undecided.into_iter().map(|source| (source, Depth::Names)))?;
            self.world.verify(checks, false);
        }
        Ok(())
    }

    /// Has what a registration brought verified, and ends the watches of what it released.
    pub(super) fn follow(&mut self, checks: Vec<Check>, released: &[crate::index::SourceId]) {
        self.world.unfollow(released);
        let urgent = checks.len() <= URGENT_CHECKS_MAX;
        self.world.verify(checks, urgent);
    }

    /// The view of a session as far as it could be seen; none when there is nothing to decide about, and an error for
    /// as long as the store is not to be believed.
    pub(super) fn view(
        &mut self,
        name: &SessionId,
        listed: Listed,
        sight: Sight,
    ) -> Result<Option<View>, StorageError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.trust_journal()?;
        let blind = (sight == Sight::Blind).then_some(Doubt::WatcherDead);
        let viewed = match self.index.session(name) {
            Some(session) => self.index.believes(session).and_then(|believes| {
                if believes { self.index.view(session, listed, blind) } else { Ok(None) }
            }),
            None => Ok(None),
        };
        viewed.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// What is wrong and not mended yet.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.health.blind.iter().cloned().collect();
        match self.index.doubts() {
            Ok(doubts) => problems.extend(doubts.into_iter().map(|(doubt, rows)| {
                format!("{rows} results or invariants {} ({})", doubt.remedy(), doubt.word())
            })),
            Err(error) => problems.push(format!("how many results cannot be told is not known: {error}")),
        }
        problems.extend(self.world.left_alone().map(|path| {
            format!(
                "{} is not looked at, for a look at it ended an earlier process; a day after that it is tried again, \
                 and at once by a start without the file `stumbled` in the state folder",
                path.display()
            )
        }));
        problems.extend(self.log.failed());
        problems.extend(self.ledger.not_compacted().map(|why| {
            format!("the journal grows, for it could not be compacted ({why}); that is tried again")
        }));
        problems.extend(self.ledger.failed().map(|why| {
            format!("the journal takes nothing ({why}), so nothing is decided; it is begun anew with the next question")
        }));
        problems
    }
}

//! Who waits for what: cookies on their way, sessions being verified, deadlines.

use super::super::handle::{Message, Need, Sight, Work};
use super::Engine;
use crate::index::row::SessionNo;
use crate::index::storage::StorageError;
use crate::world::{Batch, Cookie};
use std::time::{Duration, Instant};

/// How long the engine's own work waits for a barrier.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Waiter {
    need: Need,
    sessions: Vec<SessionNo>,
    deadline: Instant,
    work: Work,
}

/// A cookie on its way, and who waits for it.
pub(super) struct Flight {
    cookie: Cookie,
    since: Instant,
    pub(super) waiters: Vec<Waiter>,
}

impl Engine {
    /// A cookie that came back lets those through who waited for it.
    pub(super) fn land(&mut self, batch: &Batch) {
        let Some(flight) = self.flight.take_if(|flight| flight.cookie.is_among(batch)) else { return };
        self.metrics.barrier.observe(flight.since.elapsed());
        self.health.blind = None;
        for waiter in flight.waiters {
            self.passed(waiter);
        }
    }

    fn passed(&mut self, waiter: Waiter) {
        match &waiter.need {
            Need::Nothing | Need::Barrier | Need::Everything => self.verifying.push(waiter),
            Need::Settled(name) => {
                let sessions = self.index.session(name).into_iter().collect();
                self.settle(waiter, sessions);
            }
            Need::AllSettled(names) => {
                let sessions = names.iter().filter_map(|name| self.index.session(name)).collect();
                self.settle(waiter, sessions);
            }
        }
    }

    fn settle(&mut self, waiter: Waiter, sessions: Vec<SessionNo>) {
        for &session in &sessions {
            self.look_for(session);
            self.hurry(session);
        }
        self.verifying.push(Waiter { sessions, ..waiter });
    }

    /// What can change without a word is looked at for the question.
    fn look_for(&mut self, session: SessionNo) {
        let doubtful = self.world.take_doubtful(|| self.index.rested_on(session));
        let touched = doubtful.and_then(|doubtful| match doubtful.as_slice() {
            [] => Ok(Vec::new()),
            _ => self.index.touch(doubtful),
        });
        match touched {
            Ok(checks) => self.world.verify(checks, true),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Somebody waits for this session: its looks pass all others.
    fn hurry(&mut self, session: SessionNo) {
        if self.index.suspects(session) == 0 {
            return;
        }
        if let Ok(sources) = self.index.awaited(session) {
            self.world.hurry(&sources);
        }
        if let Err(error) = self.index.hurry_trees(session) {
            // They come in their turn.
            tracing::warn!(%error, "the folders of a session's trees could not be hurried");
        }
    }

    /// Runs a piece of work once everything was seen that happened before now; not at all if that cannot be.
    pub(super) fn behind_barrier(&mut self, work: impl FnOnce(&mut Self) + Send + 'static) {
        let deadline = Instant::now() + PATIENCE;
        let work: Work = Box::new(move |engine, sight| {
            if sight == Sight::Clear {
                work(engine);
            }
        });
        self.queued.push(Waiter { need: Need::Barrier, sessions: Vec::new(), deadline, work });
    }

    pub(super) fn drain_inbox(&mut self) {
        while let Ok(message) = self.inbox.try_recv() {
            self.take_in(message);
        }
    }

    pub(super) fn take_in(&mut self, message: Message) {
        match message {
            Message::Stop => self.stopping = true,
            Message::When { need: Need::Nothing, work, .. } => work(self, Sight::Clear),
            Message::When { need: need @ Need::Everything, deadline, work } => {
                self.verifying.push(Waiter { need, sessions: Vec::new(), deadline, work });
            }
            Message::Seen { deadline, done } => {
                let work: Work = Box::new(move |_, sight| {
                    // Whoever asked may have gone away.
                    let _ = done.send(sight);
                });
                self.queued.push(Waiter { need: Need::Barrier, sessions: Vec::new(), deadline, work });
            }
            Message::When { need, deadline, work } => {
                self.queued.push(Waiter { need, sessions: Vec::new(), deadline, work });
            }
        }
    }

    /// Makes a cookie for everybody who is waiting, unless one is on its way.
    pub(super) fn launch(&mut self) {
        if self.flight.is_some() || self.queued.is_empty() {
            return;
        }
        match self.world.cookie() {
            Ok(cookie) => {
                let waiters = std::mem::take(&mut self.queued);
                self.flight = Some(Flight { cookie, since: Instant::now(), waiters });
            }
            Err(error) => self.health.blind = Some(format!("no cookie can be made: {error}")),
        }
    }

    /// Runs the work of those whose sources are verified, in the order in which they came. Each is asked about just
    /// before it runs: a registration that ran before it may have made a source suspect that it rests on.
    pub(super) fn release(&mut self) {
        let mut at = 0;
        while at < self.verifying.len() {
            if self.is_ready(&self.verifying[at]) {
                let waiter = self.verifying.remove(at);
                (waiter.work)(self, Sight::Clear);
            } else {
                at += 1;
            }
        }
    }

    fn is_ready(&self, waiter: &Waiter) -> bool {
        match waiter.need {
            Need::Everything => self.index.pending_len() == 0,
            _ => waiter.sessions.iter().all(|&session| self.index.suspects(session) == 0),
        }
    }

    /// Runs the work of those whose deadline has passed, and makes a watcher that does not answer anew.
    pub(super) fn expire(&mut self) -> Result<(), StorageError> {
        let now = Instant::now();
        let late = |waiter: &mut Waiter| waiter.deadline <= now;
        let unsettled: Vec<Waiter> = self.verifying.extract_if(.., late).collect();
        let mut blind: Vec<Waiter> = self.queued.extract_if(.., late).collect();
        if let Some(flight) = &mut self.flight {
            blind.extend(flight.waiters.extract_if(.., late));
        }
        for waiter in unsettled {
            (waiter.work)(self, Sight::Unsettled);
        }
        for waiter in blind {
            (waiter.work)(self, Sight::Blind);
        }
        if self.flight.as_ref().is_some_and(|flight| now >= flight.since + self.cookie_max) {
            self.rebuild_world();
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.look_again()?;
        }
        if self.scrub.at.is_some_and(|at| at <= now) {
            self.scrub_some()?;
        }
        Ok(())
    }

    /// Whether the watcher is made anew: there is none, or a cookie has not come back for as long as that may take.
    pub(in crate::daemon) fn is_blind(&self) -> bool {
        let lost = |flight: &Flight| Instant::now() >= flight.since + self.cookie_max;
        self.health.blind.is_some() || self.flight.as_ref().is_some_and(lost)
    }

    pub(super) fn rebuild_world(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.queued.extend(flight.waiters);
        }
        match self.world.rebuild() {
            Ok(()) => self.health.blind = None,
            Err(error) => {
                tracing::error!(%error, "the watcher could not be made anew");
                self.health.blind = Some(error.to_string());
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.queued.iter().chain(&self.verifying);
        let flying = self.flight.iter().flat_map(|flight| &flight.waiters);
        let deadlines = waiting.chain(flying).map(|waiter| waiter.deadline);
        let cookie = self.flight.as_ref().map(|flight| flight.since + self.cookie_max);
        // A cookie that could not be made is tried again soon.
        let again = (self.flight.is_none() && !self.queued.is_empty())
            .then(|| Instant::now() + Duration::from_millis(20));
        let compaction = self.ledger.compaction_due();
        deadlines
            .chain(cookie)
            .chain(again)
            .chain(self.retry_at)
            .chain(self.scrub.at)
            .chain(compaction)
            .chain(self.remembering.expiry_at)
            .min()
    }
}

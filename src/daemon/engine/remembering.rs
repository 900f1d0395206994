//! The memory in the engine: what is told is journaled and applied like everything else, and what searches need is kept at
//! hand, made from the storage piece by piece.

use super::Engine;
use crate::daemon::clock;
use crate::daemon::handle::Sight;
use crate::index::freshness::Freshness;
use crate::index::storage::{Storage, StorageError, Table};
use crate::index::view::{Line, Listed};
use crate::index::{RegisterError, Registered};
use crate::memory::book::Book;
use crate::memory::change::Change;
use crate::memory::observation::Observation;
use crate::memory::recall::{Entry, Recall};
use crate::memory::step::{self, Circumstances};
use crate::protocol::answer::MemorySize;
use crate::protocol::memory::answer::{Changed, Evidence};
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::protocol::time;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::session::moment::Moment;
use crate::store::record::Record;
use crate::store::remembered::{self, Remembered, Resting};
use crate::store::sled_index::SledIndex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Clocks may be set, and machines sleep: whether a session has expired is asked at least this often.
const EXPIRY_PAUSE_MAX: Duration = Duration::from_secs(3_600);
const EXPIRY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Between two pieces of what is being read; after that nobody is reading it.
const READING_MAX: Duration = Duration::from_secs(10);
/// Between a failure to end sessions and the next try.
const EXPIRY_TRY: Duration = Duration::from_secs(60);

/// What the engine keeps of the memory beside its tables; all of it can be made again.
pub(super) struct Remembering {
    timeout_micros: i64,
    cache_bytes_max: usize,
    recalls: HashMap<String, Recalled>,
    /// Of whoever has never told anything.
    nothing: Recall,
    turn: u64,
    /// When the next session may have expired.
    pub(super) expiry_at: Option<Instant>,
}

/// What searches of one user need.
#[derive(Default)]
struct Recalled {
    recall: Recall,
    /// Observations from here on are not in it.
    next: u64,
    whole: bool,
    /// In which turn it was last needed.
    used: u64,
    /// When it was.
    asked: Option<Instant>,
}

impl Recalled {
    /// Whether nobody is reading it: all of it is there, or whoever was at it has gone away.
    fn is_at_rest(&self) -> bool {
        self.whole || self.asked.is_none_or(|at| at.elapsed() > READING_MAX)
    }

    fn put(&mut self, observation: &Observation) {
        let Observation { id, marks, words } = observation;
        let entry = Entry {
            id: *id,
            kind: marks.kind.as_str().into(),
            created_at: marks.created_at,
            updated_at: marks.updated_at,
            revision: marks.revision,
            session: marks.session,
            has_sources: marks.has_sources,
        };
        self.recall.put(entry, &words.title, &words.content);
        self.next = self.next.max(id + 1);
    }
}

impl Remembering {
    pub(super) fn new(timeout: Duration, cache_bytes_max: usize) -> Self {
        let timeout_micros = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX);
        // Soon, for sessions may have expired while no daemon was there.
        let expiry_at = Some(Instant::now() + EXPIRY_PAUSE_MIN);
        Self {
            timeout_micros,
            cache_bytes_max,
            recalls: HashMap::new(),
            nothing: Recall::default(),
            turn: 0,
            expiry_at,
        }
    }

    fn take(&mut self, change: &Change) {
        let Some(recalled) = self.recalls.get_mut(&change.user) else { return };
        if let Some(id) = change.forgotten {
            recalled.recall.remove(id);
        }
        if let Some(observation) =
            change.saved.as_ref().filter(|saved| recalled.whole || saved.id < recalled.next)
        {
            recalled.put(observation);
            self.make_room(&change.user);
        }
    }

    /// Users who have not searched for longest are let go, but not while theirs is being read: two would be at it for ever.
    fn make_room(&mut self, keep: &str) {
        let mut bytes: usize = self.recalls.values().map(|recalled| recalled.recall.bytes()).sum();
        while bytes > self.cache_bytes_max {
            let others =
                self.recalls.iter().filter(|(user, recalled)| *user != keep && recalled.is_at_rest());
            let Some((user, held)) = others.min_by_key(|(_, recalled)| recalled.used) else { return };
            bytes -= held.recall.bytes();
            let user = user.clone();
            self.recalls.remove(&user);
        }
    }
}

impl Engine {
    /// The memory, to be read.
    pub(in crate::daemon) fn book(&self) -> Book<'_, SledIndex> {
        Book::new(self.index.storage())
    }

    /// How much is remembered: every user counts their own.
    pub(in crate::daemon) fn memory_size(&self) -> Result<MemorySize, StorageError> {
        let users = self.book().users()?;
        Ok(MemorySize {
            users: users.len() as u64,
            sessions: users.iter().map(|(_, user)| u64::from(user.sessions)).sum(),
            observations: users.iter().map(|(_, user)| user.observations).sum(),
        })
    }

    /// What a step of the memory is told of the outside.
    pub(in crate::daemon) fn circumstances(&self) -> Circumstances {
        Circumstances {
            now: clock::now(),
            timeout_micros: self.remembering.timeout_micros,
            new_session: clock::new_uuid().to_string(),
        }
    }

    /// Journals a change and applies it, with what its observation rests on. The registration is given where there is one.
    pub(in crate::daemon) fn remember(
        &mut self,
        change: &Change,
        sources: Option<&Update>,
    ) -> Result<Option<Registered>, Refusal> {
        let at = clock::now();
        let told = Box::new(Remembered::new(change, sources, at));
        let forgets = change.forgotten.is_some();
        let record = if forgets { Record::Forgotten(told) } else { Record::Remembered(told) };
        let apply = |engine: &mut Self| -> Result<Resting, RegisterError> {
            remembered::apply(&mut engine.index, change, sources, at)
        };
        let Resting { registered, released } = self.journaled(&record, apply)?;
        self.remembering.take(change);
        self.expect_expiry(change);
        if let Some(registered) = &registered {
            self.push_changes(&registered.changed, at)?;
        }
        let checks = registered.as_ref().map(|registered| registered.checks.clone()).unwrap_or_default();
        self.follow(checks, &released);
        Ok(registered)
    }

    fn expect_expiry(&mut self, change: &Change) {
        let timeout = self.remembering.timeout_micros;
        let active = change.sessions.iter().filter(|session| session.span.ended_at.is_none());
        for at in active.map(|session| step::expires_at(&session.span, timeout)) {
            self.expect_expiry_at(at);
        }
    }

    fn expect_expiry_at(&mut self, at: Moment) {
        let micros = u64::try_from(at.micros.saturating_sub(clock::now().micros)).unwrap_or_default();
        let pause = Duration::from_micros(micros).clamp(EXPIRY_PAUSE_MIN, EXPIRY_PAUSE_MAX);
        let at = Instant::now() + pause;
        self.remembering.expiry_at = Some(self.remembering.expiry_at.map_or(at, |known| known.min(at)));
    }

    /// Ends the sessions that have expired, when that is due.
    pub(super) fn tend_memory(&mut self) -> Result<(), StorageError> {
        if self.remembering.expiry_at.is_none_or(|at| at > Instant::now()) {
            return Ok(());
        }
        self.remembering.expiry_at = None;
        for (user, held) in self.book().users()? {
            let Some(active) = held.active else { continue };
            let span = self.book().span(held.no, active)?;
            let expires_at = step::expires_at(&span, self.remembering.timeout_micros);
            if expires_at > clock::now() {
                self.expect_expiry_at(expires_at);
                continue;
            }
            // One in a turn, for its summary is made of all that was saved in it; the others follow at once.
            let pause = if self.end_expired(&user)? { Duration::ZERO } else { EXPIRY_TRY };
            self.remembering.expiry_at = Some(Instant::now() + pause);
            return Ok(());
        }
        Ok(())
    }

    /// Whether that could be journaled. If not, the user's next start ends it, or the next try.
    fn end_expired(&mut self, user: &str) -> Result<bool, StorageError> {
        let Some(change) = step::expire(self.book(), user, &self.circumstances())? else { return Ok(true) };
        match self.remember(&change, None) {
            Ok(_) => Ok(true),
            Err(refusal) => {
                tracing::warn!(why = %refusal, "a session that has expired could not be ended");
                Ok(false)
            }
        }
    }

    /// Everything that searches of this user need, or none as long as there is more of it to be read: who asks again lets
    /// others in between.
    pub(in crate::daemon) fn recall(&mut self, user: &str) -> Result<Option<&Recall>, StorageError> {
        let Some(held) = self.book().user(user)? else { return Ok(Some(&self.remembering.nothing)) };
        let remembering = &mut self.remembering;
        remembering.turn += 1;
        let recalled = remembering.recalls.entry(user.to_owned()).or_default();
        recalled.used = remembering.turn;
        recalled.asked = Some(Instant::now());
        if !recalled.whole {
            let page = Book::new(self.index.storage()).page(held.no, recalled.next)?;
            recalled.whole = page.is_empty();
            page.iter().for_each(|observation| recalled.put(observation));
            if !recalled.whole {
                return Ok(None);
            }
            remembering.make_room(user);
        }
        Ok(self.remembering.recalls.get(user).map(|recalled| &recalled.recall))
    }

    /// The same as far as it is at hand: nothing is read for it.
    pub(in crate::daemon) fn recall_at_hand(&self, user: &str) -> Option<&Recall> {
        self.remembering.recalls.get(user).filter(|recalled| recalled.whole).map(|recalled| &recalled.recall)
    }

    /// Whether the sources of an observation that has some are fresh, in a word: what counting thousands of them needs.
    pub(in crate::daemon) fn evidence_word(
        &self,
        id: u64,
        sight: Sight,
    ) -> Result<&'static str, StorageError> {
        let Some(session) = self.index.session(&SessionId::of_observation(id)) else {
            return Err(self.no_sources(id));
        };
        let known = self.index.summary(session)?;
        if known.rows == 0 {
            return Err(self.no_sources(id));
        }
        let unseen =
            sight == Sight::Blind || self.index.suspects(session) > 0 || self.index.is_doubted(session);
        Ok(match (unseen, known.stale, known.unknown) {
            (true, ..) => "unknown",
            (false, 0, 0) => "fresh",
            (false, 0, _) => "unknown",
            (false, ..) => "stale",
        })
    }

    fn no_sources(&self, id: u64) -> StorageError {
        let reason = format!("what observation {id} rests on is missing");
        self.index.storage().distrust(StorageError::contents("find", Table::Names, reason))
    }

    /// What is known of the sources of an observation that has some.
    pub(in crate::daemon) fn evidence(&mut self, id: u64, sight: Sight) -> Result<Evidence, StorageError> {
        let name = SessionId::of_observation(id);
        let Some(view) = self.view(&name, Listed::Doubtful, sight)? else {
            return Err(self.no_sources(id));
        };
        let doubtful: Vec<&Line> = view.lines.iter().filter(|line| line.is_doubtful()).collect();
        let is_stale = |line: &&Line| matches!(line.freshness, Freshness::Stale(_));
        let evidence = match (doubtful.is_empty(), doubtful.iter().any(is_stale)) {
            (true, _) => "fresh",
            (false, true) => "stale",
            (false, false) => "unknown",
        };
        Ok(Evidence { evidence, changed: doubtful.into_iter().map(changed).collect() })
    }
}

fn changed(line: &Line) -> Changed {
    // The row of a HEAD has a name in a session, and here only a number.
    let path = line.source.path().map_or_else(|| line.label(), ToOwned::to_owned);
    Changed {
        path: WirePath(path),
        status: line.freshness.word(),
        cause: line.freshness.cause(),
        was: line.was.clone(),
        now: line.now.clone(),
        since: line.since.map(time::to_text),
    }
}

/// What is said of an observation without sources.
pub(in crate::daemon) fn no_evidence() -> Evidence {
    Evidence { evidence: "none", changed: Vec::new() }
}

//! What clients tell: registering, dropping, acknowledging an own write, refuting.
//!
//! A row replaced by id starts over. A source lives as long as somebody rests on it; the last reader to leave releases
//! it, and the caller ends its watches.

use super::row::{Mark, Role, Row, RowNo, SessionNo};
use super::shelf::{mark_key, source_key};
use super::storage::{CHUNK, SourceState, Storage, StorageError, StoredHead, Summary, Table};
use super::telling::Step;
use super::{Change, Check, Index, Outcome, SourceId};
use crate::session::SessionId;
use crate::session::context::{Belief, Goal, Update};
use crate::session::moment::Moment;
use crate::session::source::{Source, absolute};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What a registration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The session's number.
    pub session: SessionNo,
    /// The rows that this update told or that its facts brought.
    pub told: Vec<RowNo>,
    /// Looks to be made.
    pub checks: Vec<Check>,
    /// Sources that nobody rests on any more.
    pub released: Vec<SourceId>,
    /// Rows that are not what they were, or that began otherwise than fresh.
    pub changed: Vec<Change>,
}

/// What a refutation hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refutation {
    /// Ids of the rows that are refuted now.
    pub ids: Vec<String>,
    /// Those of them that were something else before.
    pub changed: Vec<Change>,
}

/// A registration that was refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No such session, and the update does not say enough to begin one.
    #[error("there is no session {0:?}; register it first")]
    NoSession(String),
    /// The session has another root. Its relative paths would change their meaning half-way.
    #[error("the session's root is {}; to move it to {}, register it anew with replace", held.display(), told.display())]
    OtherRoot {
        /// The root it has.
        held: PathBuf,
        /// The root that was told.
        told: PathBuf,
    },
    /// More rows than one session may have.
    #[error("the session would have {rows} results and invariants; the most is {max}")]
    TooManyRows {
        /// How many it would have.
        rows: usize,
        /// How many it may have.
        max: usize,
    },
    /// Rows go by their ids in a report, so an id cannot be a result and an invariant.
    #[error("{0:?} would be both a result and an invariant; give one of them another name")]
    TwoRoles(String),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl<S: Storage> Index<S> {
    /// Whether an update would be taken. What passes here is not refused by [`Index::register`].
    pub fn admits(&self, update: &Update, rows_max: usize) -> Result<(), RegisterError> {
        let known = self.session(&update.session);
        if known.is_none() && update.root.is_none() {
            return Err(RegisterError::NoSession(update.session.to_string()));
        }
        let held = match known {
            Some(session) if !update.replace => {
                refuse_other_root(&self.head(session)?, update)?;
                self.shelf.rows(session)?
            }
            _ => Vec::new(),
        };
        let removed: HashSet<&str> = update.remove.iter().map(String::as_str).collect();
        let kept: Vec<&Row> = held.iter().filter(|row| !removed.contains(row.id.as_str())).collect();
        refuse_two_roles(&kept, update)?;
        let root = match (known, &update.root) {
            (_, Some(root)) => root.clone(),
            (Some(session), None) => self.head(session)?.root,
            (None, None) => PathBuf::new(),
        };
        refuse_too_many(&kept, update, &root, rows_max)
    }

    /// Takes in what a client tells. The caller has passed a barrier, so what is settled is true of this moment.
    pub fn register(
        &mut self,
        update: &Update,
        rows_max: usize,
        at: Moment,
    ) -> Result<Registered, RegisterError> {
        self.admits(update, rows_max)?;
        let known = self.session(&update.session);
        let root = match (known, &update.root) {
            (_, Some(root)) => root.clone(),
            (Some(session), None) => self.head(session)?.root,
            (None, None) => return Err(RegisterError::NoSession(update.session.to_string())),
        };
        self.clock.tick += 1;
        self.resting.remove(&known.unwrap_or(SessionNo(self.next.session)));
        let mut released = Vec::new();
        let session = match known {
            Some(session) if update.replace => {
                released = self.empty(session)?;
                session
            }
            Some(session) => session,
            None => self.open_session(&update.session, &root)?,
        };
        let mut step = Step {
            index: self,
            session,
            root,
            at,
            told: Vec::new(),
            checks: Vec::new(),
            released,
            outcome: Outcome::default(),
        };
        step.run(update)?;
        let Step { told, checks, released, outcome, .. } = step;
        self.shelf.flush()?;
        self.put_totals()?;
        Ok(Registered { session, told, checks, released, changed: outcome.changed })
    }

    pub(super) fn open_session(&mut self, name: &SessionId, root: &Path) -> Result<SessionNo, StorageError> {
        let session = SessionNo(self.next.session);
        self.next.session += 1;
        let head = empty_head(name.clone(), root.to_owned());
        self.totals.sessions += 1;
        self.names.insert(name.clone(), session);
        self.shelf.put(Table::Names, name.as_str().as_bytes(), &session)?;
        self.put_head(session, &head)?;
        self.shelf.put(Table::Summaries, &session.0.to_be_bytes(), &Summary::default())?;
        Ok(session)
    }

    pub(super) fn put_head(&mut self, session: SessionNo, head: &StoredHead) -> Result<(), StorageError> {
        self.shelf.put(Table::Heads, &session.0.to_be_bytes(), head)?;
        self.note_doubt(session, head);
        Ok(())
    }

    /// The head of a session.
    pub fn head(&self, session: SessionNo) -> Result<StoredHead, StorageError> {
        self.shelf.must(Table::Heads, &session.0.to_be_bytes())
    }

    /// These rows of a session, in this order; those that are gone are left out.
    pub fn rows_of(&self, session: SessionNo, numbers: &[RowNo]) -> Result<Vec<Row>, StorageError> {
        let mut rows = Vec::with_capacity(numbers.len());
        // Rows that were told together stand together: each chunk is decoded once.
        for run in numbers.chunk_by(|a, b| a.0 / CHUNK == b.0 / CHUNK) {
            let chunk = self.shelf.chunk(session, run[0])?;
            rows.extend(run.iter().filter_map(|no| chunk.iter().find(|row| row.no == *no).cloned()));
        }
        Ok(rows)
    }

    /// The rows of a session, by number.
    pub fn rows(&self, session: SessionNo) -> Result<Vec<Row>, StorageError> {
        self.shelf.rows(session)
    }

    /// Whether a session has results or invariants. Paths that only facts name are no context by themselves.
    pub fn believes(&self, session: SessionNo) -> Result<bool, StorageError> {
        let counts = self.summary(session)?;
        Ok(counts.rows > counts.tracked)
    }

    /// The counts of a session.
    pub fn summary(&self, session: SessionNo) -> Result<Summary, StorageError> {
        self.shelf.must(Table::Summaries, &session.0.to_be_bytes())
    }

    /// Ends a session. Returns the sources that nobody rests on any more.
    pub fn drop_session(&mut self, session: SessionNo) -> Result<Vec<SourceId>, StorageError> {
        self.clock.tick += 1;
        self.resting.remove(&session);
        let name = self.head(session)?.session;
        let released = self.empty(session)?;
        let key = session.0.to_be_bytes();
        self.shelf.remove(Table::Names, name.as_str().as_bytes())?;
        self.shelf.remove(Table::Heads, &key)?;
        self.shelf.remove(Table::Summaries, &key)?;
        self.totals.sessions -= 1;
        self.names.remove(&name);
        self.put_totals()?;
        Ok(released)
    }

    fn empty(&mut self, session: SessionNo) -> Result<Vec<SourceId>, StorageError> {
        let mut released = Vec::new();
        for row in self.shelf.rows(session)? {
            released.extend(self.remove_row(session, &row)?);
        }
        // Starting over forgets all of it: an old goal would fork, and an old scratchpad start over, for no reason told.
        let StoredHead { session: name, root, .. } = self.head(session)?;
        self.put_head(session, &empty_head(name, root))?;
        self.shelf.flush()?;
        Ok(released)
    }

    pub(super) fn remove_row(
        &mut self,
        session: SessionNo,
        row: &Row,
    ) -> Result<Option<SourceId>, StorageError> {
        let released = self.leave(session, row)?;
        self.shelf.remove_row(session, row.no)?;
        self.totals.rows -= 1;
        let counts = self.shelf.counts(session)?;
        counts.rows -= u32::from(row.role != Role::Input);
        counts.tracked -= u32::from(row.role == Role::Tracked);
        Ok(released)
    }

    /// Takes a row off its source and its mark off the counts.
    pub(super) fn leave(&mut self, session: SessionNo, row: &Row) -> Result<Option<SourceId>, StorageError> {
        self.unmark(session, row)?;
        let Some(source) = row.source_id else { return Ok(None) };
        let mut state: SourceState = self.shelf.must(Table::Sources, &source_key(source))?;
        let before = state.readers.len();
        state.readers.retain(|&reader| reader != (session, row.no));
        let left = state.readers.len() < before;
        if left && !matches!(state.key.kind, super::KeyKind::Tree(_)) {
            self.tally.watched = self.tally.watched.saturating_sub(1);
        }
        if left && self.is_pending(source) {
            self.forget_suspect(session);
        }
        if !state.readers.is_empty() {
            self.shelf.put(Table::Sources, &source_key(source), &state)?;
            self.renew_moments(source, &state.readers)?;
            return Ok(None);
        }
        self.pending.remove(&source);
        self.fell(source)?;
        self.totals.sources -= 1;
        self.shelf.remove(Table::Sources, &source_key(source))?;
        self.shelf.remove(Table::Keys, &super::pack::to_bytes(&state.key))?;
        Ok(Some(source))
    }

    pub(super) fn unmark(&mut self, session: SessionNo, row: &Row) -> Result<(), StorageError> {
        let key = mark_key(session, row.no);
        if let Some(mark) = self.shelf.get::<Mark>(Table::Marks, &key)? {
            self.tally_row(session, row, Some(&mark), false);
            self.shelf.counts(session)?.count(row, Some(&mark), false);
            self.shelf.remove(Table::Marks, &key)?;
        }
        Ok(())
    }
}

fn empty_head(session: SessionId, root: PathBuf) -> StoredHead {
    StoredHead {
        session,
        user: String::new(),
        agent: String::new(),
        root,
        captured_at: None,
        goal: Goal::default(),
        facts: Vec::new(),
        decisions: Vec::new(),
        open_questions: Vec::new(),
        scratchpad_bytes: 0,
        doubted: false,
    }
}

fn refuse_other_root(head: &StoredHead, update: &Update) -> Result<(), RegisterError> {
    match &update.root {
        Some(told) if *told != head.root => {
            Err(RegisterError::OtherRoot { held: head.root.clone(), told: told.clone() })
        }
        _ => Ok(()),
    }
}

fn refuse_too_many(kept: &[&Row], update: &Update, root: &Path, max: usize) -> Result<(), RegisterError> {
    let told = update.results.iter().chain(&update.invariants);
    let ids: HashSet<&str> = told.map(|belief| belief.id.as_str()).collect();
    let told_anew = |row: &Row| row.role != Role::Input && ids.contains(row.id.as_str());
    let replaced: HashSet<RowNo> = kept.iter().filter(|row| told_anew(row)).map(|row| row.no).collect();
    let stays = |row: &&Row| !replaced.contains(&row.input_of.unwrap_or(row.no));
    let kept: Vec<&Row> = kept.iter().copied().filter(stays).collect();
    let inputs: usize = update.results.iter().chain(&update.invariants).map(inputs_len).sum();
    let rows = kept.len() + ids.len() + inputs + new_tracked(&kept, update, root);
    if rows > max { Err(RegisterError::TooManyRows { rows, max }) } else { Ok(()) }
}

fn inputs_len(belief: &Belief) -> usize {
    if let Source::Command { inputs, .. } = &belief.source { inputs.len() } else { 0 }
}

/// How many paths only the told facts name: each becomes a row, watched like any other, and a request line has room
/// for a million of them.
fn new_tracked(kept: &[&Row], update: &Update, root: &Path) -> usize {
    if update.facts.is_empty() {
        return 0;
    }
    let told = || update.results.iter().chain(&update.invariants);
    let kept = || kept.iter().filter(|row| row.role != Role::Input);
    let ids = told().map(|belief| &belief.id).chain(kept().map(|row| &row.id));
    let ids: HashSet<&Path> = ids.map(Path::new).collect();
    let sources = told().map(|belief| &belief.source).chain(kept().map(|row| &row.source));
    let sources = sources.filter(|source| !matches!(source, Source::Lines { .. }));
    let places = sources.filter_map(|source| source.path()).map(|path| absolute(root, path));
    let places: HashSet<PathBuf> = places.collect();
    let named = update.facts.iter().flat_map(|fact| &fact.sources);
    let named = named.filter(|source| !ids.contains(source.as_path()));
    let named: HashSet<PathBuf> = named.map(|source| absolute(root, source)).collect();
    named.difference(&places).count()
}

fn refuse_two_roles(kept: &[&Row], update: &Update) -> Result<(), RegisterError> {
    let ids = |beliefs: &'_ [Belief]| beliefs.iter().map(|belief| belief.id.clone()).collect::<HashSet<_>>();
    let (results, invariants) = (ids(&update.results), ids(&update.invariants));
    let clashes = |row: &&&Row| match row.role {
        Role::Result => invariants.contains(&row.id),
        Role::Invariant => results.contains(&row.id),
        Role::Tracked | Role::Input => false,
    };
    let held = kept.iter().find(clashes).map(|row| &row.id);
    match held.or_else(|| results.intersection(&invariants).next()) {
        Some(id) => Err(RegisterError::TwoRoles(id.clone())),
        None => Ok(()),
    }
}

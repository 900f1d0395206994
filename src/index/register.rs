//! What clients tell: registering, dropping, acknowledging an own write, refuting.
//!
//! A row replaced by id starts over. A source lives as long as somebody rests on it; the last reader to leave releases
//! it, and the caller ends its watches.

use super::found::Found;
use super::freshness::judge;
use super::row::{Baseline, Mark, Role, Row, RowNo, SessionNo};
use super::shelf::{mark_key, source_key};
use super::storage::{CHUNK, SourceState, Storage, StorageError, StoredFact, StoredHead, Summary, Table};
use super::{Check, Depth, Index, KeyKind, Outcome, SourceId, SourceKey};
use crate::session::context::{Belief, Fact, Seen, Update};
use crate::session::digest::Digest;
use crate::session::moment::Moment;
use crate::session::source::{Source, absolute};
use std::collections::{BTreeMap, HashMap, HashSet};
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
}

/// What a refutation hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refutation {
    /// Ids of the rows that are refuted now.
    pub ids: Vec<String>,
}

/// A registration that was refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No such session, and the update does not say enough to begin one.
    #[error("there is no session {0:?}; register it first")]
    NoSession(String),
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
        let known = self.session(&update.session)?;
        if known.is_none() && update.root.is_none() {
            return Err(RegisterError::NoSession(update.session.to_string()));
        }
        let held = match known {
            Some(session) if !update.replace => self.shelf.rows(session)?,
            _ => Vec::new(),
        };
        let removed: HashSet<&str> = update.remove.iter().map(String::as_str).collect();
        let kept: Vec<&Row> = held.iter().filter(|row| !removed.contains(row.id.as_str())).collect();
        refuse_two_roles(&kept, update)?;
        refuse_too_many(&kept, update, rows_max)
    }

    /// Takes in what a client tells. The caller has passed a barrier, so what is settled is true of this moment.
    pub fn register(
        &mut self,
        update: &Update,
        rows_max: usize,
        at: Moment,
    ) -> Result<Registered, RegisterError> {
        self.admits(update, rows_max)?;
        let known = self.session(&update.session)?;
        let root = match (known, &update.root) {
            (_, Some(root)) => root.clone(),
            (Some(session), None) => self.head(session)?.root,
            (None, None) => return Err(RegisterError::NoSession(update.session.to_string())),
        };
        self.clock.tick += 1;
        let mut released = Vec::new();
        let session = match known {
            Some(session) if update.replace => {
                released = self.empty(session)?;
                session
            }
            Some(session) => session,
            None => self.open_session(update, &root)?,
        };
        let mut step =
            Step { index: self, session, root, at, told: Vec::new(), checks: Vec::new(), released };
        step.run(update)?;
        let Step { told, checks, released, .. } = step;
        self.shelf.flush()?;
        self.put_totals()?;
        Ok(Registered { session, told, checks, released })
    }

    fn open_session(&mut self, update: &Update, root: &Path) -> Result<SessionNo, StorageError> {
        let session = SessionNo(self.next.session);
        self.next.session += 1;
        let head = StoredHead {
            session: update.session.clone(),
            user: String::new(),
            agent: String::new(),
            root: root.to_owned(),
            captured_at: None,
            goal: crate::session::context::Goal::default(),
            facts: Vec::new(),
            decisions: Vec::new(),
            open_questions: Vec::new(),
            scratchpad_bytes: 0,
        };
        self.totals.sessions += 1;
        self.shelf.put(Table::Names, update.session.as_str().as_bytes(), &session)?;
        self.shelf.put(Table::Heads, &session.0.to_be_bytes(), &head)?;
        self.shelf.put(Table::Summaries, &session.0.to_be_bytes(), &Summary::default())?;
        Ok(session)
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
        let told = |row: &Row| row.role != Role::Tracked;
        // The first row nearly always says so, without reading the others.
        if self.shelf.row(session, RowNo(0))?.as_ref().is_some_and(told) {
            return Ok(true);
        }
        Ok(self.shelf.rows(session)?.iter().any(told))
    }

    /// The counts of a session.
    pub fn summary(&self, session: SessionNo) -> Result<Summary, StorageError> {
        self.shelf.must(Table::Summaries, &session.0.to_be_bytes())
    }

    /// Ends a session. Returns the sources that nobody rests on any more.
    pub fn drop_session(&mut self, session: SessionNo) -> Result<Vec<SourceId>, StorageError> {
        self.clock.tick += 1;
        let name = self.head(session)?.session;
        let released = self.empty(session)?;
        let key = session.0.to_be_bytes();
        self.shelf.remove(Table::Names, name.as_str().as_bytes())?;
        self.shelf.remove(Table::Heads, &key)?;
        self.shelf.remove(Table::Summaries, &key)?;
        self.totals.sessions -= 1;
        self.put_totals()?;
        Ok(released)
    }

    fn empty(&mut self, session: SessionNo) -> Result<Vec<SourceId>, StorageError> {
        let mut released = Vec::new();
        for row in self.shelf.rows(session)? {
            released.extend(self.remove_row(session, &row)?);
        }
        let mut head = self.head(session)?;
        head.facts.clear();
        head.decisions.clear();
        head.open_questions.clear();
        self.shelf.put(Table::Heads, &session.0.to_be_bytes(), &head)?;
        self.shelf.flush()?;
        Ok(released)
    }

    fn remove_row(&mut self, session: SessionNo, row: &Row) -> Result<Option<SourceId>, StorageError> {
        let released = self.leave(session, row)?;
        self.shelf.remove_row(session, row.no)?;
        self.totals.rows -= 1;
        self.shelf.counts(session)?.rows -= 1;
        Ok(released)
    }

    /// Takes a row off its source and its mark off the counts.
    fn leave(&mut self, session: SessionNo, row: &Row) -> Result<Option<SourceId>, StorageError> {
        self.unmark(session, row)?;
        let Some(source) = row.source_id else { return Ok(None) };
        let mut state: SourceState = self.shelf.must(Table::Sources, &source_key(source))?;
        let before = state.readers.len();
        state.readers.retain(|&reader| reader != (session, row.no));
        if self.is_pending(source) && state.readers.len() < before {
            self.forget_suspect(session);
        }
        if !state.readers.is_empty() {
            self.shelf.put(Table::Sources, &source_key(source), &state)?;
            return Ok(None);
        }
        self.pending.remove(&source);
        self.totals.sources -= 1;
        self.shelf.remove(Table::Sources, &source_key(source))?;
        self.shelf.remove(Table::Keys, &super::pack::to_bytes(&state.key))?;
        Ok(Some(source))
    }

    fn unmark(&mut self, session: SessionNo, row: &Row) -> Result<(), StorageError> {
        let key = mark_key(session, row.no);
        if let Some(mark) = self.shelf.get::<Mark>(Table::Marks, &key)? {
            self.shelf.counts(session)?.count(row, Some(&mark), false);
            self.shelf.remove(Table::Marks, &key)?;
        }
        Ok(())
    }

    /// Baselines that were still awaited when their registration was answered can no longer be taken: a later look
    /// would say what the file became, not what it was.
    pub fn give_up_awaiting(&mut self, session: SessionNo) -> Result<(), StorageError> {
        for row in self.shelf.rows(session)? {
            if row.baseline == Baseline::Awaited {
                self.shelf.put_row(session, Row { baseline: Baseline::Missed, ..row })?;
            }
        }
        self.shelf.flush()
    }

    /// What a registration settled, told again after a restart: baselines that the daemon took itself, and the rows
    /// that were fresh.
    pub fn restore(
        &mut self,
        session: SessionNo,
        adopted: &[(Role, String, Seen)],
        fresh: &HashSet<(Role, String)>,
    ) -> Result<(), StorageError> {
        for mut row in self.shelf.rows(session)? {
            let seen = adopted.iter().find(|(role, id, _)| *role == row.role && *id == row.id);
            if let (Baseline::Awaited | Baseline::Missed, Some((_, _, seen))) = (&row.baseline, seen) {
                row.baseline = Baseline::Registration(seen.clone());
            }
            row.ever_fresh |= fresh.contains(&(row.role, row.id.clone()));
            self.shelf.put_row(session, row)?;
        }
        self.shelf.flush()
    }

    /// The agent's own write: what the session saw at `path` is now `digest`. Returns `None` when no row of the
    /// session is about that path, and the looks to be made otherwise.
    pub fn acknowledge(
        &mut self,
        session: SessionNo,
        path: &Path,
        digest: Digest,
        at: Moment,
    ) -> Result<Option<Vec<Check>>, StorageError> {
        let key = absolute(&self.head(session)?.root, path);
        let mut checks = None;
        for row in self.shelf.rows(session)? {
            let Some(source) = row.source_id else { continue };
            let of_bytes = matches!(row.source, Source::File { .. } | Source::Lockfile { .. });
            let mut state: SourceState = self.shelf.must(Table::Sources, &source_key(source))?;
            if !of_bytes || state.key.path != key {
                continue;
            }
            want(&mut state, &Seen::Digest(digest));
            self.shelf.put(Table::Sources, &source_key(source), &state)?;
            let baseline = Baseline::Client(Seen::Digest(digest));
            // The agent wrote it, so it was there: whatever differs later changed since, and was not born so.
            let acknowledged =
                Row { baseline, refuted: false, ever_fresh: true, captured_at: Some(at), ..row };
            self.shelf.put_row(session, acknowledged)?;
            let check = self.suspect(source, &state, Depth::Bytes);
            checks.get_or_insert_with(Vec::new).push(check);
        }
        self.clock.tick += 1;
        self.shelf.flush()?;
        Ok(checks)
    }

    /// Whether a session rests on the bytes at `path`, so that [`Index::acknowledge`] has something to say.
    pub fn rests_on(&self, session: SessionNo, path: &Path) -> Result<bool, StorageError> {
        let root = self.head(session)?.root;
        let key = absolute(&root, path);
        let rests = |row: &Row| match &row.source {
            Source::File { path } | Source::Lockfile { path } => absolute(&root, path) == key,
            _ => false,
        };
        Ok(self.shelf.rows(session)?.iter().any(rests))
    }

    /// Whether a session has such a fact, row or path, so that [`Index::refute`] has something to hit.
    pub fn knows(&self, session: SessionNo, target: &Path) -> Result<bool, StorageError> {
        let head = self.head(session)?;
        let path = absolute(&head.root, target);
        let known = |row: &Row| {
            let by_path = row.source.path().is_some_and(|spelled| absolute(&head.root, spelled) == path);
            by_path || Path::new(&row.id) == target
        };
        let fact = head.facts.iter().any(|fact| Path::new(&fact.id) == target);
        Ok(fact || self.shelf.rows(session)?.iter().any(known))
    }

    /// A client says that what it believed failed in use. `target` is a fact's id, a row's id, or a path.
    pub fn refute(
        &mut self,
        session: SessionNo,
        target: &Path,
        at: Moment,
    ) -> Result<Option<Refutation>, StorageError> {
        let head = self.head(session)?;
        let facts = head.facts.iter().filter(|fact| Path::new(&fact.id) == target);
        let mut numbers: HashSet<RowNo> = facts.flat_map(|fact| fact.rows.iter().copied()).collect();
        let path = absolute(&head.root, target);
        let rows = self.shelf.rows(session)?;
        for row in &rows {
            let by_path = row.source.path().is_some_and(|spelled| absolute(&head.root, spelled) == path);
            if Path::new(&row.id) == target || by_path {
                numbers.insert(row.no);
            }
        }
        let mut ids = Vec::new();
        for row in rows.into_iter().filter(|row| numbers.contains(&row.no)) {
            ids.push(row.id.clone());
            self.refute_row(session, row, at)?;
        }
        self.clock.tick += 1;
        self.shelf.flush()?;
        Ok((!ids.is_empty()).then_some(Refutation { ids }))
    }

    fn refute_row(&mut self, session: SessionNo, row: Row, at: Moment) -> Result<(), StorageError> {
        let found = match row.source_id {
            Some(source) => self.shelf.must::<SourceState>(Table::Sources, &source_key(source))?.found,
            None => None,
        };
        let row = Row { refuted: true, ..row };
        let freshness = judge(&row, found.as_ref().unwrap_or(&Found::Missing));
        let no = row.no;
        self.shelf.put_row(session, row)?;
        self.mark(session, no, freshness, found.as_ref(), at, &mut Outcome::default())
    }
}

fn refuse_too_many(kept: &[&Row], update: &Update, max: usize) -> Result<(), RegisterError> {
    let told = update.results.iter().chain(&update.invariants);
    let ids: HashSet<&str> = told.map(|belief| belief.id.as_str()).collect();
    let rows = kept.iter().filter(|row| !ids.contains(row.id.as_str())).count() + ids.len();
    if rows > max { Err(RegisterError::TooManyRows { rows, max }) } else { Ok(()) }
}

fn refuse_two_roles(kept: &[&Row], update: &Update) -> Result<(), RegisterError> {
    let ids = |beliefs: &'_ [Belief]| beliefs.iter().map(|belief| belief.id.clone()).collect::<HashSet<_>>();
    let (results, invariants) = (ids(&update.results), ids(&update.invariants));
    let clashes = |row: &&&Row| match row.role {
        Role::Result => invariants.contains(&row.id),
        Role::Invariant => results.contains(&row.id),
        Role::Tracked => false,
    };
    let held = kept.iter().find(clashes).map(|row| &row.id);
    match held.or_else(|| results.intersection(&invariants).next()) {
        Some(id) => Err(RegisterError::TwoRoles(id.clone())),
        None => Ok(()),
    }
}

/// The path itself unless that name is taken.
fn free_name(path: &str, taken: &HashSet<String>) -> String {
    let others = (1_u64..).map(|number| format!("{path} (tracked {number})"));
    let mut names = std::iter::once(path.to_owned()).chain(others);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| path.to_owned())
}

/// One registration in progress.
struct Step<'index, S> {
    index: &'index mut Index<S>,
    session: SessionNo,
    root: PathBuf,
    at: Moment,
    told: Vec<RowNo>,
    checks: Vec<Check>,
    released: Vec<SourceId>,
}

impl<S: Storage> Step<'_, S> {
    fn run(&mut self, update: &Update) -> Result<(), StorageError> {
        let mut rows: BTreeMap<RowNo, Row> =
            self.index.shelf.rows(self.session)?.into_iter().map(|row| (row.no, row)).collect();
        let mut head = self.index.head(self.session)?;
        self.tell_head(&mut head, update);
        let removed: HashSet<&str> = update.remove.iter().map(String::as_str).collect();
        head.facts.retain(|fact| !removed.contains(fact.id.as_str()));
        self.remove(&mut rows, |row| row.role != Role::Tracked && removed.contains(row.id.as_str()))?;
        // An id names one row, whatever it was before: a path that only a fact named makes room for a result of that id.
        let mut by_id: HashMap<String, RowNo> = rows.values().map(|row| (row.id.clone(), row.no)).collect();
        for (belief, role) in update
            .results
            .iter()
            .map(|belief| (belief, Role::Result))
            .chain(update.invariants.iter().map(|belief| (belief, Role::Invariant)))
        {
            let held = by_id.get(&belief.id).copied();
            let row = self.tell(belief, role, held.and_then(|no| rows.remove(&no)))?;
            by_id.insert(row.id.clone(), row.no);
            rows.insert(row.no, row);
        }
        self.tell_facts(&mut head, &update.facts, &mut rows)?;
        let used: HashSet<RowNo> = head.facts.iter().flat_map(|fact| fact.rows.iter().copied()).collect();
        self.remove(&mut rows, |row| row.role == Role::Tracked && !used.contains(&row.no))?;
        self.name_tracked(&mut rows)?;
        self.index.shelf.put(Table::Heads, &self.session.0.to_be_bytes(), &head)
    }

    /// Rows go by their ids in a report, and no two may share one. A tracked path is named after itself; it gives way to
    /// what a client calls so (agents name a result after its path), and to an earlier path that only reads the same.
    fn name_tracked(&mut self, rows: &mut BTreeMap<RowNo, Row>) -> Result<(), StorageError> {
        if rows.values().all(|row| row.role != Role::Tracked) {
            return Ok(());
        }
        let told = rows.values().filter(|row| row.role != Role::Tracked);
        let mut taken: HashSet<String> = told.map(|row| row.id.clone()).collect();
        for row in rows.values_mut().filter(|row| row.role == Role::Tracked) {
            let path = row.source.path().unwrap_or(Path::new("")).to_string_lossy();
            let name = free_name(&path, &taken);
            taken.insert(name.clone());
            if row.id != name {
                row.id = name;
                self.index.shelf.put_row(self.session, row.clone())?;
            }
        }
        Ok(())
    }

    fn tell_head(&self, head: &mut StoredHead, update: &Update) {
        head.root.clone_from(&self.root);
        set(&mut head.user, update.user.as_ref());
        set(&mut head.agent, update.agent.as_ref());
        set(&mut head.goal, update.goal.as_ref());
        set(&mut head.scratchpad_bytes, update.scratchpad_bytes.as_ref());
        head.captured_at = update.captured_at.or(head.captured_at);
        add_new(&mut head.decisions, &update.decisions);
        add_new(&mut head.open_questions, &update.open_questions);
    }

    fn remove(
        &mut self,
        rows: &mut BTreeMap<RowNo, Row>,
        which: impl Fn(&Row) -> bool,
    ) -> Result<(), StorageError> {
        let gone: Vec<Row> = rows.values().filter(|row| which(row)).cloned().collect();
        for row in gone {
            rows.remove(&row.no);
            self.released.extend(self.index.remove_row(self.session, &row)?);
        }
        Ok(())
    }

    fn tell(&mut self, belief: &Belief, role: Role, held: Option<Row>) -> Result<Row, StorageError> {
        let no = match &held {
            Some(row) => row.no,
            None => self.new_row()?,
        };
        if let Some(row) = &held {
            self.leave_unless_same(row, &belief.source)?;
        }
        let baseline = match (&belief.seen, &belief.source) {
            (_, Source::Absent { .. }) => Baseline::Client(Seen::Absence),
            (_, Source::Volatile { .. }) => Baseline::Missed,
            (Seen::Unsaid, _) => Baseline::Awaited,
            (seen, _) => Baseline::Client(seen.clone()),
        };
        let row = Row {
            no,
            role,
            id: belief.id.clone(),
            tool: belief.tool.clone(),
            critical: belief.critical,
            captured_at: belief.captured_at,
            source: belief.source.clone(),
            source_id: None,
            baseline,
            ever_fresh: false,
            refuted: false,
        };
        self.place(row)
    }

    /// A row that starts over on the source it had keeps its place among the readers, and the source its watches.
    fn leave_unless_same(&mut self, row: &Row, source: &Source) -> Result<(), StorageError> {
        let held: Option<SourceState> = match row.source_id {
            Some(source) => self.index.shelf.get(Table::Sources, &source_key(source))?,
            None => None,
        };
        if held.is_some_and(|state| Some(state.key) == self.key_of(source)) {
            return self.index.unmark(self.session, row);
        }
        self.released.extend(self.index.leave(self.session, row)?);
        Ok(())
    }

    fn new_row(&mut self) -> Result<RowNo, StorageError> {
        self.index.totals.rows += 1;
        let counts = self.index.shelf.counts(self.session)?;
        counts.rows += 1;
        counts.next_row += 1;
        Ok(RowNo(counts.next_row - 1))
    }

    /// Puts a row on its source, and judges it at once when the source is settled.
    fn place(&mut self, mut row: Row) -> Result<Row, StorageError> {
        let Some(key) = self.key_of(&row.source) else {
            self.index.shelf.put_row(self.session, row.clone())?;
            let freshness = judge(&row, &Found::Missing);
            self.index.mark(self.session, row.no, freshness, None, self.at, &mut Outcome::default())?;
            self.told.push(row.no);
            return Ok(row);
        };
        let (source, state, fresh_needed) = self.attach(&key, &row)?;
        row.source_id = Some(source);
        self.index.shelf.put_row(self.session, row.clone())?;
        self.told.push(row.no);
        match &state.found {
            Some(found) if !fresh_needed => {
                let mut outcome = Outcome::default();
                self.index.judge_row(self.session, row.no, found, self.at, &mut outcome)?;
                // Whoever holds the row from here on must hold what the judgement made of it.
                row = self.index.shelf.held_row(self.session, row.no)?.cloned().unwrap_or(row);
            }
            _ => self.checks.push(self.index.suspect(source, &state, Depth::Names)),
        }
        Ok(row)
    }

    fn key_of(&self, source: &Source) -> Option<SourceKey> {
        let kind = if matches!(source, Source::GitHead { .. }) { KeyKind::Head } else { KeyKind::Path };
        Some(SourceKey { kind, path: absolute(&self.root, source.path()?) })
    }

    /// Adds a reader. The last part says whether the source must be looked at before the reader can be judged.
    fn attach(&mut self, key: &SourceKey, row: &Row) -> Result<(SourceId, SourceState, bool), StorageError> {
        let shelf = &mut self.index.shelf;
        let packed = super::pack::to_bytes(key);
        let reader = (self.session, row.no);
        let known: Option<SourceId> = shelf.get(Table::Keys, &packed)?;
        let source = match known {
            Some(source) => source,
            None => {
                self.index.totals.sources += 1;
                self.index.next.source += 1;
                SourceId(self.index.next.source - 1)
            }
        };
        let held = match known {
            Some(source) => Some(self.index.shelf.must(Table::Sources, &source_key(source))?),
            None => None,
        };
        let new = SourceState { key: key.clone(), found: None, readers: Vec::new(), wanted: Vec::new() };
        let mut state: SourceState = held.unwrap_or(new);
        let more_wanted = row.baseline.seen().is_some_and(|seen| want(&mut state, seen));
        let pending = self.index.is_pending(source);
        if !state.readers.contains(&reader) {
            state.readers.push(reader);
            if pending {
                *self.index.suspects.entry(self.session).or_insert(0) += 1;
            }
        }
        self.index.shelf.put(Table::Keys, &packed, &source)?;
        self.index.shelf.put(Table::Sources, &source_key(source), &state)?;
        let untold = !self.index.awake || matches!(state.found, Some(Found::Unknown(_)) | None);
        Ok((source, state, pending || more_wanted || untold))
    }

    /// Binds every fact anew, for rows may have gone or moved since it was told: a name is the row with that id as long
    /// as there is one, and a path otherwise, whatever was told in which order.
    fn tell_facts(
        &mut self,
        head: &mut StoredHead,
        facts: &[Fact],
        rows: &mut BTreeMap<RowNo, Row>,
    ) -> Result<(), StorageError> {
        for Fact { id, statement, evidence, sources } in facts.iter().cloned() {
            head.facts.retain(|held| held.id != id);
            head.facts.push(StoredFact { id, statement, evidence, sources, rows: Vec::new() });
        }
        if head.facts.is_empty() {
            return Ok(());
        }
        let (mut ids, mut places) = (HashMap::new(), HashMap::new());
        for row in rows.values() {
            if row.role != Role::Tracked {
                ids.entry(PathBuf::from(&row.id)).or_insert(row.no);
            }
            if let Some(path) = row.source.path() {
                places.entry(absolute(&self.root, path)).or_insert(row.no);
            }
        }
        for fact in &mut head.facts {
            fact.rows.clear();
            for source in &fact.sources {
                let place = absolute(&self.root, source);
                if let Some(&no) = ids.get(source).or_else(|| places.get(&place)) {
                    fact.rows.push(no);
                    continue;
                }
                let row = self.track(source)?;
                fact.rows.push(row.no);
                places.insert(place, row.no);
                rows.insert(row.no, row);
            }
        }
        Ok(())
    }

    /// A path that only a fact names: not critical, and compared with the daemon's own look.
    fn track(&mut self, path: &Path) -> Result<Row, StorageError> {
        let belief = Belief {
            id: path.to_string_lossy().into_owned(),
            tool: None,
            critical: false,
            captured_at: None,
            source: Source::File { path: path.to_owned() },
            seen: Seen::Unsaid,
        };
        self.tell(&belief, Role::Tracked, None)
    }
}

/// Adds the algorithm of what a reader saw; true when it was not computed so far.
fn want(state: &mut SourceState, seen: &Seen) -> bool {
    let Seen::Digest(digest) = seen else { return false };
    let algorithm = digest.algorithm();
    let new = algorithm != crate::session::digest::Algorithm::Blake3 && !state.wanted.contains(&algorithm);
    if new {
        state.wanted.push(algorithm);
    }
    new
}

fn set<T: Clone>(held: &mut T, told: Option<&T>) {
    if let Some(told) = told {
        held.clone_from(told);
    }
}

fn add_new(held: &mut Vec<String>, told: &[String]) {
    for text in told {
        if !held.contains(text) {
            held.push(text.clone());
        }
    }
}

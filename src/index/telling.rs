//! One registration in progress: beliefs become rows on sources, facts are bound to rows.

use super::found::Found;
use super::freshness::judge;
use super::row::{Baseline, Detail, Role, Row, RowNo, SessionNo};
use super::shelf::source_key;
use super::storage::{SourceState, Storage, StorageError, StoredFact, StoredHead, Table};
use super::{Check, Depth, Index, KeyKind, Outcome, SourceId, SourceKey};
use crate::session::context::{Belief, Fact, Seen, Update};
use crate::session::moment::Moment;
use crate::session::source::{Source, absolute};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// One registration in progress.
pub(super) struct Step<'index, S> {
    pub(super) index: &'index mut Index<S>,
    pub(super) session: SessionNo,
    pub(super) root: PathBuf,
    pub(super) at: Moment,
    pub(super) told: Vec<RowNo>,
    pub(super) checks: Vec<Check>,
    pub(super) released: Vec<SourceId>,
    pub(super) outcome: Outcome,
}

impl<S: Storage> Step<'_, S> {
    pub(super) fn run(&mut self, update: &Update) -> Result<(), StorageError> {
        let mut rows: BTreeMap<RowNo, Row> =
            self.index.shelf.rows(self.session)?.into_iter().map(|row| (row.no, row)).collect();
        let mut head = self.index.head(self.session)?;
        self.tell_head(&mut head, update);
        let removed: HashSet<&str> = update.remove.iter().map(String::as_str).collect();
        head.facts.retain(|fact| !removed.contains(fact.id.as_str()));
        let told = |row: &Row| !matches!(row.role, Role::Tracked | Role::Input);
        let gone = rows.values().filter(|row| told(row) && removed.contains(row.id.as_str()));
        let gone: HashSet<RowNo> = gone.map(|row| row.no).collect();
        self.remove(&mut rows, |row| gone.contains(&row.input_of.unwrap_or(row.no)))?;
        // An id names one row, whatever it was before: a path that only a fact named makes room for a result of that id.
        let named = rows.values().filter(|row| row.role != Role::Input);
        let mut by_id: HashMap<String, RowNo> = named.map(|row| (row.id.clone(), row.no)).collect();
        for (belief, role) in update
            .results
            .iter()
            .map(|belief| (belief, Role::Result))
            .chain(update.invariants.iter().map(|belief| (belief, Role::Invariant)))
        {
            let held = by_id.get(&belief.id).copied();
            let held = held.and_then(|no| rows.remove(&no));
            if let Some(command) = held.as_ref().filter(|row| !row.inputs.is_empty()) {
                self.remove(&mut rows, |row| row.input_of == Some(command.no))?;
            }
            let row = self.tell(belief, role, held)?;
            by_id.insert(row.id.clone(), row.no);
            let row = self.tell_inputs(row, &mut rows)?;
            rows.insert(row.no, row);
        }
        self.tell_facts(&mut head, &update.facts, &mut rows)?;
        let used: HashSet<RowNo> = head.facts.iter().flat_map(|fact| fact.rows.iter().copied()).collect();
        self.remove(&mut rows, |row| row.role == Role::Tracked && !used.contains(&row.no))?;
        self.name_tracked(&mut rows)?;
        self.compare_heads(&rows)?;
        self.index.put_head(self.session, &head)
    }

    /// A HEAD that moved says which rows of its session that concerns, and these may be new ones.
    fn compare_heads(&mut self, rows: &BTreeMap<RowNo, Row>) -> Result<(), StorageError> {
        let is_head = |row: &&Row| matches!(row.source, Source::GitHead { .. });
        for row in rows.values().filter(is_head) {
            if let (true, Some(source)) = (self.index.compare_again(row)?, row.source_id) {
                let state = self.index.source_state(source)?;
                self.checks.push(self.index.suspect(source, &state, Depth::Names)?);
            }
        }
        Ok(())
    }

    /// Rows go by their ids in a report, and no two may share one. A tracked path is named after itself; it gives way to
    /// what a client calls so (agents name a result after its path), and to an earlier path that only reads the same.
    fn name_tracked(&mut self, rows: &mut BTreeMap<RowNo, Row>) -> Result<(), StorageError> {
        if rows.values().all(|row| row.role != Role::Tracked) {
            return Ok(());
        }
        let told = rows.values().filter(|row| !matches!(row.role, Role::Tracked | Role::Input));
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

    /// A command's inputs become rows of their own.
    fn tell_inputs(&mut self, row: Row, rows: &mut BTreeMap<RowNo, Row>) -> Result<Row, StorageError> {
        let Source::Command { inputs, .. } = &row.source else { return Ok(row) };
        let mut numbers = Vec::with_capacity(inputs.len());
        for (number, source) in inputs.clone().into_iter().enumerate() {
            let id = format!("{}#{number}", row.id);
            let input = Belief {
                id,
                tool: None,
                critical: row.critical,
                captured_at: row.captured_at,
                source,
                seen: Seen::Unsaid,
                lf: None,
            };
            let input = self.tell_row(&input, Role::Input, None, Some(row.no))?;
            numbers.push(input.no);
            rows.insert(input.no, input);
        }
        // Its inputs may have been judged already, and it with them.
        let held = self.index.shelf.held_row(self.session, row.no)?.cloned().unwrap_or(row);
        let row = Row { inputs: numbers, ..held };
        self.index.shelf.put_row(self.session, row.clone())?;
        self.index.judge_command(self.session, row.no, self.at, &mut self.outcome)?;
        Ok(row)
    }

    fn tell(&mut self, belief: &Belief, role: Role, held: Option<Row>) -> Result<Row, StorageError> {
        self.tell_row(belief, role, held, None)
    }

    fn tell_row(
        &mut self,
        belief: &Belief,
        role: Role,
        held: Option<Row>,
        input_of: Option<RowNo>,
    ) -> Result<Row, StorageError> {
        let no = match &held {
            Some(row) => row.no,
            None => self.new_row(role)?,
        };
        let was_tracked = held.as_ref().is_some_and(|row| row.role == Role::Tracked);
        let counts = self.index.shelf.counts(self.session)?;
        counts.tracked = counts.tracked + u32::from(role == Role::Tracked) - u32::from(was_tracked);
        if let Some(row) = &held {
            self.leave_unless_same(row, &belief.source)?;
        }
        let baseline = match (&belief.seen, &belief.source) {
            (_, Source::Absent { .. }) => Baseline::Client(Seen::Absence),
            (_, Source::Volatile { .. } | Source::Command { .. }) => Baseline::Missed,
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
            lf: belief.lf,
            ever_fresh: false,
            refuted: false,
            as_of: None,
            inputs: Vec::new(),
            input_of,
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

    fn new_row(&mut self, role: Role) -> Result<RowNo, StorageError> {
        self.index.totals.rows += 1;
        let counts = self.index.shelf.counts(self.session)?;
        counts.rows += u32::from(role != Role::Input);
        counts.next_row += 1;
        Ok(RowNo(counts.next_row - 1))
    }

    /// Puts a row on its source, and judges it at once when the source is settled.
    pub(super) fn place(&mut self, mut row: Row) -> Result<Row, StorageError> {
        let Some(key) = self.key_of(&row.source) else {
            self.index.shelf.put_row(self.session, row.clone())?;
            self.told.push(row.no);
            if let Source::Volatile { .. } = row.source {
                let judged = (judge(&row, &Found::Missing), Detail::default());
                self.index.mark(self.session, row.no, judged, None, self.at, &mut self.outcome)?;
            }
            return Ok(row);
        };
        let (source, state, fresh_needed) = self.attach(&key, &row)?;
        row.source_id = Some(source);
        self.index.shelf.put_row(self.session, row.clone())?;
        self.index.renew_moments(source, &state.readers)?;
        self.told.push(row.no);
        match &state.found {
            Some(found) if !fresh_needed => {
                self.index.judge_row(self.session, row.no, found, self.at, &mut self.outcome)?;
                // Whoever holds the row from here on must hold what the judgement made of it.
                row = self.index.shelf.held_row(self.session, row.no)?.cloned().unwrap_or(row);
            }
            found => {
                let untold = matches!(found, Some(Found::Unknown(_)));
                self.checks.push(self.index.suspect(source, &state, Depth::Names)?);
                if untold {
                    self.index.stir_doubtful(source)?;
                }
            }
        }
        Ok(row)
    }

    fn key_of(&self, source: &Source) -> Option<SourceKey> {
        let kind = match source {
            Source::GitHead { .. } => KeyKind::Head,
            Source::Lines { range, .. } => KeyKind::Lines(*range),
            Source::SqliteSchema { .. } => KeyKind::Schema,
            Source::Tree { filter, .. } => KeyKind::Tree(filter.clone()),
            Source::File { .. } | Source::Absent { .. } | Source::Lockfile { .. } => KeyKind::Path,
            Source::Command { .. } | Source::Volatile { .. } => return None,
        };
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
                self.index.new_source()?
            }
        };
        let held = match known {
            Some(source) => Some(self.index.shelf.must(Table::Sources, &source_key(source))?),
            None => None,
        };
        let new = SourceState {
            key: key.clone(),
            found: None,
            readers: Vec::new(),
            wanted: Vec::new(),
            version: 0,
            rooted: None,
        };
        let mut state: SourceState = held.unwrap_or(new);
        self.index.plant(source, &state);
        let more_wanted =
            row.baseline.seen().is_some_and(|seen| want(&mut state, seen) || seeks(&state, seen));
        let pending = self.index.is_pending(source);
        if !state.readers.contains(&reader) {
            state.readers.push(reader);
            self.index.tally.watched += u64::from(!matches!(key.kind, KeyKind::Tree(_)));
            if pending {
                *self.index.suspects.entry(self.session).or_insert(0) += 1;
            }
        }
        if known.is_none() {
            self.index.shelf.put(Table::Keys, &packed, &source)?;
        }
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
            if row.role == Role::Input {
                continue;
            }
            if row.role != Role::Tracked {
                ids.entry(PathBuf::from(&row.id)).or_insert(row.no);
            }
            // Who names a file means all of it.
            if let Some(path) = row.source.path().filter(|_| !matches!(row.source, Source::Lines { .. })) {
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
            lf: None,
        };
        self.tell(&belief, Role::Tracked, None)
    }
}

/// The path itself unless that name is taken.
fn free_name(path: &str, taken: &HashSet<String>) -> String {
    let others = (1_u64..).map(|number| format!("{path} (tracked {number})"));
    let mut names = std::iter::once(path.to_owned()).chain(others);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| path.to_owned())
}

/// Adds the algorithm of what a reader saw; true when it was not computed so far.
pub(super) fn want(state: &mut SourceState, seen: &Seen) -> bool {
    let Seen::Digest(digest) = seen else { return false };
    let algorithm = digest.algorithm();
    let new = algorithm != crate::session::digest::Algorithm::Blake3 && !state.wanted.contains(&algorithm);
    if new {
        state.wanted.push(algorithm);
    }
    new
}

/// Whether nobody has looked yet where the lines that a reader saw stand now.
fn seeks(state: &SourceState, seen: &Seen) -> bool {
    let Some(Found::Lines(lines)) = &state.found else { return false };
    let looked_for = |digest| lines.digest == Some(digest) || lines.sought.contains(&digest);
    matches!(seen, Seen::Digest(digest) if !looked_for(*digest))
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

//! The immutable answer about one session at one clock: everything a decision may look at.

use super::clock::Clock;
use super::found::Found;
use super::freshness::{Cause, Doubt, Freshness};
use super::row::{Detail, Mark, Role, Row, SessionNo};
use super::shelf::{mark_key, mark_row, source_key};
use super::storage::{SourceState, Storage, StorageError, StoredHead, Summary, Table};
use super::{Index, KeyKind};
use crate::session::context::Seen;
use crate::session::moment::Moment;
use crate::session::source::Source;
use std::collections::HashMap;
use std::path::PathBuf;

/// What is known about one session at one clock.
#[derive(Debug, Clone)]
pub struct View {
    /// When, in the timeline of events.
    pub clock: Clock,
    /// The session's head.
    pub head: StoredHead,
    /// How many rows are in which state.
    pub counts: Counts,
    /// Every row that is not fresh or has news; the fresh ones too when all were wanted. By row number.
    pub lines: Vec<Line>,
    /// Facts that may be carried on, judged by the rows they rest on. Empty when nothing depends on them.
    pub facts: Vec<FactLine>,
}

/// How many rows are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Results, invariants and tracked paths.
    pub rows: u32,
    /// Verified equal.
    pub fresh: u32,
    /// Verified different or gone.
    pub stale: u32,
    /// Cannot be told.
    pub unknown: u32,
}

/// One row of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// A result's id, an invariant's name, or a tracked path.
    pub id: String,
    /// What it is to the session.
    pub role: Role,
    /// As the client spelled it.
    pub source: Source,
    /// A stale critical row means that the world changed.
    pub critical: bool,
    /// The daemon's own look stands in for what the client did not say.
    pub by_registration: bool,
    /// What is known.
    pub freshness: Freshness,
    /// What the agent saw, as the wire writes it.
    pub was: Option<String>,
    /// What stands there now.
    pub now: Option<String>,
    /// Where it went, when an event told so and it is there.
    pub renamed_to: Option<PathBuf>,
    /// Since when it is not fresh.
    pub since: Option<Moment>,
    /// Something that can be read again stands there.
    pub exists: bool,
    /// Where the path leads, symlinks resolved, or the path itself where it leads to no file; known only for rows that
    /// are not fresh.
    pub identity: Option<PathBuf>,
    /// What else there is to say.
    pub detail: Detail,
    /// What it rests on that is watched by its own inode, and by its folder alone.
    pub coverage: Coverage,
}

/// How sources are watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// By their own inode and every folder on the way.
    pub inode: u64,
    /// By their folder alone: a change through another name of the file, made later elsewhere, is found by the scrub.
    pub directory: u64,
}

impl std::iter::Sum for Coverage {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let add = |a: Self, b: Self| Self { inode: a.inode + b.inode, directory: a.directory + b.directory };
        parts.fold(Self::default(), add)
    }
}

impl Line {
    /// The source as the client spelled it; HEAD, which has no file of its own, goes by its name.
    #[must_use]
    pub fn label(&self) -> PathBuf {
        match &self.source {
            Source::GitHead { .. } => PathBuf::from(&self.id),
            Source::Volatile { what } => PathBuf::from(what),
            Source::Command { command, .. } => PathBuf::from(command),
            Source::File { path }
            | Source::Lines { path, .. }
            | Source::Absent { path }
            | Source::Lockfile { path }
            | Source::Tree { path, .. }
            | Source::SqliteSchema { path } => path.clone(),
        }
    }

    /// Stale or unknown.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.freshness != Freshness::Fresh
    }
}

/// One fact of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactLine {
    /// The statement.
    pub statement: String,
    /// Where it was seen.
    pub evidence: String,
    /// The sources as the client spelled them.
    pub sources: Vec<PathBuf>,
    /// Digest of the first source, as the wire writes it.
    pub digest: Option<String>,
    /// Every source it names is fresh.
    pub fresh: bool,
    /// The observation of the memory that says so; none when the session itself does.
    pub observation: Option<u64>,
}

/// Which rows a view lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Rows that are not fresh, or one fresh row when there are none.
    Doubtful,
    /// All rows, up to this many; above it as `Doubtful`.
    AllUpTo(u32),
}

impl<S: Storage> Index<S> {
    /// The view of a session, or `None` when there is no such session. `blind` is what every row is when the world
    /// could not be asked.
    pub fn view(
        &self,
        session: SessionNo,
        listed: Listed,
        blind: Option<Doubt>,
    ) -> Result<Option<View>, StorageError> {
        let key = session.0.to_be_bytes();
        let Some(summary) = self.shelf.get::<Summary>(Table::Summaries, &key)? else { return Ok(None) };
        let head: StoredHead = self.shelf.must(Table::Heads, &key)?;
        let blind = gap(&head).or(blind);
        let unsure = blind.is_some() || self.suspects(session) > 0;
        let whole = unsure || matches!(listed, Listed::AllUpTo(max) if summary.rows <= max);
        let mut lines = if whole {
            self.all_lines(session, &summary, blind)?
        } else {
            self.marked_lines(session, &summary)?
        };
        let counts = if unsure { count(&lines) } else { counts_of(&summary) };
        let facts = self.judged_facts(session, &head, &lines)?;
        if matches!(listed, Listed::Doubtful)
            || !matches!(listed, Listed::AllUpTo(max) if summary.rows <= max)
        {
            keep_doubtful(&mut lines);
        }
        if lines.is_empty() {
            lines.extend(self.first_line(session, blind)?);
        }
        Ok(Some(View { clock: self.clock.clone(), head, counts, lines, facts }))
    }

    /// The lines of these rows alone.
    pub fn lines_of(&self, session: SessionNo, rows: &[Row]) -> Result<Vec<Line>, StorageError> {
        let mark = |row: &Row| self.shelf.get::<Mark>(Table::Marks, &mark_key(session, row.no));
        let blind = gap(&self.head(session)?);
        rows.iter().map(|row| self.line(session, row, mark(row)?.as_ref(), blind)).collect()
    }

    fn all_lines(
        &self,
        session: SessionNo,
        summary: &Summary,
        blind: Option<Doubt>,
    ) -> Result<Vec<Line>, StorageError> {
        let marks = self.marks(session)?;
        let mut rows = self.shelf.rows(session)?;
        rows.retain(|row| row.role != Role::Input);
        let marked = rows.iter().filter(|row| marks.contains_key(&row.no)).count();
        self.refuse_missing((rows.len(), marked), (summary.rows, marked_rows(summary)))?;
        rows.iter().map(|row| self.line(session, row, marks.get(&row.no), blind)).collect()
    }

    /// A row without a mark is fresh, and one that is not there is nothing. A storage that lost a key without a word would
    /// say so of what is stale, and the counts, which stand elsewhere, know better.
    fn refuse_missing(&self, found: (usize, usize), must: (u32, u32)) -> Result<(), StorageError> {
        if found == (must.0 as usize, must.1 as usize) {
            return Ok(());
        }
        let reason = format!("{found:?} rows and marks where {must:?} must be");
        Err(self.shelf.storage.distrust(StorageError::contents("count", Table::Marks, reason)))
    }

    fn marked_lines(&self, session: SessionNo, summary: &Summary) -> Result<Vec<Line>, StorageError> {
        let told = marked_rows(summary);
        if told == 0 {
            return Ok(Vec::new());
        }
        let mut marks: Vec<_> = self.marks(session)?.into_iter().collect();
        marks.sort_by_key(|(no, _)| *no);
        let mut lines = Vec::with_capacity(marks.len());
        for (no, mark) in marks {
            if let Some(row) = self.shelf.row(session, no)?.filter(|row| row.role != Role::Input) {
                lines.push(self.line(session, &row, Some(&mark), None)?);
            }
        }
        self.refuse_missing((lines.len(), lines.len()), (told, told))?;
        Ok(lines)
    }

    fn first_line(&self, session: SessionNo, blind: Option<Doubt>) -> Result<Option<Line>, StorageError> {
        let first = match self.shelf.first_row(session)?.filter(|row| row.role != Role::Input) {
            Some(row) => Some(row),
            None => self.shelf.rows(session)?.into_iter().find(|row| row.role != Role::Input),
        };
        first.map(|row| self.line(session, &row, None, blind)).transpose()
    }

    fn marks(&self, session: SessionNo) -> Result<HashMap<super::row::RowNo, Mark>, StorageError> {
        let marks = self.shelf.list::<Mark>(Table::Marks, &session.0.to_be_bytes())?;
        Ok(marks.into_iter().filter_map(|(key, mark)| Some((mark_row(&key)?, mark))).collect())
    }

    fn line(
        &self,
        session: SessionNo,
        row: &Row,
        mark: Option<&Mark>,
        blind: Option<Doubt>,
    ) -> Result<Line, StorageError> {
        let known = mark.map_or(Freshness::Fresh, |mark| mark.freshness);
        let inputs = row.inputs.iter().filter_map(|&no| self.shelf.row(session, no).transpose());
        let inputs = inputs.collect::<Result<Vec<Row>, _>>()?;
        self.refuse_missing((inputs.len(), 0), (row.inputs.len() as u32, 0))?;
        let suspect = std::iter::once(row).chain(&inputs).any(|row| self.is_suspect(row));
        let certain = row.refuted || matches!(row.source, Source::Volatile { .. });
        let freshness = match blind.or(suspect.then_some(Doubt::Unsettled)) {
            Some(doubt) if !certain => Freshness::Unknown(doubt),
            _ => known,
        };
        let state = match row.source_id {
            Some(source) if freshness != Freshness::Fresh => {
                self.shelf.get::<SourceState>(Table::Sources, &source_key(source))?
            }
            _ => None,
        };
        let found = state.as_ref().and_then(|state| state.found.as_ref());
        Ok(Line {
            id: row.id.clone(),
            role: row.role,
            source: row.source.clone(),
            // What was lost may have made it critical, or have been the critical row.
            critical: row.critical || blind == Some(Doubt::Gap),
            by_registration: std::iter::once(row).chain(&inputs).any(Row::is_by_registration),
            freshness,
            was: row.baseline.seen().and_then(seen_text),
            now: mark.and_then(|mark| mark.now.clone()),
            renamed_to: found.filter(|_| freshness == Freshness::Stale(Cause::Renamed)).and_then(renamed_to),
            since: mark.map(|mark| mark.since),
            exists: found.is_some_and(Found::is_something),
            identity: state.as_ref().and_then(identity),
            detail: mark.map(|mark| mark.detail.clone()).unwrap_or_default(),
            coverage: std::iter::once(row).chain(&inputs).map(|row| self.coverage(row)).sum(),
        })
    }

    /// How everything is watched that any row rests on, members of trees one by one and a source once for each row.
    pub fn covered(&self) -> Result<Coverage, StorageError> {
        let mut covered = Coverage { inode: self.tally.watched, directory: 0 };
        for &tree in self.grove.trees.keys() {
            let state: Option<SourceState> = self.shelf.get(Table::Sources, &source_key(tree))?;
            let readers = state.map_or(0, |state| state.readers.len() as u64);
            let Coverage { inode, directory } = self.grove.coverage(tree);
            covered.inode += inode * readers;
            covered.directory += directory * readers;
        }
        Ok(covered)
    }

    fn coverage(&self, row: &Row) -> Coverage {
        match (row.source_id, &row.source) {
            (None, _) => Coverage::default(),
            (Some(source), Source::Tree { .. }) => self.grove.coverage(source),
            (Some(_), _) => Coverage { inode: 1, directory: 0 },
        }
    }

    fn is_suspect(&self, row: &Row) -> bool {
        row.source_id.is_some_and(|source| self.is_pending(source))
    }
}

/// What every row of a session is whose records may be lost.
fn gap(head: &StoredHead) -> Option<Doubt> {
    head.doubted.then_some(Doubt::Gap)
}

fn renamed_to(found: &Found) -> Option<PathBuf> {
    match found {
        Found::Renamed { to, .. } => Some(to.clone()),
        _ => None,
    }
}

/// How many rows have a mark.
fn marked_rows(summary: &Summary) -> u32 {
    summary.stale + summary.unknown + summary.noted
}

fn keep_doubtful(lines: &mut Vec<Line>) {
    let first = lines.first().cloned();
    lines.retain(|line| line.is_doubtful() || line.now.is_some());
    if lines.is_empty() {
        lines.extend(first);
    }
}

fn count(lines: &[Line]) -> Counts {
    let mut counts = Counts { rows: lines.len() as u32, ..Counts::default() };
    for line in lines {
        match line.freshness {
            Freshness::Fresh => counts.fresh += 1,
            Freshness::Stale(_) => counts.stale += 1,
            Freshness::Unknown(_) => counts.unknown += 1,
        }
    }
    counts
}

fn counts_of(summary: &Summary) -> Counts {
    Counts {
        rows: summary.rows,
        fresh: summary.rows.saturating_sub(summary.stale + summary.unknown),
        stale: summary.stale,
        unknown: summary.unknown,
    }
}

/// Where a path led; itself where it led to no file.
pub(super) fn identity(state: &SourceState) -> Option<PathBuf> {
    match (&state.found, &state.key.kind) {
        (Some(Found::File(file)), _) => Some(file.canonical.clone()),
        (_, KeyKind::Path | KeyKind::Schema) => Some(state.key.path.clone()),
        // Other lines of the same file, and other files of the same tree, are judged by themselves.
        (_, KeyKind::Head | KeyKind::Lines(_) | KeyKind::Tree(_) | KeyKind::Folder) => None,
    }
}

/// What the agent saw, as the wire writes it.
#[must_use]
pub fn seen_text(seen: &Seen) -> Option<String> {
    match seen {
        Seen::Digest(digest) => Some(digest.to_string()),
        Seen::Commit(Some(commit)) => Some(commit.to_string()),
        Seen::Commit(None) => Some("unborn".to_owned()),
        Seen::Absence | Seen::Unsaid => None,
    }
}

/// What stands there now, as the wire writes it.
#[must_use]
pub fn found_text(found: &Found) -> Option<String> {
    match found {
        Found::File(file) => Some(file.digest.to_string()),
        Found::Other { kind } => Some(kind.clone()),
        Found::Head { commit, .. } => seen_text(&Seen::Commit(*commit)),
        Found::Lines(lines) => lines.digest.map(|digest| digest.to_string()),
        Found::Schema(digest) => Some(digest.to_string()),
        Found::Tree(tree) => Some(tree.digest.to_string()),
        Found::Folder(_) | Found::Missing | Found::Renamed { .. } | Found::Unknown(_) => None,
    }
}

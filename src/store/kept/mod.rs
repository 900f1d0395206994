//! Sessions and the memory as the journal says them whole, for compaction and export: one record for a session, and more
//! where one would be too long; one for each session and revision of the memory.
//!
//! Promise: an index made from what [`of`] gives is the one it was taken from, as far as records can tell.

mod check;
mod memory;
#[cfg(test)]
mod tests;

pub(super) use check::check;

use super::record::{Record, RoleName, seen_of, text_of};
use super::remembered::Remembered;
use super::replay::named;
use crate::index::Index;
use crate::index::kept::KeptRow;
use crate::index::row::{Baseline, Row, RowNo, SessionNo};
use crate::index::storage::{Storage, StorageError, StoredFact, StoredHead, Table};
use crate::memory::book::Book;
use crate::memory::kept::changes;
use crate::protocol::context::{Goal, Source};
use crate::protocol::convert;
use crate::protocol::fork::Fork;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::digest::Digest;
use crate::session::moment::Moment;
use serde::{Deserialize, Serialize};

/// A record takes no more when it is so long, so that none comes near the bound of the journal, and each can be read on
/// its own. The longest single thing that a client can tell fits into one request line.
const BYTES: usize = 1024 * 1024;

/// A session, or the next part of one: its lists go on where those of the part before ended.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Which.
    session: String,
    /// What it is apart from its lists; the record that has it begins the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Head>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_questions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<Fact>,
    /// Some of its rows, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    user: String,
    agent: String,
    root: WirePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    captured_at: Option<i64>,
    goal: Goal,
    scratchpad_bytes: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    doubted: bool,
    next_row: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Fact {
    id: String,
    statement: String,
    evidence: String,
    sources: Vec<WirePath>,
    rows: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    no: u32,
    role: RoleName,
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    critical: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    captured_at: Option<i64>,
    source: Source,
    baseline: Whose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lf: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ever_fresh: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    refuted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_of: Option<u32>,
}

/// Whose word a row's baseline is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Whose {
    Client,
    Awaited,
    Registration,
    Missed,
}

/// The records that say everything this index was told, session by session in the order of their names, forks last.
pub(super) fn of<E: From<StorageError>>(
    index: &Index<impl Storage>,
    each: &mut dyn FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    portable(index, |_| true, each)?;
    for bytes in index.forks()? {
        let fork = Fork::from_bytes(&bytes).map_err(|error| {
            let error = StorageError::contents("decode", Table::Forks, error.to_string());
            E::from(index.storage().distrust(error))
        })?;
        each(Record::Forked(Box::new(fork)))?;
    }
    Ok(())
}

/// The same without what is of no use elsewhere: forks are folders of this state.
pub(super) fn to_be_taken_along<E: From<StorageError>>(
    index: &Index<impl Storage>,
    each: &mut dyn FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    portable(index, |name| !name.is_of_fork(), each)
}

fn portable<E: From<StorageError>>(
    index: &Index<impl Storage>,
    which: impl Fn(&SessionId) -> bool,
    each: &mut dyn FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    for session in index.sessions()? {
        let head = index.head(session)?;
        if !which(&head.session) {
            continue;
        }
        let next = index.next_row(session)?;
        let mut pages = Pages { kept: Kept::default(), bytes: 0, each };
        pages.kept.session = head.session.to_string();
        pages.kept.head = Some(head_out(&head, next));
        for decision in &head.decisions {
            pages.add(decision.clone(), |kept| &mut kept.decisions)?;
        }
        for question in &head.open_questions {
            pages.add(question.clone(), |kept| &mut kept.open_questions)?;
        }
        for fact in head.facts.iter().cloned() {
            pages.add(fact_out(fact), |kept| &mut kept.facts)?;
        }
        for row in index.kept_rows(session)? {
            pages.add(row_out(row), |kept| &mut kept.rows)?;
        }
        pages.turn()?;
    }
    changes(Book::new(index.storage()), &mut |change| {
        each(Record::Remembered(Box::new(Remembered::new(&change, None, Moment::default()))))
    })
}

/// One session, cut into records.
struct Pages<'each, E> {
    kept: Kept,
    bytes: usize,
    each: &'each mut dyn FnMut(Record) -> Result<(), E>,
}

impl<E: From<StorageError>> Pages<'_, E> {
    fn add<T: Serialize>(&mut self, item: T, list: impl Fn(&mut Kept) -> &mut Vec<T>) -> Result<(), E> {
        let bytes = serde_json::to_vec(&item).map_or(0, |text| text.len());
        if self.bytes > 0 && self.bytes + bytes > BYTES {
            self.turn()?;
        }
        self.bytes += bytes;
        list(&mut self.kept).push(item);
        Ok(())
    }

    fn turn(&mut self) -> Result<(), E> {
        let next = Kept { session: self.kept.session.clone(), ..Kept::default() };
        self.bytes = 0;
        (self.each)(Record::Kept(Box::new(std::mem::replace(&mut self.kept, next))))
    }
}

impl Kept {
    pub(super) fn put_back(self, index: &mut Index<impl Storage>) -> Result<(), PutBackError> {
        let name = named(&self.session)?;
        let refused = |why: String| Refusal::invalid_params(format!("session {name}: {why}"));
        let session: SessionNo = match self.head {
            Some(head) => {
                let (head, next) = head.back(name.clone())?;
                index.put_back_head(&head, next)?
            }
            None => index.session(&name).ok_or_else(|| refused("it has not begun".to_owned()))?,
        };
        let mut head = index.head(session)?;
        head.decisions.extend(self.decisions);
        head.open_questions.extend(self.open_questions);
        head.facts.extend(self.facts.into_iter().map(Fact::back));
        let rows = self.rows.into_iter().map(Line::back).collect::<Result<Vec<_>, _>>()?;
        let next = index.next_row(session)?;
        if let Some(KeptRow { row, .. }) = rows.iter().find(|kept| kept.row.no >= next) {
            return Err(refused(format!("row {} comes after the last, {}", row.no.0, next.0)).into());
        }
        Ok(index.put_back_more(session, &head, rows)?)
    }
}

/// What was kept cannot be put back.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutBackError {
    /// It says what this version does not know.
    #[error("it says what cannot be: {0}")]
    Refused(#[from] Refusal),
    /// The index failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn head_out(head: &StoredHead, next: RowNo) -> Head {
    Head {
        user: head.user.clone(),
        agent: head.agent.clone(),
        root: WirePath(head.root.clone()),
        captured_at: head.captured_at.map(|at| at.micros),
        goal: convert::goal_out(&head.goal),
        scratchpad_bytes: head.scratchpad_bytes,
        doubted: head.doubted,
        next_row: next.0,
    }
}

fn fact_out(fact: StoredFact) -> Fact {
    let StoredFact { id, statement, evidence, sources, rows } = fact;
    let (sources, rows) = (sources.into_iter().map(WirePath), rows.into_iter().map(|no| no.0));
    Fact { id, statement, evidence, sources: sources.collect(), rows: rows.collect() }
}

fn row_out(kept: KeptRow) -> Line {
    let KeptRow { row, since } = kept;
    let (baseline, seen) = match &row.baseline {
        Baseline::Client(seen) => (Whose::Client, text_of(seen)),
        Baseline::Registration(seen) => (Whose::Registration, text_of(seen)),
        Baseline::Awaited => (Whose::Awaited, None),
        Baseline::Missed => (Whose::Missed, None),
    };
    Line {
        no: row.no.0,
        role: row.role.into(),
        id: row.id,
        tool: row.tool,
        critical: row.critical,
        captured_at: row.captured_at.map(|at| at.micros),
        source: convert::source_out(&row.source),
        baseline,
        seen,
        lf: row.lf.map(|lf| lf.to_string()),
        ever_fresh: row.ever_fresh,
        refuted: row.refuted,
        since: since.map(|at| at.micros),
        inputs: row.inputs.into_iter().map(|no| no.0).collect(),
        input_of: row.input_of.map(|no| no.0),
    }
}

impl Head {
    fn back(self, session: SessionId) -> Result<(StoredHead, RowNo), Refusal> {
        let head = StoredHead {
            session,
            user: self.user,
            agent: self.agent,
            root: self.root.0,
            captured_at: self.captured_at.map(Moment::from_micros),
            goal: convert::goal(self.goal)?,
            facts: Vec::new(),
            decisions: Vec::new(),
            open_questions: Vec::new(),
            scratchpad_bytes: self.scratchpad_bytes,
            doubted: self.doubted,
        };
        Ok((head, RowNo(self.next_row)))
    }
}

impl Fact {
    fn back(self) -> StoredFact {
        let Self { id, statement, evidence, sources, rows } = self;
        let (sources, rows) = (sources.into_iter().map(|path| path.0), rows.into_iter().map(RowNo));
        StoredFact { id, statement, evidence, sources: sources.collect(), rows: rows.collect() }
    }
}

impl Line {
    fn back(self) -> Result<KeptRow, Refusal> {
        let seen = self.seen.as_deref().map(seen_of).transpose()?;
        let baseline = match (self.baseline, seen) {
            (Whose::Client, Some(seen)) => Baseline::Client(seen),
            (Whose::Registration, Some(seen)) => Baseline::Registration(seen),
            (Whose::Awaited, None) => Baseline::Awaited,
            (Whose::Missed, None) => Baseline::Missed,
            _ => return Err(Refusal::invalid_params(format!("{}: a baseline without its word", self.id))),
        };
        let lf: Option<Digest> = self.lf.as_deref().map(convert::digest).transpose()?;
        let row = Row {
            no: RowNo(self.no),
            role: self.role.into(),
            source: convert::source(self.source, &self.id)?,
            id: self.id,
            tool: self.tool,
            critical: self.critical,
            captured_at: self.captured_at.map(Moment::from_micros),
            source_id: None,
            baseline,
            lf,
            ever_fresh: self.ever_fresh,
            refuted: self.refuted,
            as_of: None,
            inputs: self.inputs.into_iter().map(RowNo).collect(),
            input_of: self.input_of.map(RowNo),
        };
        Ok(KeptRow { row, since: self.since.map(Moment::from_micros) })
    }
}

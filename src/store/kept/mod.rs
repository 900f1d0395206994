//! Sessions as the journal says them whole, for compaction and export: one record for a session and its first rows, more
//! for the rest of them.
//!
//! Promise: an index made from what [`of`] gives is the one it was taken from, as far as records can tell.

#[cfg(test)]
mod tests;

use super::record::{Record, RoleName, seen_of, text_of};
use crate::index::Index;
use crate::index::kept::KeptRow;
use crate::index::row::{Baseline, Row, RowNo, SessionNo};
use crate::index::storage::{Storage, StorageError, StoredFact, StoredHead};
use crate::protocol::context::{Goal, Source};
use crate::protocol::convert;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::digest::Digest;
use crate::session::moment::Moment;
use serde::{Deserialize, Serialize};

/// Rows in one record: some hundred kilobytes.
const ROWS: usize = 1_000;

/// A session, or more of its rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Which.
    session: String,
    /// What it is apart from its rows; the record that has it begins the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<Head>,
    /// Some of its rows, by number.
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
    facts: Vec<Fact>,
    decisions: Vec<String>,
    open_questions: Vec<String>,
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

/// The records that say everything this index was told, session by session in the order of their names.
pub fn of<E: From<StorageError>>(
    index: &Index<impl Storage>,
    each: &mut dyn FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    for session in index.sessions()? {
        let stored = index.head(session)?;
        let name = stored.session.to_string();
        let mut head = Some(head_out(stored, index.next_row(session)?));
        let mut rows = index.kept_rows(session)?.into_iter().map(row_out);
        loop {
            let some: Vec<Line> = rows.by_ref().take(ROWS).collect();
            if head.is_none() && some.is_empty() {
                break;
            }
            each(Record::Kept(Box::new(Kept { session: name.clone(), head: head.take(), rows: some })))?;
        }
    }
    Ok(())
}

impl Kept {
    pub(super) fn put_back(self, index: &mut Index<impl Storage>) -> Result<(), PutBackError> {
        let name = convert::session(&self.session)?;
        let session: SessionNo = match self.head {
            Some(head) => {
                let (head, next) = head.back(&self.session)?;
                index.put_back_head(&head, next)?
            }
            None => index
                .session(&name)
                .ok_or_else(|| Refusal::invalid_params(format!("rows of {name} come before the session")))?,
        };
        let rows = self.rows.into_iter().map(Line::back).collect::<Result<_, _>>()?;
        Ok(index.put_back_rows(session, rows)?)
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

fn head_out(head: StoredHead, next: RowNo) -> Head {
    Head {
        user: head.user,
        agent: head.agent,
        root: WirePath(head.root),
        captured_at: head.captured_at.map(|at| at.micros),
        goal: convert::goal_out(&head.goal),
        facts: head.facts.into_iter().map(fact_out).collect(),
        decisions: head.decisions,
        open_questions: head.open_questions,
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
    fn back(self, session: &str) -> Result<(StoredHead, RowNo), Refusal> {
        let head = StoredHead {
            session: convert::session(session)?,
            user: self.user,
            agent: self.agent,
            root: self.root.0,
            captured_at: self.captured_at.map(Moment::from_micros),
            goal: convert::goal(self.goal)?,
            facts: self.facts.into_iter().map(Fact::back).collect(),
            decisions: self.decisions,
            open_questions: self.open_questions,
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

//! Whether kept sessions could have been told: a seal says only that lines were not changed by accident.
//!
//! Promise: what passes is judged like any session that clients told. What a command read is all there, so that none is fresh
//! for want of something to be stale; ids and numbers are taken once; every text could have come over the wire, without
//! private parts.

use super::memory;
use crate::index::Index;
use crate::index::row::{Baseline, Role, Row, RowNo, SessionNo};
use crate::index::storage::{Storage, StorageError, StoredHead};
use crate::protocol::convert;
use crate::session::context::{Belief, Fact, Seen, Update};
use crate::session::source::Source;
use crate::world::digest;
use std::collections::{HashMap, HashSet};

/// Numbers above are no session's: each row that is told takes the next one.
const NEXT_ROW_MAX: u32 = u32::MAX / 2;

/// What is wrong with these sessions and the memory, if anything.
pub(crate) fn check(index: &Index<impl Storage>) -> Result<Option<String>, StorageError> {
    for session in index.sessions()? {
        if let Some(why) = check_one(index, session)? {
            return Ok(Some(format!("session {}: {why}", index.head(session)?.session)));
        }
    }
    memory::check(index)
}

fn check_one(index: &Index<impl Storage>, session: SessionNo) -> Result<Option<String>, StorageError> {
    let (head, rows) = (index.head(session)?, index.rows(session)?);
    let by_no: HashMap<RowNo, &Row> = rows.iter().map(|row| (row.no, row)).collect();
    let named = |row: &&Row| row.role != Role::Input;
    let mut ids = HashSet::new();
    if let Some(twice) = rows.iter().filter(named).find(|row| !ids.insert(row.id.as_str())) {
        return Ok(Some(format!("the id {:?} stands twice", twice.id)));
    }
    if let Some(row) = rows.iter().find(|row| !is_whole(row, &by_no)) {
        return Ok(Some(format!("{:?} is not one with what it read", row.id)));
    }
    if head.facts.iter().flat_map(|fact| &fact.rows).any(|no| !by_no.contains_key(no)) {
        return Ok(Some("a fact rests on a row that is not there".to_owned()));
    }
    if index.next_row(session)?.0 > NEXT_ROW_MAX {
        return Ok(Some("its rows are numbered too high".to_owned()));
    }
    let update = update(&head, &rows);
    match convert::update(convert::context(&update), digest::blake3, head.session) {
        Ok(told) if told == update => Ok(None),
        Ok(_) => Ok(Some("it says what could not have been told, such as private text".to_owned())),
        Err(refusal) => Ok(Some(refusal.message)),
    }
}

/// A command has every input that its source names, each of them its own; nothing else has any.
fn is_whole(row: &Row, by_no: &HashMap<RowNo, &Row>) -> bool {
    let inputs: &[Source] = if let Source::Command { inputs, .. } = &row.source { inputs } else { &[] };
    let is_input = |(source, no): (&Source, &RowNo)| {
        by_no.get(no).is_some_and(|input| input.input_of == Some(row.no) && input.source == *source)
    };
    let is_command = matches!(row.source, Source::Command { .. });
    let own = match row.input_of {
        None => row.role != Role::Input,
        Some(command) => {
            row.role == Role::Input
                && by_no.get(&command).is_some_and(|command| command.inputs.contains(&row.no))
        }
    };
    own && is_command != inputs.is_empty()
        && row.inputs.len() == inputs.len()
        && inputs.iter().zip(&row.inputs).all(is_input)
}

/// What a client would have told to have these rows.
fn update(head: &StoredHead, rows: &[Row]) -> Update {
    let beliefs = |role: Role| rows.iter().filter(move |row| row.role == role).map(belief).collect();
    let fact = |fact: &crate::index::storage::StoredFact| Fact {
        id: fact.id.clone(),
        statement: fact.statement.clone(),
        evidence: fact.evidence.clone(),
        sources: fact.sources.clone(),
    };
    Update {
        user: Some(head.user.clone()),
        agent: Some(head.agent.clone()),
        root: Some(head.root.clone()),
        goal: Some(head.goal.clone()),
        results: beliefs(Role::Result),
        invariants: beliefs(Role::Invariant),
        facts: head.facts.iter().map(fact).collect(),
        decisions: head.decisions.clone(),
        open_questions: head.open_questions.clone(),
        ..Update::of(head.session.clone())
    }
}

fn belief(row: &Row) -> Belief {
    let seen = match (&row.baseline, &row.source) {
        (_, Source::Absent { .. }) => Seen::Unsaid,
        (Baseline::Client(seen), _) => seen.clone(),
        _ => Seen::Unsaid,
    };
    Belief {
        id: row.id.clone(),
        tool: row.tool.clone(),
        critical: row.critical,
        captured_at: row.captured_at,
        source: row.source.clone(),
        seen,
        lf: row.lf,
    }
}

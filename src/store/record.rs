//! What the journal keeps: one JSON object a record, in the words of the wire.
//!
//! Every record says what a client told or what was settled for it; the index is what follows from all of them. Old
//! records are read for ever: a field may be added, never renamed.

use super::kept::Kept;
use super::remembered::Remembered;
use crate::index::row::{Baseline, Role, Row};
use crate::index::view::seen_text;
use crate::protocol::context::Context;
use crate::protocol::convert::{self, seen_back};
use crate::protocol::fork::Fork;
use crate::protocol::path::{Reference, WirePath};
use crate::protocol::refusal::Refusal;
use crate::session::context::Seen;
use crate::session::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One thing that cannot be recomputed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A context was registered, or told about.
    Told {
        /// When, in microseconds since the epoch.
        at: i64,
        /// What was told, every content replaced by its digest.
        context: Box<Context>,
    },
    /// A session was dropped.
    Dropped {
        /// Which.
        session: String,
    },
    /// What the looks of a registration settled.
    Settled {
        /// Whose rows.
        session: String,
        /// Baselines that the daemon's own look became.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        adopted: Vec<Adopted>,
        /// Rows of the registration that were fresh.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fresh: Vec<Fresh>,
    },
    /// The agent's own write.
    Acknowledged {
        /// Whose.
        session: String,
        /// What it wrote.
        path: WirePath,
        /// The bytes it wrote.
        digest: String,
        /// When, in microseconds since the epoch.
        at: i64,
    },
    /// A session told whole, as the records before left it, or the next part of one that is too long for one record. Snapshots
    /// and exports are made of these and of what is remembered.
    Kept(Box<Kept>),
    /// The memory changed.
    Remembered(Box<Remembered>),
    /// The memory changed, and records before this one hold what is to be forgotten: they are to be compacted. The journal
    /// knows such a record by how it begins.
    Forgotten(Box<Remembered>),
    /// A fork became what this says.
    Forked(Box<Fork>),
    /// A fork is no more.
    Unforked {
        /// Its id.
        fork: String,
    },
    /// Records before this one are lost: every session told so far is in doubt until it starts over.
    Doubted,
    /// Something believed failed in use.
    Refuted {
        /// Whose belief.
        session: String,
        /// A fact's id, a row's id, or a path.
        target: Reference,
        /// When, in microseconds since the epoch.
        at: i64,
    },
}

/// A row of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Named {
    /// What it is to the session.
    pub role: RoleName,
    /// Its id.
    pub id: String,
}

/// A row that was fresh.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fresh {
    /// Which row.
    #[serde(flatten)]
    pub row: Named,
    /// What was seen there then, every CR LF read as LF, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lf: Option<String>,
}

/// A row whose baseline is the daemon's own look.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Adopted {
    /// Which row.
    #[serde(flatten)]
    pub row: Named,
    /// What the look saw.
    pub seen: String,
}

/// What a row is to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleName {
    /// A cached result.
    Result,
    /// A named invariant.
    Invariant,
    /// A path that only a fact names.
    Tracked,
    /// What a command read.
    Input,
}

impl From<Role> for RoleName {
    fn from(role: Role) -> Self {
        match role {
            Role::Result => Self::Result,
            Role::Invariant => Self::Invariant,
            Role::Tracked => Self::Tracked,
            Role::Input => Self::Input,
        }
    }
}

impl From<RoleName> for Role {
    fn from(role: RoleName) -> Self {
        match role {
            RoleName::Result => Self::Result,
            RoleName::Invariant => Self::Invariant,
            RoleName::Tracked => Self::Tracked,
            RoleName::Input => Self::Input,
        }
    }
}

/// How many bytes of ids one record of what was settled has, before another one goes on: a registration may have rows
/// whose names alone are as long as the longest record.
const SETTLED_BYTES: usize = 1024 * 1024;

/// What the looks of a registration settled, from the rows that were told. Each record is about other rows.
#[must_use]
pub fn settled(session: &str, told: &[Row]) -> Vec<Record> {
    let (mut records, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, row) in told.iter().enumerate() {
        // Its digests, and the words around them.
        let row = row.id.len() + 256;
        if bytes > 0 && bytes + row > SETTLED_BYTES {
            records.push(settled_of(session, &told[from..at]));
            (from, bytes) = (at, 0);
        }
        bytes += row;
    }
    records.push(settled_of(session, &told[from..]));
    records
}

fn settled_of(session: &str, told: &[Row]) -> Record {
    let named = |row: &Row| Named { role: row.role.into(), id: row.id.clone() };
    let adopted = told.iter().filter_map(|row| match &row.baseline {
        Baseline::Registration(seen) => Some(Adopted { row: named(row), seen: text_of(seen)? }),
        _ => None,
    });
    let fresh = |row: &Row| Fresh { row: named(row), lf: row.lf.map(|lf| lf.to_string()) };
    Record::Settled {
        session: session.to_owned(),
        adopted: adopted.collect(),
        fresh: told.iter().filter(|row| row.ever_fresh).map(fresh).collect(),
    }
}

/// The settled part of a record, in the index's words.
pub(super) fn restored(adopted: &[Adopted], fresh: &[Fresh]) -> Result<(Baselines, Proofs), Refusal> {
    let key = |row: &Named| (row.role.into(), row.id.clone());
    let adopted = adopted.iter().map(|adopted| Ok((key(&adopted.row), seen_of(&adopted.seen)?)));
    let lf = |fresh: &Fresh| fresh.lf.as_deref().map(convert::digest).transpose();
    let fresh = fresh.iter().map(|fresh| Ok((key(&fresh.row), lf(fresh)?)));
    Ok((adopted.collect::<Result<_, Refusal>>()?, fresh.collect::<Result<_, Refusal>>()?))
}

/// Baselines that the daemon took itself.
pub(super) type Baselines = HashMap<(Role, String), Seen>;
/// Rows that were fresh, with the digest of what was there whichever way its lines end.
pub(super) type Proofs = HashMap<(Role, String), Option<Digest>>;

/// What was seen, as the journal writes it.
pub(super) fn text_of(seen: &Seen) -> Option<String> {
    if *seen == Seen::Absence { Some(ABSENT.to_owned()) } else { seen_text(seen) }
}

/// What was seen, read again.
pub(super) fn seen_of(text: &str) -> Result<Seen, Refusal> {
    let seen = if text == ABSENT { Some(Seen::Absence) } else { seen_back(text) };
    seen.ok_or_else(|| Refusal::invalid_params(format!("{text:?} is nothing that can have been seen")))
}

/// Nothing was there.
const ABSENT: &str = "absent";

impl Record {
    /// The record as the journal keeps it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("because a record is made of strings, numbers and paths")
    }

    /// The record that these bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// Whether these bytes are those of a [`Record::Forgotten`], by how they begin.
pub(super) fn forgets(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{\"forgotten\":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::row::RowNo;
    use crate::memory::change::Change;
    use crate::session::moment::Moment;
    use crate::session::source::Source;

    #[test]
    fn what_was_settled_of_very_many_rows_stands_in_records_of_bounded_length() {
        let row = |no: u32| Row {
            no: RowNo(no),
            role: Role::Result,
            id: format!("{no}{}", "i".repeat(700)),
            tool: None,
            critical: true,
            captured_at: None,
            source: Source::File { path: "a".into() },
            source_id: None,
            baseline: Baseline::Registration(Seen::Digest(Digest::blake3([1; 32]))),
            lf: Some(Digest::blake3([2; 32])),
            ever_fresh: true,
            refuted: false,
            as_of: None,
            inputs: Vec::new(),
            input_of: None,
        };
        let rows: Vec<Row> = (0..5_000).map(row).collect();
        let (mut adopted_ids, mut fresh_ids) = (Vec::new(), Vec::new());
        let records = settled("s", &rows);
        assert!(records.len() > 3 && records.iter().all(|record| record.to_bytes().len() < 3 << 20));
        for record in records {
            let Record::Settled { adopted, fresh, .. } = record else { panic!("only what was settled") };
            adopted_ids.extend(adopted.into_iter().map(|adopted| adopted.row.id));
            fresh_ids.extend(fresh.into_iter().map(|fresh| fresh.row.id));
        }
        let ids: Vec<String> = rows.into_iter().map(|row| row.id).collect();
        assert_eq!((adopted_ids, fresh_ids), (ids.clone(), ids));
    }

    #[test]
    fn what_forgets_is_known_by_how_it_begins() {
        let forgotten =
            Remembered::new(&Change { forgotten: Some(7), ..Change::default() }, None, Moment::default());
        let (forgets_it, other) = (Record::Forgotten(Box::new(forgotten)), Record::Doubted);
        assert!(forgets(&forgets_it.to_bytes()) && !forgets(&other.to_bytes()));
        let told = Record::Dropped { session: "{\"forgotten\":".to_owned() };
        assert!(!forgets(&told.to_bytes()) && !forgets(b"{\"forgotten\""));
    }
}

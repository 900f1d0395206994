//! Typed access to the tables, with the rows and counts that a step touches held until the step ends.
//!
//! Rows share a value by the dozen, and all rows of a session its counts. Settling ten thousand files would write each
//! value many times over if every change went through at once, so what changed waits for [`Shelf::flush`], which every
//! step of the index calls last.

use super::SourceId;
use super::pack::{self, Pack};
use super::row::{Row, RowNo, SessionNo};
use super::storage::{CHUNK, Storage, StorageError, Summary, Table};
use std::collections::{BTreeMap, HashMap};

pub(super) struct Shelf<S> {
    pub(super) storage: S,
    held: HashMap<[u8; 8], Held>,
    counts: HashMap<SessionNo, Summary>,
}

struct Held {
    rows: Vec<Row>,
    changed: bool,
}

impl<S: Storage> Shelf<S> {
    pub(super) fn new(storage: S) -> Self {
        Self { storage, held: HashMap::new(), counts: HashMap::new() }
    }

    pub(super) fn get<T: Pack>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StorageError> {
        let Some(bytes) = self.storage.get(table, key)? else { return Ok(None) };
        pack::from_bytes(&bytes).map(Some).ok_or_else(|| self.unreadable(table))
    }

    pub(super) fn put(&mut self, table: Table, key: &[u8], value: &impl Pack) -> Result<(), StorageError> {
        self.storage.put(table, key, &pack::to_bytes(value))
    }

    pub(super) fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError> {
        self.storage.remove(table, key)
    }

    /// Every value below a prefix, with its key.
    pub(super) fn list<T: Pack>(
        &self,
        table: Table,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, T)>, StorageError> {
        let mut values = Vec::new();
        let mut bad = false;
        self.storage.scan(table, prefix, &mut |key, bytes| match pack::from_bytes(bytes) {
            Some(value) => values.push((key.to_vec(), value)),
            None => bad = true,
        })?;
        if bad { Err(self.unreadable(table)) } else { Ok(values) }
    }

    /// What must be there because something else in the index says so.
    pub(super) fn must<T: Pack>(&self, table: Table, key: &[u8]) -> Result<T, StorageError> {
        let missing = "a key that must exist is missing";
        let missing = || self.storage.distrust(StorageError::contents("find", table, missing));
        self.get(table, key)?.ok_or_else(missing)
    }

    /// All rows of a session, by number. Only between steps: held chunks are not seen.
    pub(super) fn rows(&self, session: SessionNo) -> Result<Vec<Row>, StorageError> {
        debug_assert!(self.held.is_empty(), "rows are listed between steps");
        let chunks: Vec<(_, Vec<Row>)> = self.list(Table::Rows, &session.0.to_be_bytes())?;
        Ok(chunks.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    /// The rows that share a value with this one, as they are stored.
    pub(super) fn chunk(&self, session: SessionNo, row: RowNo) -> Result<Vec<Row>, StorageError> {
        Ok(self.get(Table::Rows, &chunk_key(session, row))?.unwrap_or_default())
    }

    /// The first row of a session, without decoding those that share its value.
    pub(super) fn first_row(&self, session: SessionNo) -> Result<Option<Row>, StorageError> {
        let Some(bytes) = self.storage.get(Table::Rows, &chunk_key(session, RowNo(0)))? else {
            return Ok(None);
        };
        let mut input = bytes.as_slice();
        match u64::unpack(&mut input) {
            Some(0) => Ok(None),
            Some(_) => Row::unpack(&mut input).map(Some).ok_or_else(|| self.unreadable(Table::Rows)),
            None => Err(self.unreadable(Table::Rows)),
        }
    }

    /// One row as it is stored.
    pub(super) fn row(&self, session: SessionNo, row: RowNo) -> Result<Option<Row>, StorageError> {
        Ok(self.chunk(session, row)?.into_iter().find(|found| found.no == row))
    }

    /// A row that must be there because its source says that it rests on it. Passed over, it would be fresh for ever.
    pub(super) fn must_hold(&mut self, session: SessionNo, row: RowNo) -> Result<&Row, StorageError> {
        if self.held_row(session, row)?.is_none() {
            let missing = StorageError::contents("find", Table::Rows, "a row that must exist is missing");
            return Err(self.storage.distrust(missing));
        }
        Ok(self.held_row(session, row)?.expect("it was found above"))
    }

    /// One row, to be read or changed within this step.
    pub(super) fn held_row(&mut self, session: SessionNo, row: RowNo) -> Result<Option<&Row>, StorageError> {
        Ok(self.hold(session, row)?.rows.iter().find(|found| found.no == row))
    }

    /// One row as this step has made it so far, held or stored.
    pub(super) fn peek(&self, session: SessionNo, row: RowNo) -> Result<Option<Row>, StorageError> {
        match self.held.get(&chunk_key(session, row)) {
            Some(held) => Ok(held.rows.iter().find(|found| found.no == row).cloned()),
            None => self.row(session, row),
        }
    }

    /// All rows of a session as this step has made them so far.
    pub(super) fn peek_rows(&self, session: SessionNo) -> Result<Vec<Row>, StorageError> {
        let stored: Vec<(Vec<u8>, Vec<Row>)> = self.list(Table::Rows, &session.0.to_be_bytes())?;
        let mut chunks: BTreeMap<Vec<u8>, Vec<Row>> = stored.into_iter().collect();
        let held = self.held.iter().filter(|(key, _)| key.starts_with(&session.0.to_be_bytes()));
        chunks.extend(held.map(|(key, held)| (key.to_vec(), held.rows.clone())));
        Ok(chunks.into_values().flatten().collect())
    }

    /// Replaces or adds one row.
    pub(super) fn put_row(&mut self, session: SessionNo, row: Row) -> Result<(), StorageError> {
        let held = self.hold(session, row.no)?;
        held.changed = true;
        match held.rows.iter_mut().find(|found| found.no == row.no) {
            Some(found) => *found = row,
            None => held.rows.push(row),
        }
        Ok(())
    }

    pub(super) fn remove_row(&mut self, session: SessionNo, row: RowNo) -> Result<(), StorageError> {
        let held = self.hold(session, row)?;
        held.changed = true;
        held.rows.retain(|found| found.no != row);
        Ok(())
    }

    /// The counts of a session, to be changed within this step.
    pub(super) fn counts(&mut self, session: SessionNo) -> Result<&mut Summary, StorageError> {
        if !self.counts.contains_key(&session) {
            let held = self.must(Table::Summaries, &session.0.to_be_bytes())?;
            self.counts.insert(session, held);
        }
        Ok(self.counts.get_mut(&session).expect("it was inserted above"))
    }

    /// Writes what the step changed. A step that failed before this has changed nothing in these rows.
    pub(super) fn flush(&mut self) -> Result<(), StorageError> {
        for (key, held) in std::mem::take(&mut self.held) {
            match (held.changed, held.rows.is_empty()) {
                (false, _) => {}
                (true, true) => self.remove(Table::Rows, &key)?,
                (true, false) => self.put(Table::Rows, &key, &held.rows)?,
            }
        }
        for (session, counts) in std::mem::take(&mut self.counts) {
            self.put(Table::Summaries, &session.0.to_be_bytes(), &counts)?;
        }
        Ok(())
    }

    pub(super) fn unreadable(&self, table: Table) -> StorageError {
        let reason = "its bytes do not add up";
        self.storage.distrust(StorageError::contents("decode a value", table, reason))
    }

    fn hold(&mut self, session: SessionNo, row: RowNo) -> Result<&mut Held, StorageError> {
        let key = chunk_key(session, row);
        if !self.held.contains_key(&key) {
            let rows = self.get(Table::Rows, &key)?.unwrap_or_default();
            self.held.insert(key, Held { rows, changed: false });
        }
        Ok(self.held.get_mut(&key).expect("it was inserted above"))
    }
}

fn chunk_key(session: SessionNo, row: RowNo) -> [u8; 8] {
    pair(session.0, row.0 / CHUNK)
}

pub(super) fn mark_key(session: SessionNo, row: RowNo) -> [u8; 8] {
    pair(session.0, row.0)
}

pub(super) fn mark_row(key: &[u8]) -> Option<RowNo> {
    Some(RowNo(u32::from_be_bytes(key.get(4..8)?.try_into().ok()?)))
}

/// Whose mark stands under a key.
pub(super) fn mark_of(key: &[u8]) -> Option<(SessionNo, RowNo)> {
    Some((SessionNo(u32::from_be_bytes(*key.first_chunk()?)), mark_row(key)?))
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) << 32 | u64::from(second)).to_be_bytes()
}

pub(super) fn source_key(source: SourceId) -> [u8; 8] {
    source.0.to_be_bytes()
}

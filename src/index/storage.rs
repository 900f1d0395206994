//! Where the index keeps what it knows: a small trait over ordered bytes, and the values it holds.
//!
//! The trait has two sides: sled for real, and [`Memory`] for simulations and for judging without a daemon. Whatever
//! an implementation cannot do it must say; after an error nothing that was read from it may be believed.

use super::SourceKey;
use super::row::{RowNo, SessionNo};
use crate::session::SessionId;
use crate::session::context::Goal;
use crate::session::digest::Algorithm;
use crate::session::moment::Moment;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The tables of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Counters and what the store says about itself.
    Meta,
    /// Session name → number.
    Names,
    /// Session number → [`Summary`].
    Summaries,
    /// Session number → [`StoredHead`].
    Heads,
    /// (Session number, chunk) → up to [`CHUNK`] rows.
    Rows,
    /// (Session number, row number) → [`Mark`](super::row::Mark).
    Marks,
    /// Source number → [`SourceState`].
    Sources,
    /// [`SourceKey`] → source number.
    Keys,
    /// (Folder's source number, page) → some of its entries by name, each an [`Entry`](super::tree::Entry).
    Entries,
    /// (Tree's source number, path below it) → what stood there when.
    Changes,
    /// Name of a user of the memory → [`User`](crate::memory::user::User).
    Users,
    /// (User's number, session's number) → a session of the memory, without its summary.
    UserSessions,
    /// (User's number, observation) → what it is, without its words.
    Observations,
    /// (User's number, observation, revision) → what an earlier revision was, without its words.
    Revisions,
    /// (User's number, digest of type and content) → observation.
    Wordings,
    /// (User's number, digest of a topic key) → observation.
    Topics,
    /// (User's number, session's number, observation) → nothing: the observation was last saved in that session.
    SavedIn,
    /// (User's number, …) → words of the memory: whatever a user may want forgotten. See [`Storage::shred`].
    Words,
    /// A fork's id → its record, as the journal keeps it.
    Forks,
}

/// The storage failed or holds what nobody wrote.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the index failed to {verb} in table {table:?}: {reason}")]
pub struct StorageError {
    /// What was tried.
    pub verb: &'static str,
    /// Where.
    pub table: Table,
    /// Why it failed.
    pub reason: String,
    /// What is in doubt.
    pub trouble: Trouble,
}

/// What a failure puts in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The disk has no room at the moment. What was written is still good.
    Full,
    /// The disk takes or gives nothing at the moment: it is closed to us. What was written is still good.
    Disk,
    /// What stands there is not what was written.
    Contents,
}

impl Trouble {
    /// Whether it may pass by itself.
    #[must_use]
    pub fn passes(self) -> bool {
        match self {
            Self::Full | Self::Disk => true,
            Self::Contents => false,
        }
    }
}

impl StorageError {
    /// What was read is not what was written.
    #[must_use]
    pub fn contents(verb: &'static str, table: Table, reason: impl Into<String>) -> Self {
        Self { verb, table, reason: reason.into(), trouble: Trouble::Contents }
    }
}

/// Ordered bytes in tables.
pub trait Storage {
    /// The value under a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError>;
    /// Sets the value under a key.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError>;
    /// Removes a key; one that is not there is removed already.
    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError>;
    /// Calls `each` for every key that begins with `prefix`, in order.
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StorageError>;
    /// Calls `each` for every key from `from` on, in order, until it returns false.
    fn scan_from(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError>;
    /// Leaves nothing on the disk of what was removed below this prefix, of 4 bytes. Only of [`Table::Words`]; other tables may
    /// keep removed bytes as long as they please.
    fn shred(&mut self, table: Table, prefix: &[u8]) -> Result<(), StorageError> {
        let _ = (table, prefix);
        Ok(())
    }
    /// What was read cannot be what was written. Who keeps a first failure keeps this one too: whoever reads next, for
    /// whomever, is not to believe it, even where this reader only refuses a request.
    fn distrust(&self, error: StorageError) -> StorageError {
        error
    }
}

/// Rows that share one value: keeps values below 4 KiB, where sled is fast, and a session of 40 results in three gets.
pub const CHUNK: u32 = 16;

/// The counts of a session: what a decision needs when nothing is wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows of the session.
    pub rows: u32,
    /// Rows that stand for a path which only a fact names. Alone they are no context.
    pub tracked: u32,
    /// The number that the next new row gets.
    pub next_row: u32,
    /// Rows marked stale.
    pub stale: u32,
    /// Rows marked unknown.
    pub unknown: u32,
    /// Rows that are fresh with news.
    pub noted: u32,
    /// Critical rows marked stale or unknown.
    pub critical: u32,
}

/// A session's head with its facts bound to rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    /// The session's name.
    pub session: SessionId,
    /// Whose it is.
    pub user: String,
    /// Which agent speaks.
    pub agent: String,
    /// Absolute root of its relative paths.
    pub root: PathBuf,
    /// When the agent captured it.
    pub captured_at: Option<Moment>,
    /// What it is for.
    pub goal: Goal,
    /// What it holds to be true.
    pub facts: Vec<StoredFact>,
    /// What it decided.
    pub decisions: Vec<String>,
    /// What it left open.
    pub open_questions: Vec<String>,
    /// Size of its scratchpad, in bytes.
    pub scratchpad_bytes: u64,
    /// What was told may have been amended by records that are lost: until it starts over, nothing it
    /// believes is fresh.
    pub doubted: bool,
}

/// A fact and the rows that stand for the sources it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFact {
    /// The client's id.
    pub id: String,
    /// The statement.
    pub statement: String,
    /// Where it was seen.
    pub evidence: String,
    /// The sources as the client spelled them.
    pub sources: Vec<PathBuf>,
    /// One row for each source.
    pub rows: Vec<RowNo>,
}

/// A source and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// What it is.
    pub key: SourceKey,
    /// What the last applied look found; `None` before the first.
    pub found: Option<super::found::Found>,
    /// Who rests on it.
    pub readers: Vec<(SessionNo, RowNo)>,
    /// Algorithms beside BLAKE3 in which some reader knows it.
    pub wanted: Vec<Algorithm>,
    /// Counts the states that a tree was in.
    pub version: u64,
    /// Where a tree was rooted.
    pub rooted: Option<super::tree::Rooted>,
}

/// The memory twin: the same tables in a map.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    tables: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
}

impl Storage for Memory {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.tables.get(&(table, key.to_vec())).cloned())
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.tables.insert((table, key.to_vec()), value.to_vec());
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError> {
        self.tables.remove(&(table, key.to_vec()));
        Ok(())
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StorageError> {
        for ((_, key), value) in self
            .tables
            .range((table, prefix.to_vec())..)
            .take_while(|((t, key), _)| *t == table && key.starts_with(prefix))
        {
            each(key, value);
        }
        Ok(())
    }

    fn scan_from(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let behind = self.tables.range((table, from.to_vec())..).take_while(|((t, _), _)| *t == table);
        for ((_, key), value) in behind {
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }
}

//! What is kept, read: typed access to the tables of the memory.
//!
//! A key that must be there and is not, or bytes that do not add up, put the whole index in doubt; what it lost is in the
//! journal.

use super::keys;
use super::observation::{Marks, Observation, Words};
use super::session::{Session, Span};
use super::user::User;
use crate::index::pack::{self, Pack};
use crate::index::storage::{Storage, StorageError, Table};

pub(super) const NEXT_OBSERVATION: &[u8] = b"next-observation";
pub(super) const USERS: &[u8] = b"users";

/// How many observations are read at once, and how many bytes of them: whoever reads all of them lets others in between.
const PAGE: usize = 200;
const PAGE_BYTES: usize = 256 * 1024;

/// The memory of all users, to be read.
#[derive(Debug)]
pub struct Book<'storage, S> {
    storage: &'storage S,
}

impl<S> Clone for Book<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Book<'_, S> {}

impl<'storage, S: Storage> Book<'storage, S> {
    /// What this storage holds.
    pub fn new(storage: &'storage S) -> Self {
        Self { storage }
    }

    pub(super) fn get<T: Pack>(self, table: Table, key: &[u8]) -> Result<Option<T>, StorageError> {
        let Some(bytes) = self.storage.get(table, key)? else { return Ok(None) };
        pack::from_bytes(&bytes).map(Some).ok_or_else(|| self.doubt(table, "its bytes do not add up"))
    }

    pub(super) fn must<T: Pack>(self, table: Table, key: &[u8]) -> Result<T, StorageError> {
        self.get(table, key)?.ok_or_else(|| self.doubt(table, "a key that must exist is missing"))
    }

    pub(super) fn doubt(self, table: Table, reason: &str) -> StorageError {
        self.storage.distrust(StorageError::contents("read", table, reason))
    }

    /// The keys below a prefix.
    pub(super) fn keys(self, table: Table, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut keys = Vec::new();
        self.storage.scan(table, prefix, &mut |key, _| keys.push(key.to_vec()))?;
        Ok(keys)
    }

    /// Every user by name.
    pub fn users(self) -> Result<Vec<(String, User)>, StorageError> {
        let mut users = Vec::new();
        self.storage.scan(Table::Users, &[], &mut |key, value| users.push((key.to_vec(), value.to_vec())))?;
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            Some((String::from_utf8(key).ok()?, pack::from_bytes(&value)?))
        };
        let users: Option<Vec<_>> = users.into_iter().map(read).collect();
        users.ok_or_else(|| self.doubt(Table::Users, "its bytes do not add up"))
    }

    /// A user, if anything was ever kept for them.
    pub fn user(self, name: &str) -> Result<Option<User>, StorageError> {
        self.get(Table::Users, name.as_bytes())
    }

    /// The number that the next observation gets.
    pub fn next_observation(self) -> Result<u64, StorageError> {
        Ok(self.get(Table::Meta, NEXT_OBSERVATION)?.unwrap_or(1))
    }

    /// How many users there are; the number that the next one gets.
    pub(super) fn users_len(self) -> Result<u32, StorageError> {
        Ok(self.get(Table::Meta, USERS)?.unwrap_or(0))
    }

    /// When a session was.
    pub fn span(self, user: u32, session: u32) -> Result<Span, StorageError> {
        self.must(Table::UserSessions, &keys::session(user, session))
    }

    /// A session, whole.
    pub fn session(self, user: u32, no: u32) -> Result<Session, StorageError> {
        let span = self.span(user, no)?;
        let summary = match span.ended_at {
            Some(_) => Some(self.must(Table::Words, &keys::summary(user, no))?),
            None => None,
        };
        Ok(Session { no, span, summary })
    }

    /// An observation's latest revision, without its words.
    pub fn marks(self, user: u32, id: u64) -> Result<Option<Marks>, StorageError> {
        self.get(Table::Observations, &keys::observation(user, id))
    }

    /// What a revision says.
    pub fn words(self, user: u32, id: u64, revision: u32) -> Result<Words, StorageError> {
        self.must(Table::Words, &keys::words(user, id, revision))
    }

    /// An observation, whole.
    pub fn observation(self, user: u32, id: u64) -> Result<Option<Observation>, StorageError> {
        let Some(marks) = self.marks(user, id)? else { return Ok(None) };
        let words = self.words(user, id, marks.revision)?;
        Ok(Some(Observation { id, marks, words }))
    }

    /// The marks of an observation that must be there because something else says so.
    pub(super) fn must_have_marks(self, user: u32, id: u64) -> Result<Marks, StorageError> {
        self.must(Table::Observations, &keys::observation(user, id))
    }

    /// An observation that must be there because something else says so.
    pub fn must_have(self, user: u32, id: u64) -> Result<Observation, StorageError> {
        let missing = || self.doubt(Table::Observations, "a key that must exist is missing");
        self.observation(user, id)?.ok_or_else(missing)
    }

    /// What an observation was before, from its first revision on.
    pub fn history(self, user: u32, id: u64) -> Result<Vec<Observation>, StorageError> {
        let past = self.past_of(user, id)?.into_iter();
        let whole = |(id, marks): (u64, Marks)| {
            let words = self.words(user, id, marks.revision)?;
            Ok(Observation { id, marks, words })
        };
        past.map(whole).collect()
    }

    /// What an observation was before, by revision, without its words.
    pub fn past_of(self, user: u32, id: u64) -> Result<Vec<(u64, Marks)>, StorageError> {
        self.past(&keys::observation(user, id))
    }

    /// What all observations of a user were before, by number and revision, without their words.
    pub(super) fn past_of_all(self, user: u32) -> Result<Vec<(u64, Marks)>, StorageError> {
        self.past(&keys::of_user(user))
    }

    /// Earlier revisions below a prefix, without their words.
    fn past(self, prefix: &[u8]) -> Result<Vec<(u64, Marks)>, StorageError> {
        let mut past = Vec::new();
        self.storage
            .scan(Table::Revisions, prefix, &mut |key, value| past.push((key.to_vec(), value.to_vec())))?;
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let ((id, revision), marks) = (keys::revised(&key)?, pack::from_bytes::<Marks>(&value)?);
            (marks.revision == revision).then_some((id, marks))
        };
        let past: Option<Vec<_>> = past.into_iter().map(read).collect();
        past.ok_or_else(|| self.doubt(Table::Revisions, "its bytes do not add up"))
    }

    /// The next observations of a user with numbers from `from` on, by number: a bounded piece of them, and none behind the last.
    pub fn page(self, user: u32, from: u64) -> Result<Vec<Observation>, StorageError> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for id in self.ids(user, from, PAGE)? {
            let observation = self.must_have(user, id)?;
            bytes += observation.words.content.len();
            page.push(observation);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    /// All observations of a user, by number.
    pub(super) fn all(self, user: u32) -> Result<Vec<Observation>, StorageError> {
        let mut all: Vec<Observation> = Vec::new();
        loop {
            let page = self.page(user, all.last().map_or(0, |last| last.id + 1))?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    fn ids(self, user: u32, from: u64, most: usize) -> Result<Vec<u64>, StorageError> {
        let (mut ids, prefix) = (Vec::new(), keys::of_user(user));
        self.storage.scan_from(Table::Observations, &keys::observation(user, from), &mut |key, _| {
            let wanted = key.starts_with(&prefix) && ids.len() < most;
            ids.extend(keys::last_id(key).filter(|_| wanted));
            wanted
        })?;
        Ok(ids)
    }

    /// Observations that were last saved in a session, by number.
    pub fn saved_in(self, user: u32, session: u32) -> Result<Vec<u64>, StorageError> {
        let keys = self.keys(Table::SavedIn, &keys::session(user, session))?;
        Ok(keys.iter().filter_map(|key| keys::last_id(key)).collect())
    }

    /// The observation under a topic key.
    pub fn by_topic(self, user: u32, topic_key: &str) -> Result<Option<u64>, StorageError> {
        self.get(Table::Topics, &keys::topic(user, topic_key))
    }

    /// Observations of this type that say exactly this, by number.
    pub fn by_wording(self, user: u32, kind: &str, content: &str) -> Result<Vec<u64>, StorageError> {
        let keys = self.keys(Table::Wordings, &keys::wording(user, kind, content))?;
        Ok(keys.iter().filter_map(|key| keys::last_id(key)).collect())
    }
}

//! The memory on the map twin, with a clock that we move. After every change everything is audited, words and all, and
//! what is applied is applied once more: that may change nothing.

mod audits;
mod chance;
mod forgetting;
mod model;
mod saves;
mod sessions;
mod whole;

use super::audit::audit_words;
use super::book::Book;
use super::change::Change;
use super::observation::{Observation, Words};
use super::session::Session;
use super::step::{self, Circumstances, Save, Saved, StepError};
use super::user::User;
use super::{apply, kept};
use crate::index::storage::{Memory, Storage, StorageError, Table};
use crate::session::moment::Moment;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const TIMEOUT: i64 = 24 * HOUR;

/// Everything of the memory stands in these.
const TABLES: [Table; 9] = [
    Table::Meta,
    Table::Users,
    Table::UserSessions,
    Table::Observations,
    Table::Revisions,
    Table::Wordings,
    Table::Topics,
    Table::SavedIn,
    Table::Words,
];

type Rows = Vec<(Table, Vec<u8>, Vec<u8>)>;

/// Everything that a storage holds of the memory.
fn rows(storage: &Memory) -> Rows {
    let mut rows = Vec::new();
    for table in TABLES {
        let mut each = |key: &[u8], value: &[u8]| rows.push((table, key.to_vec(), value.to_vec()));
        storage.scan(table, &[], &mut each).unwrap();
    }
    rows
}

/// A memory, and what time it is.
#[derive(Debug, Clone, Default)]
struct Desk {
    storage: Memory,
    now: i64,
    asked: u32,
}

impl Desk {
    fn book(&self) -> Book<'_, Memory> {
        Book::new(&self.storage)
    }

    fn rows(&self) -> Rows {
        rows(&self.storage)
    }

    /// Every time with another name for a session that may begin.
    fn circumstances(&mut self) -> Circumstances {
        self.asked += 1;
        Circumstances {
            now: Moment::from_micros(self.now),
            timeout_micros: TIMEOUT,
            new_session: format!("session-{}", self.asked),
        }
    }

    fn apply(&mut self, change: &Change) {
        apply(&mut self.storage, change).unwrap();
        let mut twice = self.storage.clone();
        apply(&mut twice, change).unwrap();
        assert_eq!(self.rows(), rows(&twice), "applied twice: {change:?}");
        audit_words(&self.storage).unwrap();
    }

    fn start(&mut self, user: &str) -> (Session, bool) {
        let at = self.circumstances();
        let (change, session, is_new) = step::start(self.book(), user, &at).unwrap();
        self.apply(&change);
        (session, is_new)
    }

    fn try_save(&mut self, user: &str, save: Save) -> Result<Saved, StepError> {
        let at = self.circumstances();
        let (change, saved) = step::save(self.book(), user, save, &at)?;
        self.apply(&change);
        Ok(saved)
    }

    /// Saves `kind title content topic_key`.
    fn save(&mut self, user: &str, said: [&str; 4]) -> Saved {
        self.try_save(user, said_as(said)).unwrap()
    }

    fn end(&mut self, user: &str, summary: &str) -> Option<Session> {
        let at = self.circumstances();
        let (change, session) = step::end(self.book(), user, summary.to_owned(), &at).unwrap()?;
        self.apply(&change);
        Some(session)
    }

    fn expire(&mut self, user: &str) -> Option<Session> {
        let at = self.circumstances();
        let change = step::expire(self.book(), user, &at).unwrap()?;
        self.apply(&change);
        Some(change.sessions.last().unwrap().clone())
    }

    fn forget(&mut self, user: &str, id: u64) -> bool {
        let Some(change) = step::forget(self.book(), user, id).unwrap() else { return false };
        self.apply(&change);
        true
    }

    fn user(&self, name: &str) -> User {
        self.book().user(name).unwrap().expect("the user was here")
    }

    fn sessions(&self, name: &str) -> Vec<Session> {
        let user = self.user(name);
        (0..user.sessions).map(|no| self.book().session(user.no, no).unwrap()).collect()
    }

    fn observations(&self, name: &str) -> Vec<Observation> {
        self.book().all(self.user(name).no).unwrap()
    }

    fn history(&self, name: &str, id: u64) -> Vec<Observation> {
        self.book().history(self.user(name).no, id).unwrap()
    }

    /// The changes that it is told whole by.
    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut each = |change| {
            changes.push(change);
            Ok::<_, StorageError>(())
        };
        kept::changes(self.book(), &mut each).unwrap();
        changes
    }

    /// The same memory after it was told whole to an empty storage, and everything else as it was.
    fn told_whole(&self) -> Self {
        let mut again = Self { storage: Memory::default(), ..self.clone() };
        for change in self.changes() {
            again.apply(&change);
        }
        again
    }
}

/// `kind title content topic_key`, no key where it is empty.
fn said_as([kind, title, content, topic_key]: [&str; 4]) -> Save {
    let words = Words {
        title: title.to_owned(),
        content: content.to_owned(),
        topic_key: (!topic_key.is_empty()).then(|| topic_key.to_owned()),
    };
    Save { kind: kind.to_owned(), words, ..Save::default() }
}

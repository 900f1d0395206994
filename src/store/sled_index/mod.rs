//! The index tables in sled: what decisions are read from, and what can always be made again from the journal.
//!
//! sled 0.34 may fail late, panic in `open`, or lose keys without a word. So every value carries a checksum of its own,
//! the index says which journal it belongs to and how far it has come, and any doubt at all makes the folder move
//! aside under a dated name. Nothing here is ever repaired. A disk that is full or closed to us puts nothing in doubt:
//! the folder stays, and is opened again later.
//!
//! The first failure is final for the handle, as it is for sled's own: nothing is read from it any more.

#[cfg(test)]
mod tests;

use super::passing;
use super::seal::{open_seal, seal};
use super::sled_open::open_apart;
use super::words::{self, InUse, Place, Words};
use crate::index::FORMAT;
use crate::index::storage::{Storage, StorageError, Table, Trouble};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

// The first one holds what the index says of itself.
const TABLES: [(Table, &str); 19] = [
    (Table::Meta, "meta"),
    (Table::Names, "names"),
    (Table::Summaries, "summaries"),
    (Table::Heads, "heads"),
    (Table::Rows, "rows"),
    (Table::Marks, "marks"),
    (Table::Sources, "sources"),
    (Table::Keys, "keys"),
    (Table::Entries, "entries"),
    (Table::Changes, "changes"),
    (Table::Users, "users"),
    (Table::UserSessions, "user-sessions"),
    (Table::Observations, "observations"),
    (Table::Revisions, "revisions"),
    (Table::Wordings, "wordings"),
    (Table::Topics, "topics"),
    (Table::SavedIn, "saved-in"),
    (Table::Words, "words"),
    (Table::Forks, "forks"),
];

const IDENTITY: &[u8] = b"identity";
const APPLIED: &[u8] = b"applied";
const APPLYING: &[u8] = b"applying";

/// How long sled may take to open before it counts as hung. (Seen in the field: minutes.)
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// The index tables.
pub struct SledIndex {
    trees: Vec<sled::Tree>,
    db: sled::Db,
    words: Words,
    failure: OnceLock<StorageError>,
}

/// Why an index folder was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// As a sentence.
    pub reason: String,
    /// Whether the folder is in doubt, or only the disk.
    pub trouble: Trouble,
    /// A thread still hangs in it. It may wake at any time, and then make files under the folder's name.
    pub hangs: bool,
}

impl Doubt {
    /// What lies in the folder is in doubt.
    #[must_use]
    pub fn contents(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), trouble: Trouble::Contents, hangs: false }
    }
}

impl From<StorageError> for Doubt {
    fn from(error: StorageError) -> Self {
        Self { reason: error.to_string(), trouble: error.trouble, hangs: false }
    }
}

impl SledIndex {
    /// Opens the index of the journal `id`, or says why what lies there cannot be used. An empty folder is an index
    /// that has applied nothing.
    pub fn open(folder: &Path, id: [u8; 16]) -> Result<(Self, u64), Doubt> {
        let (db, trees) = open_apart(folder, &TABLES, OPEN_TIMEOUT)?;
        let mut index = Self { trees, db, words: Words::of(folder), failure: OnceLock::new() };
        // Before anything is believed: an index that is not is set aside with everything in it, and may lie there long.
        index.words.settle(index.words_in_use()?)?;
        let applied = index.check(id)?;
        Ok((index, applied))
    }

    /// The journal position up to which everything is applied.
    fn check(&mut self, id: [u8; 16]) -> Result<u64, StorageError> {
        let identity = identity(id);
        let doubt = |reason: &str| StorageError::contents("trust", Table::Meta, reason);
        match self.get(Table::Meta, IDENTITY)? {
            None if self.trees.iter().all(sled::Tree::is_empty) => {
                self.put(Table::Meta, IDENTITY, &identity)?;
            }
            None => return Err(doubt("it does not say what it is")),
            Some(held) if held == identity => {}
            Some(_) => return Err(doubt("it is of another format or of another journal")),
        }
        if self.get(Table::Meta, APPLYING)?.is_some() {
            return Err(doubt("the last change to it was cut short"));
        }
        let nothing_told = || self.trees.iter().skip(1).all(sled::Tree::is_empty);
        match self.number(APPLIED)? {
            Some(applied) => Ok(applied),
            None if nothing_told() => Ok(0),
            None => Err(doubt("it does not say how far it has come")),
        }
    }

    /// Which files words stand in. All their places are looked at, one or two microseconds each, and no words.
    fn words_in_use(&self) -> Result<InUse, StorageError> {
        let mut in_use = InUse::default();
        let mut places = self.guarded("scan", Table::Words, |tree| Ok(tree.iter()))?;
        while let Some((key, place)) = self.guarded("scan", Table::Words, |_| places.next().transpose())? {
            in_use.add(&key, &place)?;
        }
        Ok(in_use)
    }

    /// Where the words of a user stand that were not removed, in those of the user's files that hold something removed.
    fn left_to_move(&mut self, user: u32) -> Result<BTreeMap<u32, Vec<(Vec<u8>, Place)>>, StorageError> {
        let files = self.words.files_to_shred(user).map_err(|error| self.fail(error))?;
        let mut left: BTreeMap<_, Vec<_>> = files.into_iter().map(|number| (number, Vec::new())).collect();
        if left.is_empty() {
            return Ok(left);
        }
        let mut entries =
            self.guarded("scan", Table::Words, |tree| Ok(tree.scan_prefix(user.to_be_bytes())))?;
        while let Some((key, place)) = self.guarded("scan", Table::Words, |_| entries.next().transpose())? {
            let place = Place::decode(&place).map_err(|error| self.fail(error))?;
            if let Some(left) = left.get_mut(&place.number) {
                left.push((key.to_vec(), place));
            }
        }
        Ok(left)
    }

    fn number(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let Some(bytes) = self.get(Table::Meta, key)? else { return Ok(None) };
        let bytes = bytes
            .try_into()
            .map_err(|_| StorageError::contents("decode a number", Table::Meta, "not eight bytes"))?;
        Ok(Some(u64::from_be_bytes(bytes)))
    }

    /// A journal record is about to be applied. An index that is found in this state later is not used.
    pub fn begin(&mut self, seq: u64) -> Result<(), StorageError> {
        self.put(Table::Meta, APPLYING, &seq.to_be_bytes())
    }

    /// It was applied, whole.
    pub fn commit(&mut self, seq: u64) -> Result<(), StorageError> {
        self.put(Table::Meta, APPLIED, &seq.to_be_bytes())?;
        self.remove(Table::Meta, APPLYING)
    }

    /// Hands everything to the kernel, so that the end of the process loses nothing.
    pub fn flush(&mut self) -> Result<(), StorageError> {
        self.guarded("flush", Table::Meta, |_| self.db.flush()).map(drop)
    }

    /// A flush to be made by another thread, as sled's own makes one now and then.
    #[must_use]
    pub fn flusher(&self) -> Box<dyn FnOnce() -> Result<(), String> + Send> {
        let db = self.db.clone();
        Box::new(move || match catch_unwind(AssertUnwindSafe(|| db.flush())) {
            Ok(flushed) => flushed.map(drop).map_err(|error| error.to_string()),
            Err(_) => Err("sled panicked".to_owned()),
        })
    }

    /// The first failure, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<&StorageError> {
        self.failure.get()
    }

    /// One call of sled, which may fail or panic. Whichever it is, no other follows.
    fn guarded<T>(
        &self,
        verb: &'static str,
        table: Table,
        call: impl FnOnce(&sled::Tree) -> sled::Result<T>,
    ) -> Result<T, StorageError> {
        self.sound()?;
        let tree = &self.trees[table as usize];
        match catch_unwind(AssertUnwindSafe(|| call(tree))) {
            Ok(Ok(given)) => Ok(given),
            Ok(Err(error)) => Err(self.fail(failed(verb, table, &error))),
            Err(_) => Err(self.fail(StorageError::contents(verb, table, "sled panicked"))),
        }
    }

    fn sound(&self) -> Result<(), StorageError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn fail(&self, error: StorageError) -> StorageError {
        self.failure.get_or_init(|| error).clone()
    }

    /// The value that was put under a key, by what the tree holds there.
    fn value<'held>(
        &self,
        (table, words): (Table, &mut words::Reader<'_>),
        key: &[u8],
        held: &'held [u8],
    ) -> Result<Cow<'held, [u8]>, StorageError> {
        let value = match table {
            Table::Words => words.read(key, held).map(Cow::Owned),
            _ => open_seal(key, held)
                .map(Cow::Borrowed)
                .map_err(|why| StorageError::contents("read", table, why)),
        };
        value.map_err(|error| self.fail(error))
    }

    /// Writes words, and gives what is put under their key.
    fn append_words(&mut self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, StorageError> {
        self.sound()?;
        let appended = words::user_of(key).and_then(|user| self.words.append(user, &[(key, value)]));
        let places = appended.map_err(|error| self.fail(error))?;
        Ok(places.into_iter().flat_map(Place::encode).collect())
    }

    /// What was put under a key is not there any more. Words of it still are.
    fn note_removed(
        &mut self,
        table: Table,
        key: &[u8],
        held: Option<sled::IVec>,
    ) -> Result<(), StorageError> {
        match held {
            Some(place) if table == Table::Words => {
                self.words.note_removed(key, &place).map_err(|error| self.fail(error))
            }
            _ => Ok(()),
        }
    }

    /// Every entry from `from` on, until `each` returns false.
    fn walk(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let mut entries = self.guarded("scan", table, |tree| Ok(tree.range(from..)))?;
        let mut words = self.words.reader();
        while let Some((key, held)) = self.guarded("scan", table, |_| entries.next().transpose())? {
            if !each(&key, &self.value((table, &mut words), &key, &held)?) {
                break;
            }
        }
        Ok(())
    }
}

fn identity(id: [u8; 16]) -> Vec<u8> {
    [&FORMAT.to_be_bytes()[..], &id[..]].concat()
}

impl Storage for SledIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let held = self.guarded("read", table, |tree| tree.get(key))?;
        let value =
            |held: sled::IVec| self.value((table, &mut self.words.reader()), key, &held).map(Cow::into_owned);
        held.map(value).transpose()
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        let held = match table {
            Table::Words => self.append_words(key, value)?,
            _ => seal(key, value),
        };
        let before = self.guarded("write", table, |tree| tree.insert(key, held))?;
        self.note_removed(table, key, before)
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError> {
        let before = self.guarded("remove", table, |tree| tree.remove(key))?;
        self.note_removed(table, key, before)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StorageError> {
        self.walk(table, prefix, &mut |key, value| {
            let below = key.starts_with(prefix);
            if below {
                each(key, value);
            }
            below
        })
    }

    fn scan_from(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        self.walk(table, from, each)
    }

    /// All of it belongs to one journal record. Whoever kills us half-way leaves an index that was cut short, and in doubt;
    /// one that forgets the end of it, as sled does with what it has not handed over yet, finds its file missing.
    fn shred(&mut self, table: Table, prefix: &[u8]) -> Result<(), StorageError> {
        if table != Table::Words {
            return Ok(());
        }
        self.sound()?;
        let user = words::user_of(prefix)?;
        // One file after the other, so that no more room is needed than one of them takes.
        for (number, left) in self.left_to_move(user)? {
            let places = self.words.move_out(user, &left).map_err(|error| self.fail(error))?;
            for ((key, _), place) in left.iter().zip(places) {
                self.guarded("write", table, |tree| tree.insert(key, &place.encode()))?;
            }
            self.words.discard(user, number).map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    fn distrust(&self, error: StorageError) -> StorageError {
        self.fail(error)
    }
}

fn failed(verb: &'static str, table: Table, error: &sled::Error) -> StorageError {
    StorageError { verb, table, reason: error.to_string(), trouble: trouble(error) }
}

pub(super) fn trouble(error: &sled::Error) -> Trouble {
    match error {
        sled::Error::Io(error) => passing::trouble(error),
        _ => Trouble::Contents,
    }
}

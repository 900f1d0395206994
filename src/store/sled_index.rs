//! The index tables in sled: what decisions are read from, and what can always be made again from the journal.
//!
//! sled 0.34 may fail late, panic in `open`, or lose keys without a word. So every value carries a checksum of its own,
//! the index says which journal it belongs to and how far it has come, and any doubt at all makes the folder move
//! aside under a dated name. Nothing here is ever repaired. A disk that is full or closed to us puts nothing in doubt:
//! the folder stays, and is opened again later.
//!
//! The first failure is final for the handle, as it is for sled's own: nothing is read from it any more.

use super::passing::passes;
use crate::index::FORMAT;
use crate::index::storage::{Storage, StorageError, Table, Trouble};
use crate::world::digest;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

// The first one holds what the index says of itself.
const TABLES: [(Table, &str); 18] = [
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
];

const IDENTITY: &[u8] = b"identity";
const APPLIED: &[u8] = b"applied";
const APPLYING: &[u8] = b"applying";
const CHECKSUM_BYTES: usize = 8;

/// How long sled may take to open before it counts as hung. (Seen in the field: minutes.)
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// What sled may keep in memory. Decisions read a few hot values; a million files are looked at once and then left alone.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// How long to wait for sled's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The index tables.
pub struct SledIndex {
    trees: Vec<sled::Tree>,
    db: sled::Db,
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
        let mut index = open_apart(folder, OPEN_TIMEOUT)?;
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
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        let tree = &self.trees[table as usize];
        match catch_unwind(AssertUnwindSafe(|| call(tree))) {
            Ok(Ok(given)) => Ok(given),
            Ok(Err(error)) => Err(self.fail(failed(verb, table, &error))),
            Err(_) => Err(self.fail(StorageError::contents(verb, table, "sled panicked"))),
        }
    }

    fn fail(&self, error: StorageError) -> StorageError {
        self.failure.get_or_init(|| error).clone()
    }

    fn unsealed<'sealed>(
        &self,
        table: Table,
        key: &[u8],
        sealed: &'sealed [u8],
    ) -> Result<&'sealed [u8], StorageError> {
        open_seal(key, sealed).map_err(|why| self.fail(StorageError::contents("read", table, why)))
    }

    /// Every entry from `from` on, until `each` returns false.
    fn walk(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let mut entries = self.guarded("scan", table, |tree| Ok(tree.range(from..)))?;
        while let Some((key, sealed)) = self.guarded("scan", table, |_| entries.next().transpose())? {
            if !each(&key, self.unsealed(table, &key, &sealed)?) {
                break;
            }
        }
        Ok(())
    }
}

/// sled may panic or hang in `open`; both happen on a thread that nobody depends on.
fn open_apart(folder: &Path, timeout: Duration) -> Result<SledIndex, Doubt> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = folder.to_owned();
    let open = move || {
        let opened = catch_unwind(AssertUnwindSafe(|| open_patiently(&path)));
        // Nobody listens any more when it took too long.
        let _ = sender.send(opened);
    };
    let spawned = std::thread::Builder::new().name("sled-open".to_owned()).spawn(open);
    spawned.map_err(|error| Doubt {
        reason: format!("no thread to open it on: {error}"),
        trouble: Trouble::Disk,
        hangs: false,
    })?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(Ok(index))) => Ok(index),
        Ok(Ok(Err(error))) => {
            Err(Doubt { trouble: trouble(&error), reason: error.to_string(), hangs: false })
        }
        Ok(Err(_)) => Err(Doubt::contents("sled panicked while opening it")),
        Err(_) => {
            let reason = format!("sled did not open it within {} s", timeout.as_secs());
            Err(Doubt { hangs: true, ..Doubt::contents(reason) })
        }
    }
}

/// sled's own lock may outlive its owner a moment: in a thread that is flushing, or in a child that has not yet executed.
/// The state is claimed already, so whoever holds it is going away.
fn open_patiently(folder: &Path) -> sled::Result<SledIndex> {
    let begun = Instant::now();
    loop {
        match open_here(folder) {
            Err(error) if is_locked(&error) && begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// sled tells a held lock by its text alone.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

fn open_here(folder: &Path) -> sled::Result<SledIndex> {
    let db = sled::Config::new().path(folder).cache_capacity(CACHE_BYTES).flush_every_ms(Some(500)).open()?;
    let trees = TABLES.iter().map(|(_, name)| db.open_tree(name)).collect::<sled::Result<_>>()?;
    Ok(SledIndex { trees, db, failure: OnceLock::new() })
}

fn identity(id: [u8; 16]) -> Vec<u8> {
    [&FORMAT.to_be_bytes()[..], &id[..]].concat()
}

impl Storage for SledIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let held = self.guarded("read", table, |tree| tree.get(key))?;
        held.map(|sealed| self.unsealed(table, key, &sealed).map(<[u8]>::to_vec)).transpose()
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.guarded("write", table, |tree| tree.insert(key, seal(key, value))).map(drop)
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError> {
        self.guarded("remove", table, |tree| tree.remove(key)).map(drop)
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

    fn distrust(&self, error: StorageError) -> StorageError {
        self.fail(error)
    }
}

/// The checksum covers the key too: a value under the wrong key is as wrong as a wrong value.
fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&digest::blake3_of([key, value]).as_bytes()[..CHECKSUM_BYTES]);
    sum
}

fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(value.len() + CHECKSUM_BYTES);
    sealed.extend_from_slice(&checksum(key, value));
    sealed.extend_from_slice(value);
    sealed
}

fn open_seal<'sealed>(key: &[u8], sealed: &'sealed [u8]) -> Result<&'sealed [u8], &'static str> {
    let (sum, value) = sealed.split_at_checked(CHECKSUM_BYTES).ok_or("a value is cut short")?;
    if sum == checksum(key, value) { Ok(value) } else { Err("a value's checksum is wrong") }
}

fn failed(verb: &'static str, table: Table, error: &sled::Error) -> StorageError {
    StorageError { verb, table, reason: error.to_string(), trouble: trouble(error) }
}

fn trouble(error: &sled::Error) -> Trouble {
    match error {
        sled::Error::Io(error) if passes(error) => Trouble::Disk,
        _ => Trouble::Contents,
    }
}

#[cfg(test)]
mod tests {
    use super::{SledIndex, open_apart};
    use crate::index::storage::{Storage, Table};
    use std::time::Duration;

    #[test]
    fn a_folder_in_which_sled_hangs_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::from(0o600);
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.path().join("conf"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        );
        made.unwrap();
        let doubt = open_apart(folder.path(), Duration::from_millis(200)).err().expect("nobody writes to it");
        assert!(doubt.hangs, "{doubt:?}");
        std::fs::write(folder.path().join("conf"), "garbage").unwrap();
    }

    #[test]
    fn a_value_that_was_not_written_under_its_key_is_never_read() {
        let folder = tempfile::tempdir().unwrap();
        let (mut index, _) = SledIndex::open(&folder.path().join("index"), [7; 16]).unwrap();
        index.put(Table::Rows, b"key", b"value").unwrap();
        assert_eq!(index.get(Table::Rows, b"key").unwrap().as_deref(), Some(&b"value"[..]));
        let tree = index.trees[Table::Rows as usize].clone();
        let sealed = tree.get(b"key").unwrap().unwrap().to_vec();
        let flipped = |at: usize| {
            let mut bytes = sealed.clone();
            bytes[at] ^= 1;
            bytes
        };
        let wrong = (0..sealed.len()).map(|at| (&b"key"[..], flipped(at)));
        let wrong = wrong.chain([(&b"other"[..], sealed.clone()), (&b"key"[..], sealed[..5].to_vec())]);
        for (key, bytes) in wrong {
            tree.insert(key, bytes.clone()).unwrap();
            index.failure.take();
            assert!(index.get(Table::Rows, key).is_err(), "{key:?} {bytes:?}");
            index.failure.take();
            assert!(index.scan(Table::Rows, key, &mut |_, _| {}).is_err(), "{key:?} {bytes:?}");
        }
    }
}

//! Forks, kept beside the sessions that they rest on: the index knows them by id, and reads no more of them.
//!
//! Promise: none is lost without a word. How many there are stands apart from them, so a storage that lost one is found out
//! by whoever lists them.

use super::Index;
use super::storage::{Storage, StorageError, Table};

const COUNT: &[u8] = b"forks";

impl<S: Storage> Index<S> {
    /// Sets what is known of a fork.
    pub fn put_fork(&mut self, id: &str, record: &[u8]) -> Result<(), StorageError> {
        if self.fork(id)?.is_none() {
            let known = self.forks_len()?;
            self.storage_mut().put(Table::Meta, COUNT, &(known + 1).to_be_bytes())?;
        }
        self.storage_mut().put(Table::Forks, id.as_bytes(), record)
    }

    /// Forgets a fork; one that is not there is forgotten already.
    pub fn remove_fork(&mut self, id: &str) -> Result<(), StorageError> {
        if self.fork(id)?.is_none() {
            return Ok(());
        }
        let known = self.forks_len()?;
        self.storage_mut().put(Table::Meta, COUNT, &known.saturating_sub(1).to_be_bytes())?;
        self.storage_mut().remove(Table::Forks, id.as_bytes())
    }

    /// What is known of a fork.
    pub fn fork(&self, id: &str) -> Result<Option<Vec<u8>>, StorageError> {
        self.storage().get(Table::Forks, id.as_bytes())
    }

    /// What is known of every fork, in the order of their ids.
    pub fn forks(&self) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut records = Vec::new();
        self.storage().scan(Table::Forks, &[], &mut |_, record| records.push(record.to_vec()))?;
        let known = self.forks_len()?;
        if records.len() as u64 == known {
            return Ok(records);
        }
        let reason = format!("{} forks where {known} must be", records.len());
        Err(self.storage().distrust(StorageError::contents("count", Table::Forks, reason)))
    }

    fn forks_len(&self) -> Result<u64, StorageError> {
        let Some(bytes) = self.storage().get(Table::Meta, COUNT)? else { return Ok(0) };
        let bytes = bytes.as_slice().try_into();
        bytes
            .map(u64::from_be_bytes)
            .map_err(|_| StorageError::contents("count", Table::Meta, "not eight bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::storage::Memory;

    #[test]
    fn a_fork_that_is_lost_without_a_word_is_missed() {
        let mut index = Index::open(Memory::default(), "e").unwrap();
        for id in ["a", "b", "a"] {
            index.put_fork(id, id.as_bytes()).unwrap();
        }
        assert_eq!(index.forks().unwrap(), [b"a", b"b"]);
        index.storage_mut().remove(Table::Forks, b"a").unwrap();
        assert!(index.forks().is_err());
        let mut index = Index::open(Memory::default(), "e").unwrap();
        index.put_fork("a", b"a").unwrap();
        index.remove_fork("a").unwrap();
        index.remove_fork("a").unwrap();
        assert!(index.forks().unwrap().is_empty());
    }
}

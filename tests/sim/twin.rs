//! The storage's evil twin: on demand it fails at its n-th operation, as a process does that ends there.

use staled::index::storage::{Memory, Storage, StorageError, Table};
use std::cell::Cell;

#[derive(Debug, Default)]
pub(super) struct Twin {
    memory: Memory,
    left: Cell<u32>,
    failed: Cell<bool>,
}

impl Twin {
    /// An empty one that fails at this operation; 0 is never.
    pub(super) fn failing_at(operation: u32) -> Self {
        Self { left: Cell::new(operation), ..Self::default() }
    }

    /// Whether it has failed since the last time.
    pub(super) fn take_failure(&self) -> bool {
        self.failed.replace(false)
    }

    /// Fails at this operation from now on; 0 is never.
    pub(super) fn fail_after(&mut self, operations: u32) {
        self.left.set(operations);
    }

    /// What the next process finds.
    pub(super) fn after_the_end(&self) -> Self {
        Self { memory: self.memory.clone(), ..Self::default() }
    }

    pub(super) fn len(&self, table: Table) -> usize {
        let mut len = 0;
        self.memory.scan(table, &[], &mut |_, _| len += 1).expect("memory does not fail");
        len
    }

    fn operate(&self, verb: &'static str, table: Table) -> Result<(), StorageError> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        self.failed.set(self.failed.get() || left == 1);
        if left == 1 { Err(StorageError::contents(verb, table, "the twin is evil")) } else { Ok(()) }
    }
}

impl Storage for Twin {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.operate("get", table)?;
        self.memory.get(table, key)
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.operate("put", table)?;
        self.memory.put(table, key, value)
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StorageError> {
        self.operate("remove", table)?;
        self.memory.remove(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StorageError> {
        self.operate("scan", table)?;
        self.memory.scan(table, prefix, each)
    }
    fn scan_from(
        &self,
        table: Table,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        self.operate("scan", table)?;
        self.memory.scan_from(table, from, each)
    }
}

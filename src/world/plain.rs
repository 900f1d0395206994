//! Looking at everything once, with no watch behind it: true of this moment, and of no later one.

use super::look::LookOptions;
use super::rescan;
use crate::index::storage::{Storage, StorageError};
use crate::index::{Check, Index, Settled};
use crate::session::moment::Moment;

/// Answers these checks, and those that follow from the answers, until nothing is left to look at.
pub fn settle_plainly(
    index: &mut Index<impl Storage>,
    checks: Vec<Check>,
    at: Moment,
    options: &LookOptions,
) -> Result<(), StorageError> {
    let mut checks = checks;
    // A look at a folder of a tree may bring others below it.
    while !checks.is_empty() {
        let answer = |check: &Check| Settled {
            source: check.source,
            stamp: check.stamp,
            found: rescan(check, options),
        };
        index.settle(checks.iter().map(answer).collect(), at)?;
        checks = index.orders()?;
    }
    Ok(())
}

//! Which failures of a disk pass by themselves: space comes back, a descriptor is closed, a filesystem is writable again.
//!
//! After them what was written still stands, so nothing is set aside: the same thing is tried again later. A medium that
//! fails (`EIO`) is not among them.

use crate::index::storage::Trouble;
use std::io::{Error, ErrorKind};

/// Too many open files: of the process, and of the system.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];

/// Whether space is all that is wanted.
fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// What this failure puts in doubt.
pub(super) fn trouble(error: &Error) -> Trouble {
    match error {
        error if is_full(error) => Trouble::Full,
        error if passes(error) => Trouble::Disk,
        _ => Trouble::Contents,
    }
}

pub(super) fn passes(error: &Error) -> bool {
    let closed = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::OutOfMemory
    );
    closed || is_full(error) || error.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
}

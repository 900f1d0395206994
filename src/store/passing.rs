//! Which failures of a disk pass by themselves: space comes back, a descriptor is closed, a filesystem is writable again.
//!
//! After them what was written still stands, so nothing is set aside: the same thing is tried again later. A medium that
//! fails (`EIO`) is not among them.

use std::io::{Error, ErrorKind};

/// Too many open files: of the process, and of the system.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];

/// Whether space is all that is wanted.
pub(super) fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

pub(super) fn passes(error: &Error) -> bool {
    let closed = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::OutOfMemory
    );
    closed || is_full(error) || error.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
}

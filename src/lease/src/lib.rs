//! One question to the kernel: does anybody hold this file open, or mapped, for writing?
//!
//! A crate of its own because the answer costs one `unsafe` call that no safe crate offers, and `staled` itself forbids
//! `unsafe`. Nothing else belongs here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The same number on every architecture that Linux runs on and Rust supports; the crate libc does not have it.
const F_SETSIG: libc::c_int = 10;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Nobody held the file open or mapped for writing at that moment.
    Nobody,
    /// Somebody did, or was just opening it for writing.
    Somebody,
    /// The kernel does not say: the file is another user's and we have no `CAP_LEASE`, or its filesystem has no leases.
    Untold,
}

/// Asks by taking a read lease, which the kernel refuses exactly while a writer exists, and giving it back at once.
/// `file` must have been opened for reading only.
///
/// Whoever opens the file for writing in the microsecond between waits for its end, and with `O_NONBLOCK` is told
/// `EWOULDBLOCK`. The kernel then signals the holder, which is us; `SIGIO`, its usual choice, would end the process. So
/// another is chosen for this file, which does nothing unless somebody asks for it.
#[must_use]
pub fn writer(file: &File) -> Writer {
    if set(file, F_SETSIG, libc::SIGURG).is_err() {
        return Writer::Untold;
    }
    match set(file, libc::F_SETLEASE, libc::F_RDLCK.into()) {
        Ok(()) => {
            // It cannot fail for the one who holds the lease; if it did, closing the file would give it back.
            let _ = set(file, libc::F_SETLEASE, libc::F_UNLCK.into());
            Writer::Nobody
        }
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Writer::Somebody,
        Err(_) => Writer::Untold,
    }
}

fn set(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the file is open for the whole call, and these commands take a number and touch no memory of ours.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

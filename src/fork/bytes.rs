//! The bytes of one file into another, and whose fault it is when that fails.

use super::copy::Miss;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};

/// Copies all in the kernel, as far as it can; whether that was all of it.
pub(super) fn by_kernel(source: &File, made: &File, size: u64) -> Result<bool, Miss> {
    let mut left = size;
    while left > 0 {
        match rustix::fs::copy_file_range(source, None, made, None, left.min(1 << 30) as usize) {
            // Some filesystems copy nothing and say nothing: by hand is seen whether this is the end.
            Ok(0) => return Ok(false),
            Ok(copied) => left = left.saturating_sub(copied as u64),
            Err(Errno::INTR) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                return Err(Miss::Failed(error.into()));
            }
            // By hand is seen whose fault it is. Both files stand where it stopped.
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// Copies what is left of it.
pub(super) fn by_hand(source: &mut File, made: &mut File, size: u64, buffer: &mut [u8]) -> Result<(), Miss> {
    let mut copied = 0;
    loop {
        let read = match source.read(buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(Miss::Left("unreadable")),
        };
        made.write_all(&buffer[..read]).map_err(Miss::Failed)?;
        copied += read as u64;
        // A file that grew meanwhile is seen by its times, so its end need not be read once more.
        if read == 0 || copied >= size {
            return Ok(());
        }
    }
}

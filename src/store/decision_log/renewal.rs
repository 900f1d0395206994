//! Going on in a copy of the file, under the same name: for one whose sync failed before anything in it was relied on.
//!
//! Promise: the copy has every line of the file, each compared with the chain first, for what a sync lost may read as if
//! it had never been written. There is no moment without a file under the log's name, and the chain stays whole.

use super::{DecisionLog, LogError, Receipt, io_error, line, whole, with_suffix, write_fresh};
use std::fs;
use std::os::unix::fs::FileExt;

impl DecisionLog {
    /// Puts a copy of the file, with `object` as its last line, in the file's place. It is on disk when this returns. A
    /// file that is not as it was written [ends](LogError::ends_the_file); it is left by [`DecisionLog::rotate`].
    pub fn renew(&mut self, object: &str) -> Result<Receipt, LogError> {
        let mut bytes = self.checked_bytes()?;
        let mut last = Vec::new();
        let receipt = line::seal(object, &self.last, &mut last).ok_or(LogError::NotAnObject)?;
        bytes.append(&mut last);
        let fresh = with_suffix(&self.path, ".new");
        let file = write_fresh(&fresh, &bytes).map_err(|source| io_error("create", &fresh, source))?;
        fs::rename(&fresh, &self.path).map_err(|source| io_error("renew", &self.path, source))?;
        (self.file, self.end, self.last) = (file, bytes.len() as u64, receipt.clone());
        whole::sync_folder_of(&self.path)
            .map_err(|source| io_error("sync the folder of", &self.path, source))?;
        Ok(receipt)
    }

    fn checked_bytes(&self) -> Result<Vec<u8>, LogError> {
        self.check_sound()?;
        let damaged = |at_byte, why| LogError::Damaged { path: self.path.clone(), at_byte, why };
        self.check_ours().map_err(|_| damaged(0, "it was renamed away"))?;
        let mut bytes = vec![0; usize::try_from(self.end).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, 0).map_err(|source| io_error("read", &self.path, source))?;
        let (mut at_byte, mut before) = (0, None);
        for text in bytes.split_inclusive(|&byte| byte == b'\n') {
            let link = line::check(text.trim_ascii_end()).map_err(|why| damaged(at_byte, why))?;
            if before.is_some_and(|before| before != link.follows()) {
                return Err(damaged(at_byte, "it does not follow the line before"));
            }
            before = Some(link.receipt());
            at_byte += text.len() as u64;
        }
        match before {
            Some(last) if last == self.last => Ok(bytes),
            _ => Err(damaged(self.end, "its last line is not the one that was appended last")),
        }
    }
}

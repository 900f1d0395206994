//! Reads values, and believes only what was written under their key.

use super::{Place, Words, failed, user_of, wrong};
use crate::index::storage::StorageError;
use crate::store::seal::checksum;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// For one call: it keeps the file open that it read last.
pub(in crate::store) struct Reader<'words> {
    words: &'words Words,
    open: Option<Opened>,
}

struct Opened {
    user: u32,
    number: u32,
    file: File,
    length: u64,
}

impl<'words> Reader<'words> {
    pub(super) fn of(words: &'words Words) -> Self {
        Self { words, open: None }
    }

    /// The value under this key, which stands where `place` says.
    pub(in crate::store) fn read(&mut self, key: &[u8], place: &[u8]) -> Result<Vec<u8>, StorageError> {
        self.read_at(key, Place::decode(place)?)
    }

    pub(super) fn read_at(&mut self, key: &[u8], place: Place) -> Result<Vec<u8>, StorageError> {
        let (user, number) = (user_of(key)?, place.number);
        let path = self.words.path(user, number);
        let failed = |error: io::Error| failed("read", &path, &error);
        let open = match self.open.take() {
            Some(open) if (open.user, open.number) == (user, number) => open,
            _ => Opened::open(user, number, &path).map_err(failed)?,
        };
        let open = self.open.insert(open);
        // Looked at first, so that a length that was never written is not made room for.
        if place.end() > open.length {
            return Err(wrong(format!("{} ends before a value does", path.display())));
        }
        let mut value = vec![0; place.length as usize];
        open.file.read_exact_at(&mut value, place.offset).map_err(failed)?;
        if checksum(key, &value) == place.sum { Ok(value) } else { Err(wrong("a value's checksum is wrong")) }
    }
}

impl Opened {
    fn open(user: u32, number: u32, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { user, number, file, length })
    }
}

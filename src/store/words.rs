//! Words of the memory, beside sled: whatever a user may want forgotten.
//!
//! sled never overwrites what was removed, so old pages keep its bytes. It holds only where a value of
//! [`Table::Words`] stands; the bytes themselves are in one file a user, which is only appended to until a new generation
//! of it is written without what was removed, and the old one is removed.
//!
//! Promise: what is read is what was written under its key, or there is an error; a file that is missing, short, or holds
//! something else puts the index in doubt like any damage to it. What a kill left of another generation is gone with the
//! next opening, before anything is read.
//!
//! Absent: any sync. The journal is the truth. What a power cut takes is missed when it is read, and made again from
//! there.
//!
//! ```text
//! words/<user>-<generation>                                   values, one behind the other
//! generation u32 | offset u64 | length u32 | checksum 8       24 bytes in sled under the value's key, big endian
//! ```

use super::passing::passes;
use super::seal::{CHECKSUM_BYTES, checksum};
use super::whole::write_once;
use crate::index::storage::{StorageError, Table, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PLACE_BYTES: usize = 16 + CHECKSUM_BYTES;
const USER_BYTES: usize = 4;

/// What is written at once when a user's file is written anew.
const BUFFER_BYTES: usize = 256 * 1024;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) generation: u32,
    offset: u64,
    length: u32,
    sum: [u8; CHECKSUM_BYTES],
}

impl Place {
    pub(super) fn encode(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..4].copy_from_slice(&self.generation.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.offset.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sum);
        bytes
    }

    /// It needs no seal of its own: bytes that it does not stand for are not those of the checksum.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StorageError> {
        let bytes: &[u8; PLACE_BYTES] =
            bytes.try_into().map_err(|_| wrong("where it stands is cut short"))?;
        let (mut generation, mut offset, mut length, mut sum) = ([0; 4], [0; 8], [0; 4], [0; CHECKSUM_BYTES]);
        generation.copy_from_slice(&bytes[..4]);
        offset.copy_from_slice(&bytes[4..12]);
        length.copy_from_slice(&bytes[12..16]);
        sum.copy_from_slice(&bytes[16..]);
        let (generation, length) = (u32::from_be_bytes(generation), u32::from_be_bytes(length));
        Ok(Self { generation, offset: u64::from_be_bytes(offset), length, sum })
    }
}

/// The number of the user whose words stand under this key.
pub(super) fn user_of(key: &[u8]) -> Result<u32, StorageError> {
    let user = key.first_chunk::<USER_BYTES>().ok_or_else(|| wrong("a key names no user"))?;
    Ok(u32::from_be_bytes(*user))
}

/// The files of all users. No descriptor is kept: opening one costs a few microseconds, and there may be many users.
pub(super) struct Words {
    folder: PathBuf,
    /// Which generation of a user's file values are in, and appended to.
    generations: BTreeMap<u32, u32>,
}

impl Words {
    /// In the folder of the index, so that what sets it aside moves both. Knows no file before [`Words::settle`].
    pub(super) fn of(index: &Path) -> Self {
        Self { folder: index.join("words"), generations: BTreeMap::new() }
    }

    /// Keeps the files that these users' values are in, and removes everything else.
    pub(super) fn settle(&mut self, generations: BTreeMap<u32, u32>) -> Result<(), StorageError> {
        self.make_folder().map_err(|error| failed("open", &self.folder, &error))?;
        let mut missing: BTreeSet<String> = generations.iter().map(name).collect();
        let found = fs::read_dir(&self.folder).map_err(|error| failed("open", &self.folder, &error))?;
        for entry in found {
            let kept = entry.and_then(|entry| {
                let is_file = entry.file_type()?.is_file();
                let kept = is_file && missing.remove(entry.file_name().to_string_lossy().as_ref());
                if kept { Ok(()) } else { remove(&entry.path()) }
            });
            kept.map_err(|error| failed("open", &self.folder, &error))?;
        }
        if !missing.is_empty() {
            return Err(wrong(format!("the files {missing:?} are missing")));
        }
        self.generations = generations;
        Ok(())
    }

    fn make_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            // What a link leads to is not ours to remove files from.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && self.folder.symlink_metadata()?.is_dir() =>
            {
                Ok(())
            }
            made => made,
        }
    }

    /// Writes a value at the end of its user's file.
    pub(super) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<Place, StorageError> {
        let user = user_of(key)?;
        let generation = *self.generations.entry(user).or_default();
        let path = self.path(user, generation);
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let appended = options.open(&path).and_then(|mut file| {
            write_once(&mut file, value)?;
            file.stream_position()
        });
        let end = appended.map_err(|error| failed("write", &path, &error))?;
        place(generation, end, key, value)
    }

    /// For one call: it keeps the file open that it read last.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { words: self, open: None }
    }

    /// Writes the values that a user has left into a new generation, and says where they stand there. None left make no
    /// file.
    pub(super) fn rewrite(
        &mut self,
        user: u32,
        left: Vec<(Vec<u8>, Place)>,
    ) -> Result<Vec<(Vec<u8>, Place)>, StorageError> {
        let generation = self.generations.get(&user).copied().unwrap_or_default();
        let next = generation.checked_add(1).ok_or_else(|| wrong("there is no generation left"))?;
        let moved = if left.is_empty() { left } else { self.write_anew(&self.path(user, next), next, left)? };
        self.generations.insert(user, next);
        Ok(moved)
    }

    fn write_anew(
        &self,
        path: &Path,
        generation: u32,
        mut left: Vec<(Vec<u8>, Place)>,
    ) -> Result<Vec<(Vec<u8>, Place)>, StorageError> {
        let failed = |error: io::Error| failed("write", path, &error);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let (mut file, mut end) = (BufWriter::with_capacity(BUFFER_BYTES, file), 0);
        let mut reader = self.reader();
        for (key, at) in &mut left {
            let value = reader.read_at(key, *at)?;
            file.write_all(&value).map_err(failed)?;
            end += value.len() as u64;
            *at = place(generation, end, key, &value)?;
        }
        file.flush().map_err(failed)?;
        Ok(left)
    }

    /// Removes the generation before the one that a user's values are in.
    pub(super) fn remove_before(&self, user: u32) -> Result<(), StorageError> {
        let before = self.generations.get(&user).and_then(|generation| generation.checked_sub(1));
        let Some(before) = before else { return Ok(()) };
        let path = self.path(user, before);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path, &error)),
            _ => Ok(()),
        }
    }

    fn path(&self, user: u32, generation: u32) -> PathBuf {
        self.folder.join(name((&user, &generation)))
    }
}

/// Reads values.
pub(super) struct Reader<'words> {
    words: &'words Words,
    open: Option<Opened>,
}

struct Opened {
    user: u32,
    generation: u32,
    file: File,
    length: u64,
}

impl Reader<'_> {
    /// The value under this key, which stands where `place` says.
    pub(super) fn read(&mut self, key: &[u8], place: &[u8]) -> Result<Vec<u8>, StorageError> {
        self.read_at(key, Place::decode(place)?)
    }

    fn read_at(&mut self, key: &[u8], place: Place) -> Result<Vec<u8>, StorageError> {
        let (user, generation) = (user_of(key)?, place.generation);
        let path = self.words.path(user, generation);
        let failed = |error: io::Error| failed("read", &path, &error);
        let open = match self.open.take() {
            Some(open) if (open.user, open.generation) == (user, generation) => open,
            _ => Opened::open(user, generation, &path).map_err(failed)?,
        };
        let open = self.open.insert(open);
        let end = place.offset.checked_add(u64::from(place.length));
        // Looked at first, so that a length that was never written is not made room for.
        if end.is_none_or(|end| end > open.length) {
            return Err(wrong(format!("{} ends before a value does", path.display())));
        }
        let mut value = vec![0; place.length as usize];
        open.file.read_exact_at(&mut value, place.offset).map_err(failed)?;
        if checksum(key, &value) == place.sum { Ok(value) } else { Err(wrong("a value's checksum is wrong")) }
    }
}

impl Opened {
    fn open(user: u32, generation: u32, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { user, generation, file, length })
    }
}

fn name((user, generation): (&u32, &u32)) -> String {
    format!("{user}-{generation}")
}

/// Whatever it is.
fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn place(generation: u32, end: u64, key: &[u8], value: &[u8]) -> Result<Place, StorageError> {
    let length = u32::try_from(value.len()).map_err(|_| wrong("a value is too long"))?;
    Ok(Place { generation, offset: end - u64::from(length), length, sum: checksum(key, value) })
}

fn wrong(reason: impl Into<String>) -> StorageError {
    StorageError::contents("read", Table::Words, reason)
}

fn failed(verb: &'static str, path: &Path, error: &io::Error) -> StorageError {
    let trouble = if passes(error) { Trouble::Disk } else { Trouble::Contents };
    StorageError { verb, table: Table::Words, reason: format!("{}: {error}", path.display()), trouble }
}

//! Words of the memory, beside sled: whatever a user may want forgotten.
//!
//! sled never overwrites what was removed, so old pages keep its bytes. It holds only where a value of
//! [`Table::Words`] stands; the bytes themselves are in files of bounded length, each of one user. The latest of a user's is
//! appended to until the next value would make it too long. To forget something, only the files that hold something
//! removed are written anew: what else stands in them goes to the end of the latest, and they are removed. However much
//! the user has, no more is written than what stood beside it. Of everything else only the places are looked at.
//!
//! Promise: what is read is what was written under its key, or there is an error; a file that is missing, short, or holds
//! something else puts the index in doubt like any damage to it. What a kill left is gone with the next opening, before
//! anything is read: files that no value stands in at once, and what nobody stands for in the others when the user's
//! words are shredded next.
//!
//! Absent: any sync. The journal is the truth. What a power cut takes is missed when it is read, and made again from
//! there.
//!
//! ```text
//! words/<user>-<number>                                   values, one behind the other
//! number u32 | offset u64 | length u32 | checksum 8       24 bytes in sled under the value's key, big endian
//! ```

mod place;
mod reader;

pub(super) use place::{InUse, Place, user_of};
pub(super) use reader::Reader;

use super::passing::trouble;
use super::whole::write_once;
use crate::index::storage::{StorageError, Table};
use place::Extent;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How long a file gets before the next is begun. A value that is longer stands alone.
///
/// Whoever forgets something waits while one such file is written anew, and with 145 MB of words there are 145 of them.
const FILE_BYTES: u64 = 1 << 20;

/// A value with its key.
pub(super) type Value<'bytes> = (&'bytes [u8], &'bytes [u8]);

/// The files of all users. No descriptor is kept: opening one costs a few microseconds, and there may be many users.
pub(super) struct Words {
    folder: PathBuf,
    users: BTreeMap<u32, Files>,
}

/// The files of a user.
#[derive(Default)]
struct Files {
    /// Which one is appended to. None has a higher number, and no number comes twice while a process runs.
    latest: u32,
    /// Those that hold something removed.
    to_shred: BTreeSet<u32>,
}

impl Files {
    fn next(&mut self) -> Result<(), StorageError> {
        self.latest = self.latest.checked_add(1).ok_or_else(|| wrong("there is no number left"))?;
        Ok(())
    }
}

impl Words {
    /// In the folder of the index, so that what sets it aside moves both. Knows no file before [`Words::settle`].
    pub(super) fn of(index: &Path) -> Self {
        Self { folder: index.join("words"), users: BTreeMap::new() }
    }

    /// Keeps the files that values stand in, and removes everything else. A file that is longer than its values holds
    /// something removed, or something that was told and that sled has forgotten.
    pub(super) fn settle(&mut self, in_use: InUse) -> Result<(), StorageError> {
        self.make_folder().map_err(|error| failed("open", &self.folder, &error))?;
        let named = |((user, number), extent)| (name(user, number), (user, number, extent));
        let mut missing: BTreeMap<_, _> = in_use.into_files().into_iter().map(named).collect();
        let found = fs::read_dir(&self.folder).map_err(|error| failed("open", &self.folder, &error))?;
        for entry in found {
            let settled = entry.and_then(|entry| self.settle_one(&entry, &mut missing));
            settled.map_err(|error| failed("open", &self.folder, &error))?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<_> = missing.into_keys().collect();
        Err(wrong(format!("the files {missing:?} are missing, or end before their values do")))
    }

    fn settle_one(
        &mut self,
        entry: &DirEntry,
        missing: &mut BTreeMap<String, (u32, u32, Extent)>,
    ) -> io::Result<()> {
        let (name, metadata) = (entry.file_name(), entry.metadata()?);
        let (name, length) = (name.to_string_lossy(), metadata.len());
        let Some(&(user, number, Extent { values, end })) =
            missing.get(name.as_ref()).filter(|_| metadata.is_file())
        else {
            return remove(&entry.path());
        };
        if length < end.max(values) {
            return Ok(());
        }
        missing.remove(name.as_ref());
        let files = self.users.entry(user).or_default();
        files.latest = files.latest.max(number);
        if length > values {
            files.to_shred.insert(number);
        }
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

    /// Writes values at the end of their user's latest file and of those that follow it, and says where they stand there.
    pub(super) fn append(&mut self, user: u32, values: &[Value<'_>]) -> Result<Vec<Place>, StorageError> {
        let (mut places, mut left) = (Vec::with_capacity(values.len()), values);
        while !left.is_empty() {
            let number = self.users.entry(user).or_default().latest;
            left = append_to(&self.path(user, number), number, left, &mut places)?;
            if !left.is_empty() {
                self.users.entry(user).or_default().next()?;
            }
        }
        Ok(places)
    }

    /// For one call: it keeps the file open that it read last.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::of(self)
    }

    /// A value was removed, or replaced, that stood at this place.
    pub(super) fn note_removed(&mut self, key: &[u8], place: &[u8]) -> Result<(), StorageError> {
        let number = Place::decode(place)?.number;
        self.users.entry(user_of(key)?).or_default().to_shred.insert(number);
        Ok(())
    }

    /// The files of a user that hold something removed. Nothing is appended to them any more.
    pub(super) fn files_to_shred(&mut self, user: u32) -> Result<BTreeSet<u32>, StorageError> {
        let Some(files) = self.users.get_mut(&user) else { return Ok(BTreeSet::new()) };
        if files.to_shred.contains(&files.latest) {
            files.next()?;
        }
        Ok(files.to_shred.clone())
    }

    /// Writes again what is left in a file, and says where it stands now.
    pub(super) fn move_out(
        &mut self,
        user: u32,
        left: &[(Vec<u8>, Place)],
    ) -> Result<Vec<Place>, StorageError> {
        let mut reader = self.reader();
        let values = left.iter().map(|(key, at)| reader.read_at(key, *at));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let keys = left.iter().map(|(key, _)| key.as_slice());
        let values: Vec<_> = keys.zip(values.iter().map(Vec::as_slice)).collect();
        self.append(user, &values)
    }

    /// Removes a file that no value stands in any more.
    pub(super) fn discard(&mut self, user: u32, number: u32) -> Result<(), StorageError> {
        let path = self.path(user, number);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path, &error));
            }
            _ => {}
        }
        self.users.entry(user).or_default().to_shred.remove(&number);
        Ok(())
    }

    fn path(&self, user: u32, number: u32) -> PathBuf {
        self.folder.join(name(user, number))
    }
}

fn name(user: u32, number: u32) -> String {
    format!("{user}-{number}")
}

/// Writes as many values as the file has room for, and gives those that are left.
fn append_to<'values>(
    path: &Path,
    number: u32,
    mut values: &'values [Value<'values>],
    places: &mut Vec<Place>,
) -> Result<&'values [Value<'values>], StorageError> {
    let failed = |error: io::Error| failed("write", path, &error);
    let (mut file, mut end) = open_to_append(path).map_err(failed)?;
    let mut block = Vec::new();
    while let [(key, value), rest @ ..] = values {
        let longer = end + value.len() as u64;
        if end > 0 && longer > FILE_BYTES {
            break;
        }
        places.push(Place::of(number, longer, key, value)?);
        block.extend_from_slice(value);
        (end, values) = (longer, rest);
    }
    write_once(&mut file, &block).map_err(failed)?;
    Ok(values)
}

/// A file that may not be there yet, and how long it is.
fn open_to_append(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// Whatever it is.
fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn wrong(reason: impl Into<String>) -> StorageError {
    StorageError::contents("read", Table::Words, reason)
}

fn failed(verb: &'static str, path: &Path, error: &io::Error) -> StorageError {
    let trouble = trouble(error);
    StorageError { verb, table: Table::Words, reason: format!("{}: {error}", path.display()), trouble }
}

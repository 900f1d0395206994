//! Where a value stands, as sled keeps it, and what that says of the files together.

use super::wrong;
use crate::index::storage::StorageError;
use crate::store::seal::{CHECKSUM_BYTES, checksum};
use std::collections::BTreeMap;

const PLACE_BYTES: usize = 16 + CHECKSUM_BYTES;
const USER_BYTES: usize = 4;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Place {
    pub(in crate::store) number: u32,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) sum: [u8; CHECKSUM_BYTES],
}

impl Place {
    /// That of a value which ends there.
    pub(super) fn of(number: u32, end: u64, key: &[u8], value: &[u8]) -> Result<Self, StorageError> {
        let length = u32::try_from(value.len()).map_err(|_| wrong("a value is too long"))?;
        Ok(Self { number, offset: end - u64::from(length), length, sum: checksum(key, value) })
    }

    pub(in crate::store) fn encode(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..4].copy_from_slice(&self.number.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.offset.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sum);
        bytes
    }

    /// It needs no seal of its own: bytes that it does not stand for are not those of the checksum.
    pub(in crate::store) fn decode(bytes: &[u8]) -> Result<Self, StorageError> {
        let bytes: &[u8; PLACE_BYTES] =
            bytes.try_into().map_err(|_| wrong("where it stands is cut short"))?;
        let (mut number, mut offset, mut length, mut sum) = ([0; 4], [0; 8], [0; 4], [0; CHECKSUM_BYTES]);
        number.copy_from_slice(&bytes[..4]);
        offset.copy_from_slice(&bytes[4..12]);
        length.copy_from_slice(&bytes[12..16]);
        sum.copy_from_slice(&bytes[16..]);
        let (number, length) = (u32::from_be_bytes(number), u32::from_be_bytes(length));
        Ok(Self { number, offset: u64::from_be_bytes(offset), length, sum })
    }

    /// Of a place that nobody wrote it may be beyond anything.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }
}

/// The number of the user whose words stand under this key.
pub(in crate::store) fn user_of(key: &[u8]) -> Result<u32, StorageError> {
    let user = key.first_chunk::<USER_BYTES>().ok_or_else(|| wrong("a key names no user"))?;
    Ok(u32::from_be_bytes(*user))
}

/// Which files values stand in, by the places of all of them.
#[derive(Default)]
pub(in crate::store) struct InUse {
    /// By user and number.
    files: BTreeMap<(u32, u32), Extent>,
}

/// What stands in a file.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    /// How long its values are together.
    pub(super) values: u64,
    /// Where the last of them ends.
    pub(super) end: u64,
}

impl InUse {
    pub(in crate::store) fn add(&mut self, key: &[u8], place: &[u8]) -> Result<(), StorageError> {
        let place = Place::decode(place)?;
        let extent = self.files.entry((user_of(key)?, place.number)).or_default();
        extent.values += u64::from(place.length);
        extent.end = extent.end.max(place.end());
        Ok(())
    }

    pub(super) fn into_files(self) -> BTreeMap<(u32, u32), Extent> {
        self.files
    }
}

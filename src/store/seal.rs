//! Values that show whether they are what was written under their key.

use crate::world::digest;

pub(super) const CHECKSUM_BYTES: usize = 8;

/// The checksum covers the key too: a value under the wrong key is as wrong as a wrong value.
pub(super) fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&digest::blake3_of([key, value]).as_bytes()[..CHECKSUM_BYTES]);
    sum
}

pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(value.len() + CHECKSUM_BYTES);
    sealed.extend_from_slice(&checksum(key, value));
    sealed.extend_from_slice(value);
    sealed
}

pub(super) fn open_seal<'sealed>(key: &[u8], sealed: &'sealed [u8]) -> Result<&'sealed [u8], &'static str> {
    let (sum, value) = sealed.split_at_checked(CHECKSUM_BYTES).ok_or("a value is cut short")?;
    if sum == checksum(key, value) { Ok(value) } else { Err("a value's checksum is wrong") }
}

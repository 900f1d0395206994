//! Where a folder's entries are kept: by the dozen, in pages by the hash of their names.
//!
//! A small folder is one page, read and written at once; a large one has as many pages as keep each small, so that one
//! changed file does not write ten thousand. How many pages there are stands in their keys.

use super::entry::Entry;
use super::order::Names;
use crate::index::pack::{self, Pack};
use crate::index::shelf::source_key;
use crate::index::storage::{Storage, StorageError, Table};
use crate::index::{Index, SourceId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// About how many entries a page has.
const PAGE_LEN: usize = 32;
/// A folder has at most two to the power of this many pages.
const BITS_MAX: u8 = 15;

type Page = Vec<(OsString, Entry)>;

/// How many pages a folder of so many entries has, as a power of two.
fn bits_for(len: usize) -> u8 {
    let pages = len.div_ceil(PAGE_LEN).max(1);
    (pages.next_power_of_two().ilog2() as u8).min(BITS_MAX)
}

/// The page that a name is on: FNV-1a, which is stable and good enough to spread names.
fn page_of(name: &OsStr, bits: u8) -> u16 {
    let hash = name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    ((hash ^ hash >> 32) & ((1 << bits) - 1)) as u16
}

fn page_key(folder: SourceId, bits: u8, page: u16) -> Vec<u8> {
    [&source_key(folder)[..], &[bits], &page.to_be_bytes()].concat()
}

impl<S: Storage> Index<S> {
    /// Everything that is known of a folder.
    pub(in crate::index) fn entries(&self, id: SourceId) -> Result<BTreeMap<OsString, Entry>, StorageError> {
        let pages = self.shelf.list::<Page>(Table::Entries, &source_key(id))?;
        Ok(pages.into_iter().flat_map(|(_, page)| page).collect())
    }

    /// What is known of these names of a folder.
    pub(super) fn known_entries(
        &self,
        id: SourceId,
        names: &Names,
    ) -> Result<BTreeMap<OsString, Entry>, StorageError> {
        let bits = self.grove.folders.get(&id).and_then(|folder| folder.bits).filter(|_| !names.all);
        let Some(bits) = bits else { return self.entries(id) };
        let pages: BTreeSet<u16> = names.these.iter().map(|name| page_of(name, bits)).collect();
        let mut known = BTreeMap::new();
        for page in pages {
            let page: Option<Page> = self.shelf.get(Table::Entries, &page_key(id, bits, page))?;
            known.extend(page.into_iter().flatten().filter(|(name, _)| names.these.contains(name)));
        }
        Ok(known)
    }

    /// Keeps what stands under these names now. `whole` is all that there is, where that is known.
    pub(super) fn keep_entries(
        &mut self,
        id: SourceId,
        changes: &[(OsString, Option<Entry>, Option<Entry>)],
        whole: Option<usize>,
    ) -> Result<(), StorageError> {
        let held = match self.grove.folders.get(&id).and_then(|folder| folder.bits) {
            Some(bits) => Some(bits),
            None => self.stored_bits(id)?,
        };
        let bits = whole.map(bits_for).or(held);
        if bits.is_none() || bits != held {
            return self.lay_out(id, changes, bits);
        }
        let bits = bits.unwrap_or_default();
        if let Some(folder) = self.grove.folders.get_mut(&id) {
            folder.bits = Some(bits);
        }
        let touched: BTreeSet<u16> = changes.iter().map(|(name, ..)| page_of(name, bits)).collect();
        for number in touched {
            let key = page_key(id, bits, number);
            let mut page: BTreeMap<OsString, Entry> =
                self.shelf.get::<Page>(Table::Entries, &key)?.unwrap_or_default().into_iter().collect();
            let here = changes.iter().filter(|(name, ..)| page_of(name, bits) == number);
            here.for_each(|(name, _, new)| change(&mut page, name, new.as_ref()));
            self.put_page(&key, page)?;
        }
        Ok(())
    }

    /// How a folder was laid out before the start.
    fn stored_bits(&self, id: SourceId) -> Result<Option<u8>, StorageError> {
        let (prefix, mut bits) = (source_key(id), None);
        self.shelf.storage.scan_from(Table::Entries, &prefix, &mut |key, _| {
            bits = key.strip_prefix(&prefix[..]).and_then(|rest| rest.first().copied());
            false
        })?;
        Ok(bits)
    }

    /// Lays a folder's pages out anew.
    fn lay_out(
        &mut self,
        id: SourceId,
        changes: &[(OsString, Option<Entry>, Option<Entry>)],
        bits: Option<u8>,
    ) -> Result<(), StorageError> {
        let mut entries = self.entries(id)?;
        self.forget_entries(id)?;
        changes.iter().for_each(|(name, _, new)| change(&mut entries, name, new.as_ref()));
        let bits = bits.unwrap_or_else(|| bits_for(entries.len()));
        let mut pages: BTreeMap<u16, BTreeMap<OsString, Entry>> = BTreeMap::new();
        for (name, entry) in entries {
            pages.entry(page_of(&name, bits)).or_default().insert(name, entry);
        }
        for (number, page) in pages {
            self.put_page(&page_key(id, bits, number), page)?;
        }
        if let Some(folder) = self.grove.folders.get_mut(&id) {
            folder.bits = Some(bits);
        }
        Ok(())
    }

    fn put_page(&mut self, key: &[u8], page: BTreeMap<OsString, Entry>) -> Result<(), StorageError> {
        if page.is_empty() {
            return self.shelf.remove(Table::Entries, key);
        }
        self.shelf.put(Table::Entries, key, &page.into_iter().collect::<Page>())
    }

    /// Forgets everything that is known of a folder.
    pub(super) fn forget_entries(&mut self, id: SourceId) -> Result<(), StorageError> {
        let mut keys = Vec::new();
        self.shelf.storage.scan(Table::Entries, &source_key(id), &mut |key, _| keys.push(key.to_vec()))?;
        keys.iter().try_for_each(|key| self.shelf.remove(Table::Entries, key))
    }
}

fn change(entries: &mut BTreeMap<OsString, Entry>, name: &OsString, new: Option<&Entry>) {
    match new {
        Some(entry) => entries.insert(name.clone(), entry.clone()),
        None => entries.remove(name),
    };
}

impl Pack for OsString {
    fn pack(&self, out: &mut Vec<u8>) {
        pack::pack_bytes(self.as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        Some(OsStr::from_bytes(pack::unpack_bytes(input)?).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{bits_for, page_of};
    use std::collections::HashMap;
    use std::ffi::OsString;

    #[test]
    fn pages_stay_small_and_names_spread_over_them() {
        for (len, bits) in [(0, 0), (1, 0), (32, 0), (33, 1), (64, 1), (65, 2), (10_000, 9), (10_000_000, 15)]
        {
            assert_eq!(bits_for(len), bits, "{len}");
        }
        let mut pages: HashMap<u16, usize> = HashMap::new();
        for number in 0..10_000 {
            *pages.entry(page_of(&OsString::from(format!("file-{number:05}.rs")), 9)).or_default() += 1;
        }
        assert!(pages.values().all(|&len| len < 80) && pages.len() == 512, "{pages:?}");
    }
}

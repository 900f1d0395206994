//! The digest of a tree: one number that any member can be added to or taken from.
//!
//! Each member has a print, a 256-bit hash of its path, kind and bytes; the tree's digest is the hash of the sum of all
//! prints modulo 2^256 and of their number. So one changed file costs one addition and one subtraction whatever the size of
//! the tree, two trees of the same members have the same digest in whatever order they came, and a change taken back
//! gives the old digest again. (The sum of hashes is `AdHash` of Bellare and Micciancio, 1997.)

use super::entry::{Entry, EntryKind};
use crate::session::digest::Digest;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Hash of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Print(pub [u8; 32]);

impl Print {
    /// The print of the entry at `path` below the tree; `contents` says whether the bytes of files count.
    #[must_use]
    pub fn of(path: &Path, entry: &Entry, contents: bool) -> Self {
        let mut hasher = blake3::Hasher::new();
        let path = path.as_os_str().as_bytes();
        hasher.update(&[letter(entry, contents)]);
        hasher.update(&(path.len() as u64).to_be_bytes()).update(path);
        if let (true, Some(digest)) = (contents, &entry.digest) {
            hasher.update(digest.as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }
}

fn letter(entry: &Entry, contents: bool) -> u8 {
    match entry.kind {
        // Whoever may not read it has not read it; that it becomes readable is a change.
        EntryKind::File if contents && entry.digest.is_none() => b'u',
        EntryKind::File => b'f',
        EntryKind::Folder => b'd',
        EntryKind::Link => b'l',
        EntryKind::Other => b'o',
    }
}

/// The members of a tree, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    words: [u64; 4],
    members: u64,
}

impl Sum {
    /// How many members there are.
    #[must_use]
    pub(super) fn members(&self) -> u64 {
        self.members
    }

    /// One member more.
    pub(super) fn add(&mut self, print: Print) {
        let mut carry = false;
        for (word, other) in self.words.iter_mut().zip(words(print)) {
            let (sum, first) = word.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
        self.members += 1;
    }

    /// One member less.
    pub(super) fn take(&mut self, print: Print) {
        let mut borrow = false;
        for (word, other) in self.words.iter_mut().zip(words(print)) {
            let (rest, first) = word.overflowing_sub(other);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (rest, first || second);
        }
        self.members = self.members.saturating_sub(1);
    }

    /// The digest of the tree.
    #[must_use]
    pub(super) fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tree").update(&self.members.to_be_bytes());
        self.words.iter().for_each(|word| {
            hasher.update(&word.to_be_bytes());
        });
        Digest::blake3(*hasher.finalize().as_bytes())
    }
}

/// Least significant first.
fn words(print: Print) -> impl Iterator<Item = u64> {
    let words = |at: usize| print.0[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    [words(24), words(16), words(8), words(0)].into_iter()
}

#[cfg(test)]
mod tests {
    use super::{Print, Sum};

    #[test]
    fn what_was_added_can_be_taken_in_any_order() {
        let prints: Vec<Print> = (0..200_u8).map(|n| Print(*blake3::hash(&[n]).as_bytes())).collect();
        let mut sum = Sum::default();
        prints.iter().for_each(|&print| sum.add(print));
        let whole = sum.digest();
        let mut backwards = Sum::default();
        prints.iter().rev().for_each(|&print| backwards.add(print));
        assert_eq!(backwards.digest(), whole);
        prints[50..].iter().for_each(|&print| sum.take(print));
        assert_ne!(sum.digest(), whole);
        prints[50..].iter().rev().for_each(|&print| sum.add(print));
        assert_eq!(sum.digest(), whole);
        prints.iter().for_each(|&print| sum.take(print));
        assert_eq!(sum, Sum::default());
    }

    #[test]
    fn it_carries_and_borrows_through_all_words() {
        let mut sum = Sum::default();
        sum.add(Print([0xff; 32]));
        let mut one = [0; 32];
        one[31] = 1;
        sum.add(Print(one));
        assert_eq!(sum, Sum { words: [0; 4], members: 2 });
        sum.take(Print(one));
        assert_eq!(sum, Sum { words: [u64::MAX; 4], members: 1 });
    }
}

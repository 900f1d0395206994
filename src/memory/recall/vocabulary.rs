//! Every distinct term once, under a number.
//!
//! Most terms of a user stand in one observation only, so it is their own size that counts: their texts lie end to end in
//! one string, and a table finds them by hash (open addressing, linear probing, at most three quarters full). Hashes are
//! kept, so that a text is compared when it is very likely the same, and growing reads none. That is some 30 bytes a term,
//! where a map of boxed strings takes 70.

use std::hash::{BuildHasher, RandomState};

/// Terms by number, and numbers by term.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    text: String,
    /// Where each term's text ends.
    ends: Vec<usize>,
    /// A power of two of places.
    table: Vec<Place>,
    hasher: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    hash: u32,
    number: u32,
}

const EMPTY: Place = Place { hash: 0, number: u32::MAX };

impl Vocabulary {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn term(&self, number: u32) -> &str {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    /// The number of a term that is known.
    pub(super) fn find(&self, term: &str) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        let place = self.table[self.place(term, self.hash(term))];
        (place.number != EMPTY.number).then_some(place.number)
    }

    /// The number of a term, which is the next one if it is new.
    pub(super) fn number(&mut self, term: &str) -> u32 {
        if (self.ends.len() + 1) * 4 > self.table.len() * 3 {
            self.grow();
        }
        let hash = self.hash(term);
        let place = self.place(term, hash);
        if self.table[place].number == EMPTY.number {
            self.table[place] = Place { hash, number: self.ends.len() as u32 };
            self.text.push_str(term);
            self.ends.push(self.text.len());
        }
        self.table[place].number
    }

    pub(super) fn bytes(&self) -> usize {
        let ends = self.ends.capacity() * size_of::<usize>();
        self.text.capacity() + ends + self.table.capacity() * size_of::<Place>()
    }

    fn hash(&self, term: &str) -> u32 {
        self.hasher.hash_one(term) as u32
    }

    /// Where a term is, or would be.
    fn place(&self, term: &str, hash: u32) -> usize {
        let last = self.table.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let place = self.table[at];
            if place.number == EMPTY.number || place.hash == hash && self.term(place.number) == term {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    fn grow(&mut self) {
        let larger = vec![EMPTY; (self.table.len() * 2).max(64)];
        let last = larger.len() - 1;
        for place in std::mem::replace(&mut self.table, larger) {
            if place.number != EMPTY.number {
                let mut at = place.hash as usize & last;
                while self.table[at].number != EMPTY.number {
                    at = (at + 1) & last;
                }
                self.table[at] = place;
            }
        }
    }
}

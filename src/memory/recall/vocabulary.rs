//! Every distinct term once, under a number.
//!
//! Most terms of a user stand in one observation only, so it is their own size that counts: their texts lie end to end in
//! one string, and a table of numbers finds them by hash (open addressing, linear probing, at most three quarters full).
//! That is some 20 bytes a term, where a map of boxed strings takes 70.

use std::hash::{BuildHasher, RandomState};

const EMPTY: u32 = u32::MAX;

/// Terms by number, and numbers by term.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    text: String,
    /// Where each term's text ends.
    ends: Vec<usize>,
    /// A power of two of places, each with a number or [`EMPTY`].
    table: Vec<u32>,
    hasher: RandomState,
}

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
        Some(self.table[self.place(term)]).filter(|number| *number != EMPTY)
    }

    /// The number of a term, which is the next one if it is new.
    pub(super) fn number(&mut self, term: &str) -> u32 {
        if (self.ends.len() + 1) * 4 > self.table.len() * 3 {
            self.grow();
        }
        let place = self.place(term);
        if self.table[place] == EMPTY {
            self.table[place] = self.ends.len() as u32;
            self.text.push_str(term);
            self.ends.push(self.text.len());
        }
        self.table[place]
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.table.capacity() * size_of::<u32>()
    }

    /// Where a term is, or would be.
    fn place(&self, term: &str) -> usize {
        let last = self.table.len() - 1;
        let mut place = self.hasher.hash_one(term) as usize & last;
        while self.table[place] != EMPTY && self.term(self.table[place]) != term {
            place = (place + 1) & last;
        }
        place
    }

    fn grow(&mut self) {
        self.table = vec![EMPTY; (self.table.len() * 2).max(64)];
        for number in 0..self.ends.len() as u32 {
            let place = self.place(self.term(number));
            self.table[place] = number;
        }
    }
}

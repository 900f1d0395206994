//! Which of one user's observations a query is about, and how much: BM25 over that user's observations, in memory.
//!
//! Derived data, made by puts from what the storage holds and thrown away at will. After any puts and removes the ranks are
//! to the bit those of a recall made anew from what is left, in any order: nothing that is gone weighs anything. It is our
//! own because a library's fixed average length or shared index lets another user's data, or what was deleted, move a score.
//!
//! # The formula
//!
//! Okapi BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009, section 3.4), summed
//! over the distinct terms of the query, with N observations, of which df have the term:
//!
//! ```text
//! idf    = ln(1 + (N - df + 0.5) / (df + 0.5))                        never negative, as Lucene has it
//! weight = idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length)),  k1 = 1.2, b = 0.75
//! ```
//!
//! A title is short and says what it is about, so its terms count double, in tf and in length alike (Robertson, Zaragoza and
//! Taylor, *Simple BM25 extension to multiple weighted fields*, 2004).
//!
//! # How it is held
//!
//! Texts are not kept. A document is one revision of an observation under a number that is never used again, so a term's
//! documents are only ever appended to. What is replaced or removed is dead: it leaves the counts at once, by the list of
//! its terms, and the lists of documents when more than half of them are dead.

mod postings;
mod vocabulary;

#[cfg(test)]
mod tests;

use super::{score, terms};
use crate::session::moment::Moment;
use postings::{Postings, code, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocabulary::Vocabulary;

const K1: f64 = 1.2;
const B: f64 = 0.75;
const TITLE_WEIGHT: u32 = 2;

/// Fewer dead documents than this are not worth the work.
const DEAD_MIN: usize = 64;

/// What scores and filters need of an observation, without its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The observation's number.
    pub id: u64,
    /// Its type.
    pub kind: Arc<str>,
    /// When its first revision was saved.
    pub created_at: Moment,
    /// When its last one was.
    pub updated_at: Moment,
    /// Counts the revisions, from 1.
    pub revision: u32,
    /// Number of the session of the last revision.
    pub session: u32,
    /// Whether it rests on sources that are watched.
    pub has_sources: bool,
}

/// One user's observations, to be found.
#[derive(Debug, Default)]
pub struct Recall {
    kept: BTreeMap<u64, Kept>,
    kinds: BTreeSet<Arc<str>>,
    vocabulary: Vocabulary,
    /// By the number of the term.
    postings: Vec<Postings>,
    /// By the number of the document.
    documents: Vec<Document>,
    /// The sum over those that live.
    length: u64,
    /// Of postings and lists of terms, outside of what holds them.
    heap_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    document: u32,
    /// Numbers of its terms, coded.
    terms: Box<[u8]>,
}

#[derive(Debug, Clone, Copy)]
struct Document {
    id: u64,
    length: u32,
    live: bool,
}

impl Recall {
    /// Adds an observation, or puts it in the place of the one with its id.
    pub fn put(&mut self, mut entry: Entry, title: &str, content: &str) {
        self.remove(entry.id);
        entry.kind = self.interned(entry.kind);
        let (id, document) = (entry.id, self.documents.len() as u32);
        let (terms, length) = self.counted(title, content);
        for (term, count) in &terms {
            let postings = &mut self.postings[*term as usize];
            self.heap_bytes -= postings.heap_bytes();
            postings.push(document, *count);
            self.heap_bytes += postings.heap_bytes();
        }
        let terms = code(terms.iter().map(|(term, _)| *term));
        self.heap_bytes += terms.len();
        self.length += u64::from(length);
        self.documents.push(Document { id, length, live: true });
        self.kept.insert(id, Kept { entry, document, terms });
    }

    /// Takes an observation out; one that is not there changes nothing.
    pub fn remove(&mut self, id: u64) {
        let Some(kept) = self.kept.remove(&id) else { return };
        for term in decode(&kept.terms) {
            self.postings[term as usize].live -= 1;
        }
        self.heap_bytes -= kept.terms.len();
        let document = &mut self.documents[kept.document as usize];
        document.live = false;
        self.length -= u64::from(document.length);
        let dead = self.documents.len() - self.kept.len();
        if dead >= DEAD_MIN && dead > self.kept.len() {
            self.bury();
        }
    }

    /// What is kept of an observation.
    #[must_use]
    pub fn entry(&self, id: u64) -> Option<&Entry> {
        self.kept.get(&id).map(|kept| &kept.entry)
    }

    /// All of them, by id.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.kept.values().map(|kept| &kept.entry)
    }

    /// All of them, in the order in which they were first saved.
    #[must_use]
    pub fn in_order(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries().collect();
        entries.sort_by_key(|entry| (entry.created_at, entry.id));
        entries
    }

    /// Whatever has a term of the query, by id, with its rank in [0, 1).
    ///
    /// A short query ([`terms::is_short`]) has few terms or none; it is looked for in the words themselves.
    #[must_use]
    pub fn rank(&self, query: &str) -> Vec<(u64, f64)> {
        let mut relevance = vec![0.0; self.documents.len()];
        let mut weight = 0.0;
        // Term by term in the query's order: that is the order of the additions for every document, whatever its number.
        for term in terms::of_query(query) {
            let postings = self.vocabulary.find(&term).map(|number| &self.postings[number as usize]);
            // A word that no observation has says nothing about which of them is meant.
            if let Some(postings) = postings.filter(|postings| postings.live > 0) {
                weight += self.weigh(postings, &mut relevance);
            }
        }
        let matching = self.documents.iter().zip(relevance).filter(|(_, relevance)| *relevance > 0.0);
        let mut ranks: Vec<(u64, f64)> =
            matching.map(|(document, relevance)| (document.id, score::rank(relevance, weight))).collect();
        ranks.sort_unstable_by_key(|(id, _)| *id);
        ranks
    }

    /// About how much memory this takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A node of a B-tree is about two thirds full.
        let kept = self.kept.len() * (size_of::<u64>() + size_of::<Kept>()) * 3 / 2;
        let documents = self.documents.capacity() * size_of::<Document>();
        let postings = self.postings.capacity() * size_of::<Postings>();
        size_of::<Self>() + kept + documents + postings + self.vocabulary.bytes() + self.heap_bytes
    }

    /// Adds what a term weighs in each document, and gives its idf.
    fn weigh(&self, postings: &Postings, relevance: &mut [f64]) -> f64 {
        let live = self.kept.len() as f64;
        let with_term = f64::from(postings.live);
        let idf = (1.0 + (live - with_term + 0.5) / (with_term + 0.5)).ln();
        let average = self.length as f64 / live;
        for (number, count) in postings.iter() {
            let document = self.documents[number as usize];
            if document.live {
                let count = f64::from(count);
                let norm = K1 * (1.0 - B + B * f64::from(document.length) / average);
                relevance[number as usize] += idf * count * (K1 + 1.0) / (count + norm);
            }
        }
        idf
    }

    /// The terms of an observation, ascending by number, each with its count; and the sum of the counts.
    fn counted(&mut self, title: &str, content: &str) -> (Vec<(u32, u32)>, u32) {
        let mut numbers = Vec::new();
        terms::each(title, &mut |term| numbers.push((self.vocabulary.number(term), TITLE_WEIGHT)));
        terms::each(content, &mut |term| numbers.push((self.vocabulary.number(term), 1)));
        self.postings.resize_with(self.vocabulary.len(), Postings::default);
        numbers.sort_unstable();
        let mut length: u32 = 0;
        let mut counted: Vec<(u32, u32)> = Vec::with_capacity(numbers.len());
        for (term, weight) in numbers {
            length = length.saturating_add(weight);
            match counted.last_mut().filter(|(last, _)| *last == term) {
                Some((_, count)) => *count = count.saturating_add(weight),
                None => counted.push((term, weight)),
            }
        }
        (counted, length)
    }

    /// There are a handful of types, and thousands of observations.
    fn interned(&mut self, kind: Arc<str>) -> Arc<str> {
        if let Some(known) = self.kinds.get(&kind) {
            return Arc::clone(known);
        }
        self.kinds.insert(Arc::clone(&kind));
        kind
    }

    /// Makes everything anew without the dead documents, and without the terms that only they had.
    fn bury(&mut self) {
        let dead = std::mem::take(self);
        let mut documents = vec![None; dead.documents.len()];
        for (place, document) in documents.iter_mut().zip(&dead.documents).filter(|(_, old)| old.live) {
            *place = Some(self.documents.len() as u32);
            self.documents.push(*document);
        }
        let mut terms = vec![0; dead.postings.len()];
        for (old, postings) in dead.postings.iter().enumerate().filter(|(_, postings)| postings.live > 0) {
            let new = self.vocabulary.number(dead.vocabulary.term(old as u32));
            terms[old] = new;
            let mut moved = Postings::default();
            for (document, count) in postings.iter() {
                if let Some(document) = documents[document as usize] {
                    moved.push(document, count);
                }
            }
            self.heap_bytes += moved.heap_bytes();
            self.postings.push(moved);
        }
        for (id, kept) in dead.kept {
            let document = documents[kept.document as usize].expect("what is kept lives");
            // Numbers were given in the order of the old ones, so they ascend as those did.
            let terms = code(decode(&kept.terms).map(|term| terms[term as usize]));
            self.heap_bytes += terms.len();
            self.kept.insert(id, Kept { document, terms, ..kept });
        }
        self.kinds = dead.kinds;
        self.length = dead.length;
    }
}

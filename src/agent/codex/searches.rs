//! Commands of a session that are questions to the tree, and what is left of them when turns are taken back.
//!
//! Asked again, a question stands where its last answer does.

use crate::agent::transcript::{Asked, Question, Unasked};
use std::collections::HashMap;

/// What was asked so far, by question and folder.
#[derive(Clone, Default)]
pub(super) struct Searches {
    kept: HashMap<(Question, Option<String>), Vec<Kept>>,
    pub(super) unasked: Unasked,
    arrived: u64,
}

/// The last answer of a turn.
#[derive(Clone)]
struct Kept {
    asked: Asked,
    turn: u64,
    arrived: u64,
}

impl Searches {
    /// An answer came.
    pub(super) fn answer(&mut self, asked: Asked, turn: u64) {
        self.arrived += 1;
        let answers = self.kept.entry((asked.question.clone(), asked.cwd.clone())).or_default();
        answers.retain(|kept| kept.turn != turn);
        answers.push(Kept { asked, turn, arrived: self.arrived });
    }

    /// A compaction: everything is known through its summary only.
    pub(super) fn compact(&mut self) {
        self.kept.values_mut().flatten().for_each(|kept| kept.asked.via_summary = true);
    }

    /// Everything since that turn began was taken back.
    pub(super) fn take_back(&mut self, turn: u64) {
        self.kept.values_mut().for_each(|answers| answers.retain(|kept| kept.turn < turn));
    }

    /// What was asked, in the order of the answers.
    pub(super) fn finish(self) -> Vec<Asked> {
        let mut last: Vec<Kept> = self.kept.into_values().filter_map(|mut answers| answers.pop()).collect();
        last.sort_by_key(|kept| kept.arrived);
        last.into_iter().map(|kept| kept.asked).collect()
    }
}

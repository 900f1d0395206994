//! The two scores of an observation: for a search, and for what a session starts with. Never mixed, both in [0, 1].
//!
//! Plain functions of their parts, so that every part can be shown beside the score and computed again by hand.

#[cfg(test)]
mod tests;

use crate::session::moment::Moment;

/// After this long a memory counts half.
const HALF_LIFE_DAYS: f64 = 30.0;

/// Revisions beyond this many add nothing.
const REVISIONS_MAX: u32 = 10;

/// The part of a query's weight whose rank is one half.
///
/// Half of what was asked for is half a hit: every term once in a text of average length makes 2/3, every term in the title
/// too about 3/4, one common word of several near 0.1. Recency is worth 0.25 and rank 0.60, so an exact hit of half a year
/// ago stays above one of today that shares no more than a common word, among two observations or thousands.
const RANK_HALF: f64 = 0.5;

/// How new: 0.5^(age / 30 days), and 1 for what a clock set back puts into the future.
#[must_use]
pub fn recency(now: Moment, updated_at: Moment) -> f64 {
    const DAY: f64 = 86_400.0 * 1e6;
    let age = now.micros.saturating_sub(updated_at.micros).max(0);
    (-(age as f64 / DAY) / HALF_LIFE_DAYS).exp2()
}

/// How often it was told anew: min(count, 10) / 10.
#[must_use]
pub fn revision(count: u32) -> f64 {
    f64::from(count.min(REVISIONS_MAX)) / f64::from(REVISIONS_MAX)
}

/// How much an observation of this type says about every session: who the user is before what was once found out.
#[must_use]
pub fn type_weight(kind: &str) -> f64 {
    match kind {
        "profile" => 1.0,
        "preference" => 0.9,
        "decision" => 0.7,
        "pattern" => 0.6,
        "discovery" => 0.5,
        _ => 0.4,
    }
}

/// Relevance brought into [0, 1): b / (b + c), where c is half the query's weight, the sum of its terms' idf.
///
/// A constant c would mean another thing for every query and every size of a memory: BM25 grows with the number of terms
/// asked for and with the logarithm of the number of observations, so long queries would have everything near 1 and leave
/// the order to recency, and small memories everything near 0. Both, b and c, grow with them alike.
#[must_use]
pub fn rank(bm25: f64, query_weight: f64) -> f64 {
    if bm25 > 0.0 { bm25 / (bm25 + RANK_HALF * query_weight) } else { 0.0 }
}

/// The score of a search: 0.60 rank + 0.25 recency + 0.15 revision.
#[must_use]
pub fn search(rank: f64, recency: f64, revision: f64) -> f64 {
    0.60 * rank + 0.25 * recency + 0.15 * revision
}

/// The score of what a session starts with: 0.50 recency + 0.30 revision + 0.20 type.
#[must_use]
pub fn context(recency: f64, revision: f64, weight: f64) -> f64 {
    0.50 * recency + 0.30 * revision + 0.20 * weight
}

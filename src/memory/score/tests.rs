//! Golden values, worked out by hand.

use super::{context, rank, recency, revision, search, type_weight};
use crate::memory::recall::{Entry, Recall};
use crate::session::moment::Moment;

const DAY: i64 = 86_400_000_000;

fn days(days: i64) -> Moment {
    Moment::from_micros(days * DAY)
}

#[track_caller]
fn near(value: f64, golden: f64) {
    assert!((value - golden).abs() < 1e-9, "{value} is not {golden}");
}

#[test]
fn recency_halves_every_thirty_days() {
    let now = days(20_000);
    for (age, golden) in
        [(0, 1.0), (15, 0.707_106_781_186_547_6), (30, 0.5), (60, 0.25), (90, 0.125), (180, 0.015_625)]
    {
        near(recency(now, days(20_000 - age)), golden);
    }
    near(recency(now, Moment::from_micros(now.micros - DAY / 2)), 0.988_514_020_352_896_2);
}

#[test]
fn the_future_is_new_and_the_ends_of_time_are_no_error() {
    near(recency(days(1), days(2)), 1.0);
    let (first, last) = (Moment::from_micros(i64::MIN), Moment::from_micros(i64::MAX));
    near(recency(first, last), 1.0);
    near(recency(last, first), 0.0);
}

#[test]
fn revisions_count_up_to_ten() {
    for (count, golden) in [(0, 0.0), (1, 0.1), (3, 0.3), (9, 0.9), (10, 1.0), (11, 1.0), (u32::MAX, 1.0)] {
        near(revision(count), golden);
    }
}

#[test]
fn every_type_has_its_weight() {
    let golden = [
        ("profile", 1.0),
        ("preference", 0.9),
        ("decision", 0.7),
        ("pattern", 0.6),
        ("discovery", 0.5),
        ("summary", 0.4),
        ("", 0.4),
        ("Profile", 0.4),
    ];
    for (kind, weight) in golden {
        near(type_weight(kind), weight);
    }
}

#[test]
fn rank_is_one_half_for_half_of_what_was_asked_for_and_never_one() {
    for (bm25, weight, golden) in [
        (0.0, 4.0, 0.0),
        (0.0, 0.0, 0.0),
        (0.5, 4.0, 0.2),
        (2.0, 4.0, 0.5),
        (4.0, 4.0, 2.0 / 3.0),
        (6.0, 4.0, 0.75),
    ] {
        near(rank(bm25, weight), golden);
    }
    assert!(rank(2.2e6, 1e6) < 1.0);
}

#[test]
fn both_scores_are_the_sums_they_are_said_to_be() {
    near(search(1.0, 0.0, 0.0), 0.60);
    near(search(0.0, 1.0, 0.0), 0.25);
    near(search(0.0, 0.0, 1.0), 0.15);
    near(search(0.75, 0.5, 0.3), 0.62);
    near(context(1.0, 0.0, 0.0), 0.50);
    near(context(0.0, 1.0, 0.0), 0.30);
    near(context(0.0, 0.0, 1.0), 0.20);
    near(context(0.25, 0.2, 0.7), 0.325);
}

#[test]
fn both_scores_stay_between_zero_and_one() {
    let parts = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0];
    for a in parts {
        for b in parts {
            for c in parts {
                assert!((0.0..=1.0).contains(&search(a, b, c)));
                assert!((0.0..=1.0).contains(&context(a, b, c)));
            }
        }
    }
}

/// The more observations there are, the more a rare word tells, and the less the one that a third of them has.
#[test]
fn an_exact_hit_of_half_a_year_ago_is_above_a_weak_one_of_today() {
    let now = days(20_000);
    for (query, others) in [
        ("token refresh race", 0),
        ("token refresh race", 1),
        ("token refresh race", 10),
        ("token refresh race", 1_000),
        ("How do we handle the token refresh race in the client?", 10),
        ("How do we handle the token refresh race in the client?", 1_000),
    ] {
        let mut recall = Recall::default();
        let mut put = |id, day, title: &str, content: &str| {
            recall.put(entry(id, days(day)), title, content);
        };
        put(
            1,
            20_000 - 180,
            "Token refresh race",
            "Two callers refresh the token at once; the second one wins.",
        );
        put(
            2,
            20_000,
            "Deploy on Fridays",
            "The pipeline asks for a token, and the runners wait for the night build.",
        );
        for other in 3..3 + others {
            let content = if other % 3 == 0 {
                "The token of the registry is renewed by whoever finds it expired."
            } else {
                "Of the two, the long and plain name is better than the short and clever one."
            };
            put(other, 20_000, "Style", content);
        }
        let scores: Vec<f64> = recall
            .rank(query)
            .into_iter()
            .map(|(id, rank)| {
                let entry = recall.entry(id).expect("what matches is there");
                search(rank, recency(now, entry.updated_at), revision(entry.revision))
            })
            .collect();
        assert!(scores.len() >= 2);
        let best = scores[1..].iter().copied().fold(0.0, f64::max);
        assert!(scores[0] > best, "{} and {best} for {query} beside {others} others", scores[0]);
    }
}

fn entry(id: u64, at: Moment) -> Entry {
    Entry {
        id,
        kind: "discovery".into(),
        created_at: at,
        updated_at: at,
        revision: 1,
        session: 0,
        has_sources: false,
    }
}

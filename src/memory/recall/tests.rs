//! Ranks against BM25 written down as in the book, and what searches find first.

use super::{Entry, Recall};
use crate::memory::{score, terms};
use crate::session::moment::Moment;
use std::collections::BTreeMap;

fn entry(id: u64) -> Entry {
    let at = Moment::from_micros(id as i64);
    Entry {
        id,
        kind: "decision".into(),
        created_at: at,
        updated_at: at,
        revision: 1,
        session: 0,
        has_sources: false,
    }
}

fn of(texts: &[(&str, &str)]) -> Recall {
    let mut recall = Recall::default();
    for (id, (title, content)) in (1..).zip(texts) {
        recall.put(entry(id), title, content);
    }
    recall
}

/// Ids, best first.
fn found(recall: &Recall, query: &str) -> Vec<u64> {
    let mut ranks = recall.rank(query);
    ranks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranks.into_iter().map(|(id, _)| id).collect()
}

const NOTES: [(&str, &str); 12] = [
    ("Language", "The engine is written in C++ since the rewrite; before that it was C."),
    ("Cleaning up", "Never run rm -rf on the build folder; use the clean target, which asks first."),
    ("Greeting", "The assistant should say \"hi\" and the name, nothing longer."),
    ("Why Rust", "We want a memory:safe language, and the borrow checker is worth its price."),
    ("Token expiry", "TTL is checked in src/auth/token.rs by Token::is_valid, with tokenStore behind it."),
    ("Server", "HTTPServer answers on port 8080; its limit is max_open_files, set in .env at the start."),
    ("東京", "東京都の天気は晴れです。日本語のドキュメントを読む。"),
    ("Release 🚀", "We ship on Tuesdays. 👍 means approved, 🔥 means roll back."),
    ("Reunión", "La reunión de planificación es los lunes; la canción la elige José."),
    ("Memory", "The safe is in the memory of nobody, and so is its key to the language."),
    ("C", "The firmware is C, and stays C."),
    ("Notes", "- one\n- two\n- three"),
];

#[test]
fn searches_find_first_what_was_meant() {
    let recall = of(&NOTES);
    for (query, first) in [
        ("C++", 1),
        ("rm -rf", 2),
        ("-rf", 2),
        ("say \"hi", 3),
        ("say \"hi\" \"", 3),
        ("memory:safe", 4),
        ("src/auth/token.rs", 5),
        ("token.rs", 5),
        ("is_valid", 5),
        ("Token::is_valid()", 5),
        ("token store", 5),
        ("TokenStore", 5),
        ("auth", 5),
        ("http server", 6),
        ("httpserver", 6),
        ("maxOpenFiles", 6),
        ("max-open-files", 6),
        (".env", 6),
        ("8080", 6),
        ("天気は", 7),
        ("東京都", 7),
        ("日本語", 7),
        ("🚀🔥👍", 8),
        ("ship 🚀", 8),
        ("reunion", 9),
        ("CANCIÓN José", 9),
        ("AND OR NOT NEAR( memory:safe*", 4),
    ] {
        assert!(!terms::is_short(query), "{query}");
        assert_eq!(found(&recall, query).first(), Some(&first), "{query}");
    }
}

#[test]
fn what_has_no_term_in_common_is_not_found() {
    let recall = of(&NOTES);
    for query in ["", "-", "---", "\"\"", "zebra", "('; DROP TABLE", "*", "NEAR/3", "\0", "🦓"] {
        assert!(found(&recall, query).is_empty(), "{query}");
    }
    assert!(found(&Recall::default(), "memory").is_empty());
}

#[test]
fn ten_thousand_characters_are_a_query() {
    let recall = of(&NOTES);
    assert_eq!(found(&recall, &"reunión ".repeat(1_250)), [9]);
    assert_eq!(found(&recall, &format!("rm -rf {}", "(\"*".repeat(3_331))).first(), Some(&2));
    assert_eq!(found(&recall, &"東".repeat(10_000)), [7]);
    assert!(found(&recall, &"-".repeat(10_000)).is_empty());
    assert!(found(&recall, &"x".repeat(10_000)).is_empty());
}

#[test]
fn a_title_says_more_than_a_word_in_passing_and_a_rare_word_more_than_a_common_one() {
    let recall = of(&[
        ("Deploy", "We release on Tuesdays after the night build."),
        ("Night build", "We deploy what is green on Tuesdays after it."),
        ("Holidays", "We are closed on Tuesdays in August, all of us."),
    ]);
    assert_eq!(found(&recall, "deploy"), [1, 2]);
    assert_eq!(found(&recall, "tuesdays august").first(), Some(&3));
}

/// N = 2, average length 4.5. `red` is once in both; `blue` in the title of the first, where it counts double.
#[test]
fn ranks_worked_out_by_hand() {
    let recall = of(&[("blue", "red"), ("", "red one two three four five")]);
    let (idf_blue, idf_red) = ((1.0_f64 + 1.5 / 1.5).ln(), (1.0_f64 + 0.5 / 2.5).ln());
    let blue = idf_blue * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 3.0 / 4.5));
    let red = idf_red * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 3.0 / 4.5));
    let far = idf_red * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 6.0 / 4.5));
    let check = |query, expected: &[f64]| {
        let ranks = recall.rank(query);
        assert_eq!(ranks.len(), expected.len(), "{query}");
        for ((_, rank), expected) in ranks.iter().zip(expected) {
            assert!((rank - expected).abs() < 1e-12, "{query}: {rank} is not {expected}");
        }
    };
    let half = idf_blue / 2.0;
    check("blue", &[blue / (blue + half)]);
    check("blue elephants", &[blue / (blue + half)]);
    let half = f64::midpoint(idf_blue, idf_red);
    check("red blue", &[(blue + red) / (blue + red + half), far / (far + half)]);
}

#[test]
fn entries_are_kept_by_id_and_listed_in_the_order_they_were_saved() {
    let mut recall = of(&NOTES);
    recall.put(Entry { created_at: Moment::from_micros(7), revision: 2, ..entry(3) }, "Again", "zebra");
    recall.remove(1);
    recall.remove(99);
    assert_eq!(recall.entry(1), None);
    assert_eq!(recall.entry(3).map(|entry| entry.revision), Some(2));
    let ids: Vec<u64> = recall.entries().map(|entry| entry.id).collect();
    assert_eq!(ids, (2..=12).collect::<Vec<u64>>());
    let ids: Vec<u64> = recall.in_order().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [2, 4, 5, 6, 3, 7, 8, 9, 10, 11, 12]);
    assert_eq!(found(&recall, "zebra"), [3]);
    assert!(found(&recall, "greeting").is_empty());
}

/// The definition, over texts kept whole.
fn naive(texts: &BTreeMap<u64, (String, String)>, query: &str) -> Vec<(u64, f64)> {
    let counted = |(title, content): &(String, String)| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (text, weight) in [(title, 2), (content, 1)] {
            terms::each(text, &mut |term| *counts.entry(term.to_owned()).or_default() += weight);
        }
        counts
    };
    let counts: BTreeMap<u64, BTreeMap<String, u32>> =
        texts.iter().map(|(id, words)| (*id, counted(words))).collect();
    let length = |id: &u64| f64::from(counts[id].values().sum::<u32>());
    let n = counts.len() as f64;
    let average = counts.keys().map(length).sum::<f64>() / n;
    let known = terms::of_query(query).into_iter().filter_map(|term| {
        let df = counts.values().filter(|counts| counts.contains_key(&term)).count() as f64;
        (df > 0.0).then(|| (term, (1.0 + (n - df + 0.5) / (df + 0.5)).ln()))
    });
    let known: Vec<(String, f64)> = known.collect();
    let weight = known.iter().fold(0.0, |sum, (_, idf)| sum + idf);
    let mut ranks = Vec::new();
    for (id, of_this) in &counts {
        let mut sum = 0.0;
        for (term, idf) in &known {
            let tf = f64::from(of_this.get(term).copied().unwrap_or(0));
            sum += idf * tf * 2.2 / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length(id) / average));
        }
        if sum > 0.0 {
            ranks.push((*id, score::rank(sum, weight)));
        }
    }
    ranks
}

fn bits(ranks: Vec<(u64, f64)>) -> Vec<(u64, u64)> {
    ranks.into_iter().map(|(id, rank)| (id, rank.to_bits())).collect()
}

fn words(random: &mut fastrand::Rng, max: usize) -> String {
    let len = random.usize(0..max);
    // A few words are everywhere, most are rare.
    let mut word = || match random.u32(0..10) {
        0..4 => format!("w{} ", random.u32(0..5)),
        4..8 => format!("w{} ", random.u32(0..50)),
        _ => format!("rare{}Word{} ", random.u32(0..500), random.u32(0..3)),
    };
    (0..len).map(|_| word()).collect()
}

/// After any history the ranks are those of the definition, and those of a recall that never had a history.
#[test]
fn history_moves_no_rank_by_one_bit() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..12 {
        let ids = [3, 20, 200][round % 3];
        let mut texts: BTreeMap<u64, (String, String)> = BTreeMap::new();
        let mut recall = Recall::default();
        let mut buried = 0;
        for step in 0..600 {
            let (id, before) = (random.u64(1..=ids), recall.documents.len());
            if random.u32(0..3) == 0 {
                texts.remove(&id);
                recall.remove(id);
            } else {
                let (title, content) = (words(&mut random, 4), words(&mut random, 30));
                recall.put(entry(id), &title, &content);
                texts.insert(id, (title, content));
            }
            buried += usize::from(recall.documents.len() < before);
            if step % 50 == 0 || recall.documents.len() < before {
                agree(&recall, &texts, &mut random, seed);
            }
        }
        assert!(buried > 0, "seed {seed}: nothing was rebuilt");
    }
}

fn agree(recall: &Recall, texts: &BTreeMap<u64, (String, String)>, random: &mut fastrand::Rng, seed: u64) {
    let mut order: Vec<u64> = texts.keys().copied().collect();
    random.shuffle(&mut order);
    let mut anew = Recall::default();
    for id in order {
        anew.put(entry(id), &texts[&id].0, &texts[&id].1);
    }
    for query in ["w0 w1 w2", "w7", "rare7word1 w3 rare 7 word"] {
        let ranks = bits(recall.rank(query));
        assert_eq!(ranks, bits(anew.rank(query)), "seed {seed}: {query}");
        assert_eq!(ranks, bits(naive(texts, query)), "seed {seed}: {query}");
    }
    assert!(recall.entries().map(|entry| entry.id).eq(texts.keys().copied()), "seed {seed}");
    assert_eq!(recall.heap_bytes, heap_bytes(recall), "seed {seed}: bytes are counted as they come and go");
}

fn heap_bytes(recall: &Recall) -> usize {
    let postings: usize = recall.postings.iter().map(super::Postings::heap_bytes).sum();
    postings + recall.kept.values().map(|kept| kept.terms.len()).sum::<usize>()
}

#[test]
fn what_is_replaced_for_ever_takes_no_more_room_for_ever() {
    let mut recall = of(&NOTES);
    let mut most = 0;
    for round in 0..20_000_u32 {
        recall.put(entry(1), "Counter", &format!("The build number is build{round}, one more than before."));
        most = most.max(recall.bytes());
    }
    assert!(recall.documents.len() <= 2 * super::DEAD_MIN + NOTES.len());
    assert!(most < 64 * 1024, "{most} bytes for a dozen notes");
    assert_eq!(found(&recall, "19999"), [1]);
    assert!(found(&recall, "19998").is_empty());
}

#[test]
fn any_text_is_kept_and_any_query_is_answered() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut recall = Recall::default();
    for _ in 0..2_000 {
        let mut text = |len| -> String { (0..random.usize(0..len)).map(|_| random.char(..)).collect() };
        let (title, content) = (text(20), text(100));
        let id = random.u64(1..50);
        recall.put(entry(id), &title, &content);
        let query = format!("{title} {content}");
        for (_, rank) in recall.rank(&query) {
            assert!((0.0..1.0).contains(&rank), "seed {seed}: {rank}");
        }
        if !terms::of_query(&query).is_empty() {
            assert!(found(&recall, &query).contains(&id), "seed {seed}: {query:?} does not find itself");
        }
    }
}

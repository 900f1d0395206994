//! What remembering costs: 100,000 observations of a hundred users, one in ten of them resting on a file. A save against one
//! write and fdatasync; a session's start; a search against SQLite's FTS5, in this process, asked the same of the same words.
//!
//! `cargo bench --bench remember`, `STALED_BENCH_OBSERVATIONS=10000` for less.

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;
use yard::{Line, Peer, Samples, Table, Yard, yard};

const OBSERVATIONS: usize = 100_000;
const USERS: usize = 100;
const FILES: usize = 1_000;
const ROUNDS: usize = 9;
const CALLS: usize = 200;
/// Answers that are waited for at once while the memory is filled.
const WINDOW: usize = 32;
/// How many words there are; a few of them are most of what is said.
const VOCABULARY: f64 = 5_000.0;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let observations = yard::number("STALED_BENCH_OBSERVATIONS", OBSERVATIONS);
    let yard = yard("remember", FILES);
    let daemon = Peer::daemon(&yard);
    let mut asking = Line::to(&daemon);
    let sqlite = fts5(&yard);
    let mut random = fastrand::Rng::with_seed(7);
    let begun = Instant::now();
    fill(&yard, &mut asking, &sqlite, observations, &mut random);
    println!("{observations} observations saved in {:.1} s", begun.elapsed().as_secs_f64());
    let mut first = Samples::default();
    for user in 0..USERS {
        first.time(|| asking.call(&search(user, "alpha beta")).len());
    }
    println!("first search of a user: p50 {:.1} us", first.percentile(50) / 1e3);
    println!("resident: {:.0} MB", daemon.resident() / 1e6);
    told(&yard, &mut asking, &mut random);
    asked(&mut asking, &sqlite, &mut random);
}

fn fts5(yard: &Yard) -> Connection {
    let sqlite = Connection::open(yard.home("sqlite")).expect("a database");
    let made = "PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE memory USING fts5(user, title, content)";
    sqlite.execute_batch(made).expect("FTS5 is built in");
    sqlite
}

/// Words as texts have them: few are frequent, most are rare.
fn words(random: &mut fastrand::Rng, count: usize) -> String {
    let word = |random: &mut fastrand::Rng| format!("word{}", VOCABULARY.powf(random.f64()) as u64);
    (0..count).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn observation(random: &mut fastrand::Rng, user: usize) -> Value {
    let (title, content) = (words(random, 6), words(random, 120));
    json!({ "user_id": format!("u{user}"), "type": "pattern", "title": title, "content": content })
}

fn fill(yard: &Yard, asking: &mut Line, sqlite: &Connection, count: usize, random: &mut fastrand::Rng) {
    sqlite.execute_batch("BEGIN").expect("a transaction");
    for begin in (0..count).step_by(WINDOW) {
        let window = begin..(begin + WINDOW).min(count);
        for n in window.clone() {
            let mut save = observation(random, n % USERS);
            let told = params![save["user_id"].as_str(), save["title"].as_str(), save["content"].as_str()];
            sqlite.execute("INSERT INTO memory VALUES (?1, ?2, ?3)", told).expect("a row");
            if n % 10 == 0 {
                save["sources"] = json!([yard.file(n % FILES)]);
            }
            asking.send(&yard::request("mem_save", &save));
        }
        for _ in window {
            let answer = asking.next();
            assert!(answer.contains("\"created\""), "{answer}");
        }
    }
    sqlite.execute_batch("COMMIT").expect("a transaction");
}

fn told(yard: &Yard, asking: &mut Line, random: &mut fastrand::Rng) {
    let mut file = std::fs::File::create(yard.home("synced-line")).expect("a file");
    let mut table = Table::new(&["write + fdatasync", "save", "save with a source", "session start"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 4] = Default::default();
        for _ in 0..CALLS {
            let user = random.usize(..USERS);
            let save = observation(random, user);
            let line = save.to_string();
            let synced = round[0].time(|| file.write_all(line.as_bytes()).and_then(|()| file.sync_data()));
            synced.expect("a line can be synced");
            round[1].time(|| asking.ask("mem_save", &save).len());
            let mut grounded = observation(random, user);
            grounded["sources"] = json!([yard.file(random.usize(..FILES))]);
            round[2].time(|| asking.ask("mem_save", &grounded).len());
            let start = json!({ "user_id": format!("u{user}") });
            round[3].time(|| asking.ask("mem_session_start", &start).len());
        }
        table.add(round);
    }
    table.print();
    table.ratio("save / fdatasync", 1, 0, Some(3.0));
    table.ratio("save with a source / fdatasync", 2, 0, None);
    table.within(3, 1_000.0);
}

fn search(user: usize, query: &str) -> String {
    yard::request("mem_search", &json!({ "user_id": format!("u{user}"), "query": query }))
}

fn asked(asking: &mut Line, sqlite: &Connection, random: &mut fastrand::Rng) {
    let mut query = sqlite
        .prepare("SELECT rowid, title, content, bm25(memory) FROM memory WHERE memory MATCH ?1 ORDER BY 4 LIMIT 10")
        .expect("a query");
    let mut table = Table::new(&["search", "SQLite FTS5"]);
    for _ in 0..ROUNDS {
        let mut round: [Samples; 2] = Default::default();
        for _ in 0..CALLS {
            let (user, wanted) = (random.usize(..USERS), words(random, 3));
            let request = search(user, &wanted);
            let answer = round[0].time(|| asking.call(&request).len());
            assert!(answer > 100, "{}", asking.last());
            let any = wanted.replace(' ', " OR ");
            let matching = format!("user : u{user} AND {{title content}} : ({any})");
            let found = round[1].time(|| {
                let rows = query.query_map([&matching], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
                });
                rows.expect("rows").map(|row| row.expect("a row").1.len()).sum::<usize>()
            });
            assert!(found > 0, "{matching}");
        }
        table.add(round);
    }
    table.print();
    table.within(0, 5_000.0);
    table.ratio("search / SQLite FTS5", 0, 1, Some(1.0));
}

//! Whatever three users do in whatever order, under a clock that jumps: the memory is what the naive one is, everything
//! in it is found, and it can be told whole.

use super::model::{Became, Model};
use super::*;
use crate::memory::recent;
use fastrand::Rng;

const USERS: [&str; 3] = ["ana", "ben", "cy"];
const KINDS: [&str; 3] = ["pattern", "decision", "summary"];
const TITLES: [&str; 4] = ["Auth", "Auth token", "Auth, [pattern] Auth", ""];
const CONTENTS: [&str; 4] = ["one", "two", "three", "four"];
const TOPICS: [&str; 4] = ["", "", "k", "l"];

#[derive(Debug)]
enum Operation {
    Start,
    Expire,
    End(String),
    Save(Save),
    Forget(u64),
}

fn any<'a>(chance: &mut Rng, of: &[&'a str]) -> &'a str {
    of[chance.usize(..of.len())]
}

fn operation(chance: &mut Rng, next: u64) -> Operation {
    match chance.u32(..20) {
        0..3 => Operation::Start,
        3 => Operation::Expire,
        4 => Operation::End(any(chance, &TITLES).to_owned()),
        // Mostly what is there: the numbers of the last ones, and sometimes what nobody has.
        5..8 => Operation::Forget(chance.u64(next.saturating_sub(12)..=next)),
        8 => Operation::Save(step::summary("Auth".to_owned(), any(chance, &CONTENTS).to_owned())),
        _ => {
            let words = [any(chance, &TITLES), any(chance, &CONTENTS), any(chance, &TOPICS)];
            let if_revision = (chance.u32(..4) == 0).then(|| chance.u32(..4));
            let has_sources = (chance.u32(..4) == 0).then(|| chance.bool());
            let save = said_as([any(chance, &KINDS), words[0], words[1], words[2]]);
            Operation::Save(Save { if_revision, has_sources, ..save })
        }
    }
}

fn later(chance: &mut Rng) -> i64 {
    match chance.u32(..20) {
        0..6 => 0,
        6..15 => chance.i64(1..HOUR),
        15 => -chance.i64(1..2 * TIMEOUT),
        16 => TIMEOUT - 1,
        17 => TIMEOUT,
        _ => chance.i64(HOUR..3 * TIMEOUT),
    }
}

/// Does it here and there, and compares what is answered; says what became of it.
fn step(desk: &mut Desk, model: &mut Model, user: &str, operation: &Operation, told: &str) -> &'static str {
    let (now, called) = (desk.now, format!("session-{}", desk.asked + 1));
    match operation {
        Operation::Start => {
            let started = desk.start(user);
            let is_new = started.1;
            assert_eq!(started, model.start(user, now, &called), "{told}");
            if is_new { "new" } else { "active" }
        }
        Operation::Expire => {
            let expired = desk.expire(user);
            assert_eq!(expired, model.expire(user, now), "{told}");
            expired.map_or("not expired", |_| "expired")
        }
        Operation::End(summary) => {
            let ended = desk.end(user, summary);
            assert_eq!(ended, model.end(user, summary, now), "{told}");
            ended.map_or("nothing to end", |_| "ended")
        }
        Operation::Forget(id) => {
            let forgotten = desk.forget(user, *id);
            assert_eq!(forgotten, model.forget(user, *id), "{told}");
            if forgotten { "forgotten" } else { "nothing to forget" }
        }
        Operation::Save(save) => {
            let became: Result<Became, u32> = match desk.try_save(user, save.clone()) {
                Ok(Saved { outcome, observation, session, opened }) => {
                    Ok((outcome.word(), observation, session, opened))
                }
                Err(StepError::Conflict { held, .. }) => Err(held),
                Err(StepError::Storage(error)) => panic!("{told}: {error}"),
            };
            assert_eq!(became, model.save(user, save, now, &called), "{told}");
            became.map_or("conflict", |became| if became.3 { "opened" } else { became.0 })
        }
    }
}

/// Everything that can be seen is the same.
fn compare(desk: &Desk, model: &Model, told: &str) {
    let book = desk.book();
    assert_eq!(book.next_observation().unwrap(), model.next_observation(), "{told}");
    for name in USERS {
        let (held, person) = (book.user(name).unwrap(), model.person(name));
        assert_eq!(held.is_some(), person.is_some(), "{told}");
        let (Some(held), Some(person)) = (held, person) else { continue };
        assert_eq!(desk.sessions(name), person.sessions(), "{told}");
        assert_eq!(desk.observations(name), person.observations(), "{told}");
        for observation in person.observations() {
            assert_eq!(desk.history(name, observation.id), person.history(observation.id), "{told}");
        }
        for topic in &TOPICS[2..] {
            assert_eq!(book.by_topic(held.no, topic).unwrap(), person.under(topic), "{told}");
        }
        for (kind, content) in KINDS.iter().flat_map(|kind| CONTENTS.map(|content| (kind, content))) {
            assert_eq!(
                book.by_wording(held.no, kind, content).unwrap(),
                person.worded(kind, content),
                "{told}"
            );
        }
        let mut ended = person.sessions();
        ended.retain(|session| session.span.ended_at.is_some());
        ended.reverse();
        ended.truncate(5);
        assert_eq!(recent::ended(book, &held).unwrap(), ended, "{told}");
    }
}

#[test]
fn whatever_is_done_is_what_the_naive_memory_does() {
    let mut became = std::collections::BTreeMap::new();
    for seed in (1..10).chain([fastrand::u64(..)]) {
        let mut chance = Rng::with_seed(seed);
        let (mut desk, mut model) = (Desk { now: 100 * TIMEOUT, ..Desk::default() }, Model::default());
        for no in 0..200 {
            desk.now += later(&mut chance);
            let user = any(&mut chance, &USERS);
            let operation = operation(&mut chance, model.next_observation());
            let told =
                format!("Rng::with_seed({seed}), operation {no}: {user} at {} {operation:?}", desk.now);
            *became.entry(step(&mut desk, &mut model, user, &operation, &told)).or_insert(0) += 1;
            compare(&desk, &model, &told);
            if no % 50 == 49 {
                let whole = desk.told_whole();
                assert_eq!(whole.rows(), desk.rows(), "{told}");
                assert_eq!(whole.changes(), desk.changes(), "{told}");
                desk = whole;
            }
        }
    }
    // Chance that never came to something would prove nothing of it.
    assert_eq!(became.len(), 13, "{became:?}");
    assert!(became.values().all(|&times| times > 10), "{became:?}");
}

//! What a storage lost or changed without a word is noticed: of every single key.

use super::*;
use crate::index::pack::from_bytes;
use crate::memory::audit::audit;
use crate::memory::observation::Marks;
use crate::memory::session::Span;

/// Some of everything: users, sessions of each kind, keys, revisions, and what was forgotten.
fn populated() -> Desk {
    let mut desk = Desk { now: 5, ..Desk::default() };
    for user in ["ana", "ben"] {
        for (no, key) in ["k", "l", "", "m", "k", "l", ""].into_iter().enumerate() {
            desk.now += HOUR;
            desk.save(user, ["pattern", &format!("Title {no}"), &format!("{user} says {no}"), key]);
            if no == 2 {
                desk.end(user, "by hand");
            }
            if no == 4 {
                desk.now += TIMEOUT;
                desk.expire(user);
            }
        }
        desk.save(user, ["decision", "Equal", &format!("{user} says 6"), "n"]);
        desk.forget(user, desk.observations(user)[2].id);
    }
    desk.save("cy", ["pattern", "t", "c", ""]);
    desk.forget("cy", 13);
    desk
}

/// All forgotten, or nothing ever saved.
fn emptied() -> [Desk; 2] {
    let mut forgotten = Desk::default();
    forgotten.save("ana", ["pattern", "t", "c", "k"]);
    forgotten.forget("ana", 1);
    let mut started = Desk::default();
    started.start("ana");
    [forgotten, started]
}

/// Words are noticed by who reads them, everything else without.
fn notices(storage: &Memory, table: Table) -> bool {
    match table {
        Table::Words => audit_words(storage).is_err(),
        _ => audit(storage).is_err(),
    }
}

#[test]
fn every_key_that_is_lost_is_noticed() {
    let mut tried = 0;
    for desk in [populated()].into_iter().chain(emptied()) {
        audit_words(&desk.storage).unwrap();
        for (table, key, _) in desk.rows() {
            let mut storage = desk.storage.clone();
            storage.remove(table, &key).unwrap();
            assert!(notices(&storage, table), "{table:?} {key:?} is gone, of {:?}", desk.rows());
            tried += 1;
        }
    }
    assert!(tried > 70, "{tried}");
}

#[test]
fn every_value_that_is_cut_or_grows_is_noticed() {
    for desk in [populated()].into_iter().chain(emptied()) {
        for (table, key, value) in desk.rows() {
            let cut = value.split_last().map(|(_, rest)| rest.to_vec());
            let grown = [&value[..], &[0]].concat();
            let emptied = (!value.is_empty()).then(Vec::new);
            for wrong in cut.into_iter().chain([grown]).chain(emptied) {
                let mut storage = desk.storage.clone();
                storage.put(table, &key, &wrong).unwrap();
                assert!(notices(&storage, table), "{table:?} {key:?} is {wrong:?} instead of {value:?}");
            }
        }
    }
}

/// What a value says that something else says too.
fn told_twice(table: Table, value: &[u8]) -> String {
    match table {
        Table::UserSessions => {
            let span: Span = from_bytes(value).unwrap();
            format!("{}", span.ended_at.is_none())
        }
        Table::Observations => {
            let Marks { kind, revision, session, is_keyed, .. } = from_bytes(value).unwrap();
            format!("{kind} {revision} {session} {is_keyed}")
        }
        Table::Revisions => from_bytes::<Marks>(value).unwrap().revision.to_string(),
        Table::Words => String::new(),
        _ => format!("{value:?}"),
    }
}

/// The value of another key of its table. No audit can tell what nothing else speaks of: when something was, what a session
/// is called, what was said before or as a title, whether it rests on sources, and numbers that were skipped.
#[test]
fn a_value_that_is_anothers_is_noticed_where_two_tables_speak_of_it() {
    let desk = populated();
    let rows = desk.rows();
    let mut tried = 0;
    for (table, key, value) in &rows {
        for (_, _, other) in rows.iter().filter(|(from, ..)| from == table) {
            if told_twice(*table, other) == told_twice(*table, value) {
                continue;
            }
            let mut storage = desk.storage.clone();
            storage.put(*table, key, other).unwrap();
            assert!(audit_words(&storage).is_err(), "{table:?} {key:?} is {other:?} instead of {value:?}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

/// A key of something that nobody has.
#[test]
fn what_nobody_wrote_is_noticed() {
    let desk = populated();
    for (table, key, value) in desk.rows() {
        if table == Table::Meta || table == Table::Users {
            continue;
        }
        let mut stray = key.clone();
        stray[3] ^= 1;
        let (one, nobody) = (stray.clone(), [&[9, 9, 9, 9], &key[4..]].concat());
        let (longer, short) = ([&key[..], &[7]].concat(), key[..3].to_vec());
        for stray in [one, nobody, longer, short] {
            let mut storage = desk.storage.clone();
            if storage.get(table, &stray).unwrap().is_some() {
                continue;
            }
            storage.put(table, &stray, &value).unwrap();
            assert!(notices(&storage, table), "{table:?} {stray:?} is from nowhere");
        }
    }
}

/// Between two audits, who is led to what is not there, or is not what was meant, doubts everything.
#[test]
fn a_save_that_is_led_astray_is_no_save() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "t", "c", "k"]);
    desk.save("ana", ["pattern", "t", "d", "l"]);
    desk.save("ana", ["pattern", "t", "e", ""]);
    let rows = desk.rows();
    let of = |wanted: Table| rows.iter().filter(move |(table, ..)| *table == wanted).collect::<Vec<_>>();
    let (topics, observations) = (of(Table::Topics), of(Table::Observations));
    let mut swapped = desk.clone();
    swapped.storage.put(Table::Topics, &topics[0].1, &topics[1].2).unwrap();
    swapped.storage.put(Table::Topics, &topics[1].1, &topics[0].2).unwrap();
    let mut missing = desk.clone();
    for (table, key, _) in observations {
        missing.storage.remove(*table, key).unwrap();
    }
    for (mut astray, what) in [(swapped, "swapped"), (missing, "missing")] {
        for key in ["k", "l"] {
            let saved = astray.try_save("ana", said_as(["pattern", "t", "new", key]));
            assert!(matches!(saved, Err(StepError::Storage(_))), "{what} {key}: {saved:?}");
        }
        if what == "missing" {
            let saved = astray.try_save("ana", said_as(["pattern", "t", "e", ""]));
            assert!(matches!(saved, Err(StepError::Storage(_))), "{what}: {saved:?}");
        }
    }
}

//! Whatever happens to the files of the index: the store opens, and what it holds is what the journal says.
//!
//! The number of trials is `STALED_TRIALS`, 500 unless it says otherwise.

use super::{open, open_distrusting};
use crate::harness::say;
use crate::harness::{Daemon, Place, file};
use serde_json::json;
use staled::index::Index;
use staled::index::row::SessionNo;
use staled::index::storage::{Storage, StorageError, Table};
use staled::memory::book::Book;
use staled::memory::kept;
use staled::store::sled_index::SledIndex;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;
type Damage = fn(&Path, &mut fastrand::Rng);

/// One session for each thing that the journal keeps.
pub(super) fn fill(place: &Place, daemon: &Daemon) {
    (0..30).for_each(|number| place.write(&format!("f{number}"), "1"));
    for session in 0..15 {
        let results: Vec<_> =
            (0..30).map(|number| file(&format!("f{number}"), ["0", "1"][number % 2])).collect();
        let name = format!("s{session}");
        daemon.ask("context.register", &json!({ "session": name, "root": place.root, "results": results }));
        match session % 4 {
            0 => drop(daemon.ask("fact.refute", &json!({ "session": name, "source": "f1" }))),
            1 => drop(daemon.ask("context.record", &json!({ "session": name, "remove": ["f2"] }))),
            2 => drop(daemon.ask("context.drop", &json!({ "session": name }))),
            _ => {
                let own = json!({ "id": "own", "source": { "kind": "file", "path": "f3" } });
                daemon.ask("context.record", &json!({ "session": name, "results": [own] }));
            }
        }
    }
}

/// Everything that a client told, by session; what looks found is not part of it.
pub(super) fn told(index: &Index<impl Storage>) -> BTreeMap<String, Vec<String>> {
    let of = |session| {
        let head = index.head(session).unwrap();
        let mut rows = index.rows(session).unwrap();
        rows.sort_by(|a, b| (a.role as u8, &a.id).cmp(&(b.role as u8, &b.id)));
        let of = |row: &staled::index::row::Row| {
            let (refuted, fresh) = (row.refuted, row.ever_fresh);
            format!("{:?} {} {:?} {} {refuted} {fresh}", row.role, row.id, row.baseline, row.critical)
        };
        let lines = std::iter::once(format!("{head:?}")).chain(rows.iter().map(of)).collect();
        (head.session.as_str().to_owned(), lines)
    };
    index.sessions().unwrap().into_iter().map(of).collect()
}

/// A few of everything that is remembered.
fn remember(place: &Place, daemon: &Daemon) {
    for number in 0..40 {
        let (user, title) = (format!("u{}", number % 3), format!("title {number}"));
        let mut save = json!({ "user_id": user, "type": "pattern", "title": title, "content": format!("words {}", number / 2) });
        match number % 5 {
            0 => save["topic_key"] = json!(format!("k{}", number % 2)),
            1 => save["sources"] = json!([place.root.join(format!("f{}", number % 30))]),
            _ => {}
        }
        daemon.ask("mem_save", &save);
    }
    daemon.ask("mem_session_end", &json!({ "user_id": "u0", "summary": "so far" }));
    daemon.ask("mem_forget", &json!({ "user_id": "u1", "id": 2 }));
}

/// All that is remembered. Words are read when they are asked for, so what they lost is noticed here.
fn remembered(index: &Index<impl Storage>) -> Result<Vec<String>, StorageError> {
    let mut changes = Vec::new();
    kept::changes(Book::new(index.storage()), &mut |change| {
        changes.push(format!("{change:?}"));
        Ok::<_, StorageError>(())
    })?;
    Ok(changes)
}

pub(super) fn read(folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, files);
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

pub(super) fn write_back(state: &Path, files: &Files) {
    for name in super::names(state).iter().filter(|name| name.starts_with("index") || *name == "journal") {
        fs::remove_dir_all(state.join(name)).or_else(|_| fs::remove_file(state.join(name))).unwrap();
    }
    for (path, bytes) in files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn some_file(index: &Path, random: &mut fastrand::Rng) -> PathBuf {
    let mut files = Files::new();
    read(index, &mut files);
    let files: Vec<PathBuf> =
        files.into_iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(path, _)| path).collect();
    files[random.usize(..files.len())].clone()
}

fn change(index: &Path, random: &mut fastrand::Rng, change: impl FnOnce(&mut Vec<u8>, &mut fastrand::Rng)) {
    let path = some_file(index, random);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes, random);
    fs::write(path, bytes).unwrap();
}

/// A place where something is written, for sled's files are mostly zeros.
fn written(bytes: &[u8], random: &mut fastrand::Rng) -> usize {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    random.usize(..end)
}

const DAMAGES: &[(&str, Damage)] = &[
    ("a flipped bit", |index, random| {
        change(index, random, |bytes, random| {
            let at = written(bytes, random);
            bytes[at] ^= 1 << random.u8(..8);
        });
    }),
    ("a file cut short", |index, random| {
        change(index, random, |bytes, random| bytes.truncate(random.usize(..bytes.len())));
    }),
    ("a block of zeros", |index, random| {
        change(index, random, |bytes, random| {
            let at = written(bytes, random);
            let end = (at + random.usize(1..4096)).min(bytes.len());
            bytes[at..end].fill(0);
        });
    }),
    ("a block of garbage", |index, random| {
        change(index, random, |bytes, random| {
            let at = written(bytes, random);
            let end = (at + random.usize(1..512)).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.u8(..));
        });
    }),
    ("garbage behind the end", |index, random| {
        change(index, random, |bytes, random| bytes.extend((0..random.usize(1..70_000)).map(|at| at as u8)));
    }),
    ("a file deleted", |index, random| fs::remove_file(some_file(index, random)).unwrap()),
    ("a file emptied", |index, random| fs::write(some_file(index, random), "").unwrap()),
    ("half a conf", |index, random| {
        let bytes = fs::read(index.join("conf")).unwrap();
        fs::write(index.join("conf"), &bytes[..random.usize(..bytes.len())]).unwrap();
    }),
    ("half a snapshot", |index, random| {
        fs::write(
            index.join(format!("snap.{:016X}.generating", random.u32(..))),
            vec![7; random.usize(..900)],
        )
        .unwrap();
    }),
];

#[test]
fn a_damaged_index_is_found_and_made_again_or_is_harmless() {
    let trials: usize = std::env::var("STALED_TRIALS").map_or(500, |text| text.parse().expect("a number"));
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    fill(&place, &daemon);
    remember(&place, &daemon);
    daemon.stop();
    let state = place.home.join("state");
    let opened = open(&state, 0);
    let (before, remembered_before) = (told(&opened.index), remembered(&opened.index).unwrap());
    drop(opened);
    assert!(before.len() > 11 && remembered_before.len() > 30, "{:?} {remembered_before:?}", before.keys());
    let mut files = Files::new();
    read(&state.join("index"), &mut files);
    read(&state.join("journal"), &mut files);
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut set_aside = 0;
    for trial in 1..=trials {
        let (what, damage) = DAMAGES[random.usize(..DAMAGES.len())];
        let again = format!("trial {trial}, {what}; again with seed {seed}");
        write_back(&state, &files);
        damage(&state.join("index"), &mut random);
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let mut opened = open(&state, trial);
            if remembered(&opened.index).is_err() {
                assert!(opened.index.storage().failure().is_some(), "the engine would not notice");
                drop(opened);
                opened = open_distrusting(&state, trial);
            }
            (told(&opened.index), remembered(&opened.index).unwrap(), opened.healed)
        }));
        let (after, remembered, healed) = opened.unwrap_or_else(|_| panic!("it did not open: {again}"));
        assert_eq!(after, before, "{again}");
        assert_eq!(remembered, remembered_before, "{again}");
        set_aside += usize::from(!healed.is_empty());
    }
    say(&format!("{trials} damages, {set_aside} indexes set aside, nothing lost"));
    assert!(set_aside > 0 || trials < 20, "no damage was ever found: seed {seed}");
}

type Held = Index<SledIndex>;

/// A value that is gone or is none, and who reads it.
const READERS: &[(Table, &[u8], Option<&[u8]>, fn(&Held, SessionNo) -> StorageError)] = &[
    (Table::Heads, &[0; 4], None, |index, session| index.head(session).unwrap_err()),
    (Table::Heads, &[0; 4], Some(b"?"), |index, session| index.head(session).unwrap_err()),
    (Table::Sources, &[0; 8], Some(b"?"), |index, _| index.held_after(None, 100).unwrap_err()),
    (Table::Sources, b"?", Some(b"?"), |index, _| index.held_after(None, 100).unwrap_err()),
];

/// Whoever asked is refused, and the engine, which asks for a failure after each turn, makes the index again.
#[test]
fn what_does_not_add_up_is_a_failure_of_the_store_whoever_reads_it() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    fill(&place, &daemon);
    daemon.stop();
    let state = place.home.join("state");
    for (trial, (table, key, bytes, read)) in READERS.iter().enumerate() {
        let mut opened = open(&state, trial);
        let session = opened.index.sessions().unwrap()[0];
        let storage = opened.index.storage_mut();
        match bytes {
            None => storage.remove(*table, key).unwrap(),
            Some(bytes) => storage.put(*table, key, bytes).unwrap(),
        }
        assert!(opened.index.storage().failure().is_none());
        let error = read(&opened.index, session).to_string();
        let failure = opened.index.storage().failure().map(ToString::to_string);
        assert_eq!(failure.as_ref(), Some(&error), "{table:?} {key:?} {bytes:?}");
        let again = opened.index.sessions().unwrap_err().to_string();
        assert_eq!(again, error, "nothing is read from it any more");
        drop(opened);
        fs::remove_dir_all(state.join("index")).unwrap();
    }
}

//! The words of the memory, beside sled: as the same table in memory has them, and gone when they are to be.

use super::index_damage::{Files, read};
use super::names;
use crate::harness::say;
use staled::index::storage::{Memory, Storage, Table};
use staled::store::sled_index::{Doubt, SledIndex};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const ID: [u8; 16] = [3; 16];
const WORDS: Table = Table::Words;
const USERS: u32 = 5;
const STEPS: u64 = 1_500;

/// How long a file of words gets.
const FILE_BYTES: usize = 1 << 20;

fn open(folder: &Path) -> SledIndex {
    SledIndex::open(folder, ID).unwrap().0
}

/// Opens it, which does not work.
fn doubt(folder: &Path) -> Doubt {
    SledIndex::open(folder, ID).err().expect("it is in doubt")
}

fn all(storage: &impl Storage, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    storage.scan(WORDS, prefix, &mut |key, value| all.push((key.to_vec(), value.to_vec()))).unwrap();
    all
}

fn some_from(storage: &impl Storage, from: &[u8], wanted: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut some = Vec::new();
    let mut take = |key: &[u8], value: &[u8]| {
        some.push((key.to_vec(), value.to_vec()));
        some.len() < wanted
    };
    storage.scan_from(WORDS, from, &mut take).unwrap();
    some
}

/// Every file below a folder that has these bytes.
pub(super) fn files_with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut files = Files::new();
    read(folder, &mut files);
    let has = |held: &[u8]| held.windows(bytes.len()).any(|window| window == bytes);
    files.into_iter().filter(|(_, held)| has(held)).map(|(path, _)| path).collect()
}

#[test]
fn what_is_told_and_forgotten_is_as_in_memory() {
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    say(&format!("run again with SEED={seed}"));
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    let (mut index, mut memory) = (open(&folder), Memory::default());
    // By user: every value that was ever told and may be in a file until the user's are shredded.
    let mut gone: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new(); USERS as usize];
    for step in 0..STEPS {
        let user = random.u32(..USERS);
        let key = [&user.to_be_bytes()[..], &[random.u8(..12)]].concat();
        match random.u8(..40) {
            0..20 => {
                let mut value = format!("secret {seed} {step};").into_bytes();
                value.resize(some_length(&mut random).max(value.len()), b'.');
                if let Some(before) = memory.get(WORDS, &key).unwrap() {
                    gone[user as usize].insert(before);
                }
                index.put(WORDS, &key, &value).unwrap();
                memory.put(WORDS, &key, &value).unwrap();
            }
            20..32 => {
                gone[user as usize].extend(memory.get(WORDS, &key).unwrap());
                index.remove(WORDS, &key).unwrap();
                memory.remove(WORDS, &key).unwrap();
            }
            32..34 => {
                index.shred(WORDS, &user.to_be_bytes()).unwrap();
                check_gone(&folder, &std::mem::take(&mut gone[user as usize]), seed);
                check_files(&folder.join("words"), user, &all(&memory, &user.to_be_bytes()), seed);
            }
            34..36 => {
                index.commit(step).unwrap();
                drop(index);
                index = open(&folder);
            }
            36..38 => {
                assert_eq!(
                    some_from(&index, &key, 3),
                    some_from(&memory, &key, 3),
                    "SEED={seed} step {step}"
                );
                let prefix = &key[..random.usize(..=4)];
                assert_eq!(all(&index, prefix), all(&memory, prefix), "SEED={seed} step {step}");
            }
            _ => assert_eq!(
                index.get(WORDS, &key).unwrap(),
                memory.get(WORDS, &key).unwrap(),
                "SEED={seed} step {step}"
            ),
        }
    }
    index.commit(STEPS).unwrap();
    drop(index);
    assert_eq!(all(&open(&folder), &[]), all(&memory, &[]), "SEED={seed}");
}

/// Mostly short, and now and then about as long as a file gets.
fn some_length(random: &mut fastrand::Rng) -> usize {
    match random.u8(..20) {
        0 => FILE_BYTES + random.usize(..5) - 2,
        1 => FILE_BYTES / 2 + random.usize(..3),
        2..6 => 200_000,
        _ => [0, 20, 300, 5_000][random.usize(..4)],
    }
}

/// Nothing but these values is in a user's files, and none of them is too long.
fn check_files(words: &Path, user: u32, told: &[(Vec<u8>, Vec<u8>)], seed: u64) {
    let prefix = format!("{user}-");
    let files = names(words).into_iter().filter(|name| name.starts_with(&prefix));
    let files: Vec<usize> = files.map(|name| fs::read(words.join(name)).unwrap().len()).collect();
    let lengths: Vec<usize> = told.iter().map(|(_, value)| value.len()).collect();
    assert_eq!(files.iter().sum::<usize>(), lengths.iter().sum::<usize>(), "SEED={seed} user {user}");
    assert!(
        files.iter().all(|file| *file <= FILE_BYTES || lengths.contains(file)),
        "SEED={seed} user {user}: {files:?} of {lengths:?}"
    );
}

/// Not in the files of the words, and not in any other of the index.
fn check_gone(folder: &Path, gone: &BTreeSet<Vec<u8>>, seed: u64) {
    let mut files = Files::new();
    read(folder, &mut files);
    let begin = format!("secret {seed} ").into_bytes();
    for (path, bytes) in files {
        for told in bytes.split(|&byte| byte == b';').filter(|told| told.len() >= begin.len()) {
            // A value begins where another ends, at its filling.
            let from = told.iter().rposition(|&byte| byte == b's').unwrap_or_default();
            let (_, value) = told.split_at(from);
            let is_gone = value.starts_with(&begin) && gone.iter().any(|gone| begins_with(gone, value));
            assert!(!is_gone, "SEED={seed}: {} is in {}", String::from_utf8_lossy(value), path.display());
        }
    }
}

fn begins_with(value: &[u8], told: &[u8]) -> bool {
    value.starts_with(told) && value.get(told.len()) == Some(&b';')
}

#[test]
fn removed_words_are_in_no_file_of_the_index_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    let mut index = open(&folder);
    let key = |user: u8, number: u8| [0, 0, 0, user, number];
    for user in 1..3 {
        (0..9).for_each(|number| {
            index.put(WORDS, &key(user, number), format!("words {user} {number};").as_bytes()).unwrap();
        });
    }
    index.remove(WORDS, &key(1, 4)).unwrap();
    index.put(WORDS, &key(1, 5), b"other words").unwrap();
    index.flush().unwrap();
    assert_eq!(files_with(&folder, b"words 1 4;"), [folder.join("words/1-0")], "sled never had them");
    index.shred(WORDS, &key(1, 0)[..4]).unwrap();
    index.flush().unwrap();
    assert_eq!(files_with(&folder, b"words 1 4;"), [] as [PathBuf; 0]);
    assert_eq!(files_with(&folder, b"words 1 5;"), [] as [PathBuf; 0], "what was told anew is forgotten too");
    assert_eq!(names(&folder.join("words")), ["1-1", "2-0"]);
    assert_eq!(index.get(WORDS, &key(1, 5)).unwrap().as_deref(), Some(&b"other words"[..]));
    assert_eq!(all(&index, &key(1, 0)[..4]).len(), 8);
    let mode = |path: &str| folder.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(["words", "words/1-1", "words/2-0"].map(mode), [0o700, 0o600, 0o600]);
    (0..9).for_each(|number| index.remove(WORDS, &key(2, number)).unwrap());
    index.shred(WORDS, &key(2, 0)[..4]).unwrap();
    assert_eq!(names(&folder.join("words")), ["1-1"], "a user without words has no file");
    index.put(WORDS, &key(2, 0), b"new words").unwrap();
    assert_eq!(index.get(WORDS, &key(2, 0)).unwrap().as_deref(), Some(&b"new words"[..]));
}

/// A value of this length that says what it is.
fn value(number: u8, length: usize) -> Vec<u8> {
    let mut value = format!("secret {number};").into_bytes();
    value.resize(length, b'.');
    value
}

fn put(index: &mut SledIndex, number: u8, length: usize) {
    index.put(WORDS, &[0, 0, 0, 1, number], &value(number, length)).unwrap();
}

/// Which files of words there are, and how long they are.
fn lengths(folder: &Path) -> Vec<(String, u64)> {
    let words = folder.join("words");
    let length = |name: String| (words.join(&name).metadata().unwrap().len(), name);
    names(&words).into_iter().map(length).map(|(length, name)| (name, length)).collect()
}

#[test]
fn a_file_that_is_full_is_followed_by_another_and_what_is_longer_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    let mut index = open(&folder);
    let told = [FILE_BYTES / 2, FILE_BYTES / 2, 12, FILE_BYTES, FILE_BYTES + 1, 13, FILE_BYTES - 13, 14];
    for (number, length) in (0..).zip(told) {
        put(&mut index, number, length);
        index.commit(1).unwrap();
        drop(index);
        index = open(&folder);
    }
    let lengths: Vec<u64> = lengths(&folder).into_iter().map(|(_, length)| length).collect();
    assert_eq!(
        lengths,
        [FILE_BYTES, 12, FILE_BYTES, FILE_BYTES + 1, FILE_BYTES, 14].map(|length| length as u64)
    );
    for (number, length) in (0..).zip(told) {
        let found = index.get(WORDS, &[0, 0, 0, 1, number]).unwrap();
        assert!(found == Some(value(number, length)), "value {number}");
    }
}

/// Four files of a user, with two values in each but the last.
fn told_in_many_files(folder: &Path) -> SledIndex {
    let mut index = open(folder);
    (0..7).for_each(|number| put(&mut index, number, 400_000));
    index.put(WORDS, &[0, 0, 0, 2], b"another's").unwrap();
    index
}

#[test]
fn only_files_that_hold_something_removed_are_written_anew() {
    for (reopens, replaces) in [(false, false), (false, true), (true, false), (true, true)] {
        let what = format!("reopens {reopens}, replaces {replaces}");
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("index");
        let mut index = told_in_many_files(&folder);
        let words = folder.join("words");
        let seen = |name: &str| {
            let metadata = words.join(name).metadata().unwrap();
            (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len())
        };
        let before = ["1-0", "1-2", "2-0"].map(seen);
        let (latest, _, _, _) = seen("1-3");
        if replaces {
            index.put(WORDS, &[0, 0, 0, 1, 3], b"other words").unwrap();
        } else {
            index.remove(WORDS, &[0, 0, 0, 1, 3]).unwrap();
        }
        if reopens {
            index.commit(1).unwrap();
            drop(index);
            index = open(&folder);
        }
        assert_eq!(files_with(&folder, b"secret 3;"), [words.join("1-1")], "{what}");
        index.shred(WORDS, &[0, 0, 0, 1]).unwrap();
        assert_eq!(files_with(&folder, b"secret 3;"), [] as [PathBuf; 0], "{what}");
        assert_eq!(names(&words), ["1-0", "1-2", "1-3", "2-0"], "{what}");
        assert_eq!(["1-0", "1-2", "2-0"].map(seen), before, "{what}");
        assert_eq!(seen("1-3").0, latest, "{what}: what was left went to its end");
        let bytes = fs::read(words.join("1-3")).unwrap();
        let left =
            [value(6, 400_000), b"other words"[..11 * usize::from(replaces)].to_vec(), value(2, 400_000)];
        assert!(bytes == left.concat(), "{what}");
        assert!(index.get(WORDS, &[0, 0, 0, 1, 2]).unwrap() == Some(value(2, 400_000)), "{what}");
        // And nothing is left to do.
        let before = ["1-0", "1-2", "1-3", "2-0"].map(seen);
        index.shred(WORDS, &[0, 0, 0, 1]).unwrap();
        assert_eq!(["1-0", "1-2", "1-3", "2-0"].map(seen), before, "{what}");
    }
}

#[test]
fn what_was_forgotten_in_every_file_is_gone_from_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    let mut index = told_in_many_files(&folder);
    for number in [0, 2, 4, 6] {
        index.remove(WORDS, &[0, 0, 0, 1, number]).unwrap();
    }
    index.shred(WORDS, &[0, 0, 0, 1]).unwrap();
    // The latest of them held something removed, so none of them is appended to.
    let expected = [("1-4", 800_000), ("1-5", 400_000), ("2-0", 9)];
    assert_eq!(lengths(&folder), expected.map(|(name, length)| (name.to_owned(), length)));
    for number in [1, 3, 5] {
        assert!(index.get(WORDS, &[0, 0, 0, 1, number]).unwrap() == Some(value(number, 400_000)), "{number}");
    }
    put(&mut index, 7, 20);
    assert_eq!(files_with(&folder, b"secret 7;"), [folder.join("words/1-5")]);
}

#[test]
fn what_was_written_and_then_forgotten_by_a_kill_is_gone_with_the_next_shredding() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    told(&folder);
    let before = all(&open(&folder), &[]);
    let file = folder.join("words/1-0");
    // sled never told anybody where it stands.
    let written = [fs::read(&file).unwrap(), b"secret 1;".to_vec()].concat();
    fs::write(&file, written).unwrap();
    let mut index = open(&folder);
    assert_eq!(all(&index, &[]), before);
    index.put(WORDS, &[0, 0, 0, 1, 9], b"told behind it").unwrap();
    index.shred(WORDS, &[0, 0, 0, 1]).unwrap();
    assert_eq!(files_with(&folder, b"secret 1;"), [] as [PathBuf; 0]);
    assert_eq!(index.get(WORDS, &[0, 0, 0, 1, 9]).unwrap().as_deref(), Some(&b"told behind it"[..]));
    assert_eq!(all(&index, &[]).len(), before.len() + 1);
}

/// An index with some words of users 1 and 2, closed.
fn told(folder: &Path) {
    let mut index = open(folder);
    for number in 0..4 {
        index.put(WORDS, &[0, 0, 0, 1, number], format!("words {number}").as_bytes()).unwrap();
    }
    index.put(WORDS, &[0, 0, 0, 2], b"another's").unwrap();
    index.commit(1).unwrap();
}

#[test]
fn what_a_kill_left_is_gone_with_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    told(&folder);
    let before = all(&open(&folder), &[]);
    let words = folder.join("words");
    // Killed while the next file was written, and some things that nobody left.
    for name in ["1-1", "1-01", "3-0", "02-0", "2-0.aside", "-", "1-18446744073709551616"] {
        fs::write(words.join(name), "words 0words 1").unwrap();
    }
    fs::create_dir_all(words.join("1-2/deep")).unwrap();
    std::os::unix::fs::symlink(words.join("1-0"), words.join("1-3")).unwrap();
    let index = open(&folder);
    assert_eq!(names(&words), ["1-0", "2-0"]);
    assert_eq!(all(&index, &[]), before);
}

#[test]
fn words_whose_file_is_not_there_put_the_index_in_doubt_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    told(&whole);
    let trial = |name: &str, spoil: &dyn Fn(&Path)| {
        let trial = folder.path().join(name);
        let mut files = Files::new();
        read(&whole, &mut files);
        for (path, bytes) in files {
            let path = trial.join(path.strip_prefix(&whole).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        spoil(&trial.join("words"));
        trial
    };
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("precious"), "").unwrap();
    for (name, spoil) in [
        ("no file", &(|words: &Path| fs::remove_file(words.join("1-0")).unwrap()) as &dyn Fn(&Path)),
        ("a short file", &|words| {
            let bytes = fs::read(words.join("1-0")).unwrap();
            fs::write(words.join("1-0"), &bytes[..bytes.len() - 1]).unwrap();
        }),
        // The new file was written, the old one removed, and sled has forgotten all of it.
        ("later", &|words| fs::rename(words.join("1-0"), words.join("1-1")).unwrap()),
        ("no folder", &|words| fs::remove_dir_all(words).unwrap()),
        ("a file", &|words| {
            fs::remove_dir_all(words).unwrap();
            fs::write(words, "").unwrap();
        }),
        ("a link", &|words| {
            fs::rename(words, words.with_file_name("moved")).unwrap();
            std::os::unix::fs::symlink(&elsewhere, words).unwrap();
        }),
        ("a folder as a file", &|words| {
            fs::remove_file(words.join("1-0")).unwrap();
            fs::create_dir(words.join("1-0")).unwrap();
        }),
    ] {
        let trial = trial(name, spoil);
        let doubt = doubt(&trial);
        assert_eq!(doubt.trouble, staled::index::storage::Trouble::Contents, "{name}: {doubt:?}");
    }
    assert!(elsewhere.join("precious").exists());
}

#[test]
fn a_shredding_that_was_killed_half_way_is_never_believed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    told(&folder);
    let mut index = open(&folder);
    let old = fs::read(folder.join("words/1-0")).unwrap();
    index.begin(2).unwrap();
    index.remove(WORDS, &[0, 0, 0, 1, 2]).unwrap();
    index.shred(WORDS, &[0, 0, 0, 1]).unwrap();
    drop(index);
    fs::write(folder.join("words/1-0"), old).unwrap();
    let doubt = doubt(&folder);
    assert!(doubt.reason.contains("cut short"), "{doubt:?}");
    assert_eq!(names(&folder.join("words")), ["1-1", "2-0"], "and the old file is gone");
}

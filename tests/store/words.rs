//! The words of the memory, beside sled: as the same table in memory has them, and gone when they are to be.

use super::index_damage::{Files, read};
use super::names;
use crate::harness::say;
use staled::index::storage::{Memory, Storage, Table};
use staled::store::sled_index::{Doubt, SledIndex};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const ID: [u8; 16] = [3; 16];
const WORDS: Table = Table::Words;
const USERS: u32 = 5;
const STEPS: u64 = 1_500;

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
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
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
                value.resize([0, 20, 300, 5_000, 20_000][random.usize(..5)].max(value.len()), b'.');
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
                let prefix = format!("{user}-");
                let files =
                    names(&folder.join("words")).iter().filter(|name| name.starts_with(&prefix)).count();
                assert_eq!(files, usize::from(!all(&memory, &user.to_be_bytes()).is_empty()), "SEED={seed}");
            }
            34 => {
                index.commit(step).unwrap();
                drop(index);
                index = open(&folder);
            }
            35..37 => {
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
    // Killed while the next generation was written, and some things that nobody left.
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
        // The new generation was written, the old one removed, and sled has forgotten all of it.
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
    assert_eq!(names(&folder.join("words")), ["1-1", "2-0"], "and the old generation is gone");
}

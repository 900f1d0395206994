//! What sled and the files of words give back is what was put under the key, or nothing is read any more.

use super::{SledIndex, trouble};
use crate::index::storage::{Storage, StorageError, Table, Trouble};
use rustix::io::Errno;

#[test]
fn a_value_that_was_not_written_under_its_key_is_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let (mut index, _) = SledIndex::open(&folder.path().join("index"), [7; 16]).unwrap();
    index.put(Table::Rows, b"key", b"value").unwrap();
    assert_eq!(index.get(Table::Rows, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    let tree = index.trees[Table::Rows as usize].clone();
    let sealed = tree.get(b"key").unwrap().unwrap().to_vec();
    let flipped = |at: usize| {
        let mut bytes = sealed.clone();
        bytes[at] ^= 1;
        bytes
    };
    let wrong = (0..sealed.len()).map(|at| (&b"key"[..], flipped(at)));
    let wrong = wrong.chain([(&b"other"[..], sealed.clone()), (&b"key"[..], sealed[..5].to_vec())]);
    for (key, bytes) in wrong {
        tree.insert(key, bytes.clone()).unwrap();
        index.failure.take();
        assert!(index.get(Table::Rows, key).is_err(), "{key:?} {bytes:?}");
        index.failure.take();
        assert!(index.scan(Table::Rows, key, &mut |_, _| {}).is_err(), "{key:?} {bytes:?}");
    }
}

#[test]
fn words_that_were_not_written_under_their_key_are_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let (mut index, _) = SledIndex::open(&folder.path().join("index"), [7; 16]).unwrap();
    let key = |number: u8| [0, 0, 0, 9, number];
    index.put(Table::Words, &key(1), b"words of one").unwrap();
    index.put(Table::Words, &key(2), b"words of two").unwrap();
    index.put(Table::Words, &[0, 0, 0, 8], b"words of one").unwrap();
    let tree = index.trees[Table::Words as usize].clone();
    let place = tree.get(key(1)).unwrap().unwrap().to_vec();
    let file = folder.path().join("index/words/9-0");
    let bytes = std::fs::read(&file).unwrap();
    // So that the file holds something removed: no words of any other are read to be moved.
    index.put(Table::Words, &key(3), b"").unwrap();
    index.remove(Table::Words, &key(3)).unwrap();
    let refused_by = |reads: usize, index: &mut SledIndex, key: &[u8], what: &str| {
        let all: [fn(&mut SledIndex, &[u8]) -> Result<(), StorageError>; 3] = [
            |index, key| index.get(Table::Words, key).map(drop),
            |index, key| index.scan(Table::Words, key, &mut |_, _| {}),
            |index, key| index.shred(Table::Words, &key[..4]),
        ];
        for read in &all[..reads] {
            let read = read(index, key);
            assert_eq!(read.expect_err(what).trouble, Trouble::Contents, "{what}");
            assert!(index.get(Table::Meta, b"any").is_err(), "{what}: it is final");
            index.failure.take();
        }
    };
    let refused = |index: &mut SledIndex, key: &[u8], what: &str| refused_by(3, index, key, what);
    let set = |index: &SledIndex, key: &[u8], place: &[u8]| {
        index.trees[Table::Words as usize].insert(key, place).unwrap();
    };
    for at in 0..place.len() {
        let mut flipped = place.clone();
        flipped[at] ^= 1;
        set(&index, &key(1), &flipped);
        // One that says it is in another file does not stand in the way of those that are in this one.
        let reads = if at < 4 { 2 } else { 3 };
        refused_by(reads, &mut index, &key(1), &format!("byte {at} of its place"));
    }
    for (at, place) in [(1, &place[..20]), (2, &place[..])] {
        set(&index, &key(at), place);
        refused(&mut index, &key(at), "a place that is cut short, or another's");
    }
    set(&index, &key(1), &place);
    tree.remove(key(2)).unwrap();
    for at in 0..bytes.len() / 2 {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        std::fs::write(&file, &flipped).unwrap();
        refused(&mut index, &key(1), &format!("byte {at} of the file"));
        std::fs::write(&file, &bytes[..at]).unwrap();
        refused(&mut index, &key(1), &format!("a file of {at} bytes"));
    }
    std::fs::remove_file(&file).unwrap();
    refused(&mut index, &key(1), "no file");
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(index.get(Table::Words, &key(1)).unwrap().as_deref(), Some(&b"words of one"[..]));
}

#[test]
fn a_closed_disk_is_not_a_full_one_and_a_failing_one_is_neither() {
    for (errno, expected) in [
        (Errno::NOSPC, Trouble::Full),
        (Errno::DQUOT, Trouble::Full),
        (Errno::ROFS, Trouble::Disk),
        (Errno::ACCESS, Trouble::Disk),
        (Errno::MFILE, Trouble::Disk),
        (Errno::IO, Trouble::Contents),
    ] {
        assert_eq!(trouble(&sled::Error::Io(errno.into())), expected, "{errno}");
    }
}

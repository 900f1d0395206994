//! The journal's snapshots: what is compacted folds to the same, and the files are the documented ones.
//!
//! A payload is `KEY=VALUE`, and the last one of a key counts: that is the fold.

mod background;
mod damage;
mod forgetting;
mod lives;

use super::{SmallDisk, names};
use staled::store::journal::{Closed, Journal, JournalError, Opened, Piece, peek_id};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ID: [u8; 16] = [3; 16];
const OTHER_ID: [u8; 16] = [4; 16];
const HEADER_LEN: usize = 52;
const HEAD_LEN: usize = 28;

/// What a journal told: the snapshot it begins with, what was kept in it, and the records behind it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Told {
    snapshot: Option<u64>,
    kept: Vec<String>,
    records: Vec<(u64, String)>,
}

impl Told {
    fn take(&mut self, piece: Piece<'_>) {
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).unwrap();
        match piece {
            Piece::Snapshot { last_seq } => {
                assert_eq!(*self, Self::default(), "the snapshot comes first, and once");
                self.snapshot = Some(last_seq);
            }
            Piece::Kept(payload) => {
                assert!(self.snapshot.is_some() && self.records.is_empty(), "kept before the records");
                self.kept.push(text(payload));
            }
            Piece::Record(seq, payload) => {
                let before = self.records.last().map_or(self.snapshot.unwrap_or(0), |last| last.0);
                assert_eq!(seq, before + 1, "no record is missing");
                self.records.push((seq, text(payload)));
            }
        }
    }

    fn folded(&self) -> Vec<String> {
        fold(self.kept.iter().chain(self.records.iter().map(|(_, text)| text)))
    }

    /// How many payloads, counted from the first.
    fn len(&self) -> usize {
        self.kept.len() + self.records.len()
    }
}

fn fold<'text>(payloads: impl IntoIterator<Item = &'text String>) -> Vec<String> {
    let mut folded = BTreeMap::new();
    for payload in payloads {
        folded.insert(payload.split_once('=').unwrap().0, payload.clone());
    }
    folded.into_values().collect()
}

fn open(dir: &Path) -> Result<(Journal, Opened, Told), JournalError> {
    let mut told = Told::default();
    let (journal, opened) = Journal::open(dir, OTHER_ID, &mut |piece| {
        told.take(piece);
        Ok(())
    })?;
    Ok((journal, opened, told))
}

fn create(dir: &Path) -> Journal {
    Journal::open(dir, ID, &mut |_| Ok(())).unwrap().0
}

fn read(closed: &Closed) -> Told {
    let mut told = Told::default();
    closed
        .read(&mut |piece| {
            told.take(piece);
            Ok(())
        })
        .unwrap();
    told
}

fn write(closed: &Closed) -> staled::store::journal::Written {
    closed.write(read(closed).folded()).unwrap()
}

fn compact(journal: &mut Journal) {
    let closed = journal.closed().unwrap();
    let written = write(&closed);
    journal.compacted(written);
    closed.remove_covered().unwrap();
}

fn payload(seq: u64) -> String {
    format!("k{}=record {seq}{}", seq % 5, " and more".repeat(usize::try_from(seq % 3).unwrap()))
}

fn append(journal: &mut Journal, seqs: std::ops::RangeInclusive<u64>) {
    seqs.for_each(|seq| assert_eq!(journal.append(payload(seq).as_bytes()).unwrap(), seq));
}

/// Five kept of ten, in a snapshot; then a closed segment of 11 to 13 and an open one of 14 to 16.
fn journal_of(dir: &Path) -> Told {
    let mut journal = create(dir);
    append(&mut journal, 1..=10);
    journal.roll().unwrap();
    compact(&mut journal);
    append(&mut journal, 11..=13);
    journal.roll().unwrap();
    append(&mut journal, 14..=16);
    drop(journal);
    let kept = fold(&(1..=10).map(payload).collect::<Vec<_>>());
    Told { snapshot: Some(10), kept, records: (11..=16).map(|seq| (seq, payload(seq))).collect() }
}

fn segment(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("{first_seq:020}.seg"))
}

fn snapshot(dir: &Path, last_seq: u64) -> PathBuf {
    dir.join(format!("{last_seq:020}.snap"))
}

fn is(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == ending)
}

fn copy_of(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.path().join(&name)).unwrap();
    }
    to
}

fn trials() -> (usize, u64) {
    let trials = std::env::var("STALED_TRIALS").map_or(60, |text| text.parse().expect("a number"));
    let seed = std::env::var("STALED_SEED").map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    (trials, seed)
}

#[test]
fn a_snapshot_stands_for_the_segments_that_it_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let expected = journal_of(dir.path());
    let (journal, opened, told) = open(dir.path()).unwrap();
    assert_eq!(told, expected);
    assert_eq!((opened.id, opened.last_seq, opened.in_doubt, opened.damage), (ID, 16, false, None));
    assert_eq!(peek_id(dir.path()).unwrap(), Some(ID));
    let files = ["00000000000000000010.snap", "00000000000000000011.seg", "00000000000000000014.seg"];
    assert_eq!(names(dir.path()), files);
    assert_eq!(journal.closed().unwrap().last_seq(), 13);
}

fn format_of(dir: &Path, first_seq: u64) -> u8 {
    fs::read(segment(dir, first_seq)).unwrap()[8]
}

/// As a program wrote it that knew no snapshots.
fn make_older(dir: &Path, first_seq: u64) {
    let mut bytes = fs::read(segment(dir, first_seq)).unwrap();
    bytes[8] = 1;
    let sum = staled::world::digest::blake3(&bytes[..36]);
    bytes[36..52].copy_from_slice(&sum.as_bytes()[..16]);
    fs::write(segment(dir, first_seq), bytes).unwrap();
}

/// It would find that the beginning is missing, and give up everything; a format that it does not know it leaves alone.
#[test]
fn an_older_program_does_not_take_what_is_behind_a_snapshot_for_a_damaged_journal() {
    let dir = tempfile::tempdir().unwrap();
    let expected = journal_of(dir.path());
    assert_eq!([11, 14].map(|first_seq| format_of(dir.path(), first_seq)), [2, 2]);
    // Both were begun before the snapshot was there, by the older program itself.
    [11, 14].iter().for_each(|&first_seq| make_older(dir.path(), first_seq));
    for times in 1..=2 {
        let (_, opened, told) = open(dir.path()).unwrap();
        assert_eq!((told, opened.last_seq, opened.in_doubt), (expected.clone(), 16, false));
        assert_eq!(format_of(dir.path(), 17), 2, "one that it does not know");
        assert_eq!(names(dir.path()).len(), 4, "once: {times}");
    }
    // One that holds nothing yet is made again in its place.
    make_older(dir.path(), 17);
    let (mut journal, opened, told) = open(dir.path()).unwrap();
    assert_eq!((told, opened.last_seq, format_of(dir.path(), 17)), (expected, 16, 2));
    assert_eq!((journal.append(b"k1=on").unwrap(), names(dir.path()).len()), (17, 4));
    drop(journal);
    assert_eq!(open(dir.path()).unwrap().2.records.last(), Some(&(17, "k1=on".to_owned())));
}

#[test]
fn a_journal_that_was_never_closed_is_for_older_programs_too() {
    let dir = tempfile::tempdir().unwrap();
    append(&mut create(dir.path()), 1..=4);
    assert_eq!(open(dir.path()).unwrap().1.last_seq, 4);
    assert_eq!((format_of(dir.path(), 1), names(dir.path()).len()), (1, 1));
}

#[test]
fn the_bytes_of_a_snapshot_are_the_documented_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = create(dir.path());
    append(&mut journal, 1..=3);
    journal.roll().unwrap();
    let written = journal.closed().unwrap().write(["a=1", ""]).unwrap();
    let bytes = fs::read(snapshot(dir.path(), 3)).unwrap();
    let sum = |bytes: &[u8]| staled::world::digest::blake3(bytes).as_bytes()[..16].to_vec();
    let header = [&b"STALEDS1\x01\0\0\0"[..], &ID, &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
    let record = |ordinal: u8, payload: &[u8]| {
        let numbered = [&[ordinal, 0, 0, 0, 0, 0, 0, 0], payload].concat();
        let len = [u8::try_from(payload.len()).unwrap(), 0, 0, 0];
        [&len[..], &numbered[..8], &sum(&numbered), payload].concat()
    };
    let mut link = sum(&header);
    for (ordinal, payload) in [(1, &b"a=1"[..]), (2, b"")] {
        link = sum(&[&link[..], &record(ordinal, payload)[12..28]].concat());
    }
    let count = [2, 0, 0, 0, 0, 0, 0, 0];
    let end = [&[0xff; 4][..], &count, &sum(&[&link[..], &count].concat())].concat();
    let expected = [&header[..], &sum(&header), &record(1, b"a=1"), &record(2, b""), &end].concat();
    assert_eq!(bytes, expected);
    assert_eq!((written.last_seq, written.bytes), (3, bytes.len() as u64));
}

#[test]
fn nothing_is_left_and_that_is_said_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = create(dir.path());
    assert_eq!(journal.closed(), None, "nothing is closed");
    append(&mut journal, 1..=3);
    assert_eq!(journal.closed(), None, "what is appended to is not");
    journal.roll().unwrap();
    let closed = journal.closed().unwrap();
    let written = closed.write([""; 0]).unwrap();
    journal.compacted(written);
    closed.remove_covered().unwrap();
    assert_eq!(journal.closed(), None);
    drop(journal);
    let (mut journal, opened, told) = open(dir.path()).unwrap();
    assert_eq!(told, Told { snapshot: Some(3), ..Told::default() });
    assert_eq!((opened.last_seq, opened.in_doubt), (3, false));
    append(&mut journal, 4..=4);
}

#[test]
fn it_is_due_when_the_segments_are_long_and_no_shorter_than_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = create(dir.path());
    journal.set_segment_bytes_max(1000);
    append(&mut journal, 1..=40);
    let on_disk = || {
        let found = names(dir.path()).into_iter().filter(|name| is(name, "seg"));
        let mut lens: Vec<u64> =
            found.map(|name| fs::metadata(dir.path().join(name)).unwrap().len()).collect();
        assert!(lens.iter().all(|&len| len <= 1000), "{lens:?}");
        lens.pop();
        lens.iter().sum::<u64>()
    };
    let (bytes, closed) = (on_disk(), journal.closed().unwrap());
    assert!(closed.is_due(bytes) && !closed.is_due(bytes + 1), "{bytes} {closed:?}");
    let big = closed.write(["x".repeat(5000)]).unwrap();
    journal.compacted(big);
    closed.remove_covered().unwrap();
    let mut seq = 41;
    while on_disk() < big.bytes {
        assert!(journal.closed().is_none_or(|closed| !closed.is_due(1)), "the snapshot is longer");
        append(&mut journal, seq..=seq);
        seq += 1;
    }
    assert!(journal.closed().unwrap().is_due(1));
    drop(journal);
    // An opening measures the same.
    let journal = open(dir.path()).unwrap().0;
    assert!(journal.closed().unwrap().is_due(on_disk()) && !journal.closed().unwrap().is_due(on_disk() + 1));
}

#[test]
fn a_damaged_segment_is_not_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = create(dir.path());
    append(&mut journal, 1..=4);
    journal.roll().unwrap();
    append(&mut journal, 5..=8);
    journal.roll().unwrap();
    let closed = journal.closed().unwrap();
    let whole = fs::read(segment(dir.path(), 1)).unwrap();
    let is_damage = |closed: &Closed| closed.read(&mut |_| Ok(())).unwrap_err().is_damage();
    for at in [0, HEADER_LEN, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(segment(dir.path(), 1), bytes).unwrap();
        assert!(is_damage(&closed), "at {at}");
    }
    fs::write(segment(dir.path(), 1), &whole).unwrap();
    closed.read(&mut |_| Ok(())).unwrap();
    for first_seq in [5, 1] {
        fs::remove_file(segment(dir.path(), first_seq)).unwrap();
        assert!(is_damage(&closed), "{first_seq} is missing");
    }
    assert_eq!(closed.covered().unwrap(), Vec::<PathBuf>::new(), "nothing stands for them");
}

#[test]
fn a_disk_that_refuses_costs_the_compaction_only() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.path("journal");
    let mut journal = create(&dir);
    append(&mut journal, 1..=20);
    journal.roll().unwrap();
    append(&mut journal, 21..=24);
    let closed = journal.closed().unwrap();
    let before = names(&dir);
    let ballast = disk.fill_but(0);
    let refused = closed.write([vec![b'x'; 9000]]).unwrap_err();
    assert!(matches!(refused, JournalError::Io { .. }), "{refused}");
    assert_eq!(names(&dir), before, "nothing half made is left on a full disk");
    fs::remove_file(ballast).unwrap();
    // A folder of that name is in the way of the last step.
    fs::create_dir(snapshot(&dir, 20)).unwrap();
    assert!(matches!(closed.write(["k=1"]), Err(JournalError::Io { doing: "put in place", .. })));
    fs::remove_dir(snapshot(&dir, 20)).unwrap();
    assert_eq!(names(&dir), before);
    append(&mut journal, 25..=26);
    compact(&mut journal);
    drop(journal);
    let (_, opened, told) = open(&dir).unwrap();
    assert_eq!(told.folded(), fold(&(1..=26).map(payload).collect::<Vec<_>>()));
    assert_eq!((told.snapshot, opened.in_doubt), (Some(20), false));
}

//! The journal against crashes, cuts, flips and a full disk.

use super::{SmallDisk, names};
use staled::store::journal::{Journal, JournalError, Opened, PAYLOAD_MAX, Piece, SEGMENT_BYTES_MAX, peek_id};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ID: [u8; 16] = [3; 16];
const OTHER_ID: [u8; 16] = [4; 16];
const HEADER_LEN: usize = 52;
const RECORD_HEAD_LEN: usize = 28;

type Records = Vec<(u64, Vec<u8>)>;

fn open(dir: &Path) -> Result<(Journal, Opened, Records), JournalError> {
    let mut records = Vec::new();
    let (journal, opened) = Journal::open(dir, OTHER_ID, &mut |piece| {
        let Piece::Record(seq, payload) = piece else { panic!("nothing was compacted") };
        records.push((seq, payload.to_vec()));
        Ok(())
    })?;
    Ok((journal, opened, records))
}

fn payload(seq: u64) -> Vec<u8> {
    format!("record {seq}").into_bytes().repeat(usize::try_from(seq % 3).unwrap())
}

/// A new journal whose records are `payload(1)..=payload(count)`, rolled before each seq in `rolls`.
fn journal_of(dir: &Path, count: u64, rolls: &[u64]) -> Journal {
    let (mut journal, opened) = Journal::open(dir, ID, &mut |_| Ok(())).unwrap();
    assert_eq!(opened, Opened { id: ID, last_seq: 0, torn: None, damage: None, in_doubt: false });
    for seq in 1..=count {
        if rolls.contains(&seq) {
            journal.roll().unwrap();
        }
        assert_eq!(journal.append(&payload(seq)).unwrap(), seq);
    }
    journal
}

fn expected(count: u64) -> Records {
    (1..=count).map(|seq| (seq, payload(seq))).collect()
}

fn segment(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("{first_seq:020}.seg"))
}

/// Where each of the records `from..=to` starts, in a segment that begins with the first; and where the last ends.
fn starts(from: u64, to: u64) -> Vec<usize> {
    let mut starts = vec![HEADER_LEN];
    for seq in from..=to {
        starts.push(starts[starts.len() - 1] + RECORD_HEAD_LEN + payload(seq).len());
    }
    starts
}

fn copy_of(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.path().join(&name)).unwrap();
    }
    to
}

#[test]
fn what_was_appended_is_replayed_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("state").join("journal");
    drop(journal_of(&dir, 20, &[]));
    let (mut journal, opened, records) = open(&dir).unwrap();
    assert_eq!(opened, Opened { id: ID, last_seq: 20, torn: None, damage: None, in_doubt: false });
    assert_eq!(records, expected(20));
    assert_eq!(journal.append(b"more").unwrap(), 21);
    drop(journal);
    assert_eq!(open(&dir).unwrap().2.last().unwrap(), &(21, b"more".to_vec()));
    assert_eq!(names(&dir), ["00000000000000000001.seg"]);
}

#[test]
fn the_bytes_on_disk_are_the_documented_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_of(dir.path(), 0, &[]);
    journal.append(b"hello").unwrap();
    let bytes = fs::read(segment(dir.path(), 1)).unwrap();
    assert_eq!(bytes.len(), HEADER_LEN + RECORD_HEAD_LEN + 5);
    assert_eq!(&bytes[..12], b"STALEDJ1\x01\0\0\0");
    assert_eq!(bytes[12..28], ID);
    assert_eq!(&bytes[28..36], &[1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[36..52], staled::world::digest::blake3(&bytes[..36]).as_bytes()[..16]);
    assert_eq!(&bytes[52..64], &[5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[64..80], staled::world::digest::blake3(b"\x01\0\0\0\0\0\0\0hello").as_bytes()[..16]);
    assert_eq!(&bytes[80..], b"hello");
}

#[test]
fn a_journal_cut_at_any_byte_gives_a_prefix_and_goes_on() {
    let made = tempfile::tempdir().unwrap();
    drop(journal_of(made.path(), 6, &[4]));
    let starts = starts(4, 6);
    let whole = fs::read(segment(made.path(), 4)).unwrap();
    assert_eq!(whole.len(), starts[3]);
    for cut in 0..=whole.len() {
        let dir = copy_of(made.path());
        let last = segment(dir.path(), 4);
        fs::write(&last, &whole[..cut]).unwrap();
        let (mut journal, opened, records) = open(dir.path()).unwrap();
        let kept = starts[1..].iter().filter(|&&end| end <= cut).count() as u64;
        assert_eq!(records, expected(3 + kept), "cut at {cut}");
        assert_eq!((opened.id, opened.last_seq), (ID, 3 + kept), "cut at {cut}");
        let good_end = starts.iter().rev().find(|&&start| start <= cut).copied();
        let bytes_cut = cut - good_end.unwrap_or(0);
        assert_eq!(opened.in_doubt, cut < HEADER_LEN, "cut at {cut}: no crash leaves half a header");
        if cut < HEADER_LEN {
            let damage = opened.damage.unwrap();
            assert_eq!((&damage.segment, damage.at_byte, opened.torn), (&last, 0, None));
            assert_eq!(fs::read(&damage.aside[0]).unwrap(), &whole[..cut], "nothing is destroyed");
        } else if bytes_cut == 0 {
            assert_eq!(opened.torn, None, "cut at {cut}");
        } else {
            let torn = opened.torn.unwrap();
            assert_eq!(torn.segment, last);
            assert_eq!((torn.at_byte, torn.bytes_cut), (good_end.unwrap_or(0) as u64, bytes_cut as u64));
            let aside = PathBuf::from(format!("{}.torn-{bytes_cut}", last.display()));
            assert_eq!(fs::read(aside).unwrap(), &whole[cut - bytes_cut..cut], "nothing is destroyed");
        }
        assert_eq!(journal.append(b"on").unwrap(), 4 + kept);
        drop(journal);
        let (_, opened, records) = open(dir.path()).unwrap();
        assert_eq!(opened.torn, None, "cut at {cut}");
        assert_eq!(records.last().unwrap(), &(4 + kept, b"on".to_vec()));
    }
}

#[test]
fn an_only_segment_cut_inside_its_header_becomes_a_new_journal_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    drop(journal_of(dir.path(), 2, &[]));
    let whole = fs::read(segment(dir.path(), 1)).unwrap();
    fs::write(segment(dir.path(), 1), &whole[..20]).unwrap();
    let (_, opened, records) = open(dir.path()).unwrap();
    assert_eq!((opened.id, opened.last_seq, records.len()), (OTHER_ID, 0, 0));
    assert_eq!(fs::read(&opened.damage.unwrap().aside[0]).unwrap(), &whole[..20]);
    assert!(opened.in_doubt);
}

#[test]
fn two_torn_ends_of_one_length_are_both_kept() {
    let dir = tempfile::tempdir().unwrap();
    for (round, byte) in [(1, b'a'), (2, b'b'), (3, b'c')] {
        drop(open(dir.path()).unwrap());
        let mut bytes = fs::read(segment(dir.path(), 1)).unwrap();
        bytes.extend([byte; 7]);
        fs::write(segment(dir.path(), 1), bytes).unwrap();
        assert_eq!(open(dir.path()).unwrap().1.torn.unwrap().bytes_cut, 7);
        assert_eq!(names(dir.path()).len(), 1 + round);
    }
    let first = dir.path().join("00000000000000000001.seg.torn-7");
    assert_eq!(fs::read(first).unwrap(), b"aaaaaaa");
    assert_eq!(fs::read(dir.path().join("00000000000000000001.seg.torn-7-3")).unwrap(), b"ccccccc");
}

#[test]
fn a_flip_anywhere_ends_the_journal_there_and_puts_it_in_doubt() {
    let made = tempfile::tempdir().unwrap();
    drop(journal_of(made.path(), 6, &[4]));
    for first_seq in [1, 4] {
        let starts = starts(first_seq, first_seq + 2);
        let whole = fs::read(segment(made.path(), first_seq)).unwrap();
        for at in 0..whole.len() {
            let dir = copy_of(made.path());
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(segment(dir.path(), first_seq), &flipped).unwrap();
            let record = starts.iter().rposition(|&start| start <= at);
            let (start, kept) = record.map_or((0, 0), |record| (starts[record], record as u64));
            check_healed(dir.path(), first_seq - 1 + kept, (first_seq, start), &flipped[start..], at);
        }
    }
}

/// Opens a damaged journal: `kept` records stand, and what stood in the segment from the damage on is aside.
fn check_healed(dir: &Path, kept: u64, (first_seq, start): (u64, usize), lost: &[u8], at: usize) {
    let (journal, opened, records) = open(dir).unwrap();
    assert_eq!((records, opened.torn, opened.in_doubt), (expected(kept), None, true), "at {at}");
    let damage = opened.damage.unwrap();
    assert_eq!((damage.segment, damage.at_byte), (segment(dir, first_seq), start as u64), "at {at}");
    assert_eq!(fs::read(&damage.aside[0]).unwrap(), lost);
    assert_eq!(damage.aside.len(), if first_seq == 1 { 2 } else { 1 }, "the segment behind it too");
    drop(journal);
    if !at.is_multiple_of(8) {
        return;
    }
    let (mut journal, opened, records) = open(dir).unwrap();
    assert_eq!(
        (records, opened.damage, opened.in_doubt),
        (expected(kept), None, true),
        "until it is settled"
    );
    assert_eq!(journal.append(&payload(kept + 1)).unwrap(), kept + 1);
    journal.settle_doubt().unwrap();
    drop(journal);
    let (_, opened, records) = open(dir).unwrap();
    assert_eq!((records, opened.damage, opened.in_doubt), (expected(kept + 1), None, false), "at {at}");
}

#[test]
fn a_missing_swapped_or_foreign_segment_ends_the_journal_before_it() {
    let made = tempfile::tempdir().unwrap();
    drop(journal_of(made.path(), 9, &[4, 7]));
    let foreign = tempfile::tempdir().unwrap();
    let (mut journal, ..) = open(foreign.path()).unwrap();
    for seq in 1..=9 {
        if [4, 7].contains(&seq) {
            journal.roll().unwrap();
        }
        journal.append(&payload(seq)).unwrap();
    }
    journal.roll().unwrap();
    let copy = |from: PathBuf, to: PathBuf| assert!(fs::copy(from, to).is_ok());
    let check = |case: &str, kept: u64, hurt: &dyn Fn(&Path)| {
        let dir = copy_of(made.path());
        hurt(dir.path());
        let (_, opened, records) = open(dir.path()).unwrap();
        assert_eq!((records, opened.in_doubt), (expected(kept), true), "{case}");
        assert!(opened.damage.unwrap().aside.iter().all(|path| path.exists()), "{case}");
        assert_eq!(open(dir.path()).unwrap().1.damage, None, "{case}");
    };
    check("first missing", 0, &|dir| fs::remove_file(segment(dir, 1)).unwrap());
    check("middle missing", 3, &|dir| fs::remove_file(segment(dir, 4)).unwrap());
    check("all but the empty last missing", 0, &|dir| {
        for first_seq in [1, 4, 7] {
            fs::remove_file(segment(dir, first_seq)).unwrap();
        }
        copy(segment(foreign.path(), 10), segment(dir, 10));
    });
    check("renamed", 6, &|dir| fs::rename(segment(dir, 7), segment(dir, 8)).unwrap());
    check("copied over", 6, &|dir| copy(segment(dir, 4), segment(dir, 7)));
    check("foreign", 3, &|dir| copy(segment(foreign.path(), 4), segment(dir, 4)));
    check("emptied", 3, &|dir| fs::write(segment(dir, 4), "").unwrap());
    check("shortened", 5, &|dir| {
        let bytes = fs::read(segment(dir, 4)).unwrap();
        fs::write(segment(dir, 4), &bytes[..bytes.len() - 1]).unwrap();
    });
}

#[test]
fn zeros_behind_the_last_record_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(journal_of(dir.path(), 2, &[]));
    let mut bytes = fs::read(segment(dir.path(), 1)).unwrap();
    bytes.extend([0; 5000]);
    fs::write(segment(dir.path(), 1), bytes).unwrap();
    let (_, opened, records) = open(dir.path()).unwrap();
    assert_eq!((records, opened.torn, opened.in_doubt), (expected(2), None, true));
    assert_eq!(fs::read(&opened.damage.unwrap().aside[0]).unwrap(), [0; 5000]);
}

#[test]
fn the_id_is_said_by_the_first_sound_segment() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(peek_id(&dir.path().join("none")).unwrap(), None);
    drop(journal_of(dir.path(), 3, &[2, 3]));
    for (first_seq, bytes) in [(1, &[7; 60][..]), (2, &[][..])] {
        fs::write(segment(dir.path(), first_seq), bytes).unwrap();
        assert_eq!(peek_id(dir.path()).unwrap(), Some(ID));
    }
    fs::write(segment(dir.path(), 3), "").unwrap();
    assert_eq!(peek_id(dir.path()).unwrap(), None);
}

#[test]
fn another_format_is_named_and_nothing_is_set_aside_even_behind_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(journal_of(dir.path(), 2, &[2]));
    let mut bytes = fs::read(segment(dir.path(), 2)).unwrap();
    bytes[8] = 3;
    let sum = staled::world::digest::blake3(&bytes[..36]);
    bytes[36..52].copy_from_slice(&sum.as_bytes()[..16]);
    fs::write(segment(dir.path(), 2), bytes).unwrap();
    assert!(matches!(open(dir.path()), Err(JournalError::OtherFormat { format: 3, .. })));
    let first = fs::read(segment(dir.path(), 1)).unwrap();
    fs::write(segment(dir.path(), 1), &first[..first.len() - 1]).unwrap();
    assert!(matches!(open(dir.path()), Err(JournalError::OtherFormat { format: 3, .. })));
    assert_eq!(names(dir.path()), ["00000000000000000001.seg", "00000000000000000002.seg"]);
}

#[test]
fn what_a_crash_left_of_a_new_segment_is_removed_and_strangers_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(journal_of(dir.path(), 3, &[]));
    fs::write(dir.path().join("00000000000000000004.seg.new"), "half").unwrap();
    fs::write(dir.path().join("notes.seg"), "mine").unwrap();
    // Crashed right after the new segment got its name.
    let (mut journal, _, records) = open(dir.path()).unwrap();
    assert_eq!(records, expected(3));
    assert_eq!(names(dir.path()), ["00000000000000000001.seg", "notes.seg"]);
    journal.roll().unwrap();
    let inode = || fs::metadata(segment(dir.path(), 4)).unwrap().ino();
    let before = inode();
    journal.roll().unwrap();
    assert_eq!(inode(), before, "an empty segment is not replaced");
    drop(journal);
    let (mut journal, opened, _) = open(dir.path()).unwrap();
    assert_eq!((opened.last_seq, opened.torn, journal.first_seq()), (3, None, 4));
    assert_eq!(journal.append(b"on").unwrap(), 4);
}

#[test]
fn a_reader_that_refuses_a_record_stops_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    drop(journal_of(dir.path(), 3, &[]));
    let opened = Journal::open(dir.path(), ID, &mut |piece| match piece {
        Piece::Record(2, _) => Err("no such kind".into()),
        _ => Ok(()),
    });
    let error = opened.unwrap_err();
    let says = format!("record 2, in {} at byte ", segment(dir.path(), 1).display());
    assert!(error.to_string().contains(&says) && error.to_string().ends_with(": no such kind"), "{error}");
}

#[test]
fn a_full_segment_is_followed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_of(dir.path(), 0, &[]);
    assert!(matches!(journal.append(&vec![0; PAYLOAD_MAX + 1]), Err(JournalError::TooLarge { .. })));
    let big = vec![5; PAYLOAD_MAX];
    for _ in 0..3 {
        journal.append(&big).unwrap();
    }
    assert_eq!(names(dir.path()).len(), 3, "two of the longest do not fit in one");
    assert!(fs::metadata(segment(dir.path(), 1)).unwrap().len() <= SEGMENT_BYTES_MAX);
    assert_eq!((journal.first_seq(), journal.last_seq()), (3, 3));
    drop(journal);
    let mut seen = 0;
    Journal::open(dir.path(), ID, &mut |piece| {
        assert!(matches!(piece, Piece::Record(_, payload) if payload == big));
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn after_a_failed_sync_what_was_not_synced_is_carried_over() {
    for (synced, first_after) in [(0, 4), (2, 4), (3, 4), (4, 5), (6, 7), (99, 7)] {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = journal_of(dir.path(), 6, &[4]);
        journal.start_over(synced).unwrap();
        assert_eq!(journal.first_seq(), first_after, "synced {synced}");
        assert_eq!(journal.append(&payload(7)).unwrap(), 7);
        drop(journal);
        // The failed file loses all that was never synced: nothing asks for it any more.
        if first_after > 4 {
            let end = starts(4, first_after - 1);
            let mut bytes = fs::read(segment(dir.path(), 4)).unwrap();
            bytes[end[end.len() - 1]..].fill(0);
            fs::write(segment(dir.path(), 4), bytes).unwrap();
        }
        let (_, opened, records) = open(dir.path()).unwrap();
        assert_eq!((records, opened.torn), (expected(7), None), "synced {synced}");
    }
}

#[test]
fn records_that_the_failed_file_lost_are_an_error_and_not_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_of(dir.path(), 3, &[]);
    let mut bytes = fs::read(segment(dir.path(), 1)).unwrap();
    bytes[starts(1, 3)[1]..].fill(0);
    fs::write(segment(dir.path(), 1), bytes).unwrap();
    assert!(matches!(journal.start_over(1), Err(JournalError::Damaged { .. })));
    assert!(matches!(journal.append(b"x"), Err(JournalError::Poisoned { .. })));
}

#[test]
fn a_segment_that_could_not_be_finished_swallows_no_later_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_of(dir.path(), 3, &[]);
    // What a roll leaves whose last step failed: the next segment, in place and empty.
    let twin = copy_of(dir.path());
    open(twin.path()).unwrap().0.roll().unwrap();
    fs::copy(segment(twin.path(), 4), segment(dir.path(), 4)).unwrap();
    journal.start_over(1).unwrap();
    assert_eq!(journal.append(&payload(4)).unwrap(), 4);
    drop(journal);
    assert_eq!(open(dir.path()).unwrap().2, expected(4));
}

#[test]
fn a_full_disk_costs_the_failed_append_only() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.path("journal");
    let mut journal = journal_of(&dir, 3, &[]);
    let before = fs::read(segment(&dir, 1)).unwrap();
    // The page of the segment's end has room, the next one does not exist: the write comes up short.
    let ballast = disk.fill_but(0);
    let error = journal.append(&[1; 9000]).unwrap_err();
    assert!(matches!(error, JournalError::Io { doing: "append to", .. }), "{error}");
    assert_eq!(fs::read(segment(&dir, 1)).unwrap(), before, "cut back");
    assert!(matches!(journal.roll(), Err(JournalError::Io { .. })), "no room for a new segment either");
    assert_eq!(journal.append(&payload(4)).unwrap(), 4, "the old one has room for a little more");
    fs::remove_file(ballast).unwrap();
    assert_eq!(journal.append(&payload(5)).unwrap(), 5);
    drop(journal);
    assert_eq!(open(&dir).unwrap().2, expected(5));
}

#[test]
fn the_syncers_handle_is_the_current_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_of(dir.path(), 1, &[]);
    journal.roll().unwrap();
    let len = |journal: &Journal| journal.file().unwrap().metadata().unwrap().len();
    assert_eq!(len(&journal), HEADER_LEN as u64);
    journal.append(b"abc").unwrap();
    assert_eq!(len(&journal), (HEADER_LEN + RECORD_HEAD_LEN + 3) as u64);
    let mut bytes = Vec::new();
    fs::File::open(segment(dir.path(), 2)).unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.ends_with(b"abc"));
}

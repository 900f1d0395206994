//! Whatever happens to the files of a compacted journal: it opens, tells what stood before the damage and nothing else, and
//! says what is lost. The number of damages is ten times `STALED_TRIALS`, 60 unless it says otherwise.

use super::super::hurt;
use super::*;
use crate::harness::say;

/// Every payload in order with the file it stands in and where it begins there.
fn stands(dir: &Path, told: &Told) -> Vec<(PathBuf, usize)> {
    let mut stands = Vec::new();
    let mut at = HEADER_LEN;
    for payload in &told.kept {
        stands.push((snapshot(dir, 10), at));
        at += HEAD_LEN + payload.len();
    }
    for (seq, payload) in &told.records {
        at = if [11, 14].contains(seq) { HEADER_LEN } else { at };
        stands.push((segment(dir, if *seq < 14 { 11 } else { 14 }), at));
        at += HEAD_LEN + payload.len();
    }
    stands
}

/// The first payloads of it.
fn first(told: &Told, len: usize) -> Told {
    let kept = told.kept.iter().take(len).cloned().collect();
    let records = told.records.iter().take(len.saturating_sub(told.kept.len())).cloned().collect();
    Told { snapshot: told.snapshot, kept, records }
}

#[test]
fn a_flip_anywhere_in_a_snapshot_ends_the_journal_there_and_puts_it_in_doubt() {
    let made = tempfile::tempdir().unwrap();
    let expected = journal_of(made.path());
    let whole = fs::read(snapshot(made.path(), 10)).unwrap();
    let segments = [11, 14].map(|first_seq| fs::read(segment(made.path(), first_seq)).unwrap());
    for at in 0..whole.len() {
        let dir = copy_of(made.path());
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(snapshot(dir.path(), 10), &flipped).unwrap();
        let (journal, opened, told) = open(dir.path()).unwrap();
        assert!(opened.in_doubt, "at {at}");
        let damage = opened.damage.unwrap();
        let start = usize::try_from(damage.at_byte).unwrap();
        assert!(start <= at, "at {at}: {damage:?}");
        assert_eq!((&damage.segment, damage.aside.len()), (&snapshot(dir.path(), 10), 3), "at {at}");
        let aside: Vec<Vec<u8>> = damage.aside.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(aside, [&flipped[start..], &segments[0], &segments[1]], "no byte is destroyed, at {at}");
        let stands = stands(dir.path(), &expected);
        let kept = stands[1..=expected.kept.len()]
            .iter()
            .filter(|&&(ref file, end)| *file == snapshot(dir.path(), 10) && end <= at);
        // The last one ends where the mark begins, which is no stand.
        let kept = kept.count() + usize::from(at >= whole.len() - HEAD_LEN);
        if at < HEADER_LEN {
            assert_eq!((told, journal.first_seq(), start), (Told::default(), 1, 0), "at {at}");
        } else {
            assert_eq!((told, opened.last_seq), (first(&expected, kept), 10), "at {at}");
        }
        let on = journal.last_seq() + 1;
        drop(journal);
        let (mut journal, opened, _) = open(dir.path()).unwrap();
        assert_eq!((opened.damage, opened.in_doubt), (None, true), "until it is settled");
        assert_eq!(journal.append(b"k9=on").unwrap(), on);
        journal.settle_doubt().unwrap();
        drop(journal);
        let (_, opened, told) = open(dir.path()).unwrap();
        assert_eq!((opened.damage, opened.in_doubt, told.records.len()), (None, false, 1), "at {at}");
    }
}

#[test]
fn a_damaged_snapshot_loses_nothing_while_its_segments_are_there() {
    let made = tempfile::tempdir().unwrap();
    let mut journal = create(made.path());
    let mut all: Vec<String> = (1..=9).map(payload).collect();
    append(&mut journal, 1..=5);
    journal.roll().unwrap();
    append(&mut journal, 6..=9);
    journal.roll().unwrap();
    let closed = journal.closed().unwrap();
    write(&closed);
    append(&mut journal, 10..=11);
    all.extend((10..=11).map(payload));
    drop(journal);
    let whole = fs::read(snapshot(made.path(), 9)).unwrap();
    for at in 0..whole.len() {
        let dir = copy_of(made.path());
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(snapshot(dir.path(), 9), &flipped).unwrap();
        let (_, opened, told) = open(dir.path()).unwrap();
        assert_eq!((told.snapshot, opened.last_seq, opened.in_doubt), (None, 11, false), "at {at}");
        assert_eq!(told.records.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), all);
        assert_eq!(fs::read(&opened.damage.unwrap().aside[0]).unwrap(), flipped);
        assert_eq!(open(dir.path()).unwrap().1.damage, None, "at {at}");
    }
}

#[test]
fn a_missing_snapshot_and_a_missing_segment_behind_it_are_damage() {
    let made = tempfile::tempdir().unwrap();
    let expected = journal_of(made.path());
    let check = |case: &str, told: &Told, last_seq: u64, hurt: &dyn Fn(&Path)| {
        let dir = copy_of(made.path());
        hurt(dir.path());
        let unread = staled::store::journal::read(dir.path(), &mut |_| Ok(())).unwrap_err();
        assert!(unread.is_damage(), "{case}: {unread}");
        if case == "no segment at all" {
            let missing = format!("{} at byte 0: it is missing", segment(dir.path(), 11).display());
            assert!(unread.to_string().contains(&missing), "{unread}");
        }
        let (_, opened, found) = open(dir.path()).unwrap();
        assert_eq!((&found, opened.last_seq, opened.in_doubt), (told, last_seq, true), "{case}");
        assert!(opened.damage.unwrap().aside.iter().all(|path| path.exists()), "{case}");
        let (_, opened, again) = open(dir.path()).unwrap();
        assert_eq!((&again, opened.last_seq, opened.in_doubt), (told, last_seq, true), "{case}, twice");
        assert_eq!(opened.damage, None, "{case}");
        assert!(staled::store::journal::read(dir.path(), &mut |_| Ok(())).unwrap().in_doubt, "{case}");
    };
    let nothing = Told::default();
    let kept = first(&expected, expected.kept.len());
    check("no snapshot", &nothing, 0, &|dir| fs::remove_file(snapshot(dir, 10)).unwrap());
    check("an empty snapshot", &nothing, 0, &|dir| fs::write(snapshot(dir, 10), "").unwrap());
    check("under another name", &nothing, 0, &|dir| {
        fs::rename(snapshot(dir, 10), snapshot(dir, 12)).unwrap();
    });
    check("under no number", &nothing, 0, &|dir| {
        fs::rename(snapshot(dir, 10), snapshot(dir, u64::MAX)).unwrap();
    });
    check("no segment behind it", &kept, 10, &|dir| fs::remove_file(segment(dir, 11)).unwrap());
    check("no segment at all", &kept, 10, &|dir| {
        [11, 14].iter().for_each(|&first_seq| fs::remove_file(segment(dir, first_seq)).unwrap());
    });
    check("a foreign segment behind it", &kept, 10, &|dir| {
        let mut bytes = fs::read(segment(dir, 11)).unwrap();
        bytes[12..28].fill(9);
        let sum = staled::world::digest::blake3(&bytes[..36]);
        bytes[36..52].copy_from_slice(&sum.as_bytes()[..16]);
        fs::write(segment(dir, 11), bytes).unwrap();
    });
    let all_but_one = first(&expected, expected.len() - 1);
    check("a flip in the last segment", &all_but_one, 15, &|dir| {
        let mut bytes = fs::read(segment(dir, 14)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(segment(dir, 14), bytes).unwrap();
    });
}

#[test]
fn a_snapshot_of_another_format_is_named_and_nothing_moves() {
    let dir = tempfile::tempdir().unwrap();
    journal_of(dir.path());
    let before = names(dir.path());
    let mut bytes = fs::read(snapshot(dir.path(), 10)).unwrap();
    bytes[8] = 2;
    let sum = staled::world::digest::blake3(&bytes[..36]);
    bytes[36..52].copy_from_slice(&sum.as_bytes()[..16]);
    fs::write(snapshot(dir.path(), 10), bytes).unwrap();
    assert!(matches!(open(dir.path()), Err(JournalError::OtherFormat { format: 2, .. })));
    fs::write(snapshot(dir.path(), 12), "damaged").unwrap();
    assert!(matches!(open(dir.path()), Err(JournalError::OtherFormat { format: 2, .. })));
    fs::remove_file(snapshot(dir.path(), 12)).unwrap();
    assert_eq!(names(dir.path()), before);
}

/// One random damage to one file; which, and what.
fn damage(dir: &Path, random: &mut fastrand::Rng) -> (PathBuf, &'static str) {
    let found = names(dir);
    let path = dir.join(&found[random.usize(..found.len())]);
    let mut bytes = fs::read(&path).unwrap();
    let Some(what) = hurt(&mut bytes, random, 100) else {
        fs::remove_file(&path).unwrap();
        return (path, "a file deleted");
    };
    fs::write(&path, bytes).unwrap();
    (path, what)
}

#[test]
fn a_damaged_journal_tells_only_what_stood_before_the_damage() {
    let (trials, seed) = trials();
    let made = tempfile::tempdir().unwrap();
    let expected = journal_of(made.path());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut doubts = 0;
    for trial in 0..trials * 10 {
        let dir = copy_of(made.path());
        let (path, what) = damage(dir.path(), &mut random);
        let again = format!("trial {trial}, {what} in {}; STALED_SEED={seed}", path.display());
        let (journal, opened, told) = open(dir.path()).unwrap();
        let nothing = told == Told::default();
        assert!(nothing || told == first(&expected, told.len()), "{again}: {told:?}");
        let of_first = |file: &Path| stands(dir.path(), &expected).iter().position(|stand| stand.0 == file);
        let stood = of_first(&path).unwrap();
        assert!(told.len() >= stood || (nothing && stood == 0), "what stood before it is kept: {again}");
        // A cut at the end of the last segment is what a crash leaves, or no trace at all.
        let torn = path == segment(dir.path(), 14) && (opened.torn.is_some() || what != "a flipped bit");
        assert!(opened.in_doubt || told == expected || torn, "nothing is lost silently: {again}");
        doubts += usize::from(opened.in_doubt);
        drop(journal);
        let (_, twice, told_twice) = open(dir.path()).unwrap();
        assert_eq!((told_twice, twice.damage, twice.torn), (told, None, None), "{again}");
        assert_eq!(twice.in_doubt, opened.in_doubt, "{again}");
    }
    say(&format!("{} damages of a compacted journal, {doubts} in doubt", trials * 10));
    assert!(doubts > trials, "seed {seed}");
}

/// The disk has no room for what heals a snapshot: it is tried again, and refills nothing meanwhile.
#[test]
fn a_damaged_snapshot_on_a_full_disk_is_healed_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.path("journal");
    let expected = journal_of(&dir);
    let path = snapshot(&dir, 10);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - HEAD_LEN - 1;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    // Room for nothing, and for one page: what is cut off finds room then, and what is left does not.
    for left in [0, 4096] {
        let ballast = disk.fill_but(left);
        for _ in 0..3 {
            assert!(matches!(open(&dir), Err(JournalError::Io { .. })), "{left}");
            let kept = names(&dir).into_iter().filter(|name| name.contains(".snap.")).collect::<Vec<_>>();
            assert_eq!(kept, [""; 0], "{left}");
        }
        fs::remove_file(ballast).unwrap();
    }
    let (_, opened, told) = open(&dir).unwrap();
    assert_eq!((told, opened.in_doubt), (first(&expected, 4), true));
    assert_eq!(names(&dir).iter().filter(|name| name.contains(".snap.damaged")).count(), 1);
    assert_eq!(names(&dir).iter().filter(|name| name.contains(".seg.damaged")).count(), 2);
}

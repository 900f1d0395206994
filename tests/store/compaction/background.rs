//! Compaction beside an engine: the index first, then the snapshot, then the removal; and a failure of each is made good
//! later.

use super::*;
use crate::harness::wait_until;
use staled::store::record::Record;
use staled::store::{self, Compacted, Help, Ledger, Opening};
use staled::world::dart::Died;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const RECORDS: u64 = 150;

/// A ledger with more in closed segments than is waited for.
fn due(state: &Path) -> Ledger {
    let opening =
        Opening { state, new_id: ID, epoch: "epoch", stamp: "stamp", distrust: None, compact_bytes: 4_096 };
    let mut ledger = store::open(&opening, &Died::default()).unwrap().ledger;
    for _ in 0..RECORDS {
        ledger.append(&Record::Dropped { session: "x".repeat(60) }).unwrap();
    }
    ledger
}

fn endings(state: &Path, ending: &str) -> usize {
    names(&state.join("journal")).iter().filter(|name| is(name, ending)).count()
}

fn idle() -> Help {
    panic!("nothing is to be begun")
}

/// Has one begun with this flush, and waits for its end.
fn tend(ledger: &mut Ledger, flush: impl FnOnce() -> Result<(), String> + Send + 'static) -> Compacted {
    let told = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&told);
    let ended = Box::new(move || {
        theirs.fetch_add(1, Ordering::SeqCst);
    });
    let mut flush: Option<Box<dyn FnOnce() -> Result<(), String> + Send>> = Some(Box::new(flush));
    let mut help = Some(ended);
    wait_until("it begins", || {
        let begun = || Help { flush: flush.take().unwrap(), ended: help.take().unwrap() };
        assert!(ledger.tend(begun).is_none());
        ledger.is_compacting()
    });
    wait_until("its end is told", || told.load(Ordering::SeqCst) == 1);
    let compacted = ledger.tend(idle).unwrap();
    assert!(!ledger.is_compacting());
    compacted
}

#[test]
fn nothing_is_written_before_the_index_took_over_and_all_is_made_good_later() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut ledger = due(state);
    let before = endings(state, "seg");
    assert!(before > 2);
    let compacted = tend(&mut ledger, || Err("the disk is full".to_owned()));
    assert!(compacted.error.unwrap().to_string().contains("the disk is full"));
    assert_eq!(compacted.written, None);
    assert_eq!((endings(state, "snap"), endings(state, "seg")), (0, before));
    assert!(ledger.not_compacted().unwrap().contains("the disk is full"));
    assert!(ledger.compaction_due().is_some());
    // A panic is a failure like another.
    let compacted = tend(&mut ledger, || panic!("of this test"));
    assert_eq!((compacted.written, compacted.error.unwrap().to_string().contains("panicked")), (None, true));
    assert_eq!((endings(state, "snap"), endings(state, "seg")), (0, before));
    let folder = state.to_owned();
    let compacted = tend(&mut ledger, move || {
        // A kill from here on finds an index that has applied what the snapshot will stand for.
        assert_eq!((endings(&folder, "snap"), endings(&folder, "seg")), (0, before), "written after it");
        Ok(())
    });
    assert!(compacted.written.is_some() && compacted.error.is_none(), "{compacted:?}");
    assert_eq!((endings(state, "snap"), endings(state, "seg")), (1, 1));
    assert_eq!((ledger.not_compacted(), ledger.compaction_due()), (None, None));
    assert!(ledger.tend(idle).is_none(), "it is not due any more");
}

#[test]
fn what_could_not_be_removed_is_removed_later_and_nothing_is_written_again() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut ledger = due(state);
    let before = endings(state, "seg");
    // Named like the oldest of all segments, and no file: nobody reads it, and it cannot be removed like one.
    let obstacle = state.join("journal/00000000000000000000.seg");
    std::fs::create_dir(&obstacle).unwrap();
    let compacted = tend(&mut ledger, || Ok(()));
    assert!(compacted.error.unwrap().to_string().contains("cannot remove "));
    assert!(compacted.written.is_some(), "the snapshot stands");
    assert_eq!((endings(state, "snap"), endings(state, "seg")), (1, before + 1), "and so does all else");
    assert!(ledger.not_compacted().unwrap().contains("cannot remove "));
    std::fs::remove_dir(&obstacle).unwrap();
    let compacted = tend(&mut ledger, || panic!("the index has taken over already"));
    assert!(compacted.written.is_none() && compacted.error.is_none(), "{compacted:?}");
    assert_eq!((endings(state, "snap"), endings(state, "seg")), (1, 1));
    assert_eq!(ledger.not_compacted(), None);
}

#[test]
fn a_ledger_that_is_closed_waits_for_its_compaction_and_leaves_nothing_half_made() {
    for _ in 0..5 {
        let state = tempfile::tempdir().unwrap();
        let mut ledger = due(state.path());
        let help = || Help { flush: Box::new(|| Ok(())), ended: Box::new(|| ()) };
        assert!(ledger.tend(help).is_none());
        drop(ledger);
        let left = names(&state.path().join("journal"));
        assert!(!left.iter().any(|name| is(name, "new")), "{left:?}");
        let dir = state.path().join("journal");
        let opened = Journal::open(&dir, OTHER_ID, &mut |_| Ok(())).unwrap().1;
        assert_eq!((opened.last_seq, opened.damage, opened.in_doubt), (RECORDS, None, false));
    }
}

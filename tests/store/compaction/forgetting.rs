//! What a user has forgotten is in no file any more, whatever came between.

use super::*;
use crate::harness::wait_until;
use crate::store::words::files_with;
use staled::memory::book::Book;
use staled::memory::change::Change;
use staled::memory::observation::{Marks, Observation, Words};
use staled::memory::session::{Session, Span};
use staled::session::moment::Moment;
use staled::store::record::Record;
use staled::store::remembered::{self, Remembered};
use staled::store::{self, Compacted, Help, Opened, Opening};
use staled::world::dart::Died;
use std::cell::Cell;
use std::sync::mpsc::channel;

const SECRET: &str = "the fox is in the well";
const OTHER: &str = "the hen is in the barn";
const USER: &str = "u";

fn opened(state: &Path, compact_bytes: u64, distrust: Option<&str>) -> Opened {
    let opening = Opening { state, new_id: ID, epoch: "epoch", stamp: "stamp", distrust, compact_bytes };
    store::open(&opening, &Died::default()).unwrap()
}

/// Nothing is compacted for its length.
fn open(state: &Path) -> Opened {
    opened(state, u64::MAX, None)
}

fn saved(id: u64, content: &str) -> Change {
    let at = Moment::default();
    let span = Span {
        id: "s".to_owned(),
        started_at: at,
        last_activity_at: at,
        ended_at: None,
        is_auto_generated: false,
    };
    let marks = Marks {
        kind: "decision".to_owned(),
        revision: 1,
        created_at: at,
        updated_at: at,
        session: 0,
        is_keyed: false,
        has_sources: false,
    };
    let words = Words { title: content.to_owned(), content: content.to_owned(), topic_key: None };
    Change {
        user: USER.to_owned(),
        sessions: vec![Session { no: 0, span, summary: None }],
        saved: Some(Observation { id, marks, words }),
        next_observation: Some(id + 1),
        ..Change::default()
    }
}

fn forgotten(id: u64) -> Change {
    Change { user: USER.to_owned(), forgotten: Some(id), ..Change::default() }
}

fn record(change: &Change) -> Record {
    let remembered = Box::new(Remembered::new(change, None, Moment::default()));
    if change.forgotten.is_some() { Record::Forgotten(remembered) } else { Record::Remembered(remembered) }
}

/// Journaled and applied, as the engine does it.
fn tell(opened: &mut Opened, change: &Change) {
    let seq = opened.ledger.append(&record(change)).unwrap();
    opened.index.storage_mut().begin(seq).unwrap();
    remembered::apply(&mut opened.index, change, None, Moment::default()).unwrap();
    opened.index.storage_mut().commit(seq).unwrap();
}

/// A state in which observation 1 is the secret and 2 is not; an index with both was set aside.
fn told(state: &Path) -> Opened {
    told_with(state, u64::MAX)
}

fn told_with(state: &Path, compact_bytes: u64) -> Opened {
    let mut opened = opened(state, compact_bytes, None);
    tell(&mut opened, &saved(1, SECRET));
    tell(&mut opened, &saved(2, OTHER));
    fs::create_dir_all(state.join("index.aside-before/words")).unwrap();
    fs::write(state.join("index.aside-before/words/0-0"), SECRET).unwrap();
    opened
}

fn in_files(state: &Path) -> bool {
    !files_with(state, SECRET.as_bytes()).is_empty()
}

fn help(opened: &Opened) -> impl FnOnce() -> Help + use<> {
    let flush = opened.index.storage().flusher();
    || Help { flush, ended: Box::new(|| ()) }
}

fn idle() -> Help {
    panic!("nothing is to be begun")
}

/// Tends it as an engine does, until the secret is in no file; returns the failures on the way.
fn forget(state: &Path, mut opened: Opened) -> Vec<String> {
    let mut failures = Vec::new();
    wait_until("the secret is gone", || {
        let help = help(&opened);
        if let Some(Compacted { error, .. }) = opened.ledger.tend(help) {
            failures.extend(error.map(|error| error.to_string()));
        }
        !opened.ledger.is_compacting() && !in_files(state)
    });
    assert!(opened.ledger.tend(idle).is_none() && !opened.ledger.is_compacting(), "once is enough");
    assert_eq!((opened.ledger.not_compacted(), opened.ledger.compaction_due()), (None, None));
    check(&opened);
    drop(opened);
    // Nothing comes back, and nothing is demanded for ever.
    let mut opened = open(state);
    assert!(opened.ledger.tend(idle).is_none());
    check(&opened);
    drop(opened);
    assert!(!in_files(state));
    assert!(!files_with(state, OTHER.as_bytes()).is_empty(), "the files are searched");
    failures
}

/// The one is gone and the other is there.
fn check(opened: &Opened) {
    let book = Book::new(opened.index.storage());
    let user = book.user(USER).unwrap().unwrap().no;
    assert_eq!(book.observation(user, 1).unwrap(), None);
    assert_eq!(book.observation(user, 2).unwrap().unwrap().words.content, OTHER);
}

#[test]
fn what_was_forgotten_is_in_no_file_of_the_state_after_a_compaction_that_nobody_asked_for() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut opened = told(state);
    assert!(opened.ledger.tend(idle).is_none(), "nothing is due");
    tell(&mut opened, &forgotten(1));
    let files = files_with(state, SECRET.as_bytes());
    assert!(files.len() == 2 && !files.iter().any(|file| file.starts_with(state.join("index"))), "{files:?}");
    assert_eq!(forget(state, opened), [] as [String; 0]);
}

#[test]
fn a_process_that_ends_first_leaves_it_to_the_next() {
    for (applied, distrust) in [(true, None), (false, None), (false, Some("of this test"))] {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        let mut opened = told(state);
        if applied {
            tell(&mut opened, &forgotten(1));
        } else {
            opened.ledger.append(&record(&forgotten(1))).unwrap();
        }
        tell_about_another(&mut opened, applied);
        drop(opened);
        assert!(in_files(state));
        let opened = self::opened(state, u64::MAX, distrust);
        assert_eq!(names(state).iter().any(|name| name == "index.aside-stamp"), distrust.is_some());
        assert_eq!(forget(state, opened), [] as [String; 0]);
    }
}

/// A record behind the one that forgets, which is told last and not it.
fn tell_about_another(opened: &mut Opened, applied: bool) {
    let change = saved(3, "the cat is on the roof");
    if applied {
        tell(opened, &change);
    } else {
        opened.ledger.append(&record(&change)).unwrap();
    }
}

#[test]
fn damage_behind_it_does_not_hide_it() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut opened = told(state);
    tell(&mut opened, &forgotten(1));
    tell(&mut opened, &saved(3, "the cat is on the roof"));
    drop(opened);
    let segment = state.join("journal/00000000000000000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let opened = open(state);
    assert!(opened.healed.iter().any(|healed| healed.contains("damaged")), "{:?}", opened.healed);
    assert_eq!(forget(state, opened), [] as [String; 0]);
}

#[test]
fn what_fails_is_tried_until_it_succeeds() {
    // The journal cannot go on in a new segment.
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut opened = told(state);
    tell(&mut opened, &forgotten(1));
    let in_the_way = state.join("journal/00000000000000000004.seg.new");
    fs::create_dir(&in_the_way).unwrap();
    let failed = opened.ledger.tend(idle).unwrap().error.unwrap().to_string();
    assert!(failed.contains("new segment"), "{failed}");
    assert!(opened.ledger.not_compacted().is_some() && opened.ledger.compaction_due().is_some());
    assert_eq!(opened.ledger.failed(), None, "it takes records all the same");
    tell(&mut opened, &saved(3, "the cat is on the roof"));
    fs::remove_dir(&in_the_way).unwrap();
    // Nothing is removed before the index took over, and it does not the first time.
    let refused = Cell::new(false);
    wait_until("it fails", || {
        let help = || Help { flush: Box::new(|| Err("of this test".to_owned())), ended: Box::new(|| ()) };
        let failed = opened.ledger.tend(help).and_then(|compacted| compacted.error);
        refused.set(failed.is_some_and(|error| error.to_string().contains("of this test")));
        refused.get()
    });
    assert!(in_files(state));
    assert_eq!(forget(state, opened), [] as [String; 0]);
}

#[test]
fn what_was_set_aside_and_cannot_be_removed_is_told_and_tried_again() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut opened = told(state);
    tell(&mut opened, &forgotten(1));
    // As a folder would be that is somebody else's; this test may be anybody, root too.
    let Some(pinned) = Pinned::below(&state.join("index.aside-before")) else { return };
    let failed = Cell::new(false);
    wait_until("it fails", || {
        let help = help(&opened);
        let error = opened.ledger.tend(help).and_then(|compacted| compacted.error);
        failed.set(error.is_some_and(|error| error.to_string().contains("set aside")));
        failed.get()
    });
    assert!(in_files(state));
    drop(pinned);
    assert_eq!(forget(state, opened), [] as [String; 0]);
}

/// A mount point, which nobody can remove.
struct Pinned(PathBuf);

impl Pinned {
    fn below(folder: &Path) -> Option<Self> {
        let point = folder.join("pinned");
        fs::create_dir(&point).unwrap();
        let mount = std::process::Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&point).output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self(point));
        }
        crate::harness::say("skipped: nothing can be mounted here, so everything can be removed");
        None
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_compaction_that_was_running_with_less_does_not_count() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut opened = told_with(state, 4_096);
    for _ in 0..150 {
        let seq = opened.ledger.append(&Record::Dropped { session: "x".repeat(60) }).unwrap();
        opened.index.storage_mut().commit(seq).unwrap();
    }
    let (go_on, wait) = channel::<()>();
    let flush = opened.index.storage().flusher();
    let slow = || Help {
        flush: Box::new(move || {
            wait.recv().unwrap();
            flush()
        }),
        ended: Box::new(|| ()),
    };
    assert!(opened.ledger.tend(slow).is_none() && opened.ledger.is_compacting());
    tell(&mut opened, &forgotten(1));
    assert!(opened.ledger.tend(idle).is_none() && opened.ledger.is_compacting());
    go_on.send(()).unwrap();
    let mut first = None;
    wait_until("the first one ends", || {
        let help = help(&opened);
        first = opened.ledger.tend(help);
        first.is_some()
    });
    let Compacted { written, error } = first.unwrap();
    assert!(written.is_some() && error.is_none(), "{error:?}");
    assert!(opened.ledger.is_compacting(), "the next one begins at once, for nobody may come by again");
    assert_eq!(forget(state, opened), [] as [String; 0]);
}

//! Group commit.

use staled::store::syncer::{Done, Synced, Syncer, WAITING_MAX, Watched};
use staled::world::dart::Died;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

fn syncer() -> Syncer {
    Syncer::start("syncer", &Died::default()).unwrap()
}

fn ask(file: &Watched, to: &Sender<Synced>) {
    let to = to.clone();
    file.sync_soon(Box::new(move |synced| to.send(synced).unwrap()));
}

/// Keeps the syncer's thread busy in an answer, until told to go on.
fn hold(file: &Watched) -> Sender<()> {
    held(|done| file.sync_soon(done))
}

fn held(sync: impl FnOnce(Done)) -> Sender<()> {
    let (holding, held) = channel();
    let (go_on, wait): (_, Receiver<()>) = channel();
    sync(Box::new(move |synced| {
        synced.unwrap();
        holding.send(()).unwrap();
        let _ = wait.recv();
    }));
    held.recv().unwrap();
    go_on
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "waited 10 s in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn requests_that_wait_together_share_one_sync() {
    let syncer = syncer();
    let file = syncer.watch(tempfile::tempfile().unwrap());
    let go_on = hold(&file);
    let (to, answers) = channel();
    (0..500).for_each(|_| ask(&file, &to));
    assert_eq!(file.syncs(), 1, "the holder's own sync");
    go_on.send(()).unwrap();
    for _ in 0..500 {
        answers.recv().unwrap().unwrap();
    }
    assert_eq!(file.syncs(), 2);
}

#[test]
fn a_request_made_after_a_sync_began_gets_a_later_one() {
    let syncer = syncer();
    let file = syncer.watch(tempfile::tempfile().unwrap());
    let (to, answers) = channel();
    for round in 1..=20 {
        ask(&file, &to);
        answers.recv().unwrap().unwrap();
        assert_eq!(file.syncs(), round);
    }
}

#[test]
fn an_error_is_final_for_its_file_and_for_no_other() {
    let syncer = syncer();
    // The null device takes no fdatasync: EINVAL.
    let bad = syncer.watch(File::open("/dev/null").unwrap());
    let good = syncer.watch(tempfile::tempfile().unwrap());
    let go_on = hold(&good);
    let (to, answers) = channel();
    ask(&bad, &to);
    ask(&bad, &to);
    go_on.send(()).unwrap();
    let first = answers.recv().unwrap().unwrap_err();
    let second = answers.recv().unwrap().unwrap_err();
    ask(&bad, &to);
    let third = answers.recv().unwrap().unwrap_err();
    assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &third), "the same error for everybody");
    assert!(Arc::ptr_eq(&first, &bad.failed().unwrap()));
    assert_eq!(bad.syncs(), 1, "the kernel is not asked again");
    assert!(good.failed().is_none());
    let replaced = syncer.watch(tempfile::tempfile().unwrap());
    ask(&replaced, &to);
    answers.recv().unwrap().unwrap();
}

#[test]
fn requests_queued_while_the_failing_sync_runs_get_its_error() {
    let syncer = syncer();
    // The window is short, so it is aimed at often: asking goes on without a pause until the first answer.
    for _ in 0..300 {
        let bad = syncer.watch(File::open("/dev/null").unwrap());
        let (to, answers) = channel();
        let mut asked = 0;
        let first = loop {
            // More than may wait would be refused, with another error: a slow machine gets there.
            if asked < WAITING_MAX / 2 {
                ask(&bad, &to);
                asked += 1;
            }
            if let Ok(answer) = answers.try_recv() {
                break answer.unwrap_err();
            }
        };
        for _ in 1..asked {
            assert!(Arc::ptr_eq(&first, &answers.recv().unwrap().unwrap_err()));
        }
        assert_eq!(bad.syncs(), 1, "the kernel is not asked again");
    }
}

#[test]
fn an_interval_syncs_once_for_many_writes_and_never_when_idle() {
    let syncer = syncer();
    let file = syncer.watch(tempfile::tempfile().unwrap());
    file.written();
    file.sync_every(Some(Duration::from_millis(200)));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(file.syncs(), 0, "nothing was written since the interval began");
    (0..1000).for_each(|_| file.written());
    wait_until(|| file.syncs() == 1);
    std::thread::sleep(Duration::from_millis(350));
    assert_eq!(file.syncs(), 1, "idle");
    file.written();
    wait_until(|| file.syncs() == 2);
}

#[test]
fn an_interval_tells_its_error_when_asked() {
    let syncer = syncer();
    let file = syncer.watch(File::open("/dev/null").unwrap());
    file.sync_every(Some(Duration::from_millis(1)));
    file.written();
    wait_until(|| file.failed().is_some());
    assert_eq!(file.failed().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn dropping_the_syncer_serves_what_waits_and_refuses_what_comes_after() {
    let syncer = syncer();
    let owing = syncer.watch(tempfile::tempfile().unwrap());
    let file = syncer.watch(tempfile::tempfile().unwrap());
    owing.sync_every(Some(Duration::from_secs(3600)));
    owing.written();
    let (to, answers) = channel();
    let go_on = hold(&file);
    (0..50).for_each(|_| ask(&file, &to));
    assert_eq!(owing.syncs(), 0, "it is not due");
    go_on.send(()).unwrap();
    drop(syncer);
    assert_eq!(answers.try_iter().flatten().count(), 50);
    assert_eq!(owing.syncs(), 1, "the hour is not waited for, and not forgotten");
    ask(&file, &to);
    answers.try_recv().unwrap().unwrap_err();
    assert!(file.failed().is_some());
}

#[test]
fn a_dropped_handle_is_still_served() {
    let syncer = syncer();
    let blocker = syncer.watch(tempfile::tempfile().unwrap());
    let go_on = hold(&blocker);
    let file = syncer.watch(tempfile::tempfile().unwrap());
    let (to, answers) = channel();
    ask(&file, &to);
    drop(file);
    go_on.send(()).unwrap();
    answers.recv().unwrap().unwrap();
}

#[test]
fn one_request_over_the_bound_is_refused_at_once() {
    let syncer = syncer();
    let file = syncer.watch(tempfile::tempfile().unwrap());
    let go_on = hold(&file);
    let served = Arc::new(AtomicUsize::new(0));
    for _ in 0..WAITING_MAX {
        let served = Arc::clone(&served);
        file.sync_soon(Box::new(move |_| {
            served.fetch_add(1, Ordering::Relaxed);
        }));
    }
    let (to, answers) = channel();
    ask(&file, &to);
    assert_eq!(answers.try_recv().unwrap().unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert!(file.failed().is_none(), "busy is not broken");
    go_on.send(()).unwrap();
    wait_until(|| served.load(Ordering::Relaxed) == WAITING_MAX);
}

/// Or the next opening would carry a whole segment over, for a disk that never failed.
#[test]
fn one_request_over_the_bound_leaves_no_mark_of_a_failed_sync() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = super::open(folder.path(), 0).ledger;
    let go_on = held(|done| ledger.sync(done));
    (0..WAITING_MAX).for_each(|_| ledger.sync(Box::new(drop)));
    let (to, answers) = channel();
    ledger.sync(Box::new(move |synced| to.send(synced).unwrap()));
    assert_eq!(answers.try_recv().unwrap().unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert!(!folder.path().join("journal/sync-failed").exists(), "busy is not broken");
    go_on.send(()).unwrap();
}

#[test]
fn a_panicking_answer_costs_nobody_else_theirs() {
    let syncer = syncer();
    let file = syncer.watch(tempfile::tempfile().unwrap());
    let go_on = hold(&file);
    let (to, answers) = channel();
    file.sync_soon(Box::new(|_| panic!("this panic is part of the test")));
    ask(&file, &to);
    go_on.send(()).unwrap();
    answers.recv().unwrap().unwrap();
    ask(&file, &to);
    answers.recv().unwrap().unwrap();
}

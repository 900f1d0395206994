//! A log whose syncs fail, with a device in the place of its file: no kernel syncs one.

use super::{Anchors, Died, Log, config};
use crate::store::decision_log::{Outcome, verify_files};
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

#[test]
fn a_rotated_file_that_cannot_be_synced_any_more_is_told_and_the_log_goes_on_in_another() {
    let state = tempfile::tempdir().unwrap();
    let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
    log.event("first", &[]).unwrap();
    {
        let mut inner = log.lock();
        // No kernel syncs a device.
        inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
        inner.rotate(None).unwrap();
    }
    until("the syncer tells", || log.lock().late.lock().unwrap().is_some());
    log.event("second", &[]).unwrap();
    let files = std::fs::read_dir(state.path()).unwrap().count();
    assert_eq!(files, 3, "the first, the one that followed it, and the one that follows that");
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(text.contains("\"healed\"") && text.contains("could not be synced"), "{text}");
    holds(&log);
}

/// It is the file that somebody may have cut.
#[test]
fn a_file_that_follows_one_that_failed_is_anchored_at_once() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("socket");
    let journald = UnixDatagram::bind(&path).unwrap();
    journald.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let anchor = || {
        let mut bytes = [0; 1024];
        let len = journald.recv(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
        text.lines().find_map(|line| line.strip_prefix("STALED_ANCHOR_SEQ=")?.parse::<u64>().ok()).unwrap()
    };
    let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
    log.lock().anchors = Anchors::at(path.clone(), 1_000);
    assert_eq!((log.event("first", &[]).unwrap().seq, anchor()), (1, 1));
    fail_a_sync(&log);
    let seq = log.event("second", &[]).unwrap().seq;
    assert_eq!((seq, log.last_seq(), anchor()), (3, 4, 4), "continued, second, healed");
}

/// Of a file that fails, once it was synced.
fn fail_a_sync(log: &Log) {
    let mut inner = log.lock();
    inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
    let (told, outcome) = std::sync::mpsc::channel();
    inner.watched.sync_soon(Box::new(move |synced| told.send(synced).unwrap()));
    drop(inner);
    outcome.recv().unwrap().unwrap_err();
}

#[test]
fn a_log_that_was_reopened_after_a_failed_sync_is_one_file_and_one_failure_further() {
    let state = tempfile::tempdir().unwrap();
    let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
    log.event("first", &[]).unwrap();
    fail_a_sync(&log);
    log.reopen().unwrap();
    let mut told = Vec::from_iter(log.sync_lost());
    for event in ["second", "third"] {
        log.event(event, &[]).unwrap();
        told.extend(log.sync_lost());
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        std::fs::read_dir(state.path()).unwrap().count(),
        2,
        "the one that failed, and the one after it"
    );
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(text.contains("\"healed\""), "{text}");
    holds(&log);
}

/// logrotate renames the file and has the log reopened; nobody but the syncer still has the old one.
#[test]
fn the_end_of_a_file_that_was_renamed_away_is_synced_and_a_failure_of_that_is_told() {
    let state = tempfile::tempdir().unwrap();
    let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
    log.event("first", &[]).unwrap();
    {
        let mut inner = log.lock();
        inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
    }
    std::fs::rename(log.path(), state.path().join("decisions.jsonl.1")).unwrap();
    log.reopen().unwrap();
    let mut told = None;
    until("the failed sync is told", || {
        told = log.sync_lost();
        told.is_some()
    });
    assert_eq!(log.sync_lost(), None);
    log.event("second", &[]).unwrap();
    holds(&log);
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "never: {what}");
        std::thread::yield_now();
    }
}

/// It answers again, once a sync has passed in its file.
fn holds(log: &Log) {
    until("a sync passes in the new file", || log.failed().is_none());
}

/// It would hold up every decision for as long as the folder is full.
#[tokio::test]
async fn a_rotation_that_failed_is_not_tried_again_with_the_next_line() {
    let state = tempfile::tempdir().unwrap();
    let options = config::Log { file_bytes_max: 1, ..config::Log::default() };
    let log = Log::open(state.path(), &options, &Died::default()).unwrap();
    let in_the_way = state.path().join("decisions.jsonl.new");
    std::fs::create_dir(&in_the_way).unwrap();
    log.append("{}").await.unwrap();
    std::fs::remove_dir(&in_the_way).unwrap();
    let files = || std::fs::read_dir(state.path()).unwrap().count();
    let begun = log.lock().rotate_after.take().expect("it could not be rotated");
    log.lock().rotate_after = Some(begun + Duration::from_secs(3_600));
    log.append("{}").await.unwrap();
    assert_eq!(files(), 1, "not yet");
    log.lock().rotate_after = Some(begun.checked_sub(Duration::from_secs(60)).unwrap());
    log.append("{}").await.unwrap();
    assert_eq!((files(), log.lock().rotate_after), (2, None));
}

/// A disk that fails for days would leave a file for every try.
#[test]
fn a_file_that_fails_before_it_was_relied_on_is_replaced_and_keeps_its_lines() {
    let state = tempfile::tempdir().unwrap();
    let log = Log::open(state.path(), &config::Log::default(), &Died::default()).unwrap();
    log.event("first", &[]).unwrap();
    for _ in 0..3 {
        fail_a_sync(&log);
        until("the pause is over", || log.event("kept", &[]).is_ok());
        // As if no sync had passed in it.
        log.lock().trouble.left_the_file();
    }
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 2, "the first, and the one that follows it");
    let text = std::fs::read_to_string(log.path()).unwrap();
    let count = |what: &str| text.matches(what).count();
    assert_eq!(
        (count("\"kept\""), count("\"log_renewed\""), count("\"log_continued\"")),
        (3, 2, 1),
        "{text}"
    );
    let verdict = verify_files(log.path(), &[], &[]).unwrap();
    assert!(matches!(verdict.outcome, Outcome::Verified { .. }), "{verdict:?}");

    // What is read of it is not what was written, so it is left as it is.
    fail_a_sync(&log);
    let damaged = text.replacen("kept", "lost", 1);
    std::fs::write(log.path(), damaged).unwrap();
    until("the pause is over", || log.event("last", &[]).is_ok());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 3);
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(!text.contains("lost") && text.contains("\"log_continued\""), "{text}");
}

/// Somebody is answered because of it, as for a decision.
#[tokio::test]
async fn an_event_that_somebody_waits_for_is_on_disk_before_they_are_answered() {
    let state = tempfile::tempdir().unwrap();
    let options = config::Log { sync: config::Sync::Always, anchor_lines: 0, ..config::Log::default() };
    let log = Log::open(state.path(), &options, &Died::default()).unwrap();
    let syncs = || log.counts().1;
    for so_far in 0..3 {
        assert_eq!(syncs(), so_far);
        log.event_answered("event", &[]).await.unwrap();
    }
    {
        let mut inner = log.lock();
        inner.watched = inner.syncer.watch(File::open("/dev/null").unwrap());
    }
    let unlogged = log.event_answered("event", &[]).await.unwrap_err();
    assert!(unlogged.to_string().starts_with("the decision log could not be synced"), "{unlogged}");
}

/// Nobody waits for it, but a power cut may come before the next decision. Without anchors, which are synced for as well.
#[test]
fn an_event_that_nobody_waits_for_is_synced_all_the_same() {
    let state = tempfile::tempdir().unwrap();
    let options = config::Log { sync: config::Sync::Always, anchor_lines: 0, ..config::Log::default() };
    let log = Log::open(state.path(), &options, &Died::default()).unwrap();
    log.event("event", &[]).unwrap();
    until("it is synced", || log.counts().1 > 0);
}

#[test]
fn after_a_panic_nothing_is_appended_and_it_is_told_as_a_death() {
    let state = tempfile::tempdir().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let died = Died::new(move |thread| tell.send(thread.to_owned()).unwrap());
    let log = Log::open(state.path(), &config::Log::default(), &died).unwrap();
    log.event("first", &[]).unwrap();
    let theirs = log.clone();
    let appending = move || {
        let _held = theirs.lock();
        panic!("in the middle of it");
    };
    std::thread::spawn(appending).join().unwrap_err();
    assert_eq!(told.try_recv().unwrap(), "appender");
    let refusal = log.event("second", &[]).unwrap_err().to_string();
    assert!(refusal.contains("a panic came while it was written to"), "{refusal}");
    assert_eq!(log.failed(), Some(format!("nothing is decided: {refusal}")));
    assert!(log.reopen().is_err());
    assert_eq!(log.last_seq(), 1);
}

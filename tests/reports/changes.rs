//! False alarms and missed changes: what changed no byte is fresh, what changed one is not, whatever the times say.

use super::{Scene, has, head, seen_either_way, sh};
use crate::daemon::{cause, commit_all, decide, git, register};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::json;
use std::fs;
use std::time::{Duration, SystemTime};

fn set_mtime(path: &std::path::Path, time: SystemTime) {
    fs::File::options().append(true).open(path).and_then(|file| file.set_modified(time)).expect("a time");
}

#[test]
fn r8_no_file_time_is_compared_with_the_clock() {
    for ahead in [Duration::ZERO, Duration::from_millis(300), Duration::from_secs(86_400)] {
        let place = Place::new();
        place.write("f", "one\n");
        set_mtime(&place.root.join("f"), SystemTime::now() + ahead);
        let daemon = Daemon::start(&place.home);
        let told = register(&daemon, &place, "s", &json!([file("f", "one\n")]));
        assert_eq!(told["results"][0]["status"], "fresh", "{ahead:?} ahead");
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "{ahead:?} ahead");
        daemon.stop();
        let daemon = Daemon::start(&place.home);
        assert_eq!(decide(&daemon, "s")["transition"], "resume", "{ahead:?} ahead, after a restart");
    }
}

#[test]
fn r18_a_touch_is_no_change() {
    let scene = Scene::new();
    for _ in 0..3 {
        sh(&scene.place, "touch d/f; touch -a d/f; touch -d 2030-01-01 d/f");
        scene.is("fresh", "touches");
    }
    let scene = scene.restarted(|place| sh(place, "touch -d 2001-01-01 d/f"));
    scene.is("fresh", "a touch that nobody watched");
    scene.place.write("d/f", "two\n");
    scene.is("content", "a write");
}

#[test]
fn r22_a_formatter_between_read_and_edit_can_be_acknowledged() {
    let scene = Scene::new();
    scene.place.write("d/f", "edited\n");
    sh(&scene.place, "echo formatted >d/f");
    scene.is("content", "a formatter");
    let ack = |text: &str| {
        scene.daemon.ask("touch_ack", &json!({ "session": "s", "path": "d/f", "digest": digest(text) }));
    };
    ack("formatted\n");
    scene.is("fresh", "its acknowledgement");
    ack("edited\n");
    scene.is("content", "an acknowledgement of what is not there");
}

#[test]
fn r24_what_was_read_last_is_what_is_believed() {
    let scene = Scene::new();
    scene.place.write("d/f", "two\n");
    scene.is("content", "an edit");
    register(&scene.daemon, &scene.place, "s", &json!([file("d/f", "two\n")]));
    scene.is("fresh", "a second read");
    scene.place.write("d/f", "one\n");
    scene.is("content", "the bytes of the first read");
}

/// A repository with `f`, "one\n" on main and "two\n" on other, and a session that saw main.
fn two_branches() -> (Daemon, Place) {
    let place = Place::new();
    place.write("f", "one\n");
    let first = commit_all(&place);
    git(&place.root, &["checkout", "-q", "-b", "other"]);
    place.write("f", "two\n");
    commit_all(&place);
    git(&place.root, &["checkout", "-q", "main"]);
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("f", "one\n")],
        "invariants": [head(".", "strict", &first)] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    (daemon, place)
}

#[test]
fn r25_away_and_back_is_no_alarm() {
    let (daemon, place) = two_branches();
    for _ in 0..3 {
        git(&place.root, &["checkout", "-q", "other"]);
        git(&place.root, &["checkout", "-q", "main"]);
        assert_eq!(decide(&daemon, "s")["transition"], "resume");
    }
    place.write("f", "mine\n");
    git(&place.root, &["stash", "-q"]);
    assert_eq!(decide(&daemon, "s")["transition"], "resume", "stashed");
    git(&place.root, &["stash", "pop", "-q"]);
    assert_eq!(cause(&decide(&daemon, "s"), "f"), "content", "and taken out again");
    let log = fs::read_to_string(daemon.folders.state.join("decisions.jsonl")).expect("a log");
    assert_eq!(log.matches("\"transition\":\"fresh\"").count(), 1, "{log}");
}

#[test]
fn r26_another_programs_save_is_seen_however_it_saves() {
    seen_either_way(&[
        "echo two >d/f",
        "echo two >>d/f",
        "echo two >d/.f.swp; mv d/.f.swp d/f",
        "mv d/f d/f~; echo two >d/f",
        "rm d/f; echo two >d/f",
    ]);
}

#[test]
fn r27_a_checkout_or_reset_moves_file_and_head_in_one_decision() {
    let (daemon, place) = two_branches();
    let moves = |deed: &[&str], words: [&str; 2]| {
        git(&place.root, deed);
        let report = decide(&daemon, "s");
        assert_eq!(["f", "git_head"].map(|id| cause(&report, id)), words, "{deed:?}");
    };
    moves(&["checkout", "-q", "other"], ["content", "head_moved"]);
    moves(&["checkout", "-q", "main"], ["fresh", "fresh"]);
    moves(&["reset", "-q", "--hard", "other"], ["content", "head_moved"]);
    moves(&["reset", "-q", "--hard", "ORIG_HEAD"], ["fresh", "fresh"]);
}

#[test]
fn r29_restoring_the_time_hides_nothing() {
    let new = "cp -p d/f old; echo two >new; touch -r d/f new";
    seen_either_way(&[
        "cp -p d/f old; echo two >d/f; touch -r old d/f",
        &format!("{new}; cp -p new d/f"),
        &format!("{new}; mv new d/f"),
    ]);
    if has("rsync") {
        seen_either_way(&[
            &format!("{new}; rsync -tI new d/f"),
            &format!("{new}; rsync -tI --inplace new d/f"),
        ]);
    }
}

#[test]
fn r30_the_same_size_in_the_same_tick_is_seen() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    for round in 0..100 {
        place.write("f", "aaaa");
        register(&daemon, &place, "s", &json!([file("f", "aaaa")]));
        place.write("f", "bbbb");
        assert_eq!(cause(&decide(&daemon, "s"), "f"), "content", "round {round}");
    }
}

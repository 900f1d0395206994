//! Writers who store without an event: whatever is open or mapped for writing cannot be told, and nothing else is
//! doubted because of it.

use super::Writer;
use crate::daemon::{cause, decide_at_once as decide, register};
use crate::harness::{Daemon, Place, digest, file, lax, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

fn one_file() -> (Place, Daemon, Writer) {
    let place = Place::new();
    place.write("f", "one\n");
    let daemon = Daemon::start(&place.home);
    (place, daemon, Writer::start())
}

fn one_row(daemon: &Daemon, place: &Place) {
    register(daemon, place, "s", &json!([file("f", "one\n")]));
}

/// Every way to be a writer: the orders, whether they change the bytes, and the orders that end it.
const WAYS: [(&str, &[&str], bool, &[&str]); 4] = [
    ("open for writing", &["open"], false, &["close"]),
    ("open for appending, and written", &["append", "write x"], true, &["close"]),
    ("mapped", &["open", "map"], false, &["unmap", "close"]),
    ("mapped, closed and stored into", &["open", "map", "close", "store two"], true, &["unmap"]),
];

fn orders(writer: &mut Writer, place: &Place, orders: &[&str]) {
    for &order in orders {
        match order {
            "open" | "append" | "read" => writer.does_to(order, &place.root.join("f")),
            other => writer.does(other),
        }
    }
}

#[test]
fn a_writer_who_comes_after_the_look_makes_it_unknown_until_he_is_gone() {
    for (way, begin, changes, end) in WAYS {
        let (place, daemon, mut writer) = one_file();
        one_row(&daemon, &place);
        assert_eq!(cause(&decide(&daemon, "s"), "f"), "fresh", "{way}: before");
        orders(&mut writer, &place, begin);
        for again in 0..3 {
            assert_eq!(cause(&decide(&daemon, "s"), "f"), "live_writer", "{way}: {again}");
        }
        orders(&mut writer, &place, end);
        let after = if changes { "content" } else { "fresh" };
        assert_eq!(cause(&decide(&daemon, "s"), "f"), after, "{way}: after");
    }
}

#[test]
fn a_writer_who_was_there_before_the_registration_makes_it_unknown() {
    for (way, begin, changes, end) in WAYS {
        let (place, daemon, mut writer) = one_file();
        orders(&mut writer, &place, begin);
        one_row(&daemon, &place);
        assert_eq!(cause(&decide(&daemon, "s"), "f"), "live_writer", "{way}");
        orders(&mut writer, &place, end);
        let after = if changes { "born_stale" } else { "fresh" };
        assert_eq!(cause(&decide(&daemon, "s"), "f"), after, "{way}: after");
    }
}

#[test]
fn a_second_store_into_a_page_that_was_hashed_is_never_missed() {
    // Neither the size nor any time changes with it, even when it is written out and unmapped.
    let (place, daemon, mut writer) = one_file();
    orders(&mut writer, &place, &["open", "map", "close", "store two"]);
    register(&daemon, &place, "s", &json!([lax("f", "two\n")]));
    assert_eq!(cause(&decide(&daemon, "s"), "f"), "live_writer");
    writer.does("store six");
    daemon.stop();
    writer.does("unmap");
    let daemon = Daemon::start(&place.home);
    assert_eq!(
        cause(&decide(&daemon, "s"), "f"),
        "born_stale",
        "a hash under a writer was believed after a restart"
    );
}

#[test]
fn readers_and_other_names_doubt_nothing_and_miss_nothing() {
    let (place, daemon, mut writer) = one_file();
    fs::hard_link(place.root.join("f"), place.root.join("g")).expect("a link");
    std::os::unix::fs::symlink("f", place.root.join("l")).expect("a link");
    let names = ["f", "g", "l"];
    let results: Vec<Value> = names.iter().map(|name| file(name, "one\n")).collect();
    register(&daemon, &place, "s", &json!(results));
    writer.does_to("read", &place.root.join("f"));
    let report = decide(&daemon, "s");
    assert!(names.iter().all(|name| cause(&report, name) == "fresh"), "{report}");
    writer.does_to("open", &place.root.join("g"));
    let report = decide(&daemon, "s");
    assert!(names.iter().all(|name| cause(&report, name) == "live_writer"), "{report}");
    // Another session, which nobody asked about when the file was opened.
    register(&daemon, &place, "t", &json!(results));
    let report = decide(&daemon, "t");
    assert!(names.iter().all(|name| cause(&report, name) == "live_writer"), "{report}");
    writer.does("close");
    for session in ["s", "t"] {
        let report = decide(&daemon, session);
        assert!(names.iter().all(|name| cause(&report, name) == "fresh"), "{report}");
    }
}

#[test]
fn nothing_is_looked_at_for_being_read_and_looks_do_not_set_each_other_off() {
    let place = Place::new();
    let names: Vec<String> = (0..2_000).map(|number| format!("d{}/f{number}", number % 20)).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let results: Vec<Value> = names.iter().map(|name| file(name, "one\n")).collect();
    let daemons = [Daemon::start(&place.home), Daemon::start(&place.home.join("other"))];
    for daemon in &daemons {
        register(daemon, &place, "s", &json!(results));
        assert_eq!(decide(daemon, "s")["transition"], "resume");
    }
    // Every look touches one file of our own, which is an event.
    let looks = |daemon: &Daemon| daemon.ask("status", &json!({}))["events"].as_u64().expect("a number");
    for daemon in &daemons {
        // What one of them opens is somebody else's open to the other: asked about once. Its own opens are not.
        wait_until("a question makes it look at nothing", || {
            let before = looks(daemon);
            assert_eq!(decide(daemon, "s")["transition"], "resume");
            looks(daemon) - before <= 6
        });
    }
    for daemon in &daemons {
        // A status is one cookie, and a cookie two events at most.
        let mut before = looks(daemon);
        wait_until("nothing happens any more", || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = looks(daemon);
            now - std::mem::replace(&mut before, now) <= 2
        });
        names.iter().for_each(|name| drop(fs::read(place.root.join(name)).expect("a file")));
        let after = looks(daemon);
        assert!(after - before <= 4, "{} events for reading {} files", after - before, names.len());
    }
}

#[test]
fn whoever_opens_a_file_while_it_is_asked_about_gets_it_and_nobody_is_killed() {
    let (place, daemon, _writer) = one_file();
    one_row(&daemon, &place);
    let path = place.root.join("f");
    let begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20_000 {
                drop(fs::File::options().write(true).open(&path).expect("an open that waits is let through"));
                begun.store(true, Ordering::Relaxed);
            }
        });
        wait_until("files are being opened", || begun.load(Ordering::Relaxed));
        for _ in 0..100 {
            let report = daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 20 }));
            let word = cause(&report, "f");
            let words = ["fresh", "live_writer", "unsettled", "watcher_dead"];
            assert!(words.contains(&word.as_str()), "{word}");
        }
    });
    assert_eq!(cause(&decide(&daemon, "s"), "f"), "fresh");
}

#[test]
fn what_a_writer_left_alone_is_asked_about_again_by_itself() {
    let (place, _, mut writer) = one_file();
    let mut config = staled::config::Config::default();
    config.verify.retry_ms = 100;
    let daemon = Daemon::start_with(&place.home.join("retry"), config);
    orders(&mut writer, &place, &["open", "map", "close", "store two"]);
    one_row(&daemon, &place);
    writer.does("unmap");
    wait_until("the listed counts are those of the disk", || {
        let listed = daemon.ask("context.list", &json!({}));
        listed["sessions"][0]["counts"]["stale"] == 1
    });
    assert_ne!(digest("one\n"), digest("two\n"));
}

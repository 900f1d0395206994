//! Limits of the kernel: what is beyond them is unknown and says which limit, what is within is not touched by it, and
//! everything comes back by itself when there is room.

use crate::daemon::cause;
use crate::harness::{Place, ask, file, skipped, wait_until};
use serde_json::{Value, json};
use staled::client::Client;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A daemon in a user namespace of its own, whose limits can be set without touching anybody else's.
pub(crate) struct Confined {
    child: Child,
    limits: Option<ChildStdin>,
    pub(crate) socket: PathBuf,
    said: PathBuf,
}

const SHELL: &str = r#"
set -e
echo "$1" > /proc/sys/user/max_inotify_watches
echo "$2" > /proc/sys/user/max_inotify_instances
"$3" serve --state "$4" --config "$5" &
while read -r name value; do echo "$value" > "/proc/sys/user/$name"; done
kill $!
wait || true
"#;

impl Confined {
    pub(crate) fn start(place: &Place, watches: u32, instances: u32) -> Option<Self> {
        Self::start_under(place, watches, instances, &[])
    }

    /// With these variables, which systemd would set.
    fn start_under(place: &Place, watches: u32, instances: u32, variables: &[(&str, &Path)]) -> Option<Self> {
        let may = Command::new("unshare")
            .args(["-Ur", "sh", "-c", ": > /proc/sys/user/max_inotify_watches"])
            .output();
        if !may.is_ok_and(|output| output.status.success()) {
            skipped("no user namespace can be made");
            return None;
        }
        let config = place.root.with_file_name("config.toml");
        std::fs::write(&config, "[verify]\nretry_ms = 100\n").expect("a file");
        let state = place.home.join("state");
        let mut shell = Command::new("unshare");
        shell.args(["-Ur", "sh", "-c", SHELL, "sh", &watches.to_string(), &instances.to_string()]);
        shell
            .arg(env!("CARGO_BIN_EXE_staled"))
            .arg(&state)
            .arg(&config)
            .env("STALED_JOURNAL_SOCKET", "/nowhere/journal")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped());
        let said = place.root.with_file_name("said");
        let stderr = std::fs::File::create(&said).expect("a file");
        let mut child = shell.env("HOME", &place.home).stderr(stderr).spawn().expect("it runs");
        let limits = child.stdin.take();
        let confined = Self { child, limits, socket: state.join("run/staled.sock"), said };
        wait_until("the daemon answers", || Client::connect(&confined.socket).is_ok());
        Some(confined)
    }

    pub(crate) fn set(&mut self, limit: &str, value: u32) {
        let limits = self.limits.as_mut().expect("it is not stopped");
        writeln!(limits, "{limit} {value}").expect("the shell reads");
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        ask(&mut Client::connect(&self.socket).expect("the daemon answers"), method, params)
    }

    fn decide(&self) -> Value {
        self.ask("decide", &json!({ "session": "s", "deadline_ms": 10_000 }))
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).expect("a file")
    }

    fn problems(&self) -> String {
        self.ask("status", &json!({}))["problems"].to_string()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // The end of its input ends the shell's daemon, and then the shell.
        drop(self.limits.take());
        let _ = self.child.wait();
    }
}

#[test]
fn what_needs_more_watches_than_there_are_is_unknown_and_nothing_else_is() {
    let place = Place::new();
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| place.write(name, "one\n"));
    let Some(mut daemon) = Confined::start(&place, 25, 10) else { return };
    let results: Vec<Value> = names.iter().map(|name| file(name, "one\n")).collect();
    daemon.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    let report = daemon.decide();
    let words: Vec<String> = names.iter().map(|name| cause(&report, name)).collect();
    let count = |word: &str| words.iter().filter(|held| *held == word).count();
    assert!(count("fresh") > 5 && count("watch_limit") > 5, "{words:?}");
    assert_eq!(count("fresh") + count("watch_limit"), names.len(), "{words:?}");
    assert!(daemon.problems().contains("fs.inotify.max_user_watches"), "{}", daemon.problems());
    // The watched are watched all the same.
    let watched = words.iter().position(|word| word == "fresh").expect("some are");
    place.write(&names[watched], "two\n");
    assert_eq!(cause(&daemon.decide(), &names[watched]), "content");
    place.write(&names[watched], "one\n");
    daemon.set("max_inotify_watches", 1_000);
    wait_until("there is room for all", || daemon.decide()["transition"] == "resume");
}

#[test]
fn without_a_watcher_everything_is_unknown_until_there_is_one() {
    let place = Place::new();
    place.write("f", "one\n");
    let Some(seeing) = Confined::start(&place, 1_000, 10) else { return };
    let results = json!([file("f", "one\n")]);
    seeing.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    drop(seeing);
    let Some(mut daemon) = Confined::start(&place, 1_000, 0) else { return };
    let blind = || daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 50 }));
    assert_eq!(cause(&blind(), "f"), "watcher_dead");
    place.write("f", "two\n");
    assert_eq!(cause(&blind(), "f"), "watcher_dead");
    assert!(daemon.problems().contains("fs.inotify.max_user_instances"), "{}", daemon.problems());
    daemon.set("max_inotify_instances", 10);
    wait_until("there is a watcher", || cause(&daemon.decide(), "f") != "watcher_dead");
    place.write("f", "one\n");
    assert_eq!(daemon.decide()["transition"], "resume");
    place.write("f", "two\n");
    assert_eq!(daemon.decide()["transition"], "fresh");
}

#[test]
fn the_watchdog_is_fed_only_by_a_cookie_that_came_back() {
    let place = Place::new();
    place.write("f", "one\n");
    let Some(seeing) = Confined::start(&place, 1_000, 10) else { return };
    let results = json!([file("f", "one\n")]);
    seeing.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    drop(seeing);
    let notify = place.root.with_file_name("notify");
    let systemd = UnixDatagram::bind(&notify).expect("a socket");
    systemd.set_nonblocking(true).expect("a socket");
    let is_fed = || {
        let mut message = [0; 1_024];
        let told = std::iter::from_fn(|| systemd.recv(&mut message).ok().map(|len| message[..len].to_vec()));
        told.collect::<Vec<_>>().concat().windows(10).any(|text| text == b"WATCHDOG=1")
    };
    let variables = [("NOTIFY_SOCKET", notify.as_path()), ("WATCHDOG_USEC", Path::new("300000"))];
    let Some(mut daemon) = Confined::start_under(&place, 1_000, 0, &variables) else { return };
    let mut decided = 0;
    wait_until("it has not been fed for a while", || {
        let report = daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 50 }));
        assert_eq!(cause(&report, "f"), "watcher_dead");
        assert!(!is_fed(), "fed by an answer of blind eyes, after {decided} decisions");
        decided += 1;
        decided >= 10 && daemon.said().matches("the watchdog is not fed").count() >= 3
    });
    daemon.set("max_inotify_instances", 10);
    wait_until("it is fed", is_fed);
    wait_until("there is a watcher", || daemon.decide()["transition"] == "resume");
}

#[test]
fn without_any_watch_at_the_start_everything_is_unknown_until_there_are_some() {
    let place = Place::new();
    place.write("f", "one\n");
    let Some(seeing) = Confined::start(&place, 1_000, 10) else { return };
    let results = json!([file("f", "one\n")]);
    seeing.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    drop(seeing);
    for watches in [0, 1, 2] {
        place.write("f", "one\n");
        let Some(mut daemon) = Confined::start(&place, watches, 10) else { return };
        let decide = || daemon.ask("decide", &json!({ "session": "s", "deadline_ms": 50 }));
        for text in ["one\n", "two\n"] {
            place.write("f", text);
            assert_ne!(decide()["transition"], "resume", "{watches} watches");
        }
        let limit = "fs.inotify.max_user_watches";
        wait_until("the limit is told", || daemon.problems().contains(limit));
        daemon.set("max_inotify_watches", 1_000);
        wait_until("it is seen", || cause(&daemon.decide(), "f") == "content");
        place.write("f", "one\n");
        wait_until("there is room for all", || daemon.decide()["transition"] == "resume");
        place.write("f", "two\n");
        assert_eq!(daemon.decide()["transition"], "fresh", "{watches} watches at first");
        wait_until("nothing is wrong any more", || daemon.problems() == "[]");
    }
}

#[test]
fn one_instance_is_enough_and_goes_to_the_eyes() {
    let place = Place::new();
    place.write("f", "one\n");
    let Some(daemon) = Confined::start(&place, 1_000, 1) else { return };
    let results = json!([file("f", "one\n")]);
    daemon.ask("context.register", &json!({ "session": "s", "root": place.root, "results": results }));
    assert_eq!(daemon.decide()["transition"], "resume");
    place.write("f", "two\n");
    assert_eq!(daemon.decide()["transition"], "fresh");
    let said = daemon.said();
    assert!(said.contains("sees to it that the socket stays"), "{said}");
    assert!(said.contains("fs.inotify.max_user_instances"), "{said}");
}

//! A store that fails under a running daemon: nothing is answered from it, and it comes back by itself.

use crate::cli::serve::Serving;
use crate::harness::{self, Daemon, Place, file, skipped, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::{Client, ClientError};
use staled::config::Config;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A filesystem of a few megabytes below a place's home; `None` (said once) where this user may not mount.
pub(crate) struct FullDisk<'place>(&'place Place);

impl<'place> FullDisk<'place> {
    pub(crate) fn mount(place: &'place Place) -> Option<Self> {
        std::fs::create_dir_all(place.home.join("state")).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"])
            .arg(place.home.join("state"))
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            skipped("a small tmpfs cannot be mounted here, so no disk gets full");
            return None;
        }
        Some(Self(place))
    }

    /// Leaves so many bytes, and what other files have of their last pages.
    pub(crate) fn fill_but(&self, left: u64) {
        let path = self.0.home.join("state/ballast");
        let mut file = std::fs::File::create(path).unwrap();
        for len in [64 * 1024, 4 * 1024, 1] {
            while std::io::Write::write_all(&mut file, &vec![7; len]).is_ok() {}
        }
        file.set_len(file.metadata().unwrap().len() - left).unwrap();
    }

    pub(crate) fn free(&self) {
        std::fs::remove_file(self.0.home.join("state/ballast")).unwrap();
    }
}

impl Drop for FullDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.home.join("state")).status();
    }
}

fn context(place: &Place, session: &str) -> Value {
    json!({ "session": session, "root": place.root, "results": [file("a", "1"), file("b", "1")] })
}

/// Registers until it is refused; the sessions that were acknowledged.
fn register_until_refused(place: &Place, daemon: &Daemon) -> Vec<String> {
    let mut acknowledged = Vec::new();
    // The index fails when sled's buffer is full, the journal at once.
    for number in 0..20_000 {
        let session = format!("s{number}");
        match daemon.client().ask("context.register", &context(place, &session)) {
            Ok(_) => acknowledged.push(session),
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.word(), Some("store_failed"), "{refusal}");
                return acknowledged;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("20,000 sessions fit on a full disk")
}

fn transition(daemon: &Daemon, session: &str) -> Value {
    let mut client = daemon.client();
    harness::ask(&mut client, "decide", &json!({ "session": session }))["transition"].clone()
}

/// What was counted stays counted, whatever store it goes on with.
fn scrubs_on(daemon: &Daemon, passes: &mut u64) {
    let before = *passes;
    wait_until("the scrub goes round", || {
        let now = daemon.ask("status", &json!({}))["scrub_passes"].as_u64().unwrap_or(*passes);
        assert!(now >= *passes, "{now} passes after {passes}");
        *passes = now;
        now > before + 1
    });
}

#[test]
fn a_disk_that_was_full_costs_nothing_that_was_acknowledged() {
    let place = Place::new();
    let Some(disk) = FullDisk::mount(&place) else { return };
    place.write("a", "1");
    place.write("b", "1");
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.verify.scrub_pass_s = 1;
    let daemon = Daemon::start_with(&place.home, config);
    let mut passes = 0;
    daemon.ask("context.register", &context(&place, "before"));
    assert_eq!(transition(&daemon, "before"), "resume");
    // With nothing left the journal refuses at once; with some left sled fails, which needs more at a time.
    for (round, left) in [0, 300_000, 0, 600_000].into_iter().enumerate() {
        scrubs_on(&daemon, &mut passes);
        disk.fill_but(left);
        let acknowledged = register_until_refused(&place, &daemon);
        place.write("b", &format!("2 in round {round}"));
        // Without a line in the log, or without an index, there is no answer; with both there is the true one.
        match daemon.client().ask("decide", &json!({ "session": "before" })) {
            Err(ClientError::Refused(refusal)) => {
                assert!(
                    ["log_failed", "store_failed"].contains(&refusal.word().unwrap_or_default()),
                    "{refusal}"
                );
            }
            Ok(report) => assert!(report.contains("\"transition\":\"fresh\""), "{report}"),
            Err(error) => panic!("{error}"),
        }
        disk.free();
        wait_until("the store takes sessions again", || {
            daemon.client().ask("context.register", &context(&place, "after")).is_ok()
        });
        for session in acknowledged.iter().chain([&"before".to_owned()]) {
            assert_eq!(transition(&daemon, session), "fresh", "round {round}: {session}");
        }
        place.write("b", "1");
        assert_eq!(transition(&daemon, "before"), "resume", "round {round}");
    }
    scrubs_on(&daemon, &mut passes);
    let log = std::fs::read_to_string(place.home.join("state/decisions.jsonl")).unwrap();
    assert!(log.contains("the store was opened again"), "sled never failed: {log}");
    daemon.stop();
    let daemon = Daemon::start(&place.home);
    assert_eq!(transition(&daemon, "before"), "resume");
    daemon.stop();
}

/// A folder in which nothing can be written; `None` (said once) where this user may not mount.
struct Closed(PathBuf);

impl Closed {
    fn mount(folder: PathBuf) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "tmpfs"]).arg(&folder).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skipped("nothing can be mounted here, so no disk is closed");
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn an_index_is_set_aside_though_what_was_before_it_cannot_be_removed() {
    let place = Place::new();
    let state = place.home.join("state");
    for name in ["index.aside-0", "index.aside-1", "index.aside-2"] {
        std::fs::create_dir_all(state.join(name)).unwrap();
    }
    std::fs::write(state.join("index"), "no folder at all").unwrap();
    let Some(_closed) = Closed::mount(state.join("index.aside-0")) else { return };
    let healed = super::open(&state, 3).healed;
    assert!(healed.iter().any(|healed| healed.contains("was set aside as")), "{healed:?}");
    assert!(state.join("index.aside-0").exists() && state.join("index.aside-trial-3").exists());
}

/// A systemd that counts how often its watchdog was fed.
fn watchdog(path: &Path) -> Arc<AtomicU64> {
    let systemd = UnixDatagram::bind(path).unwrap();
    let fed = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&fed);
    // It ends with the test's process. One that does not read holds up whoever tells it.
    std::thread::spawn(move || {
        let mut message = [0; 256];
        while let Ok(len) = systemd.recv(&mut message) {
            counted.fetch_add(u64::from(message[..len].starts_with(b"WATCHDOG=1")), Ordering::Relaxed);
        }
    });
    fed
}

/// A closed disk is not mended by another process: whoever asks how the daemon is is answered, and systemd has no reason to
/// kill it.
#[test]
fn without_a_store_it_says_who_and_how_it_is_and_that_it_sees() {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let path = place.root.join("notify");
    let fed = watchdog(&path);
    let mut daemon = Serving::start(&place, &[]);
    let epoch = Client::connect(&daemon.socket).unwrap().ask("hello", &json!({})).unwrap();
    Client::connect(&daemon.socket).unwrap().ask("context.register", &context(&place, "s")).unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    let Some(closed) = Closed::mount(place.home.join("state/index")) else { return };
    let variables = [("NOTIFY_SOCKET", path.as_path()), ("WATCHDOG_USEC", Path::new("300000"))];
    let daemon = Serving::start_under(&place, &[], &variables);
    let ask = |method: &str, params: &Value| -> Result<Value, ClientError> {
        let answer = Client::connect(&daemon.socket).expect("it serves").ask(method, params);
        answer.map(|answer| serde_json::from_str(&answer).unwrap())
    };
    let (begun, mut seen_down) = (fed.load(Ordering::Relaxed), 0);
    wait_until("it was fed while the store was down", || {
        let status = ask("status", &json!({})).unwrap();
        if status["sessions"].is_null() {
            seen_down += 1;
            assert_eq!(status["health"], "degraded", "{status}");
            let problem = status["problems"][0].as_str().unwrap();
            assert!(problem.contains("it is tried again by itself"), "{status}");
            assert_eq!(ask("hello", &json!({})).unwrap()["epoch"], "", "there was none, and not {epoch}");
            assert!(ask("decide", &json!({ "session": "s" })).is_err());
        }
        seen_down > 10 && fed.load(Ordering::Relaxed) > begun + 10
    });
    drop(closed);
    wait_until("the store is there again", || ask("status", &json!({})).unwrap()["sessions"] == 1);
}

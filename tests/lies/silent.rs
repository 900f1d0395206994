//! Filesystems that report nothing: never fresh by silence, and, where it is asked for, looked at for each question.

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file, lax, skipped};
use serde_json::{Value, json};
use staled::config::{Config, Unwatchable};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A folder that a FUSE filesystem shows at another path, where changes behind its back are not reported.
struct Fuse {
    behind: PathBuf,
    front: PathBuf,
}

impl Fuse {
    fn mount(place: &Place) -> Option<Self> {
        let (behind, front) = (place.root.join("behind"), place.root.join("front"));
        fs::create_dir_all(&front).expect("a folder");
        let mut mount = Command::new("bindfs");
        mount.args(["-o", "attr_timeout=0,entry_timeout=0"]).args([&behind, &front]);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self { behind, front }),
            Ok(output) => {
                skipped(&format!("FUSE cannot be used: {}", String::from_utf8_lossy(&output.stderr).trim()));
                None
            }
            Err(error) => {
                skipped(&format!("bindfs cannot be run: {error}"));
                None
            }
        }
    }

    /// Same size, and its time set back.
    fn change_behind(&self, text: &str) {
        let path = self.behind.join("f");
        let before = fs::metadata(&path).expect("a file").modified().expect("a time");
        fs::write(&path, text).expect("a file");
        fs::File::options().write(true).open(&path).expect("a file").set_modified(before).expect("a time");
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // Lazily: a daemon that has not ended yet holds watches in it.
        let unmounted = Command::new("fusermount3").arg("-uz").arg(&self.front).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.front.display());
    }
}

fn verifying() -> Config {
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.verify.unwatchable = Unwatchable::Verify;
    config
}

#[test]
fn what_lies_behind_fuse_is_unknown_unless_it_is_looked_at_for_the_question() {
    let place = Place::new();
    place.write("behind/f", "one\n");
    let Some(fuse) = Fuse::mount(&place) else { return };
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([lax("front/f", "one\n")]));
    assert_eq!(cause(&decide(&daemon, "s"), "front/f"), "unwatchable_fs");
    daemon.stop();
    let daemon = Daemon::start_with(&place.home, verifying());
    for (text, is) in [("one\n", "fresh"), ("two\n", "content"), ("six\n", "content"), ("one\n", "fresh")] {
        fuse.change_behind(text);
        assert_eq!(cause(&decide(&daemon, "s"), "front/f"), is, "{text}");
    }
    daemon.stop();
    fuse.change_behind("two\n");
    let daemon = Daemon::start_with(&place.home, verifying());
    assert_eq!(cause(&decide(&daemon, "s"), "front/f"), "content", "changed while the daemon was down");
}

#[test]
fn a_source_that_moves_to_a_filesystem_that_reports_is_watched_again() {
    let place = Place::new();
    place.write("behind/f", "one\n");
    let Some(fuse) = Fuse::mount(&place) else { return };
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("front/f", "one\n")]));
    assert_eq!(cause(&decide(&daemon, "s"), "front/f"), "unwatchable_fs");
    drop(fuse);
    let is = cause(&decide(&daemon, "s"), "front/f");
    assert!(["deleted", "born_stale"].contains(&is.as_str()), "{is}");
    place.write("front/f", "one\n");
    assert_eq!(cause(&decide(&daemon, "s"), "front/f"), "fresh");
}

#[test]
fn pseudo_filesystems_are_never_fresh_in_either_mode() {
    let paths = ["/proc/self/status", "/proc/uptime", "/sys/kernel/uevent_seqnum"];
    for config in [Config::default(), verifying()] {
        let place = Place::new();
        let daemon = Daemon::start_with(&place.home, config);
        let result = |path: &&str| json!({ "id": path, "source": { "kind": "file", "path": path } });
        register(&daemon, &place, "s", &json!(paths.iter().map(result).collect::<Vec<Value>>()));
        let report = decide(&daemon, "s");
        for path in paths {
            let word = cause(&report, path);
            assert!(["unwatchable_fs", "unsettled", "unreadable"].contains(&word.as_str()), "{path}: {word}");
        }
    }
}

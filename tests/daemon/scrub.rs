//! The scrub and the paranoid mode: what no event announced is found all the same, and what is no difference is not.

use crate::daemon::{cause, decide, register};
use crate::harness::{Daemon, Place, file, wait_until};
use serde_json::{Value, json};
use staled::config::Config;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn config(scrub_pass_s: u64, paranoid: bool) -> Config {
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    config.verify.scrub_pass_s = scrub_pass_s;
    config.verify.paranoid = paranoid;
    config
}

fn status(daemon: &Daemon) -> Value {
    daemon.ask("status", &json!({}))
}

fn passes(daemon: &Daemon) -> u64 {
    status(daemon)["scrub_passes"].as_u64().expect("a number")
}

/// A tree whose file `d/f` has got a second name outside of it, which nothing announced.
fn linked_later(config: Config) -> (Place, Daemon) {
    let place = Place::new();
    for path in ["d/f", "d/g", "e/deep/h"] {
        place.write(path, "one\n");
    }
    let daemon = Daemon::start_with(&place.home, config);
    let tree = json!({ "id": "tree", "source": { "kind": "tree", "path": "." } });
    register(&daemon, &place, "s", &json!([tree, file("e/deep/h", "one\n")]));
    fs::hard_link(place.root.join("d/f"), place.home.join("elsewhere")).expect("a link");
    (place, daemon)
}

#[test]
fn a_change_that_no_event_announced_is_found_counted_and_believed() {
    let (place, daemon) = linked_later(config(1, false));
    fs::write(place.home.join("elsewhere"), "two\n").expect("a file");
    wait_until("the scrub finds it", || status(&daemon)["missed_events"] == 1);
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "tree"), "content", "{report}");
    assert_eq!(cause(&report, "e/deep/h"), "fresh", "{report}");
    let status = status(&daemon);
    assert_eq!(status["gaps"], 1, "nothing heard before may be believed: {status}");
    let log = fs::read_to_string(daemon.folders.state.join("decisions.jsonl")).expect("a log");
    assert!(log.contains("\"event\":\"missed_event\""), "{log}");
    let then = passes(&daemon);
    wait_until("the scrub has gone round", || passes(&daemon) > then + 2);
    assert_eq!(self::status(&daemon)["missed_events"], 1, "it is told once");
}

#[test]
fn what_is_no_change_is_no_missed_event() {
    let (place, daemon) = linked_later(config(1, false));
    fs::set_permissions(place.home.join("elsewhere"), fs::Permissions::from_mode(0o600)).expect("a mode");
    place.write("d/g", "announced\n");
    let then = passes(&daemon);
    // Every source is read byte by byte once in eight passes.
    wait_until("the scrub has gone round nine times", || passes(&daemon) > then + 9);
    let status = status(&daemon);
    assert_eq!((&status["missed_events"], &status["gaps"]), (&json!(0), &json!(0)), "{status}");
}

#[test]
fn the_paranoid_mode_finds_what_the_index_does_not_know_and_answers_the_truth() {
    let (place, daemon) = linked_later(config(0, true));
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "resume", "{report}");
    assert_eq!(status(&daemon)["paranoid"], json!({ "made": 1, "inconclusive": 0, "differences": 0 }));
    fs::write(place.home.join("elsewhere"), "two\n").expect("a file");
    let report = decide(&daemon, "s");
    assert_eq!(cause(&report, "tree"), "content", "{report}");
    assert_eq!(status(&daemon)["paranoid"], json!({ "made": 2, "inconclusive": 0, "differences": 1 }));
    let log = fs::read_to_string(daemon.folders.state.join("decisions.jsonl")).expect("a log");
    assert!(log.contains("\"event\":\"paranoid_difference\""), "{log}");
    place.write("d/f", "one\n");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    assert_eq!(status(&daemon)["paranoid"]["differences"], 1);
}

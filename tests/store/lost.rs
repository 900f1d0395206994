//! A journal that is gone with all its files: nothing is left that could be in doubt, and it is said all the same.

use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};
use std::fs;

fn healed(daemon: &Daemon) -> Vec<String> {
    let lines = daemon.ask("log.read", &json!({ "limit": 1000 }))["lines"].clone();
    let healed = lines.as_array().unwrap().iter().filter(|line| line["event"] == "healed").cloned();
    healed.map(|line: Value| line["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_journal_that_is_lost_whole_is_said_once_and_no_session_is_there() {
    for with_index in [true, false] {
        let place = Place::new();
        place.write("a", "1");
        let daemon = Daemon::start(&place.home);
        daemon.ask(
            "context.register",
            &json!({ "session": "s", "root": place.root, "results": [file("a", "1")] }),
        );
        assert_eq!(healed(&daemon), [""; 0], "a new one has lost nothing");
        daemon.stop();
        let state = place.home.join("state");
        fs::remove_dir_all(state.join("journal")).unwrap();
        if !with_index {
            fs::remove_dir_all(state.join("index")).unwrap();
        }
        for times in 1..=2 {
            let daemon = Daemon::start(&place.home);
            let said = healed(&daemon);
            let of_it = said.iter().filter(|what| what.starts_with("the journal is lost: record "));
            assert_eq!(of_it.count(), 1, "start {times}, index {with_index}: {said:?}");
            let sessions = daemon.ask("status", &json!({}))["sessions"].clone();
            assert_eq!(sessions, 0, "{sessions}");
            daemon.stop();
        }
    }
}

//! Renamed is said of what an event told about and a look confirms, for as long as it is so; of all else, deleted.

use crate::daemon::{cause, decide, register, row};
use crate::harness::{Daemon, Place, digest, file};
use serde_json::{Value, json};
use std::fs;

struct Case {
    place: Place,
    daemon: Daemon,
}

impl Case {
    fn new() -> Self {
        let place = Place::new();
        place.write("d/f", "one\n");
        let daemon = Daemon::start(&place.home);
        register(&daemon, &place, "s", &json!([file("d/f", "one\n")]));
        Self { place, daemon }
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.place.root.join(from), self.place.root.join(to)).expect("a rename");
    }

    #[track_caller]
    fn is(&self, word: &str, to: Option<&str>) {
        let report = decide(&self.daemon, "s");
        assert_eq!(cause(&report, "d/f"), word, "{report}");
        let told = to.map_or(Value::Null, |to| json!(self.place.root.join(to)));
        assert_eq!(row(&report, "d/f")["renamed_to"], told);
    }
}

#[test]
fn a_file_that_was_renamed_says_where_to_for_as_long_as_it_is_there() {
    let case = Case::new();
    case.rename("d/f", "d/g");
    case.is("renamed", Some("d/g"));
    let report = decide(&case.daemon, "s");
    let text = report["reason"]["text"].as_str().expect("a text");
    assert!(text.contains("d/f was renamed to "), "{text}");
    // From one name to the next, with its folder, and somebody else's bytes at the new place.
    case.rename("d/g", "d/h");
    case.is("renamed", Some("d/h"));
    case.rename("d", "e");
    case.is("renamed", Some("e/h"));
    case.place.write("e/h", "two\n");
    case.is("deleted", None);
    case.place.write("e/h", "one\n");
    case.is("renamed", Some("e/h"));
    fs::remove_file(case.place.root.join("e/h")).expect("a file");
    case.is("deleted", None);
    case.place.write("d/f", "one\n");
    case.is("fresh", None);
    fs::remove_file(case.place.root.join("d/f")).expect("a file");
    case.place.write("e/h", "one\n");
    case.is("deleted", None);
}

#[test]
fn what_is_back_in_its_place_is_judged_by_its_bytes() {
    let case = Case::new();
    // As editors save: the old file steps aside, a new one is written.
    case.rename("d/f", "d/f~");
    case.place.write("d/f", "two\n");
    case.is("content", None);
    case.rename("d/f", "d/g");
    case.is("deleted", None);
    assert_ne!(digest("one\n"), digest("two\n"));
    case.rename("d/f~", "d/f");
    case.is("fresh", None);
}

#[test]
fn a_rename_to_where_nobody_looks_is_a_deletion() {
    let case = Case::new();
    let elsewhere = tempfile::tempdir_in(&case.place.home).expect("a folder");
    fs::rename(case.place.root.join("d/f"), elsewhere.path().join("f")).expect("a rename");
    case.is("deleted", None);
}

#[test]
fn it_is_said_again_after_a_restart_if_it_is_still_so() {
    let mut case = Case::new();
    case.rename("d/f", "d/g");
    case.is("renamed", Some("d/g"));
    for (text, word, to) in [(None, "renamed", Some("d/g")), (Some("two\n"), "deleted", None)] {
        case.daemon.stop();
        if let Some(text) = text {
            case.place.write("d/g", text);
        }
        case.daemon = Daemon::start(&case.place.home);
        case.is(word, to);
    }
}

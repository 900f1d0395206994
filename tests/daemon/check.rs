//! `check`: the gate for somebody else's report, as strict as the command line's.

use crate::daemon::{decide, register};
use crate::harness::{Daemon, Place, file};
use serde_json::json;

#[test]
fn own_reports_pass_and_a_changed_one_fails_at_the_place_that_was_changed() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "0")]));
    let report = decide(&daemon, "s");
    let check = |report: &serde_json::Value| daemon.ask("check", &json!({ "report": report }));
    assert_eq!(check(&report), json!({ "status": "pass", "errors": [] }));
    let mut lie = report.clone();
    lie["transition"] = "resume".into();
    let checked = check(&lie);
    assert_eq!(checked["status"], "fail");
    let paths: Vec<_> =
        checked["errors"].as_array().expect("errors").iter().map(|fault| &fault["path"]).collect();
    assert!(paths.contains(&&json!("$.transition")), "{checked}");
    for nonsense in [json!(null), json!([]), json!("x"), json!({})] {
        assert_eq!(check(&nonsense)["status"], "fail", "{nonsense}");
    }
}

/// Two transitions in one report: parsers disagree about which counts, so neither does.
#[test]
fn a_key_that_stands_twice_fails_the_report() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let report = decide(&daemon, "s").to_string();
    let twice = report.replacen("\"transition\":", "\"transition\":\"fresh\",\"transition\":", 1);
    assert_ne!(report, twice);
    let raw = serde_json::value::RawValue::from_string(format!("{{\"report\":{twice}}}")).expect("JSON");
    let checked = daemon.client().ask("check", &raw).expect("an answer");
    assert!(checked.contains("\"fail\"") && checked.contains("twice"), "{checked}");
}

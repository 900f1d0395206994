//! `doctor` beside a real daemon and without one.

use super::{Run, staled};
use crate::daemon::register;
use crate::harness::{Daemon, Place, file};
use serde_json::json;

/// What is said of everything that goes by this name.
fn said<'run>(run: &'run Run, name: &str) -> Vec<&'run str> {
    let of_name = |line: &&str| line[2..].trim_start().starts_with(name);
    run.out.lines().filter(of_name).collect()
}

#[test]
fn it_looks_with_and_without_a_daemon() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let (socket, state) = (daemon.folders.socket.clone(), daemon.folders.state.clone());
    let run = staled(&place, &socket, &["doctor"]);
    assert!(said(&run, "daemon").concat().contains("answers"), "{run:?}");
    assert!(said(&run, "root").concat().contains(place.root.to_str().expect("UTF-8")), "{run:?}");
    assert!(said(&run, "max_user_watches").concat().contains("the daemon holds"), "{run:?}");
    assert!(said(&run, "journal").concat().contains(state.to_str().expect("UTF-8")), "{run:?}");
    let wrong = run.out.lines().any(|line| line.starts_with("!!"));
    assert!(run.out.lines().all(|line| line.starts_with("ok  ") || line.starts_with("!!  ")), "{run:?}");
    assert_eq!(run.code, i32::from(wrong), "{run:?}");
    daemon.stop();
    let run = staled(&place, &socket, &["doctor", "--state", state.to_str().expect("UTF-8")]).ends(1);
    let [daemon] = said(&run, "daemon")[..] else { panic!("{run:?}") };
    assert!(daemon.starts_with("!!") && daemon.ends_with("`staled serve`"), "{run:?}");
    assert!(said(&run, "decision log").concat().starts_with("ok"), "{run:?}");
    let checks = staled(&place, &socket, &["doctor", "--json"]).ends(1).json();
    assert_eq!(checks["ok"], false);
    let checks = checks["checks"].as_array().expect("checks");
    let daemon = checks.iter().find(|check| check["name"] == "daemon").expect("it is said");
    assert_eq!((&daemon["ok"], daemon["remedy"].as_str()), (&json!(false), Some("start it: `staled serve`")));
}

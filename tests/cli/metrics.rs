//! `metrics` as a collector would call it.

use super::{staled, unread};
use crate::harness::{Daemon, Place};
use std::path::Path;

#[test]
fn the_text_is_printed_as_it_is_or_as_one_string() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let socket = &daemon.folders.socket;
    let run = staled(&place, socket, &["metrics"]).ok();
    assert!(run.out.starts_with("# TYPE ") && run.out.ends_with("\n# EOF\n"), "{run:?}");
    assert!(run.out.contains("\nstaled_requests_total{method=\"metrics\"} 1\n"), "{run:?}");
    let text = staled(&place, socket, &["metrics", "--json"]).ok().json();
    assert!(text.as_str().expect("a string").ends_with("\n# EOF\n"), "{text}");
    unread(&place, socket, &["metrics"]).ok();
    staled(&place, Path::new("/nowhere"), &["metrics"]).fails(2, "no daemon answers");
}

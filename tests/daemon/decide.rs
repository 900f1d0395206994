//! `decide`: what the world does, and what follows.

use crate::harness::{Daemon, Place, file};
use serde_json::json;

#[test]
fn a_change_is_seen_by_the_decide_that_follows_it() {
    let place = Place::new();
    place.write("src/a.rs", "one\n");
    let daemon = Daemon::start(&place.home);
    let context = json!({ "session": "s", "root": place.root, "results": [file("src/a.rs", "one\n")] });
    let registered = daemon.ask("context.register", &context);
    assert_eq!(registered["results"][0]["status"], "fresh", "{registered}");
    let decide = || daemon.ask("decide", &json!({ "session": "s" }));
    assert_eq!(decide()["transition"], "resume");
    place.write("src/a.rs", "two\n");
    let report = decide();
    assert_eq!(report["transition"], "fresh", "{report}");
    assert_eq!(report["typed_summary"]["stale_dropped"], json!(["src/a.rs"]));
    place.write("src/a.rs", "one\n");
    assert_eq!(decide()["transition"], "resume");
}

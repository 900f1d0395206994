//! `decide`: what the world does, and what follows.

use crate::harness::{Daemon, Place, file, refusal};
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

#[test]
fn blank_text_never_keeps_a_report_from_passing_the_gate() {
    let place = Place::new();
    place.write("a", "one");
    let daemon = Daemon::start(&place.home);
    let results = json!([file("a", "one"), file("gone", "never")]);
    let facts = json!([{ "statement": "A holds", "sources": ["a"] }, { "statement": "So it does", "evidence": " ", "sources": ["a"] }]);
    let context = json!({ "session": "s", "root": place.root, "goal": { "statement": "\u{200b} " }, "results": results, "facts": facts });
    daemon.ask("context.register", &context);
    let report = daemon.ask("decide", &json!({ "session": "s" }));
    assert_eq!(report["typed_summary"]["verified_facts"].as_array().map(Vec::len), Some(2), "{report}");
    for blank in [
        json!({ "decisions": [""] }),
        json!({ "open_questions": ["\n"] }),
        json!({ "facts": [{ "statement": "  ", "sources": ["a"] }] }),
        json!({ "facts": [{ "statement": "x", "sources": [" "] }] }),
        json!({ "results": [{ "id": " ", "source": { "kind": "file", "path": "a" } }] }),
        json!({ "results": [{ "id": "r", "source": { "kind": "file", "path": " " } }] }),
        json!({ "invariants": [{ "name": "n", "source": { "kind": "volatile", "what": "" } }] }),
    ] {
        let mut record = json!({ "session": "s" });
        record.as_object_mut().expect("an object").extend(blank.as_object().expect("an object").clone());
        assert_eq!(refusal(&mut daemon.client(), "context.record", &record), "-32602", "{blank}");
    }
}

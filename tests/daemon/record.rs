//! `context.record`: adds, replaces by id, removes.

use crate::daemon::{cause, decide, register, write_each};
use crate::harness::{Daemon, Place, file, refusal};
use serde_json::{Value, json};

#[test]
fn a_record_adds_replaces_and_removes() {
    let place = Place::new();
    write_each(&place, &["a", "b", "c"], "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "0")]));
    let record = |mut more: Value| {
        more["session"] = "s".into();
        daemon.ask("context.record", &more)
    };
    let ids = || -> Vec<String> {
        let report = decide(&daemon, "s");
        let rows = report["staleness_results"].as_array().expect("rows");
        rows.iter().map(|row| row["result_id"].as_str().expect("an id").to_owned()).collect()
    };
    let told = record(json!({ "results": [file("c", "1")] }));
    assert_eq!(told["results"].as_array().map(Vec::len), Some(1), "only what was told: {told}");
    assert_eq!(ids(), ["a", "b", "c"]);
    record(json!({ "results": [file("b", "1")] }));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    record(json!({ "remove": ["b", "never"] }));
    assert_eq!(ids(), ["a", "c"]);
    place.write("b", "2");
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    record(json!({ "results": [{ "id": "a", "source": { "kind": "file", "path": "b" } }] }));
    assert_eq!(cause(&decide(&daemon, "s"), "a"), "fresh");
    place.write("a", "gone on");
    assert_eq!(decide(&daemon, "s")["transition"], "resume", "the id rests on another file now");
    place.write("b", "3");
    assert_eq!(cause(&decide(&daemon, "s"), "a"), "content");
    assert_eq!(
        refusal(
            &mut daemon.client(),
            "context.record",
            &json!({ "session": "none", "results": [file("a", "1")] })
        ),
        "no_session_context"
    );
    assert_eq!(refusal(&mut daemon.client(), "context.record", &json!({})), "-32602");
}

/// A fact that was told with a bare path, and then a result for that path under the path's own name: what agents do
/// all day.
#[test]
fn a_tracked_path_and_a_result_of_the_same_name_stand_side_by_side() {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let daemon = Daemon::start(&place.home);
    let facts = json!([{ "statement": "s", "sources": ["b"] }]);
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")], "facts": facts });
    daemon.ask("context.register", &context);
    daemon.ask("context.record", &json!({ "session": "s", "results": [file("b", "1")] }));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("b", "2");
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "fresh");
    assert_eq!(report["typed_summary"]["verified_facts"], json!([]));
}

/// Lists are bounded however they came to be.
#[test]
fn lists_do_not_grow_over_their_bound_by_small_steps() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    let texts = |from: usize, to: usize| -> Value { (from..to).map(|i| format!("t{i}")).collect() };
    let facts = |from: usize, to: usize| -> Value {
        (from..to).map(|i| json!({ "statement": format!("f{i}"), "sources": ["a"] })).collect()
    };
    let client = &mut daemon.client();
    for (field, first, again, more) in [
        ("decisions", texts(0, 1_000), texts(500, 1_000), texts(1_000, 1_001)),
        ("open_questions", texts(0, 1_000), texts(500, 1_000), texts(1_000, 1_001)),
        ("facts", facts(0, 1_000), facts(500, 1_000), facts(1_000, 1_001)),
    ] {
        for (told, fits) in [(first, true), (again, true), (more, false)] {
            let mut record = json!({ "session": "s" });
            record[field] = told;
            if fits {
                daemon.ask("context.record", &record);
            } else {
                assert_eq!(refusal(client, "context.record", &record), "too_large", "{field}");
            }
        }
    }
    place.write("a", "2");
    let summary = &decide(&daemon, "s")["typed_summary"];
    assert_eq!(summary["decisions"].as_array().map(Vec::len), Some(1_000));
}

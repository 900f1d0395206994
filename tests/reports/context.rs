//! Reports about stale context: sessions that go on from what was true once.

use super::{Scene, head};
use crate::daemon::{cause, commit_all, decide, register, row};
use crate::harness::{Daemon, Place, digest, file, refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn r1_whoever_comes_back_is_told_all_that_moved_meanwhile() {
    let place = Place::new();
    place.write("auth.ts", "old\n");
    place.write("package-lock.json", "1");
    let first = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let lock = json!({ "name": "lock", "source": { "kind": "lockfile", "path": "package-lock.json" }, "digest": digest("1") });
    let context = json!({ "session": "s", "root": place.root, "goal": { "statement": "implement the plan" },
        "results": [file("auth.ts", "old\n")], "invariants": [head(".", "strict", &first), lock] });
    daemon.ask("context.register", &context);
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    daemon.stop();
    place.write("auth.ts", "new\n");
    place.write("package-lock.json", "2");
    let second = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "fresh");
    let evidence: BTreeSet<&str> =
        report["reason"]["evidence"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    assert_eq!(evidence, BTreeSet::from(["auth.ts", "git_head", "lock"]));
    for (id, was, now) in [
        ("auth.ts", digest("old\n"), digest("new\n")),
        ("lock", digest("1"), digest("2")),
        ("git_head", first, second),
    ] {
        let row = row(&report, id);
        assert_eq!((&row["was"], &row["now"]), (&json!(was), &json!(now)), "{id}");
    }
}

#[test]
fn r5_a_snapshot_that_the_disk_has_left_behind_is_no_ground_to_go_on() {
    let scene = Scene::new();
    let after = json!({ "session": "s", "path": "d/f", "digest": digest("after\n") });
    scene.place.write("d/f", "after\n");
    scene.daemon.ask("touch_ack", &after);
    scene.is("fresh", "its own write");
    // Neither what the snapshot began with nor what it ended with.
    scene.place.write("d/f", "newer\n");
    let told = register(&scene.daemon, &scene.place, "reopened", &json!([file("d/f", "after\n")]));
    assert_eq!(told["results"][0]["cause"], "born_stale");
    for session in ["s", "reopened"] {
        let report = decide(&scene.daemon, session);
        assert_eq!(
            (&report["transition"], &report["stale"]),
            (&json!("fresh"), &json!(["d/f"])),
            "{session}"
        );
    }
}

#[test]
fn r7_a_foreign_edit_after_an_own_write_is_seen_and_nobody_is_named() {
    let scene = Scene::new();
    scene.place.write("d/f", "own\n");
    let ack = json!({ "session": "s", "path": "d/f", "digest": digest("own\n") });
    scene.daemon.ask("touch_ack", &ack);
    scene.is("fresh", "its own write");
    super::sh(&scene.place, "echo foreign >d/f");
    let report = decide(&scene.daemon, "s");
    let row = row(&report, "d/f");
    assert_eq!((&row["was"], &row["now"]), (&json!(digest("own\n")), &json!(digest("foreign\n"))));
    let known = [
        "result_id",
        "source",
        "signal_type",
        "status",
        "critical",
        "evidence_tag",
        "cause",
        "was",
        "now",
        "since",
    ];
    let fields: Vec<&String> = row.as_object().expect("a row").keys().collect();
    assert_eq!(fields, known, "who wrote it, or why, is a guess");
}

#[test]
fn r9_a_read_that_did_not_see_the_disk_heals_nothing() {
    let scene = Scene::new();
    scene.place.write("d/f", "two\n");
    scene.is("content", "an edit");
    let told = register(&scene.daemon, &scene.place, "s", &json!([file("d/f", "one\n")]));
    assert_eq!(
        (&told["results"][0]["status"], &told["results"][0]["cause"]),
        (&json!("stale"), &json!("born_stale"))
    );
    assert_ne!(scene.word("d/f"), "fresh");
    register(&scene.daemon, &scene.place, "s", &json!([file("d/f", "two\n")]));
    scene.is("fresh", "a read that saw it");
}

#[test]
fn r12_an_unknown_session_is_an_error_and_never_a_silent_fresh() {
    let scene = Scene::new();
    scene.daemon.ask("context.drop", &json!({ "session": "s" }));
    let client = &mut scene.daemon.client();
    for session in ["s", "never", "../s"] {
        assert_eq!(
            refusal(client, "decide", &json!({ "session": session })),
            "no_session_context",
            "{session}"
        );
    }
}

#[test]
fn r13_a_claim_without_a_source_never_becomes_a_verified_fact() {
    let scene = Scene::new();
    let client = &mut scene.daemon.client();
    let claim = |sources: Value| json!({ "session": "s", "facts": [{ "id": "p", "statement": "17 of 34 are done", "sources": sources }] });
    assert_eq!(refusal(client, "context.record", &claim(json!([]))), "fact_without_source");
    scene.daemon.ask("context.record", &claim(json!(["d/g"])));
    let verified = || {
        scene.place.write("d/f", &format!("{:?}\n", std::time::Instant::now()));
        decide(&scene.daemon, "s")["typed_summary"]["verified_facts"].as_array().map(Vec::len)
    };
    assert_eq!(verified(), Some(1));
    scene.place.write("d/g", "two\n");
    assert_eq!(verified(), Some(0));
}

#[test]
fn r14_who_did_not_write_is_told_that_somebody_did() {
    let scene = Scene::new();
    register(&scene.daemon, &scene.place, "b", &json!([file("d/f", "one\n")]));
    scene.place.write("d/f", "by b\n");
    let ack = json!({ "session": "b", "path": "d/f", "digest": digest("by b\n") });
    scene.daemon.ask("touch_ack", &ack);
    assert_eq!(cause(&decide(&scene.daemon, "b"), "d/f"), "fresh");
    scene.is("content", "another session's write");
}

#[test]
fn r16_a_plan_falls_with_the_paths_it_is_about_and_only_with_them() {
    let place = Place::new();
    place.write("src/p", "1");
    place.write("src/q", "1");
    let first = commit_all(&place);
    let daemon = Daemon::start(&place.home);
    let plan = json!({ "id": "plan", "source": { "kind": "command", "command": "plan the work",
        "inputs": [{ "kind": "file", "path": "src/p" }] } });
    let context = json!({ "session": "s", "root": place.root, "results": [plan],
        "invariants": [head(".", "relevant", &first)] });
    daemon.ask("context.register", &context);
    place.write("src/q", "2");
    let second = commit_all(&place);
    let report = decide(&daemon, "s");
    assert_eq!(report["transition"], "resume", "{report}");
    let note = row(&report, "git_head");
    assert_eq!((&note["was"], &note["now"]), (&json!(first), &json!(second)));
    let between = &note["paths_changed"];
    assert_eq!((&between["number"], &between["sources_number"]), (&json!(1), &json!(0)), "{note}");
    place.write("src/p", "2");
    commit_all(&place);
    let report = decide(&daemon, "s");
    assert_eq!((&report["transition"], &report["stale"]), (&json!("fresh"), &json!(["plan"])));
    assert_eq!(row(&report, "plan")["input"], "src/p");
}

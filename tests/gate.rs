//! The report gate: every fixture of the public contract, our own invalid reports as data, and the strict reading.

use std::path::PathBuf;

use crate::harness::skipped;
use serde_json::{Value, json};
use staled::protocol::gate::{self, Fault, check, check_text};

fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/gate")).join(name);
    if !path.exists() {
        skipped(&format!("{} is missing", path.display()));
    }
    Some(path).filter(|path| path.exists())
}

fn row(id: &str, source: &str, critical: bool, status: &str) -> Value {
    json!({"result_id": id, "source": source, "signal_type": "hash", "critical": critical, "status": status,
           "evidence_tag": "[CÓDIGO]"})
}

fn report(transition: &str, rows: &Value, summary: &Value, forks: &Value) -> Value {
    json!({
        "schema": gate::SCHEMA, "skill": gate::SKILL, "transition": transition,
        "reason": {"code": "valid", "text": "The rows say so.", "evidence": ["r1"]},
        "context": {"goal": "Fix token expiry", "goal_branchable": transition == "fork",
                    "shares_mutable_state": false, "evidence_tag": "[CONFIG]"},
        "staleness_results": rows, "typed_summary": summary, "forks": forks,
        "validation": {"status": "pass", "checks": gate::REQUIRED_CHECKS},
    })
}

fn resume() -> Value {
    let rows = json!([row("r1", "src/a.rs", true, "fresh"), row("r2", "src/b.rs", false, "stale")]);
    let mut report = report("resume", &rows, &Value::Null, &json!([]));
    report["counts"] = json!({"results": 2, "fresh": 1, "stale": 0, "unknown": 1});
    report["drop"] = json!(["./src/b.rs", "r2"]);
    report
}

fn fresh() -> Value {
    let rows = json!([row("r1", "src/a.rs", true, "stale"), row("r2", "src/b.rs", true, "fresh")]);
    let fact =
        json!({"statement": "b parses", "evidence": "src/b.rs:41", "sources": ["r2"], "digest": "blake3:00"});
    let summary = json!({"goal": "Fix it", "decisions": ["In b"], "open_questions": ["Where?"],
                         "verified_facts": [fact], "stale_dropped": ["src/a.rs"], "raw_transcript_allowed": false});
    report("fresh", &rows, &summary, &json!([]))
}

fn fork() -> Value {
    let branch = |name: &str| {
        json!({"branch": name, "workspace": format!("/s/{name}/tree"), "scratchpad": format!("/s/{name}/pad"),
               "isolated_scratchpad": true, "isolated_workspace": true, "evidence_tag": "[CONFIG]"})
    };
    let rows = json!([row("r1", "a", true, "fresh")]);
    report("fork", &rows, &Value::Null, &json!([branch("one"), branch("two")]))
}

/// The base with other values at the given JSON pointers; a pointer ending in `/-` appends.
fn with(mut report: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
        match report.pointer_mut(parent).expect("the parent of the change exists") {
            Value::Array(items) if name == "-" => items.push(value.clone()),
            Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value.clone(),
            object => object[name] = value.clone(),
        }
    }
    report
}

#[test]
fn fixtures_get_the_verdict_of_their_name() {
    let Some(folder) = shared("") else { return };
    let mut judged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("valid-") && !name.starts_with("invalid-") {
            continue;
        }
        let results = check_text(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(results.len(), 1, "{name}");
        assert_eq!(results[0].0, "", "{name}");
        assert_eq!(results[0].1.is_empty(), name.starts_with("valid-"), "{name}: {:?}", results[0].1);
        judged += 1;
    }
    assert!(judged >= 7, "only {judged} fixtures");
}

#[test]
fn fixtures_fail_for_the_reason_in_their_name() {
    let cases = [
        ("invalid-blind-resume-critical-stale.json", "$.transition", "critical"),
        ("invalid-fork-shared-state.json", "$.context.shares_mutable_state", "share"),
        ("invalid-fork-shared-state.json", "$.forks", "two branches"),
        ("invalid-fork-shared-state.json", "$.forks[0].isolated_workspace", "exactly true"),
        ("invalid-fresh-raw-transcript.json", "$.typed_summary.raw_transcript_allowed", "exactly false"),
        ("invalid-missing-reason.json", "$.reason", "empty"),
    ];
    for (name, path, message) in cases {
        let Some(file) = shared(name) else { continue };
        let faults = &check_text(&std::fs::read_to_string(file).unwrap()).unwrap()[0].1;
        assert!(faults.iter().any(|f| f.path == path && f.message.contains(message)), "{name}: {faults:?}");
    }
}

#[test]
fn lists_equal_those_of_the_contract() {
    let Some(path) = shared("contract.json") else { return };
    let contract: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let ours = json!({"schema": gate::SCHEMA, "required_top_level_fields": gate::REQUIRED_FIELDS,
                      "required_validation_checks": gate::REQUIRED_CHECKS});
    assert_eq!(contract, ours);
}

/// The label that stands for `src/a.rs` as bytes.
fn bytes_of_a() -> Value {
    json!({"bytes": "c3JjL2EucnM="})
}

#[test]
fn valid_reports_are_admitted() {
    let fact = |named: Value| json!([{"statement": "It holds", "sources": [named]}]);
    let at_facts = "/typed_summary/verified_facts";
    let mut head = row("head", "src/b.rs", true, "stale");
    head["signal_type"] = json!("head");
    let cases = [
        ("resume", resume()),
        ("fresh", fresh()),
        ("fork", fork()),
        ("a sentence as reason", with(resume(), &[("/reason", json!("Nothing changed."))])),
        (
            "rows left out",
            with(resume(), &[("/counts", json!({"results": 9, "fresh": 8, "stale": 1, "unknown": 0}))]),
        ),
        (
            "fresh with nothing stale",
            with(
                fresh(),
                &[
                    ("/staleness_results/0/status", json!("fresh")),
                    ("/typed_summary/stale_dropped", json!([])),
                ],
            ),
        ),
        ("dropped by id", with(fresh(), &[("/typed_summary/stale_dropped", json!(["r1"]))])),
        ("dropped as bytes", with(fresh(), &[("/typed_summary/stale_dropped/0", bytes_of_a())])),
        ("source as bytes", with(fresh(), &[("/staleness_results/0/source", bytes_of_a())])),
        ("workspace as bytes", with(fork(), &[("/forks/0/workspace", bytes_of_a())])),
        ("no scratchpad paths", {
            let mut report = fork();
            report["forks"].as_array_mut().unwrap().iter_mut().for_each(|fork| {
                fork.as_object_mut().unwrap().remove("scratchpad");
            });
            report
        }),
        ("a sibling whose name begins alike", with(fork(), &[("/forks/0/workspace", json!("/s/two/tree2"))])),
        (
            "a command is no path",
            with(
                fresh(),
                &[
                    ("/staleness_results/0/source", json!("cat ../../src/b.rs")),
                    ("/typed_summary/stale_dropped/0", json!("cat ../../src/b.rs")),
                ],
            ),
        ),
        (
            "a file inside a stale folder",
            with(
                fresh(),
                &[
                    ("/staleness_results/0/source", json!("src")),
                    ("/typed_summary/stale_dropped/0", json!("src")),
                ],
            ),
        ),
        (
            "another kind of source at the path",
            with(
                fresh(),
                &[
                    ("/staleness_results/-", head),
                    ("/typed_summary/stale_dropped/-", json!("src/b.rs")),
                    (at_facts, fact(json!("r2"))),
                ],
            ),
        ),
        ("not activated", json!({"activated": false, "why": "no session"})),
        ("no context", json!({"code": "no_session_context"})),
        ("an error answer", json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000}})),
        ("no error", with(resume(), &[("/error", Value::Null), ("/activated", json!(true))])),
    ];
    for (name, report) in cases {
        assert_eq!(check(&report), [], "{name}");
    }
}

/// Name, base, changes, expected path, fragment of the message.
type Case = (&'static str, Value, Vec<(&'static str, Value)>, &'static str, &'static str);

fn assert_fails_for_its_own_reason(cases: Vec<Case>) {
    for (name, base, changes, path, message) in cases {
        assert_eq!(check(&base), [], "the base of {name:?}");
        let faults = check(&with(base, &changes));
        let one = faults.len() == 1 && faults[0].path == path && faults[0].message.contains(message);
        assert!(one, "{name}: expected only {path}: …{message}…, got {faults:#?}");
    }
}

#[test]
#[rustfmt::skip]
fn shapes_that_the_contract_refuses() {
    assert_fails_for_its_own_reason(vec![
        ("other schema", resume(), vec![("/schema", json!("v2"))], "$.schema", "report.v1"),
        ("other skill", resume(), vec![("/skill", json!("x"))], "$.skill", "must be"),
        ("other transition", resume(), vec![("/transition", json!("Resume"))], "$.transition", "one of"),
        ("null transition", resume(), vec![("/transition", Value::Null)], "$.transition", "one of"),
        ("invisible reason", resume(), vec![("/reason", json!(" \u{200b}\n"))], "$.reason", "empty"),
        ("reason of nothing", resume(), vec![("/reason", json!({"text": "", "evidence": []}))], "$.reason", "empty"),
        ("numeric reason", resume(), vec![("/reason", json!(1))], "$.reason", "empty"),
        ("evidence of no row", resume(), vec![("/reason/evidence/-", json!("r9"))], "$.reason.evidence[1]", "not the id"),
        ("evidence no array", resume(), vec![("/reason/evidence", json!("r1"))], "$.reason.evidence", "array"),
        ("context no object", resume(), vec![("/context", json!([]))], "$.context", "object"),
        ("blank goal", resume(), vec![("/context/goal", json!(" "))], "$.context.goal", "blank"),
        ("flag as text", resume(), vec![("/context/goal_branchable", json!("false"))], "$.context.goal_branchable", "true or false"),
        ("tag without accent", resume(), vec![("/context/evidence_tag", json!("[CODIGO]"))], "$.context.evidence_tag", "[CÓDIGO]"),
        ("no rows", fork(), vec![("/staleness_results", json!([])), ("/reason", json!("x"))], "$.staleness_results", "at least one"),
        ("row no object", resume(), vec![("/staleness_results/-", json!(1)), ("/counts", json!({"results": 3, "fresh": 2, "stale": 1, "unknown": 0}))], "$.staleness_results[2]", "object"),
        ("unknown status", resume(), vec![("/staleness_results/0/status", json!("unknown"))], "$.staleness_results[0].status", "fresh, stale"),
        ("unknown signal", resume(), vec![("/staleness_results/0/signal_type", json!("inode"))], "$.staleness_results[0].signal_type", "schema"),
        ("critical as number", resume(), vec![("/staleness_results/0/critical", json!(0))], "$.staleness_results[0].critical", "true or false"),
        ("unknown row tag", resume(), vec![("/staleness_results/0/evidence_tag", json!("[X]"))], "$.staleness_results[0].evidence_tag", "one of"),
        ("broken base64", resume(), vec![("/staleness_results/0/source", json!({"bytes": "c3Jj*"}))], "$.staleness_results[0].source", "base64"),
        ("doubled id", fork(), vec![("/staleness_results/-", row("r1", "b", false, "fresh"))], "$.staleness_results[1].result_id", "Two rows"),
        ("failed validation", resume(), vec![("/validation/status", json!("fail"))], "$.validation.status", "pass"),
        ("doubled check", resume(), vec![("/validation/checks/-", json!("assets"))], "$.validation.checks[8]", "twice"),
        ("unknown check", resume(), vec![("/validation/checks/-", json!("vibes"))], "$.validation.checks[8]", "no check"),
        ("counts that do not add up", resume(), vec![("/counts/fresh", json!(5))], "$.counts", "are not 2"),
        ("counts of other rows", resume(), vec![("/counts", json!({"results": 2, "fresh": 2, "stale": 0, "unknown": 0}))], "$.counts", "stale rows listed"),
        ("fewer fresh counted than listed", resume(), vec![("/counts", json!({"results": 9, "fresh": 0, "stale": 9, "unknown": 0}))], "$.counts", "stale rows listed"),
        ("fewer stale counted than listed", resume(), vec![("/counts", json!({"results": 9, "fresh": 9, "stale": 0, "unknown": 0}))], "$.counts", "stale rows listed"),
        ("fewer counted than listed", resume(), vec![("/counts", json!({"results": 1, "fresh": 1, "stale": 0, "unknown": 0}))], "$.counts.results", "listed"),
        ("negative count", resume(), vec![("/counts/stale", json!(-1))], "$.counts.stale", "whole number"),
        ("drop of no row", resume(), vec![("/drop/-", json!("src/z.rs"))], "$.drop[2]", "neither"),
        ("stale list of no row", resume(), vec![("/stale", json!(["r9"]))], "$.stale[0]", "neither"),
        ("an empty error is an error", resume(), vec![("/error", json!(""))], "$.transition", "non-activation"),
        ("not activated", resume(), vec![("/activated", json!(false))], "$.transition", "non-activation"),
        ("no session context", resume(), vec![("/code", json!("no_session_context"))], "$.transition", "non-activation"),
        ("no session context as reason", resume(), vec![("/reason/code", json!("no_session_context"))], "$.transition", "non-activation"),
        ("activated as text", resume(), vec![("/activated", json!("false"))], "$.activated", "true or false"),
    ]);
    assert!(check(&with(resume(), &[("/validation/checks/7", json!("assets"))]))
        .iter().any(|fault| fault.message.contains("`evidence_required` is missing")));
    assert_eq!(check(&json!([])), [Fault { path: "$".into(), message: "The report is not a JSON object.".into() }]);
    let empty_row = check(&with(resume(), &[("/staleness_results/0", json!({}))]));
    let fields = ["result_id", "source", "signal_type", "critical", "status", "evidence_tag"];
    let missing: Vec<String> = fields.iter().map(|name| format!("$.staleness_results[0].{name}")).collect();
    assert_eq!(empty_row.iter().map(|fault| &fault.path).collect::<Vec<_>>(), missing.iter().collect::<Vec<_>>());
}

#[test]
#[rustfmt::skip]
fn conclusions_that_do_not_follow() {
    let fact = |name: &str, named: Value| json!([{"statement": "It holds", name: named}]);
    let facts = "/typed_summary/verified_facts";
    let dropped = "/typed_summary/stale_dropped";
    let source0 = "$.typed_summary.verified_facts[0].sources[0]";
    assert_fails_for_its_own_reason(vec![
        ("blind resume", resume(), vec![("/staleness_results/1/critical", json!(true))], "$.transition", "`r2` is stale"),
        ("blind fork", fork(), vec![("/staleness_results/0/status", json!("stale"))], "$.transition", "not fork"),
        ("summary with resume", resume(), vec![("/typed_summary", json!({}))], "$.typed_summary", "must be null"),
        ("forks with resume", resume(), vec![("/forks/-", json!({}))], "$.forks", "must be empty"),
        ("forks no array", resume(), vec![("/forks", Value::Null)], "$.forks", "array"),
        ("fresh without summary", fresh(), vec![("/typed_summary", Value::Null)], "$.typed_summary", "needs a typed summary"),
        ("blank summary goal", fresh(), vec![("/typed_summary/goal", json!(""))], "$.typed_summary.goal", "blank"),
        ("decisions no array", fresh(), vec![("/typed_summary/decisions", json!("x"))], "$.typed_summary.decisions", "array"),
        ("blank question", fresh(), vec![("/typed_summary/open_questions/0", json!(""))], "$.typed_summary.open_questions[0]", "blank"),
        ("transcript by zero", fresh(), vec![("/typed_summary/raw_transcript_allowed", json!(0))], "$.typed_summary.raw_transcript_allowed", "exactly false"),
        ("nothing dropped", fresh(), vec![(dropped, json!([]))], "$.typed_summary.stale_dropped", "Nothing is dropped"),
        ("another dropped", fresh(), vec![(dropped, json!(["src/z.rs"]))], "$.typed_summary.stale_dropped", "`src/a.rs` is not dropped"),
        ("label of no kind", fresh(), vec![("/typed_summary/stale_dropped/-", json!(7))], "$.typed_summary.stale_dropped[1]", "path"),
        ("groundless fact", fresh(), vec![(facts, fact("digest", json!("x")))], "$.typed_summary.verified_facts[0]", "at least one source"),
        ("fact with empty grounds", fresh(), vec![(facts, fact("sources", json!([])))], "$.typed_summary.verified_facts[0]", "at least one source"),
        ("fact that says nothing", fresh(), vec![("/typed_summary/verified_facts/0/statement", json!(" "))], "$.typed_summary.verified_facts[0].statement", "blank"),
        ("fact on ./a", fresh(), vec![(facts, fact("sources", json!(["./src/a.rs"])))], source0, "stale"),
        ("fact on b/../a", fresh(), vec![(facts, fact("sources", json!(["src/x/..//a.rs"])))], source0, "stale"),
        ("fact on a's bytes", fresh(), vec![(facts, fact("sources", json!([bytes_of_a()])))], source0, "stale"),
        ("fact on a stale row", fresh(), vec![(facts, fact("sources", json!(["r1"])))], source0, "stale"),
        ("fact on a line of a", fresh(), vec![(facts, fact("evidence", json!("src/../src/a.rs:41")))], "$.typed_summary.verified_facts[0].evidence", "stale"),
        ("fact on lines of a", fresh(), vec![(facts, fact("evidence", json!(["src/a.rs:4-9:2"])))], "$.typed_summary.verified_facts[0].evidence[0]", "stale"),
        ("fact on a fresh row of a dropped path", fresh(), vec![("/typed_summary/stale_dropped/-", json!("src/q/../b.rs")), (facts, fact("sources", json!(["r2"])))], source0, "stale"),
        ("a fork of one", fork(), vec![("/forks", json!([fork()["forks"][0]]))], "$.forks", "at least two"),
        ("fork unbranchable", fork(), vec![("/context/goal_branchable", json!(false))], "$.context.goal_branchable", "branchable"),
        ("fork shares state", fork(), vec![("/context/shares_mutable_state", json!(true))], "$.context.shares_mutable_state", "share"),
        ("twin branches", fork(), vec![("/forks/1/branch", json!("one"))], "$.forks[1].branch", "named `one`"),
        ("same workspace", fork(), vec![("/forks/1/workspace", json!("/s/x/../one//tree/"))], "$.forks[1].workspace", "same path"),
        ("nested workspace", fork(), vec![("/forks/1/workspace", json!("/s/one/tree/in"))], "$.forks[1].workspace", "inside"),
        ("workspace around", fork(), vec![("/forks/1/workspace", json!("/s/one"))], "$.forks[1].workspace", "contains"),
        ("shared scratchpad", fork(), vec![("/forks/1/scratchpad", json!("/s/one/pad"))], "$.forks[1].scratchpad", "same path"),
        ("scratchpad in own workspace", fork(), vec![("/forks/1/scratchpad", json!("/s/two/tree/pad"))], "$.forks[1].scratchpad", "inside"),
        ("the folder we stand in", fork(), vec![("/forks/0/workspace", json!("w")), ("/forks/1/workspace", json!("."))], "$.forks[1].workspace", "contains"),
        ("the folder above", fork(), vec![("/forks/0/workspace", json!("w")), ("/forks/1/workspace", json!("a/../.."))], "$.forks[1].workspace", "contains"),
        ("blank workspace", fork(), vec![("/forks/1/workspace", json!(""))], "$.forks[1].workspace", "path"),
        ("unisolated", fork(), vec![("/forks/1/isolated_workspace", json!(1))], "$.forks[1].isolated_workspace", "exactly true"),
        ("summary with fork", fork(), vec![("/typed_summary", json!({}))], "$.typed_summary", "must be null"),
    ]);
}

#[test]
fn a_missing_field_is_named() {
    for base in [resume(), fresh(), fork()] {
        for name in gate::REQUIRED_FIELDS {
            let mut report = base.clone();
            report.as_object_mut().unwrap().shift_remove(name);
            let faults = check(&report);
            let message = format!("The required field `{name}` is missing.");
            assert_eq!(faults, [Fault { path: format!("$.{name}"), message }]);
        }
    }
}

#[test]
fn a_log_is_judged_line_by_line() {
    let bad = with(resume(), &[("/schema", json!("v2"))]);
    let decision = with(resume(), &[("/event", json!("decision"))]);
    let log = format!("{}\n{{\"event\":\"epoch\"}}\n\n{bad}\r\n{decision}\n", resume());
    let judged = check_text(&log).unwrap();
    let seen: Vec<_> = judged.iter().map(|(suffix, faults)| (suffix.as_str(), faults.len())).collect();
    assert_eq!(seen, [(":1", 0), (":4", 1), (":5", 0)]);
    assert_eq!(check_text("{\"event\":\"epoch\"}\n{\"event\":\"gap\"}\n").unwrap(), []);
    assert_eq!(check_text("{\"event\":\"epoch\"}").unwrap(), []);
    let smuggled = with(bad, &[("/event", json!("gap"))]);
    assert_eq!(check_text(&smuggled.to_string()).unwrap()[0].1.len(), 1);
}

#[test]
fn doubled_keys_are_faults_at_their_path() {
    let text = resume().to_string();
    let doubled = |from: &str, to: &str| check_text(&text.replacen(from, to, 1)).unwrap().remove(0).1;
    let top = doubled("{", "{\"transition\":\"fresh\",");
    assert_eq!(top.len(), 1, "{top:?}");
    assert_eq!((top[0].path.as_str(), top[0].message.contains("twice")), ("$.transition", true));
    let deep = doubled("\"result_id\":\"r2\"", "\"result_id\":\"r2\",\"a.b\":[{}],\"a.b\":0,\"\\u0061.b\":1");
    assert_eq!(deep.len(), 2);
    assert_eq!(deep[0].path, "$.staleness_results[1][\"a.b\"]");
    let event = check_text("{\"event\":\"gap\",\"event\":\"gap\"}\n{\"event\":\"epoch\"}").unwrap();
    assert_eq!((event.len(), event[0].0.as_str(), event[0].1[0].path.as_str()), (1, ":1", "$.event"));
}

#[test]
fn text_that_is_not_json_says_where() {
    let torn = format!("{}\n{{\"schema\":", resume());
    let cases = [
        ("", 1, 0),
        ("hello", 1, 1),
        ("{\"a\": NaN}", 1, 7),
        ("{} x", 1, 4),
        ("{\n  \"a\": 1,\n}", 3, 1),
        ("{\n}\ngarbage", 3, 1),
        ("{\"a\":1}\n\nnope", 3, 2),
        ("\u{feff}{}", 1, 1),
        (torn.as_str(), 2, 10),
    ];
    for (text, line, column) in cases {
        let unusable = check_text(text).expect_err(text);
        assert_eq!((unusable.line, unusable.column), (line, column), "{text:?}: {unusable}");
        assert!(unusable.to_string().contains(&format!("line {line} column {column}")), "{unusable}");
    }
    assert!(check_text(&"[".repeat(100_000)).is_err());
    assert_eq!(check_text("[]").unwrap()[0].1[0].path, "$");
}

fn rubric() -> Value {
    serde_json::from_str(include_str!("../config/quality-rubric.json")).expect("the rubric is JSON")
}

#[test]
fn the_rubric_passes_valid_reports_only() {
    for (base, points) in [(resume(), 85), (fresh(), 85), (fork(), 100)] {
        let score = gate::score(&base, &rubric()).unwrap();
        assert_eq!(score.points, points, "{score:#?}");
        assert!(score.passed());
        assert_eq!(score.points, score.marks.iter().map(|mark| mark.points).sum::<u32>());
        let refused = gate::score(&with(base, &[("/schema", json!("v2"))]), &rubric()).unwrap();
        assert_eq!((refused.points, refused.passed()), (points - 10, false));
    }
    let told = json!({"cause": "content", "since": "2026-11-29T10:05:01Z", "was": "blake3:00"});
    let mut full = resume();
    full["staleness_results"][1].as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
    assert_eq!(gate::score(&full, &rubric()).unwrap().points, 100);
    assert!(!gate::score(&json!("text"), &rubric()).unwrap().passed());
    for name in ["valid-resume-report.json", "valid-fork-report.json", "valid-fresh-report.json"] {
        let Some(path) = shared(name) else { continue };
        let report = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let score = gate::score(&report, &rubric()).unwrap();
        assert!(score.passed(), "{name}: {score:#?}");
    }
}

#[test]
fn a_rubric_that_cannot_be_scored_is_refused() {
    let cases = [
        ("/criteria/0/weight", json!(31), "sum to 101"),
        ("/criteria/0/id", json!("vibes"), "no criterion `vibes`"),
        ("/criteria/0/id", json!("typed_summary"), "twice"),
        ("/pass_mark", json!(101), "above 100"),
        ("/pass_mark", json!("70"), "invalid type"),
        ("/surprise", json!(1), "surprise"),
    ];
    for (pointer, value, fragment) in cases {
        let refused = gate::score(&resume(), &with(rubric(), &[(pointer, value)])).expect_err(fragment);
        assert!(refused.to_string().contains(fragment), "{refused}");
    }
}

//! The page as text: nothing from the log becomes markup, everything is there, and what is left out is said.

use super::page;
use super::told::Told;
use super::tree::Folder;
use serde_json::{Value, json};

/// What a name may be, when somebody means harm.
const HOSTILE: &str = "</code><script src=//x>'\"&\u{202e}\n<img onerror=a>";

fn row(id: &str, source: impl Into<Value>, cause: Option<&str>) -> Value {
    let mut row = json!({ "result_id": id, "source": source.into(), "signal_type": "hash", "evidence_tag": "[CÓDIGO]",
        "status": if cause.is_some() { "stale" } else { "fresh" }, "critical": true, "was": "blake3:3f2a3f2a3f2a" });
    if let Some(cause) = cause {
        row["cause"] = cause.into();
        row["now"] = "blake3:91bc91bc91bc".into();
        row["since"] = "2026-11-29T10:07:10.000001Z".into();
    }
    row
}

fn decision(rows: Vec<Value>) -> Value {
    let counted = |state: &str| rows.iter().filter(|row| crate::cli::words::state(row).0 == state).count();
    json!({ "decision": "d-1", "session": "s-01", "decided_at": "2026-11-29T10:07:12.000000Z",
        "clock": { "epoch": "e", "tick": 3 }, "supersedes": null, "transition": "fresh",
        "reason": { "code": "critical_stale", "text": "It changed.", "evidence": [rows[0]["result_id"]] },
        "context": { "goal": "Fix it" }, "drop": [], "typed_summary": null, "forks": [], "seq": 7, "prev": "ff", "hash": "ee",
        "counts": { "results": rows.len(), "fresh": counted("fresh"), "stale": counted("stale"), "unknown": counted("unknown") },
        "staleness_results": rows })
}

fn text(told: &Told) -> String {
    String::from_utf8(page(told).as_bytes().to_vec()).unwrap()
}

fn of(decision: Value) -> String {
    text(&Told { decision, ..Told::default() })
}

/// The page without its markup, a line wherever an element begins or ends.
fn read(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let parts = body.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text);
    parts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_from_the_log_becomes_markup() {
    // Every text of every field says it, at any depth.
    fn poisoned(value: &Value) -> Value {
        match value {
            Value::String(text) if ["fresh", "stale"].contains(&text.as_str()) => value.clone(),
            Value::String(_) => HOSTILE.into(),
            Value::Array(values) => values.iter().map(poisoned).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), poisoned(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
    let mut clean = decision(vec![row("a", "src/a", Some("content")), row("b", "b", None)]);
    clean["typed_summary"] = json!({ "verified_facts": [{ "statement": "s", "evidence": "e", "sources": ["a"] }],
        "decisions": ["d"], "open_questions": ["q"], "reload": ["a"], "stale_dropped": ["a"] });
    clean["forks"] = json!([{ "branch": "b", "workspace": "w", "scratchpad": "s" }]);
    clean["merge"] = "f".into();
    let event = json!({ "event": "gap", "at": "2026-11-29T10:07:11Z", "why": "lost", "session": "s-01" });
    let told = |change: fn(&Value) -> Value| Told {
        decision: change(&clean),
        before: vec![change(&event), change(&clean)],
        ..Told::default()
    };
    let tags = |page: &str| -> Vec<String> {
        page.split('<').skip(1).map(|tag| tag.split(['>', ' ']).next().unwrap().to_owned()).collect()
    };
    let (clean, poisoned) = (text(&told(Value::clone)), text(&told(poisoned)));
    let known = tags(&clean);
    for tag in tags(&poisoned) {
        assert!(known.contains(&tag) || tag == "br" || tag == "/br", "{tag}: {poisoned}");
    }
    assert!(poisoned.matches("&lt;script src=//x&gt;&#39;&quot;&amp;\\u{202e}").count() > 15, "{poisoned}");
    assert!(
        !poisoned.contains("//x>") && !poisoned.contains("onerror=a>") && !poisoned.contains('\u{202e}'),
        "{poisoned}"
    );
}

#[test]
fn it_names_nothing_outside_itself() {
    let page = of(decision(vec![row("a", "a", None)]));
    for outside in ["src=", "url(", "@import", "<link", "<script", "http:", "https:", "javascript:"] {
        assert!(!page.contains(outside), "{outside} in {page}");
    }
    assert!(
        page.contains("content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;\""),
        "{page}"
    );
}

#[test]
fn folders_are_steps_and_what_is_doubtful_comes_first() {
    let paths = ["src/deep/er/x", "src/deep/er/y", "lib.rs", "./lib.rs", "/abs/z", "."];
    let rows: Vec<Value> =
        paths.iter().map(|path| row(path, *path, path.ends_with('y').then_some("content"))).collect();
    let top = Folder::of(&rows);
    let names: Vec<&str> = top.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".", "lib.rs", "lib.rs"]);
    let steps: Vec<(String, &Folder<'_>)> = top.steps().collect();
    let named: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, ["/abs", "src/deep/er"]);
    let inside: Vec<&str> = steps[1].1.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((inside, steps[1].1.tally.words().as_str()), (vec!["y", "x"], "1 stale, 1 fresh"));
    assert_eq!(top.tally.words(), "1 stale, 5 fresh");
}

#[test]
fn a_path_deeper_than_a_page_can_be_is_named_by_its_rest() {
    let deep = format!("{}/end", vec!["d"; 4_000].join("/"));
    // A neighbour at every step keeps the steps apart.
    let mut rows = vec![row("deep", deep.as_str(), Some("deleted"))];
    rows.extend((0..40).map(|steps| row("n", format!("{}n", "d/".repeat(steps)), None)));
    let page = of(decision(rows));
    assert_eq!(page.matches("<details").count(), 24, "{page}");
    assert!(page.contains("/d/end</code>"), "{page}");
}

#[test]
fn the_story_is_told_in_its_order() {
    let mut told = Told { more_before: true, ..Told::default() };
    let turned = ["a", "b", "c", "d", "e"].map(|path| row(path, path, Some("content")));
    told.decision = decision(turned.to_vec());
    let other = |id: &str, at: &str, transition: &str| {
        json!({ "decision": id, "decided_at": at, "transition": transition, "reason": { "text": "So." },
            "supersedes": if id == "d-2" { "d-1" } else { "" } })
    };
    told.before = vec![
        other("d-0", "2026-11-29T10:00:00.000000Z", "resume"),
        json!({ "event": "fact_refuted", "at": "2026-11-29T10:07:11.000000Z", "session": "s-01", "target": "a", "observed": "no" }),
    ];
    told.after = vec![other("d-2", "2026-11-29T10:08:00.000000Z", "fork")];
    let page = text(&told);
    let story = read(
        page.split_once("id=\"timeline\"")
            .map(|(_, rest)| format!("<body><p {rest}"))
            .unwrap()
            .split("<section")
            .next()
            .unwrap(),
    );
    let order = [
        "left out",
        "d-0",
        "\na\n",
        " and 1 more",
        "(content)",
        "fact refuted",
        "target=a observed=no",
        "This decision.",
        "fork",
        "d-2",
        "replaces this decision",
    ];
    let mut at = 0;
    for part in order {
        let found =
            story[at..].find(part).unwrap_or_else(|| panic!("{part:?} is not behind {at} in {story}"));
        at += found + part.len();
    }
}

#[test]
fn unknown_is_never_shown_as_fresh() {
    let page = of(decision(vec![row("a", "src/a", Some("watch_limit")), row("b", "src/b", None)]));
    let read = read(&page);
    assert!(read.contains("1 fresh\n, \n1 unknown\n, \n0 stale"), "{read}");
    assert!(read.contains("1 unknown, 1 fresh") && read.contains("unknown\n watch_limit"), "{read}");
    // A folder that holds doubt begins open; one that holds none does not.
    assert!(page.contains("<details open=\"\">"), "{page}");
    let fresh = of(decision(vec![row("b", "src/b", None)]));
    assert!(fresh.contains("<details>") && !fresh.contains("open="), "{fresh}");
}

#[test]
fn rows_that_the_report_left_out_are_counted() {
    let mut decision = decision(vec![row("a", "a", None)]);
    decision["counts"]["results"] = 41.into();
    assert!(read(&of(decision)).contains("40 rows more, not listed here."));
}

//! The file around the events: lines, packing, the session's own facts, and what is counted.

use super::*;
use crate::agent::reading::{LINE_BYTES_MAX, Reading};
use crate::agent::transcript::Agent;
use std::io::Write as _;

#[test]
fn the_session() {
    let text = jsonl(&[vec![
        json!({"type": "user", "sessionId": "copied", "cwd": "/a", "version": "2", "gitBranch": "one"}),
        json!({"type": "user", "sessionId": "mine", "cwd": "/b", "version": "1", "gitBranch": "two"}),
        json!({"type": "user", "sessionId": "mine", "cwd": "/a", "version": "1", "gitBranch": ""}),
        json!({"type": 7, "cwd": ["odd"], "message": "odd", "toolUseResult": 3}),
    ]]);
    let got = import(text);
    assert_eq!(got.session_id.as_deref(), Some("mine"));
    assert_eq!(got.cwds, ["/a", "/b"].map(std::path::PathBuf::from));
    assert_eq!((got.versions.join(" "), got.git_branch.as_deref()), ("1 2".into(), Some("two")));
    assert_eq!(got.counts.line_types.get("(none)"), Some(&1));
}

#[test]
fn results_are_counted_by_tool_and_kind() {
    let got = import(jsonl(&[
        read_whole("a"),
        read_part("b", 2, 1, 3),
        read_other(&json!({"type": "file_unchanged"})),
        read_other(&json!("Error: File does not exist.")),
        edit(None, "x", "y"),
        write("a"),
        edit(None, "a", "b"),
        pair("Bash", &json!({}), &json!({"stdout": ""}), &Value::Null),
        pair("mcp__x__y", &json!({}), &json!([{"type": "text", "text": "done"}]), &Value::Null),
    ]));
    let kinds: Vec<String> =
        got.counts.tool_results.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
    let want = "Bash:other=1 Edit:nobase=1 Edit:ok=1 Read:err=1 Read:full=1 Read:part=1 Read:unchanged=1 Write:ok=1 mcp__x__y:err=1";
    assert_eq!(kinds.join(" "), want);
}

#[test]
fn searches_name_files() {
    let found = |cwd: &str, names: Value| {
        let result = json!({"mode": "files_with_matches", "filenames": names});
        pair("Grep", &json!({}), &result, &json!({"cwd": cwd}))
    };
    let got = import(jsonl(&[
        found("/w", json!(["src/a", "/abs/b"])),
        found("D:\\w", json!(["src\\a", "C:\\b"])),
        found("/w", json!(["src/a", 7])),
    ]));
    let want = ["/w/src/a", "/abs/b", "D:\\w\\src\\a", "C:\\b"];
    assert_eq!(got.mentioned, want.map(std::path::PathBuf::from));
    assert!(got.entries.is_empty());
}

#[test]
fn an_answer_without_a_call_is_counted() {
    let got = import(jsonl(&[read_whole("a").split_off(1)]));
    assert_eq!((got.counts.unmatched_results, got.entries.len(), got.warnings.len()), (1, 0, 1));
}

#[test]
fn broken_lines() {
    let good = jsonl(&[read_whole("a")]);
    let whole = good.trim_end();
    // (text, lines, unparsable, tail)
    for (case, text, want) in [
        ("plain", good.clone(), (2, 0, None)),
        ("no last line feed", whole.into(), (2, 0, None)),
        ("byte order mark", format!("\u{feff}{good}"), (2, 0, None)),
        (
            "carriage returns and empty lines",
            format!("\r\n{}\n  \n", good.replace('\n', "\r\n")),
            (2, 0, None),
        ),
        ("garbage", format!("{{\n[]\n\"a\"\n{good}"), (5, 3, None)),
        ("torn", format!("{good}{{\"type\":\"us"), (2, 0, Some(good.len() as u64))),
        ("garbage that ended", format!("{good}{{\"type\":\"us\n"), (3, 1, None)),
        ("a lone surrogate", format!("{good}{{\"type\":\"\\ud800\"}}\n"), (3, 1, None)),
        ("deep", format!("{good}{}\n", "[".repeat(100_000)), (3, 1, None)),
    ] {
        let got = import(&text);
        assert_eq!((got.counts.lines, got.counts.unparsable, got.incomplete_tail), want, "{case}");
        assert_eq!(got.entries.iter().map(show).collect::<Vec<_>>(), [r#"Read "a" whole"#], "{case}");
    }
    let bytes = [good.as_bytes(), b"{\"type\":\"\xff\"}\n"].concat();
    assert_eq!(import(bytes).counts.unparsable, 1, "no UTF-8");
}

#[test]
fn a_line_above_the_limit_is_passed_over() {
    let good = jsonl(&[read_whole("a")]);
    let longest = good.lines().map(str::len).max().unwrap();
    let text = format!("{}\n{good}", "x".repeat(longest + 1));
    let replay = |reader: &mut dyn std::io::BufRead, line_bytes_max| {
        let mut reading = Reading::with_lines_up_to(line_bytes_max);
        reading.read(reader, |_, _| {}).unwrap();
        reading.transcript()
    };
    let got = replay(&mut std::io::BufReader::with_capacity(7, text.as_bytes()), longest);
    assert_eq!((got.counts.lines, got.counts.unparsable, got.entries.len()), (3, 1, 1));
    let got = replay(&mut text.as_bytes(), longest - 1);
    assert_eq!((got.counts.unparsable, got.entries.len()), (2, 0));
    assert_eq!(LINE_BYTES_MAX, 64 * 1024 * 1024);
}

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let text = jsonl(&[read_whole("a")]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let mut gzip = encoder.finish().unwrap();
    assert_eq!(import(&gzip).entries, import(&text).entries);
    gzip.truncate(gzip.len() / 2);
    assert!(crate::agent::read(gzip.as_slice(), |_, _| {}).is_err(), "half a gzip file is an error");
}

#[test]
fn other_agents_are_told_apart() {
    let codex = "{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{}}\n";
    let odd = "{\"type\":\"summary\"}\n";
    let late = format!("{odd}{{}}\n{codex}");
    for (text, agent) in [
        (codex, Agent::Codex),
        (late.as_str(), Agent::Codex),
        (odd, Agent::ClaudeCode),
        ("", Agent::ClaudeCode),
    ] {
        let got = import(text);
        assert!(got.entries.is_empty() && got.warnings[0].contains("no conversation"), "{:?}", got.warnings);
        assert_eq!((got.agent, got.conversation), (agent, false), "{text}");
    }
}

#[test]
fn contents_are_not_printed() {
    let got = import(jsonl(&[read_whole("secret")]));
    assert!(!format!("{got:?}").contains("secret"));
}

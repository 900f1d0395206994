//! Edge semantics of the replay: what must be believed after a few events.

use super::*;

#[test]
fn reads() {
    let unchanged = json!({"type": "file_unchanged", "file": {"filePath": F}});
    let image = json!({"type": "image", "file": {"base64": "AAAA", "type": "image/png"}});
    for (case, story, want) in [
        ("whole", vec![read_whole("a\nb\n")], r#"Read "a\nb\n" whole"#),
        ("empty", vec![read_part("", 1, 0, 0)], r#"Read "" whole"#),
        ("line 0", vec![read_part("a", 0, 1, 1)], r#"Read "a" whole"#),
        ("part", vec![read_part("b", 2, 1, 3)], "Read Partial 2+1"),
        ("first lines only", vec![read_part("a", 1, 1, 3)], "Read Partial 1+1"),
        (
            "part that agrees",
            vec![read_whole("a\nb\nc"), read_part("b", 2, 1, 3)],
            r#"Read "a\nb\nc" 2+1 whole"#,
        ),
        (
            "part that differs",
            vec![read_whole("a\nb\nc"), read_part("x", 2, 1, 3)],
            r#"Read "a\nb\nc" 2+1 whole contradicted"#,
        ),
        (
            "part of a longer file",
            vec![read_whole("a\nb\nc"), read_part("b", 2, 1, 4)],
            r#"Read "a\nb\nc" 2+1 whole contradicted"#,
        ),
        (
            "whole after parts",
            vec![read_part("b", 2, 1, 3), read_whole("a\nb\nc")],
            r#"Read "a\nb\nc" whole"#,
        ),
        (
            "whole after doubt",
            vec![read_whole("a\nb"), read_part("x", 2, 1, 2), read_whole("a\nx")],
            r#"Read "a\nx" whole"#,
        ),
        ("same part again", vec![read_part("b", 2, 1, 4), read_part("x\ny", 2, 2, 4)], "Read Partial 2+2"),
        (
            "overlapping parts",
            vec![read_part("b\nc", 2, 2, 9), read_part("c\nd", 3, 2, 9)],
            "Read Partial 2+2 3+2",
        ),
        ("past the end", vec![read_part("", 80, 0, 7)], "Read Unknown"),
        ("unchanged", vec![read_whole("a"), read_other(&unchanged)], r#"Read "a" whole"#),
        ("image", vec![read_other(&image)], "Read Unknown"),
        ("image after text", vec![read_whole("a"), read_other(&image)], "Read Unknown whole"),
        ("no structure", vec![read_whole("a"), read_other(&json!(null))], "Read Unknown whole"),
        (
            "a range that cannot be",
            vec![read_part("a", u64::MAX, u64::MAX, u64::MAX)],
            "Read Partial 18446744073709551615+18446744073709551615",
        ),
    ] {
        check(case, &story, &[want]);
    }
}

#[test]
fn failures() {
    let missing = json!("Error: File does not exist.");
    for (case, story, want) in [
        ("missing", vec![read_other(&missing)], vec!["Read Absent"]),
        ("missing, then written", vec![read_other(&missing), write("a")], vec![r#"Write "a" edited"#]),
        ("deleted meanwhile", vec![read_whole("a"), read_other(&missing)], vec!["Read Absent whole"]),
        ("a directory", vec![read_other(&json!("EISDIR: illegal operation on a directory"))], vec![]),
        (
            "edit of a missing file",
            vec![pair("Edit", &json!({"file_path": F}), &missing, &Value::Null)],
            vec![],
        ),
        (
            "refused write",
            vec![read_whole("a"), pair("Write", &json!({"file_path": F}), &json!("Error: no"), &Value::Null)],
            vec![r#"Read "a" whole"#],
        ),
    ] {
        check(case, &story, &want);
    }
}

#[test]
fn edits() {
    let multi = json!({"filePath": F, "originalFileContents": "a b\n", "edits": [
        {"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c", "replace_all": true}]});
    for (case, story, want) in [
        ("first only", vec![edit(Some("a a"), "a", "b")], r#"Edit "b a" edited"#),
        ("everywhere", vec![edit_all("a a", "a", "b")], r#"Edit "b b" edited"#),
        ("no regular expression", vec![edit(Some("a.$1"), ".", "$1")], r#"Edit "a$1$1" edited"#),
        ("a deleted line takes its end", vec![edit(Some("a\nb\nc\n"), "b", "")], r#"Edit "a\nc\n" edited"#),
        ("even if it stands later", vec![edit(Some("b c\nb\n"), "b", "")], r#"Edit "b c\n" edited"#),
        ("deleted text with its end", vec![edit(Some("a\nb\n\n"), "b\n", "")], r#"Edit "a\n\n" edited"#),
        ("deleted text inside a line", vec![edit(Some("a b\n"), "a ", "")], r#"Edit "b\n" edited"#),
        ("on what was read", vec![read_whole("a\n"), edit(None, "a", "b")], r#"Edit "b\n" edited whole"#),
        (
            "the result's original counts",
            vec![read_whole("a\n"), edit(Some("a!\n"), "a", "b")],
            r#"Edit "b!\n" edited whole"#,
        ),
        (
            "one after another",
            vec![write("a"), edit(None, "a", "b"), edit(None, "b", "cc")],
            r#"Edit "cc" edited"#,
        ),
        ("without a base", vec![read_part("b", 2, 1, 3), edit(None, "b", "c")], "Edit Unknown edited"),
        (
            "where it cannot have been",
            vec![read_whole("a"), edit(None, "x", "y")],
            "Edit Unknown edited whole",
        ),
        (
            "after a contradiction",
            vec![read_whole("a\nb"), read_part("x", 2, 1, 2), edit(None, "x", "y")],
            "Edit Unknown edited whole contradicted",
        ),
        ("a new file", vec![edit(None, "", "new")], r#"Edit "new" edited"#),
        (
            "several",
            vec![pair("MultiEdit", &json!({"file_path": F}), &multi, &Value::Null)],
            r#"MultiEdit "c c\n" edited"#,
        ),
        ("write", vec![read_part("b", 2, 1, 3), write("z\n")], r#"Write "z\n" edited"#),
        ("look after a write", vec![write("y\nz\n"), read_part("z", 2, 1, 3)], r#"Read "y\nz\n" 2+1 edited"#),
        (
            "notebook",
            vec![pair("NotebookEdit", &json!({"notebook_path": F}), &json!({}), &Value::Null)],
            "NotebookEdit Unknown edited",
        ),
    ] {
        check(case, &story, &[want]);
    }
}

#[test]
fn attachments() {
    let file = |lines: u64| {
        let file = json!({"filePath": F, "content": "a", "startLine": 1, "numLines": 1, "totalLines": lines});
        attach(&json!({"type": "file", "filename": F, "content": {"type": "text", "file": file}}))
    };
    let memory = |memory: &Value| attach(&json!({"type": "nested_memory", "path": F, "content": memory}));
    let edited =
        |snippet: &str| attach(&json!({"type": "edited_text_file", "filename": F, "snippet": snippet}));
    let faded = attach(&json!({"type": "compact_file_reference", "filename": F}));
    for (case, story, want) in [
        ("file", vec![file(1)], r#"Attachment "a" whole"#),
        ("part of a file", vec![file(3)], "Attachment Partial 1+1"),
        (
            "image",
            vec![attach(&json!({"type": "file", "filename": F, "content": {"type": "image"}}))],
            "Attachment Unknown",
        ),
        ("memory", vec![memory(&json!({"content": "a"}))], r#"Attachment "a" whole"#),
        (
            "raw memory",
            vec![memory(&json!({"content": "a", "rawContent": "-a", "contentDiffersFromDisk": true}))],
            r#"Attachment "-a" whole"#,
        ),
        (
            "other memory",
            vec![memory(&json!({"content": "a", "contentDiffersFromDisk": true}))],
            "Attachment Unknown",
        ),
        (
            "changed by others",
            vec![read_whole("a\nb"), edited("2\tx")],
            "Attachment Unknown whole contradicted",
        ),
        ("changed as we know", vec![read_whole("a\nb"), edited("     2→b")], r#"Attachment "a\nb" whole"#),
        ("changed somewhere", vec![read_whole("a\nb"), edited("")], "Attachment Unknown whole contradicted"),
        ("changed, never seen", vec![edited("1\ta")], "Attachment Unknown"),
        (
            "no edit on what is out of date",
            vec![read_whole("a\nb"), edited("2\tx"), edit(None, "a", "c")],
            "Edit Unknown edited whole contradicted",
        ),
        ("left the context", vec![read_whole("a"), faded], r#"Read "a" whole summary"#),
    ] {
        check(case, &story, &[want]);
    }
}

#[test]
fn contexts() {
    let known = || named(read_whole("a"), "u1");
    let marker = |uuid: &str| vec![json!({"type": "user", "uuid": uuid, "message": {"content": "typed"}})];
    let cleared = |call: &str| {
        vec![json!({"type": "system", "subtype": "microcompact_boundary",
            "microcompactMetadata": {"compactedToolIds": [call]}})]
    };
    let call = known()[1]["message"]["content"][0]["tool_use_id"].as_str().unwrap().to_owned();
    let keeps = |field: &str| boundary(&json!({"preservedMessages": {field: ["u1"]}}));
    let segment =
        |head: &str, tail: &str| boundary(&json!({"preservedSegment": {"headUuid": head, "tailUuid": tail}}));
    let (here, gone) = (r#"Read "a" whole"#, r#"Read "a" whole summary"#);
    for (case, story, want) in [
        ("compaction", vec![known(), boundary(&json!({"trigger": "auto"}))], gone),
        ("preserved", vec![known(), keeps("uuids")], here),
        ("preserved with all", vec![known(), keeps("allUuids")], here),
        ("in the segment", vec![marker("u0"), known(), marker("u2"), segment("u0", "u2")], here),
        ("before the segment", vec![known(), marker("u2"), marker("u3"), segment("u2", "u3")], gone),
        ("in half a segment", vec![known(), marker("u2"), segment("u1", "never seen")], gone),
        ("read again", vec![known(), boundary(&Value::Null), named(read_whole("a"), "u9")], here),
        ("cleared", vec![known(), cleared(&call)], gone),
        ("another cleared", vec![known(), cleared("another")], here),
        ("cleared, not preserved anew", vec![known(), cleared(&call), keeps("uuids")], gone),
        ("sub-agent", vec![sidechain(known())], r#"Read "a" whole sidechain"#),
        ("sub-agent and agent", vec![sidechain(known()), read_whole("ab")], r#"Read "ab" whole"#),
    ] {
        check(case, &story, &[want]);
    }
}

#[test]
fn plans() {
    let plan = "/home/u/.claude/plans/calm-sea.md";
    let written = json!({"filePath": plan, "content": "p"});
    let left = json!({"filePath": "/w/plan.md", "plan": "p"});
    let story = [
        pair("Write", &json!({"file_path": plan}), &written, &Value::Null),
        pair("ExitPlanMode", &json!({}), &left, &Value::Null),
    ];
    check("plans", &story, &[r#"Write "p" edited plan"#, "ExitPlanMode Unknown plan"]);
}

#[test]
fn a_copied_line_counts_once() {
    let edited = named(edit(None, "a", "aa"), "u1");
    check("copy", &[read_whole("a"), edited.clone(), edited], &[r#"Edit "aa" edited whole"#]);
}

#[test]
fn two_answers_on_a_line_share_no_result() {
    let mut lines = [read_whole("a"), write("b")].concat();
    let second = lines[3]["message"]["content"][0].clone();
    lines[1]["message"]["content"].as_array_mut().unwrap().push(second);
    lines.swap(1, 2);
    lines.truncate(3);
    check("two answers", &[lines], &["Write Unknown edited"]);
}

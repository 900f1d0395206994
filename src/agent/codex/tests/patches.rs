//! What the session itself wrote, told by its patches.

use super::*;

fn patch(id: &str, text: &str) -> Value {
    line(
        "response_item",
        json!({"type": "custom_tool_call", "name": "apply_patch", "input": text, "call_id": id}),
    )
}

fn done(id: &str, code: i64) -> Value {
    let told = format!("Exit code: {code}\nWall time: 0.1 seconds\nOutput:\nSuccess.\n");
    line("response_item", json!({"type": "custom_tool_call_output", "call_id": id, "output": told}))
}

fn ended(id: &str, success: bool, changes: &Value) -> Value {
    line(
        "event_msg",
        json!({"type": "patch_apply_end", "call_id": id, "success": success, "changes": changes}),
    )
}

fn update(diff: &str) -> Value {
    json!({"type": "update", "unified_diff": diff, "move_path": null})
}

/// A file known by a command, then a patch that is told with its changes.
fn told_after(command: &str, printed: &str, changes: &Value) -> Vec<String> {
    let told = vec![patch("p", "whatever"), ended("p", true, changes), done("p", 0)];
    beliefs(&session(&[ran(command, printed, 0), told]))
}

#[test]
fn changes_that_are_told_are_made_in_what_is_known() {
    let second = update("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    let whole = |changes: &Value| told_after("cat f", "a\nb\nc\n", changes);
    assert_eq!(whole(&json!({"/w/f": second})), [r#"/w/f "a\nB\nc\n" edited whole"#]);
    assert_eq!(whole(&json!({"f": second})), [r#"/w/f "a\nB\nc\n" edited whole"#]);
    assert_eq!(whole(&json!({"/w/f": {"type": "add", "content": "x\n"}})), [r#"/w/f "x\n" edited whole"#]);
    assert_eq!(whole(&json!({"/w/f": {"type": "delete", "content": "a"}})), ["/w/f Absent edited whole"]);
    assert_eq!(whole(&json!({"/w/f": {"type": "update"}})), ["/w/f Unknown edited whole"]);
    assert_eq!(whole(&json!({"/w/f": {"type": "odd"}})), ["/w/f Unknown edited whole"]);
    let moved = json!({"type": "update", "unified_diff": second["unified_diff"], "move_path": "/w/g"});
    assert_eq!(whole(&json!({"/w/f": moved})), ["/w/f Absent edited whole", r#"/w/g "a\nB\nc\n" edited"#]);
    let bare = json!({"type": "update", "unified_diff": "", "move_path": "g"});
    assert_eq!(whole(&json!({"/w/f": bare})), ["/w/f Absent edited whole", r#"/w/g "a\nb\nc\n" edited"#]);
    let elsewhere = update("@@ -7,1 +7,1 @@\n-x\n+y\n");
    assert_eq!(whole(&json!({"/w/f": elsewhere})), ["/w/f Partial 7+1=y edited whole"]);
}

#[test]
fn lines_that_are_known_stay_known_beside_a_change() {
    let hunk = json!({"/w/f": update("@@ -4,3 +4,4 @@\n d\n-e\n+E\n+F\n f\n")});
    let part = |command: &str, printed: &str| told_after(command, printed, &hunk);
    assert_eq!(part("sed -n '1,3p' f", "a\nb\nc\n"), ["/w/f Partial 1+3=a/b/c 4+4=d/E/F/f edited"]);
    assert_eq!(part("sed -n '3,7p' f", "c\nd\ne\nf\ng\n"), ["/w/f Partial 3+6=c/d/E/F/f/g edited"]);
    assert_eq!(part("sed -n '8,9p' f", "h\ni\n"), ["/w/f Partial 9+2=h/i 4+4=d/E/F/f edited"]);
    assert_eq!(part("sed -n '5,8p' f", "e\nf\ng\nh\n"), ["/w/f Partial 4+4=d/E/F/f edited"]);
    assert_eq!(part("ls", ""), ["/w/f Partial 4+4=d/E/F/f edited", "? ls"]);
}

#[test]
fn a_patch_that_failed_changed_nothing() {
    let changes = json!({"/w/f": {"type": "add", "content": "x"}});
    check("told so", &[vec![patch("p", "x"), ended("p", false, &changes), done("p", 1)]], &[]);
    let text = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n";
    check("answered so", &[vec![patch("p", text), done("p", 1)]], &[]);
    check("not answered", &[vec![patch("p", text)]], &[]);
    let got = session(&[vec![patch("p", text), done("p", 0)]]);
    assert_eq!((beliefs(&got), got.last_edit), (vec![r#"/w/f "x\n" edited"#.to_owned()], Some(3)));
}

#[test]
fn a_patch_is_made_by_its_own_text_where_nothing_else_is_told() {
    let known = "a\nb\nc\nb\nd\n";
    for (inner, want) in [
        ("@@\n-b\n+B\n", r#""a\nB\nc\nb\nd\n""#),
        ("@@ c\n-b\n+B\n", r#""a\nb\nc\nB\nd\n""#),
        (" a\n-b\n+B\n c\n@@\n-d\n+D\n", r#""a\nB\nc\nb\nD\n""#),
        ("@@\n+e\n", r#""a\nb\nc\nb\nd\ne\n""#),
        ("@@\n b\n-d\n*** End of File\n", r#""a\nb\nc\nb\n""#),
        ("@@\n-x\n+y\n", "Unknown"),
        ("@@ nowhere\n-b\n+B\n", "Unknown"),
        ("@@\n-d\n@@\n-a\n", "Unknown"),
        ("@@\n-b\n*** End of File\n", "Unknown"),
    ] {
        let text = format!("*** Begin Patch\n*** Update File: f\n{inner}*** End Patch");
        let story = [ran("cat f", known, 0), vec![patch("p", &text), done("p", 0)]];
        check(inner, &story, &[&format!("/w/f {want} edited whole")]);
    }
    let text = "*** Begin Patch\n*** Delete File: f\n*** Update File: g\n*** Move to: h\n@@\n-a\n+b\n*** End Patch\n";
    check(
        "more files",
        &[ran("cat g", "a\n", 0), vec![patch("p", text), done("p", 0)]],
        &["/w/g Absent edited whole", "/w/f Absent edited", r#"/w/h "b\n" edited"#],
    );
}

#[test]
fn a_patch_may_come_by_a_command() {
    let text = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch";
    let fed = format!("apply_patch <<'EOF'\n{text}\nEOF\n");
    let told = json!(told("Success.\n", 0));
    for (arguments, path) in [
        (json!({"command": ["apply_patch", text]}), "/w/f"),
        (json!({"command": ["bash", "-lc", fed]}), "/w/f"),
        (json!({"command": ["bash", "-lc", format!("cd sub && {fed}")]}), "/w/sub/f"),
        (json!({"command": ["apply_patch", text], "workdir": "/x"}), "/x/f"),
    ] {
        let story = [vec![call("1", "shell", &arguments), output("1", &told)]];
        check(path, &story, &[&format!(r#"{path} "x\n" edited"#)]);
    }
}

//! Rows of texts, diffs and what is there after.

use super::{Hunk, apply, moved, parse};

fn hunks(diff: &str) -> Vec<Hunk> {
    parse(diff).unwrap_or_else(|| panic!("{diff:?} is a diff"))
}

#[test]
fn a_diff_is_applied_where_all_its_lines_stand_in_their_places() {
    for (before, diff, after) in [
        ("a\nb\nc\n", "@@ -2,1 +2,1 @@\n-b\n+B\n", Some("a\nB\nc\n")),
        ("a\nb\nc\n", "@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n", Some("a\nx\nb\nc\n")),
        ("a\nb\nc\n", "@@ -2 +1,0 @@\n-b\n", Some("a\nc\n")),
        ("", "@@ -0,0 +1,2 @@\n+a\n+b\n", Some("a\nb\n")),
        ("a\nb", "@@ -2,1 +2,1 @@\n-b\n\\ No newline at end of file\n+b\n", Some("a\nb\n")),
        ("a\nb\n", "@@ -2,1 +2,1 @@\n-b\n+b\n\\ No newline at end of file\n", Some("a\nb")),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", Some("a\n\nc\n")),
        ("a\nb\nc\nd\n", "@@ -1,1 +1,0 @@\n-a\n@@ -4,1 +3,2 @@\n-d\n+D\n+e\n", Some("b\nc\nD\ne\n")),
        ("a\nb", "@@ -2,1 +2,1 @@\n-b\n+B\n", None),
        ("a\nB\nc\n", "@@ -2,1 +2,1 @@\n-b\n+x\n", None),
        ("x\na\nb\n", "@@ -2,1 +2,1 @@\n-b\n+x\n", None),
        ("a\n", "@@ -9,1 +9,1 @@\n-a\n+x\n", None),
        ("a\nb\n", "@@ -2,1 +2,1 @@\n-b\n+x\n@@ -1,1 +1,1 @@\n-a\n+y\n", None),
    ] {
        assert_eq!(apply(&hunks(diff), before).as_deref(), after, "{before:?} {diff:?}");
    }
    for diff in ["", "nothing", "@@ what @@\n a\n", "@@ -1,1 +1,1 @@\n?a\n", " a\n@@ -1 +1 @@\n"] {
        assert_eq!(parse(diff), None, "{diff:?}");
    }
}

#[test]
fn lines_of_a_file_are_known_after_a_change_beside_or_within_them() {
    let within = "@@ -11,3 +11,2 @@\n k\n-l\n m\n";
    for (start, text, diff, after) in [
        (10, "j\nk\nl\nm\nn", within, Some((10, "j\nk\nm\nn"))),
        (11, "k\nl\nm", within, Some((11, "k\nm"))),
        (1, "a\nb", within, Some((1, "a\nb"))),
        (14, "n\no", within, Some((13, "n\no"))),
        (12, "l\nm\nn", within, None),
        (10, "j\nk\nl", within, None),
        (10, "j\nk\nX\nm\nn", within, None),
        (5, "e\nf", "@@ -0,0 +1,3 @@\n+x\n+y\n+z\n", Some((8, "e\nf"))),
        (5, "e", "@@ -5,1 +4,0 @@\n-e\n", None),
        (u64::MAX, "e", "@@ -1,0 +1,3 @@\n+x\n+y\n+z\n", None),
        (u64::MAX, "e", "@@ -18446744073709551615,1 +1,1 @@\n-e\n+x\n", Some((u64::MAX, "x"))),
    ] {
        let after = after.map(|(start, text)| (start, text.to_owned()));
        assert_eq!(moved(&hunks(diff), start, text), after, "{start} {text:?}");
    }
}

#[test]
fn a_hunk_shows_the_lines_that_it_made() {
    let hunks = hunks("@@ -3,2 +5,3 @@\n a\n-b\n+c\n+d\n@@ -9,1 +12,0 @@\n-x\n");
    let made: Vec<_> = hunks.iter().map(Hunk::made).collect();
    assert_eq!(made, [Some((5, "a\nc\nd".to_owned())), None]);
}

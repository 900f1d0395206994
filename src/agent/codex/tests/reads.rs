//! Commands that show a file, or some of its lines; and those that do not.

use super::*;
use crate::agent::codex::{Ran, Saw, saw};

#[test]
fn a_read_is_as_much_as_it_plainly_shows() {
    for (command, printed, code, want) in [
        ("cat f", "a\nb\n", 0, r#"/w/f "a\nb\n" whole"#),
        ("cat f", "", 0, r#"/w/f "" whole"#),
        ("cat f", "a", 0, r#"/w/f "a" whole"#),
        ("cat /x/f", "a", 0, r#"/x/f "a" whole"#),
        ("sed -n '1,9p' f", "a\nb\n", 0, r#"/w/f "a\nb\n" whole"#),
        ("sed -n '1,2p' f", "a\nb\n", 0, "/w/f Partial 1+2=a/b"),
        ("sed -n '1,2p' f", "a\nb", 0, r#"/w/f "a\nb" whole"#),
        ("sed -n '4,9p' f", "d\ne\n", 0, "/w/f Partial 4+2=d/e"),
        ("sed -n '4,4p' f", "\n", 0, "/w/f Partial 4+1="),
        ("sed -n '1,$p' f", "a\n", 0, r#"/w/f "a\n" whole"#),
        ("sed -n '3,$p' f", "c\nd\n", 0, "/w/f Partial 3+2=c/d"),
        ("head -n 3 f", "a\n", 0, r#"/w/f "a\n" whole"#),
        ("head -n 1 f", "a\n", 0, "/w/f Partial 1+1=a"),
        ("tail -n +2 f", "b\n", 0, "/w/f Partial 2+1=b"),
        ("nl -ba f", "     1\ta\n     2\t\n", 0, r#"/w/f "a\n\n" whole"#),
        ("nl -ba f | sed -n '9,10p'", "     9\ti\tj\n    10\tk\n", 0, "/w/f Partial 9+2=i\tj/k"),
        (
            "nl -ba f | sed -n '18446744073709551615,18446744073709551615p'",
            "18446744073709551615\tz\n",
            0,
            "/w/f Partial 18446744073709551615+1=z",
        ),
        ("cat f", "cat: f: No such file or directory\n", 1, "/w/f Absent"),
        ("sed -n '1,2p' f", "sed: can't read f: No such file or directory\n", 2, "/w/f Absent"),
    ] {
        check(command, &[ran(command, printed, code)], &[want]);
    }
}

#[test]
fn what_does_not_fit_a_read_is_a_question() {
    for (command, printed, code, want) in [
        ("sed -n '4,5p' f", "d\ne\nf\n", 0, "? sed -n '4,5p' f"),
        ("sed -n '4,5p' f", "", 0, "? sed -n '4,5p' f"),
        ("tail -n 2 f", "y\nz\n", 0, "? tail -n 2 f"),
        ("nl -ba f | sed -n '9,10p'", "     8\th\n", 0, "? nl -ba f | sed -n '9,10p'"),
        ("nl -ba f", "no number\n", 0, "? nl -ba f"),
        ("cat f", "cat: f: Permission denied\n", 1, "? cat f failed unseen"),
        ("cat f; cat g", "a\n", 0, "? cat f; cat g"),
        ("cat f", "Total output lines: 9\n\na…1 tokens truncated…b", 0, "? cat f unseen"),
        ("cat f", "Warning: truncated output (original token count: 9)\nTotal", 0, "? cat f unseen"),
        ("cat f", "a\n[... omitted 7 of 9 lines ...]\nb\n", 0, "? cat f unseen"),
    ] {
        check(command, &[ran(command, printed, code)], &[want]);
    }
    let mut short = ran("cat f", "a\n", 0);
    short[1] = output("call-cat f-2", &json!(told("a\n", 0).replace("count: 1", "count: 2")));
    check("fewer bytes than were counted", &[short], &["? cat f unseen"]);
}

#[test]
fn one_command_tells_the_same_alone() {
    let ran = |command, output, exit_code| {
        let (cwd, captured_at) = (Some("/w"), Some("2026-04-10T20:11:51Z"));
        saw(&Ran { command, cwd, output, exit_code, captured_at, line: 7 })
    };
    let Saw::File(entry) = ran("cat f", "a\n", Some(0)) else { panic!("it is a read") };
    assert_eq!((show(&entry).as_str(), entry.line, entry.tool.as_str()), (r#"/w/f "a\n" whole"#, 7, "Bash"));
    for (command, exit_code, failed, shown) in [
        ("cargo test", Some(101), true, false),
        ("git log", Some(0), false, true),
        ("cat f", None, false, false),
    ] {
        let Saw::Asked(asked) = ran(command, "x", exit_code) else { panic!("{command} is a question") };
        assert_eq!((asked.failed, asked.shown.is_some(), asked.line), (failed, shown, 7), "{command}");
    }
    let cut = "a\n[... omitted 7 of 9 lines ...]\nb\n";
    assert!(matches!(ran("cat f", cut, Some(0)), Saw::Asked(asked) if asked.shown.is_none()), "it was cut");
}

#[test]
fn a_later_read_agrees_or_tells_of_a_change() {
    let whole = || ran("cat f", "a\nb\nc\n", 0);
    check("agrees", &[whole(), ran("sed -n '2,3p' f", "b\nc\n", 0)], &[r#"/w/f "a\nb\nc\n" 2+2=b/c whole"#]);
    check(
        "does not",
        &[whole(), ran("sed -n '2,3p' f", "B\nc\n", 0)],
        &[r#"/w/f "a\nb\nc\n" 2+2=B/c whole contradicted"#],
    );
    check("again", &[whole(), ran("cat f", "x\n", 0)], &[r#"/w/f "x\n" whole"#]);
}

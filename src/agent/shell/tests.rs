//! Command lines, invented, and the steps that a shell would run.

use super::steps;

/// Steps as `word word`, joined by `;` or `|`; `~` after a word that is not literal, `!` after a step that writes.
fn show(text: &str) -> String {
    let Some(steps) = steps(text) else { return "?".to_owned() };
    let mut shown = String::new();
    for (at, step) in steps.iter().enumerate() {
        if at > 0 || step.piped {
            shown.push_str(if step.piped { " | " } else { " ; " });
        }
        let words: Vec<String> =
            step.words.iter().map(|word| word.text.clone() + if word.literal { "" } else { "~" }).collect();
        shown.push_str(&words.join(","));
        shown.push_str(if step.writes { "!" } else { "" });
    }
    shown
}

#[test]
fn a_command_line_is_taken_apart_as_a_shell_would() {
    for (text, want) in [
        ("cat a", "cat,a"),
        ("cd x && ls -l|head -5 || true; pwd", "cd,x ; ls,-l | head,-5 ; true ; pwd"),
        ("grep \"a b\" 'c|d' e\\ f", "grep,a b,c|d,e f"),
        ("grep \"a\\|b\" \"\\$x\"", "grep,a\\|b,$x"),
        ("echo $HOME ${A:-b} *.rs x{1,2}", "echo,$HOME~,${A:-b~,*.rs~,x{1,2}~"),
        ("echo \"$(git log | cat)\" x", "git,log | cat ; echo,$~,x"),
        ("echo `date` x", "date ; echo,$~,x"),
        ("make 2>&1 | tail -3", "make | tail,-3"),
        ("make > log", "make!"),
        ("make >/dev/null 2> /dev/null", "make"),
        ("make >> log 2>&1", "make!"),
        ("make &> log", "make!"),
        ("make 2>log", "make!"),
        ("> log", "!"),
        ("wc -l < a", "wc,-l,a"),
        ("cat <<'EOF' > f\nit's ; rm x\nEOF\nls", "cat! ; ls"),
        ("cat <<< word", "cat"),
        ("git commit -m \"$(cat <<'EOF'\nit's (a) \"b\nEOF\n)\"", "cat ; git,commit,-m,$~"),
        ("# all of it\nls # here\n", "ls"),
        ("ls#x", "ls#x"),
        ("(cd a && ls) ; pwd", "cd,a ; ls ; pwd"),
        ("ls \\\n -l", "ls,-l"),
        ("A=1 B='x y' make", "A=1,B=x y,make"),
        ("diff <(ls a) b", "ls,a ; diff,<~,b"),
        ("echo $'a'", "echo,a"),
        ("server & ls", "?"),
        ("echo 'open", "?"),
        ("echo \"open", "?"),
        ("echo $(open", "?"),
        ("f() { ls; }", "?"),
        ("cat <<EOF\nnever ends", "?"),
        ("case x in a) ls ;; esac", "?"),
        ("", ""),
    ] {
        assert_eq!(show(text), want, "{text}");
    }
}

#[test]
fn nothing_stands_too_deep_in_itself() {
    assert_eq!(show(&("$(".repeat(5_000) + &")".repeat(5_000))), "?");
}

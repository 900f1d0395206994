//! What differs between two texts, line by line, for people.

use super::super::words::harmless;

/// Above this many pairs of lines all of the old ones go and all of the new ones come.
const PAIRS_MAX: usize = 4_000_000;
/// Lines around a change that are shown with it.
const AROUND: usize = 2;

/// Lines that go begin with `-`, lines that come with `+`, and a few around them with a blank.
pub(super) fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old[same..old.len() - tail], &new[same..new.len() - tail]);
    let mut marked: Vec<(char, &str)> = old[..same].iter().map(|line| (' ', *line)).collect();
    marked.extend(middle(old_middle, new_middle));
    marked.extend(old[old.len() - tail..].iter().map(|line| (' ', *line)));
    shown(&marked)
}

/// By the longest run of lines that both have in this order.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let goes = |line: &&'a str| ('-', *line);
    let comes = |line: &&'a str| ('+', *line);
    if old.len().saturating_mul(new.len()) > PAIRS_MAX {
        return old.iter().map(goes).chain(new.iter().map(comes)).collect();
    }
    let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (at, line) in old.iter().enumerate().rev() {
        for (to, other) in new.iter().enumerate().rev() {
            longest[at][to] = if line == other {
                longest[at + 1][to + 1] + 1
            } else {
                longest[at + 1][to].max(longest[at][to + 1])
            };
        }
    }
    let (mut at, mut to, mut marked) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            marked.push((' ', old[at]));
            (at, to) = (at + 1, to + 1);
        } else if to == new.len() || (at < old.len() && longest[at + 1][to] >= longest[at][to + 1]) {
            marked.push(goes(&old[at]));
            at += 1;
        } else {
            marked.push(comes(&new[to]));
            to += 1;
        }
    }
    marked
}

fn shown(marked: &[(char, &str)]) -> Vec<String> {
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        marked[from..marked.len().min(at + AROUND + 1)].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut lines = Vec::new();
    let mut left_out = false;
    for (at, (mark, line)) in marked.iter().enumerate() {
        if near(at) {
            // A project's settings are whoever's whose project it is.
            let line: Vec<String> = line.split('\t').map(harmless).collect();
            lines.push(format!("{mark} {}", line.join("\t")).trim_end().to_owned());
        } else if !left_out {
            lines.push("  …".to_owned());
        }
        left_out = !near(at);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn only_what_changed_is_shown_with_a_little_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
        assert_eq!(changed(old, new), ["  …", "  c", "  d", "- e", "+ E", "  f", "  g", "+ h"]);
        assert_eq!(changed("", "x\n"), ["+ x"]);
        assert_eq!(changed("x\n", ""), ["- x"]);
        assert_eq!(changed("", "\tx\u{1b}[2J\n"), ["+ \tx\\u{1b}[2J"]);
    }
}

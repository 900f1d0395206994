//! Changes of a text by line numbers, as `diff -u` writes them.
//!
//! A change is applied only where every line that it names stands in its place; anything else is `None`, for then the
//! text is not the one that was changed.

#[cfg(test)]
mod tests;

/// Some lines that took the place of others; each with the line feed that ends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// How many lines stand before it, before the change and after.
    old_at: u64,
    new_at: u64,
    old: Vec<String>,
    new: Vec<String>,
}

impl Hunk {
    /// The lines that there are after it, with those around them, and the number of the first.
    pub(super) fn made(&self) -> Option<(u64, String)> {
        let text = self.new.concat();
        let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        (!self.new.is_empty()).then_some((self.new_at.saturating_add(1), text))
    }

    fn old_end(&self) -> u64 {
        self.old_at.saturating_add(self.old.len() as u64)
    }
}

/// The hunks of a unified diff; `None` when it is none.
pub(super) fn parse(diff: &str) -> Option<Vec<Hunk>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut last = ' ';
    for line in diff.split_terminator('\n') {
        if let Some(header) = line.strip_prefix("@@ ") {
            hunks.push(begin(header)?);
            continue;
        }
        if hunks.is_empty() && (line.starts_with("--- ") || line.starts_with("+++ ")) {
            continue;
        }
        let hunk = hunks.last_mut()?;
        // An empty line may have lost its blank on the way.
        let (tag, text) = line.chars().next().map_or((' ', ""), |tag| (tag, &line[tag.len_utf8()..]));
        match tag {
            ' ' | '-' | '+' => {
                last = tag;
                hunk.push(tag, &format!("{text}\n"));
            }
            '\\' => hunk.unend(last),
            _ => return None,
        }
    }
    (!hunks.is_empty()).then_some(hunks)
}

impl Hunk {
    fn push(&mut self, tag: char, line: &str) {
        if tag != '+' {
            self.old.push(line.to_owned());
        }
        if tag != '-' {
            self.new.push(line.to_owned());
        }
    }

    /// The line that came last has no line feed.
    fn unend(&mut self, tag: char) {
        if let Some(line) = self.old.last_mut().filter(|_| tag != '+') {
            line.pop();
        }
        if let Some(line) = self.new.last_mut().filter(|_| tag != '-') {
            line.pop();
        }
    }
}

/// From `-12,3 +12,4 @@ …`.
fn begin(header: &str) -> Option<Hunk> {
    let mut sides = header.split(' ');
    let mut side = |sign: char| {
        let told = sides.next()?.strip_prefix(sign)?;
        let (start, count) = told.split_once(',').unwrap_or((told, "1"));
        let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
        // Of no lines at all the number is that of the line before.
        if count == 0 { Some(start) } else { start.checked_sub(1) }
    };
    Some(Hunk { old_at: side('-')?, new_at: side('+')?, ..Hunk::default() })
}

/// The text after all changes.
pub(super) fn apply(hunks: &[Hunk], text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut after, mut done) = (String::new(), 0);
    for hunk in hunks {
        let (from, to) = (usize::try_from(hunk.old_at).ok()?, usize::try_from(hunk.old_end()).ok()?);
        let before = lines.get(done..from)?;
        if lines.get(from..to)? != hunk.old {
            return None;
        }
        after.extend(before.iter().copied());
        after.extend(hunk.new.iter().map(String::as_str));
        done = to;
    }
    after.extend(lines[done..].iter().copied());
    Some(after)
}

/// Where some lines from `start` on stand after all changes, and what they are then. `None` where a change reaches
/// beyond them, or is not one of these lines.
pub(super) fn moved(hunks: &[Hunk], start: u64, text: &str) -> Option<(u64, String)> {
    let lines: Vec<&str> = text.split('\n').collect();
    let first = start.checked_sub(1)?;
    let end = first.checked_add(lines.len() as u64)?;
    let (mut after, mut done, mut at) = (Vec::new(), 0, first);
    for hunk in hunks {
        if hunk.old_at >= end {
            continue;
        }
        if hunk.old_end() <= first {
            at = at.checked_add(hunk.new.len() as u64)?.checked_sub(hunk.old.len() as u64)?;
            continue;
        }
        let from = usize::try_from(hunk.old_at.checked_sub(first)?).ok()?;
        let to = from + hunk.old.len();
        let named = hunk.old.iter().map(|line| line.trim_end_matches('\n'));
        if to > lines.len() || from < done || !named.eq(lines[from..to].iter().copied()) {
            return None;
        }
        after.extend(&lines[done..from]);
        after.extend(hunk.new.iter().map(|line| line.trim_end_matches('\n')));
        done = to;
    }
    after.extend(&lines[done..]);
    (!after.is_empty()).then(|| (at.saturating_add(1), after.join("\n")))
}

//! Patches as Codex writes them: files added, deleted, moved, and lines changed that are found by what stands there.
//!
//! What a patch does to a text is done only where each of its lines stands in the text as it is, once it is looked for
//! from where the last one was. Codex itself is less strict, so `None` says no more than that we cannot tell.

/// What a patch does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) enum Change {
    /// It has this content from now on.
    Write {
        /// The file.
        path: String,
        /// All of it.
        content: String,
    },
    /// Some lines changed.
    Update {
        /// The file.
        path: String,
        /// Where it is from now on.
        to: Option<String>,
        /// The changes, in their order in the file.
        chunks: Vec<Chunk>,
    },
    /// It is gone.
    Delete {
        /// The file.
        path: String,
    },
}

/// Lines that take the place of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::agent) struct Chunk {
    /// A line that stands before them.
    after: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    /// They are the last of the file.
    last: bool,
}

impl Chunk {
    /// The lines that it leaves.
    pub(in crate::agent) fn left(&self) -> String {
        self.new.join("\n")
    }

    /// The lines that it replaces.
    pub(in crate::agent) fn replaced(&self) -> String {
        self.old.join("\n")
    }
}

/// The text before the changes, which lead from it to this one.
pub(in crate::agent) fn revert(chunks: &[Chunk], after: &str) -> Option<String> {
    let back = |chunk: &Chunk| Chunk { old: chunk.new.clone(), new: chunk.old.clone(), ..chunk.clone() };
    let reverted: Vec<Chunk> = chunks.iter().map(back).collect();
    let before = apply(&reverted, after)?;
    (apply(chunks, &before).as_deref() == Some(after)).then_some(before)
}

/// What a patch says; `None` when it is none.
pub(in crate::agent) fn parse(patch: &str) -> Option<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    let mut lines = patch.lines();
    lines.find(|line| line.trim() == "*** Begin Patch")?;
    for line in lines {
        if line.trim() == "*** End Patch" {
            return Some(changes);
        }
        match line.strip_prefix("*** ") {
            Some(told) if told.trim() != "End of File" => header(told.trim_end(), &mut changes)?,
            _ => inner(line, changes.last_mut()?)?,
        }
    }
    None
}

fn header(told: &str, changes: &mut Vec<Change>) -> Option<()> {
    let (word, path) = told.split_once(": ")?;
    let path = path.to_owned();
    match word {
        "Add File" => changes.push(Change::Write { path, content: String::new() }),
        "Delete File" => changes.push(Change::Delete { path }),
        "Update File" => changes.push(Change::Update { path, to: None, chunks: Vec::new() }),
        "Move to" => match changes.last_mut()? {
            Change::Update { to, .. } => *to = Some(path),
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}

fn inner(line: &str, change: &mut Change) -> Option<()> {
    match change {
        Change::Write { content, .. } => {
            content.push_str(line.strip_prefix('+')?);
            content.push('\n');
        }
        Change::Update { chunks, .. } => chunk_line(line, chunks)?,
        Change::Delete { .. } => line.trim().is_empty().then_some(())?,
    }
    Some(())
}

fn chunk_line(line: &str, chunks: &mut Vec<Chunk>) -> Option<()> {
    if line.trim_end() == "@@" {
        chunks.push(Chunk::default());
        return Some(());
    }
    if let Some(after) = line.strip_prefix("@@ ") {
        chunks.push(Chunk { after: Some(after.to_owned()), ..Chunk::default() });
        return Some(());
    }
    // The first may do without its mark.
    if chunks.is_empty() {
        chunks.push(Chunk::default());
    }
    let chunk = chunks.last_mut()?;
    match line.split_at_checked(1) {
        Some((" ", text)) => {
            chunk.old.push(text.to_owned());
            chunk.new.push(text.to_owned());
        }
        Some(("-", text)) => chunk.old.push(text.to_owned()),
        Some(("+", text)) => chunk.new.push(text.to_owned()),
        None => {
            chunk.old.push(String::new());
            chunk.new.push(String::new());
        }
        Some(_) if line.trim_end() == "*** End of File" => chunk.last = true,
        Some(_) => return None,
    }
    Some(())
}

/// The text after the changes, which Codex lets end in a line feed.
pub(in crate::agent) fn apply(chunks: &[Chunk], text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    let (mut after, mut done): (Vec<&str>, usize) = (Vec::new(), 0);
    for chunk in chunks {
        let mut from = done;
        if let Some(line) = &chunk.after {
            from += lines[from..].iter().position(|there| there == line)? + 1;
        }
        let at = from + place(chunk, &lines[from..])?;
        after.extend(&lines[done..at]);
        after.extend(chunk.new.iter().map(String::as_str));
        done = at + chunk.old.len();
    }
    after.extend(&lines[done..]);
    Some(after.iter().flat_map(|line| [*line, "\n"]).collect())
}

/// Where the lines of a chunk stand among these.
fn place(chunk: &Chunk, lines: &[&str]) -> Option<usize> {
    let end = lines.len().checked_sub(chunk.old.len())?;
    // Lines that replace none are added at the end.
    if chunk.old.is_empty() || chunk.last {
        return (lines[end..] == chunk.old[..]).then_some(end);
    }
    (0..=end).find(|&at| lines[at..at + chunk.old.len()] == chunk.old[..])
}

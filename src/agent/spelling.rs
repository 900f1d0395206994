//! Paths of other machines, as text: what is absolute and where components end, on Unix and on Windows.
//!
//! `std::path` knows the machine it runs on only. A transcript may come from any, and a backslash is a separator only
//! in a path that starts like a Windows one: on Unix it is a letter.

use std::path::{Path, PathBuf};

/// An absolute path in components, `.` and `..` resolved by their names alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelled {
    /// `/`, `d:`, `\\` or `~`.
    anchor: String,
    parts: Vec<String>,
}

impl Spelled {
    /// Takes the path apart, or `None` when it is relative.
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let (anchor, rest) = anchor(text)?;
        let windows = !matches!(anchor.as_str(), "/" | "~");
        let mut parts: Vec<String> = Vec::new();
        for part in rest.split(|letter| letter == '/' || (windows && letter == '\\')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                _ => parts.push(part.to_owned()),
            }
        }
        Some(Self { anchor, parts })
    }

    /// How many components it has.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// What follows `prefix`, when that is a prefix on a component border.
    pub(super) fn after(&self, prefix: &Self) -> Option<PathBuf> {
        let inside = self.anchor == prefix.anchor && self.parts.starts_with(&prefix.parts);
        inside.then(|| self.parts[prefix.len()..].iter().collect())
    }

    /// The worktree it lies in: up to the component after `.worktrees`, or `.claude/worktrees`.
    pub(super) fn worktree(&self) -> Option<Self> {
        let marks = |at: usize| {
            self.parts[at] == ".worktrees"
                || (self.parts[at] == "worktrees" && at > 0 && self.parts[at - 1] == ".claude")
        };
        let mark = (0..self.len().saturating_sub(1)).rev().find(|&at| marks(at))?;
        Some(Self { anchor: self.anchor.clone(), parts: self.parts[..mark + 2].to_vec() })
    }
}

fn anchor(text: &str) -> Option<(String, &str)> {
    let bytes = text.as_bytes();
    if let Some(rest) = text.strip_prefix('/') {
        return Some(("/".into(), rest));
    }
    if let Some(rest) = text.strip_prefix("\\\\") {
        return Some(("\\\\".into(), rest));
    }
    if text == "~" || text.starts_with("~/") {
        return Some(("~".into(), &text[1..]));
    }
    let drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    // `d:name` is relative to whatever directory that drive was in: nobody knows which.
    let absolute = drive && matches!(bytes.get(2), None | Some(b'/' | b'\\'));
    absolute.then(|| (text[..2].to_ascii_lowercase(), &text[2..]))
}

/// `name` as seen from `cwd`, in `cwd`'s own spelling; `None` when neither is absolute.
pub(super) fn resolve(cwd: Option<&str>, name: &str) -> Option<PathBuf> {
    if anchor(name).is_some() {
        return Some(name.into());
    }
    let cwd = cwd?;
    let (anchor, _) = anchor(cwd)?;
    let separator = if anchor == "/" || anchor == "~" { '/' } else { '\\' };
    Some(format!("{}{separator}{name}", cwd.trim_end_matches(['/', separator])).into())
}

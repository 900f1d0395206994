//! Files: whole, in part, or only that they are or are not there.

use super::{Import, belief, read_small, source};
use crate::agent::line_ends::{Rung, lines, same, unmarked};
use crate::agent::rebase::{Rebased, rebase};
use crate::agent::transcript::{Entry, Knowledge, Range};
use crate::protocol::context::{Belief, LineRange, Source};
use crate::protocol::time;
use crate::world::digest;
use std::path::{Path, PathBuf};

/// What an entry says of its path, for looks that came by another way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The last line that told of it.
    pub(super) line: u64,
    pub(super) edited: bool,
    /// What it was after that line is known without another look.
    pub(super) settled: bool,
    pub(super) critical: bool,
}

impl Import<'_> {
    /// What an entry tells: of the whole file, or of each part that was shown.
    pub(super) fn file(&mut self, entry: &Entry) {
        let path = match self.place(&entry.path) {
            // The root is no file.
            Some(path) if path == Path::new(".") => return,
            Some(path) => path,
            None => {
                self.notes.elsewhere += 1;
                return;
            }
        };
        if self.known.contains_key(&path) {
            return;
        }
        // What the agent wrote is what it builds on; it holds the plan to be what it follows.
        let critical = entry.knowledge != Knowledge::Absent && (entry.edited || entry.plan);
        let settled = matches!(entry.knowledge, Knowledge::Full { .. } | Knowledge::Absent);
        self.known.insert(path.clone(), Known { line: entry.line, edited: entry.edited, settled, critical });
        self.notes.contradicted += usize::from(entry.contradicted);
        let parts = self.parts(entry, &path);
        self.notes.in_part += usize::from(!parts.is_empty());
        let in_part = entry.knowledge == Knowledge::Partial && !parts.is_empty();
        // What was seen of it since stands beside a whole that it contradicts, and what the session goes on with is that.
        let critical_whole = critical && parts.is_empty();
        parts.into_iter().for_each(|part| self.put(told(entry, critical, part)));
        if in_part {
            return;
        }
        let kind = if entry.knowledge == Knowledge::Absent { "absent" } else { "file" };
        let digest = self.digest(entry, &path);
        self.notes.unseen += usize::from(digest.is_none() && kind == "file");
        let whole = belief(path.to_string_lossy().into_owned(), source(&path, kind));
        self.put(told(entry, critical_whole, Belief { digest, ..whole }));
    }

    /// What the agent saw, in the disk's own spelling where they differ in line ends alone.
    fn digest(&mut self, entry: &Entry, path: &Path) -> Option<String> {
        let Knowledge::Full { digest, content, .. } = &entry.knowledge else { return None };
        match read_small(&self.places.root.join(path)).map(|disk| (same(content, &disk), disk)) {
            Some((Some(rung), disk)) if rung > Rung::Exact => {
                self.notes.line_ends += 1;
                Some(digest::blake3(&disk).to_string())
            }
            _ => Some(digest.to_string()),
        }
    }

    /// The parts of a file that is known in part only, or has been seen in part since it changed.
    fn parts(&self, entry: &Entry, path: &Path) -> Vec<Belief> {
        let apart = entry.contradicted && matches!(entry.knowledge, Knowledge::Full { .. });
        if entry.knowledge != Knowledge::Partial && !apart {
            return Vec::new();
        }
        let disk = read_small(&self.places.root.join(path));
        let part = |range: &Range| {
            let digest = match disk.as_deref().and_then(|disk| lines(disk, range.start, range.lines)) {
                // The mark that may open a file is no text to an agent, and a byte like others to a digest.
                Some(here) if *String::from_utf8_lossy(unmarked(&here)).as_bytes() == *range.content.0 => {
                    digest::blake3(&here)
                }
                _ => range.digest,
            };
            part(path, range.start, range.lines, Some(digest.to_string()))
        };
        entry.ranges.iter().filter_map(part).collect()
    }

    /// A file that a search named: the agent knows that it is there.
    pub(super) fn mentioned(&mut self, path: &Path) {
        let Rebased::Inside(path) = rebase(path, self.places) else { return };
        let here = self.places.root.join(&path).is_file();
        let known = Known { line: 0, edited: false, settled: false, critical: false };
        if here && !self.known.contains_key(&path) {
            self.known.insert(path.clone(), known);
            let named = belief(path.to_string_lossy().into_owned(), source(&path, "file"));
            self.put(Belief { tool: Some("Grep".to_owned()), critical: Some(false), ..named });
        }
    }
}

/// Some lines of a file as a result; `None` for lines that no file can have.
pub(in crate::agent) fn part(
    path: &Path,
    start_line: u64,
    lines: u64,
    digest: Option<String>,
) -> Option<Belief> {
    let last = start_line.checked_add(lines).filter(|_| start_line > 0 && lines > 0)? - 1;
    let range = Some(LineRange { start_line, lines });
    let id = format!("{}:{start_line}-{last}", path.to_string_lossy());
    Some(Belief { digest, ..belief(id, Source { range, ..source(path, "file") }) })
}

fn told(entry: &Entry, critical: bool, belief: Belief) -> Belief {
    Belief {
        tool: Some(entry.tool.clone()),
        critical: Some(critical),
        captured_at: moment(entry.captured_at.as_ref()),
        ..belief
    }
}

/// A moment that the daemon will take.
pub(super) fn moment(told: Option<&String>) -> Option<String> {
    told.filter(|moment| time::from_text(moment).is_ok()).cloned()
}

/// The id of a file's own result.
pub(super) fn whole(path: &Path) -> String {
    PathBuf::from(path).to_string_lossy().into_owned()
}

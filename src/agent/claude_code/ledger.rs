//! What the session believes of each path, event by event, in file order.
//!
//! The latest whole content wins; a partial look leaves it standing unless it contradicts it; the agent's own edits
//! renew it. Where the content after an event cannot be told, the belief becomes unknown: never an older content that
//! may no longer be what the agent has in mind.

use super::compaction::Boundary;
use super::shown::{Edit, Shown, snippet_agrees};
use crate::agent::transcript::{Content, Entry, Knowledge, Range};
use crate::world::digest::blake3;
use std::collections::HashMap;
use std::mem;

/// Where in the transcript an event stands.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) line: u64,
    pub(super) timestamp: Option<&'a str>,
    pub(super) uuid: Option<&'a str>,
    /// The call that it answers.
    pub(super) call: Option<&'a str>,
    pub(super) sidechain: bool,
    pub(super) tool: &'a str,
}

enum Belief {
    Whole(String),
    Parts,
    Absent,
    Unknown,
}

struct Page {
    entry: Entry,
    belief: Belief,
    uuid: Option<String>,
    call: Option<String>,
}

/// The beliefs by path, in the order of first appearance.
#[derive(Default)]
pub(super) struct Ledger {
    pages: Vec<Page>,
    places: HashMap<String, usize>,
}

impl Ledger {
    /// A read, or an attachment like one.
    pub(super) fn show(&mut self, moment: Moment<'_>, shown: &Shown<'_>) {
        if shown.is_whole() {
            return self.show_whole(moment, shown.path, shown.content);
        }
        let page = self.page(moment, shown.path);
        // What lies outside the part is in the agent's mind as it was: the whole stays what it believes, and out of date.
        page.entry.contradicted |= matches!(&page.belief, Belief::Whole(whole) if !shown.agrees_with(whole));
        if shown.lines > 0 {
            page.add(shown);
        }
    }

    /// The whole content was shown.
    pub(super) fn show_whole(&mut self, moment: Moment<'_>, path: &str, content: &str) {
        let page = self.page(moment, path);
        page.entry.read_whole = true;
        page.renew(content.into());
    }

    /// The agent wrote the whole content.
    pub(super) fn write(&mut self, moment: Moment<'_>, path: &str, content: &str) {
        let page = self.page(moment, path);
        page.entry.edited = true;
        page.renew(content.into());
    }

    /// The agent edited the file; `original` is its content before, where the result tells. Returns whether the
    /// content after is known.
    pub(super) fn edit(
        &mut self,
        moment: Moment<'_>,
        path: &str,
        edits: &[Edit<'_>],
        original: Option<&str>,
    ) -> bool {
        let page = self.page(moment, path);
        page.entry.edited = true;
        let overtaken = page.entry.contradicted;
        let known = match (original, mem::replace(&mut page.belief, Belief::Unknown)) {
            (Some(original), _) => Some(original.to_owned()),
            (None, Belief::Whole(whole)) => Some(whole),
            (None, _) => edits.first().is_some_and(Edit::creates).then(String::new),
        };
        let after = known.and_then(|base| edits.iter().try_fold(base, |text, edit| edit.apply(&text)));
        page.entry.ranges.clear();
        let told = after.is_some();
        if let Some(text) = after {
            page.renew(text);
            page.entry.contradicted = overtaken && original.is_none();
        }
        told
    }

    /// There is no such file.
    pub(super) fn miss(&mut self, moment: Moment<'_>, path: &str) {
        self.page(moment, path).forget(Belief::Absent);
    }

    /// Something is there, with bytes that we cannot tell.
    pub(super) fn doubt(&mut self, moment: Moment<'_>, path: &str) -> &mut Entry {
        let page = self.page(moment, path);
        page.forget(Belief::Unknown);
        &mut page.entry
    }

    /// What was known before was found unchanged.
    pub(super) fn touch(&mut self, moment: Moment<'_>, path: &str) -> &mut Entry {
        &mut self.page(moment, path).entry
    }

    /// Somebody else changed the file, and the agent was shown where.
    pub(super) fn change(&mut self, moment: Moment<'_>, path: &str, snippet: &str) {
        let page = self.page(moment, path);
        let whole = match &page.belief {
            Belief::Whole(whole) => Some(whole),
            _ => None,
        };
        // The harness also reports what the agent itself did by command; then we may know the new content already.
        if whole.is_some_and(|whole| snippet_agrees(snippet, whole)) {
            return;
        }
        page.entry.contradicted = whole.is_some();
        page.forget(Belief::Unknown);
    }

    /// The content has left the context; what was believed of it has not.
    pub(super) fn fade(&mut self, path: &str) {
        if let Some(&place) = self.places.get(path) {
            self.pages[place].entry.via_summary = true;
        }
    }

    /// A compaction: what it does not keep is known through its summary only.
    pub(super) fn compact(&mut self, boundary: &Boundary, lines: &HashMap<String, u64>) {
        for page in &mut self.pages {
            let kept = boundary.keeps(page.entry.line, page.uuid.as_deref(), page.call.as_deref(), lines);
            page.entry.via_summary |= !kept;
        }
    }

    /// The entries.
    pub(super) fn finish(self) -> Vec<Entry> {
        self.pages.into_iter().map(Page::finish).collect()
    }

    fn page(&mut self, moment: Moment<'_>, path: &str) -> &mut Page {
        let place = self.places.get(path).copied().unwrap_or_else(|| {
            self.places.insert(path.into(), self.pages.len());
            self.pages.push(Page::new(path));
            self.pages.len() - 1
        });
        let page = &mut self.pages[place];
        page.stamp(moment);
        page
    }
}

impl Page {
    fn new(path: &str) -> Self {
        let entry = Entry {
            path: path.into(),
            tool: String::new(),
            captured_at: None,
            line: 0,
            knowledge: Knowledge::Unknown,
            edited: false,
            read_whole: false,
            plan: is_plan(path),
            ranges: Vec::new(),
            via_summary: false,
            via_sidechain: true,
            contradicted: false,
        };
        Self { entry, belief: Belief::Unknown, uuid: None, call: None }
    }

    fn stamp(&mut self, moment: Moment<'_>) {
        let entry = &mut self.entry;
        entry.tool = moment.tool.into();
        entry.captured_at = moment.timestamp.map(str::to_owned);
        entry.line = moment.line;
        entry.via_summary = false;
        entry.via_sidechain &= moment.sidechain;
        self.uuid = moment.uuid.map(str::to_owned);
        self.call = moment.call.map(str::to_owned);
    }

    fn renew(&mut self, content: String) {
        self.forget(Belief::Whole(content));
        self.entry.contradicted = false;
    }

    fn forget(&mut self, belief: Belief) {
        self.belief = belief;
        self.entry.ranges.clear();
    }

    fn add(&mut self, shown: &Shown<'_>) {
        let digest = blake3(shown.content.as_bytes());
        let content = Content(shown.content.into());
        let range =
            Range { start: shown.start.max(1), lines: shown.lines, digest, total: shown.total, content };
        // Lines seen again replace what was seen of them before, whether or not they are the same.
        self.entry.ranges.retain(|earlier| !range.covers(earlier));
        self.entry.ranges.push(range);
        if !matches!(self.belief, Belief::Whole(_)) {
            self.belief = Belief::Parts;
        }
    }

    fn finish(mut self) -> Entry {
        self.entry.knowledge = match self.belief {
            Belief::Whole(text) => {
                let content = text.into_bytes();
                Knowledge::Full { digest: blake3(&content), bytes: content.len() as u64, content }
            }
            Belief::Parts if self.entry.ranges.is_empty() => Knowledge::Unknown,
            Belief::Parts => Knowledge::Partial,
            Belief::Absent => Knowledge::Absent,
            Belief::Unknown => Knowledge::Unknown,
        };
        self.entry
    }
}

/// Whether plans are kept there.
fn is_plan(path: &str) -> bool {
    path.replace('\\', "/").contains("/.claude/plans/")
}

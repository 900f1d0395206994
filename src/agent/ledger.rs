//! What the session believes of each path, event by event, in file order.
//!
//! The latest whole content wins; a partial look leaves it standing unless it contradicts it; the agent's own edits
//! renew it. Where the content after an event cannot be told, the belief becomes unknown: never an older content that
//! may no longer be what the agent has in mind.

use super::diff::{self, Hunk};
use super::shown::{Shown, snippet_agrees};
use super::transcript::{Content, Entry, Knowledge, Range};
use crate::world::digest::blake3;
use std::collections::{HashMap, HashSet};
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

#[derive(Clone)]
enum Belief {
    Whole(String),
    Parts,
    Absent,
    Unknown,
}

#[derive(Clone)]
struct Page {
    entry: Entry,
    belief: Belief,
    uuid: Option<String>,
    call: Option<String>,
}

/// The beliefs by path, in the order of first appearance.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    pages: Vec<Page>,
    places: HashMap<String, usize>,
    turn: u64,
    /// Pages that changed in the turn, which are kept as they were before it.
    touched: HashSet<usize>,
    /// By turn: a page as it was before; `None` where there was none.
    before: Vec<(u64, usize, Option<Page>)>,
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

    /// The agent edited the file: `after` tells its content from the one before, where that is known. `met` where the
    /// answer told the text that the edit met. Returns whether the content after is known.
    pub(super) fn edit(
        &mut self,
        moment: Moment<'_>,
        path: &str,
        met: bool,
        after: impl FnOnce(Option<String>) -> Option<String>,
    ) -> bool {
        let page = self.page(moment, path);
        page.entry.edited = true;
        let overtaken = page.entry.contradicted;
        let known = match mem::replace(&mut page.belief, Belief::Unknown) {
            Belief::Whole(whole) => Some(whole),
            _ => None,
        };
        let after = after(known);
        page.entry.ranges.clear();
        let told = after.is_some();
        if let Some(text) = after {
            page.renew(text);
            page.entry.contradicted = overtaken && !met;
        }
        told
    }

    /// The agent changed these lines of the file. What is known of it in part only is known after, too, where the
    /// change leaves no doubt; and so are the lines that it made. Returns whether anything is known.
    pub(super) fn patch(&mut self, moment: Moment<'_>, path: &str, hunks: &[Hunk]) -> bool {
        let page = self.page(moment, path);
        page.entry.edited = true;
        match mem::replace(&mut page.belief, Belief::Unknown) {
            Belief::Whole(whole) => match diff::apply(hunks, &whole) {
                Some(after) => page.renew(after),
                None => page.patch_parts(hunks),
            },
            _ => page.patch_parts(hunks),
        }
        !matches!(page.belief, Belief::Unknown)
    }

    /// The agent moved the file, with what is known of it.
    pub(super) fn rename(&mut self, moment: Moment<'_>, from: &str, to: &str) {
        let left = self.page(moment, from);
        left.entry.edited = true;
        let belief = mem::replace(&mut left.belief, Belief::Absent);
        let ranges = mem::take(&mut left.entry.ranges);
        let page = self.page(moment, to);
        page.renew_as(belief, ranges);
        page.entry.edited = true;
    }

    /// The agent took the file away.
    pub(super) fn delete(&mut self, moment: Moment<'_>, path: &str) {
        let page = self.page(moment, path);
        page.entry.edited = true;
        page.forget(Belief::Absent);
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

    /// A compaction: what it does not keep, by line, uuid and call, is known through its summary only.
    pub(super) fn compact(&mut self, keeps: impl Fn(u64, Option<&str>, Option<&str>) -> bool) {
        for page in &mut self.pages {
            let kept = keeps(page.entry.line, page.uuid.as_deref(), page.call.as_deref());
            page.entry.via_summary |= !kept;
        }
    }

    /// A turn begins, back to whose start the session may be taken.
    pub(super) fn begin(&mut self, turn: u64) {
        self.turn = turn;
        self.touched.clear();
    }

    /// Everything since that turn began was taken back: the session does not remember it.
    pub(super) fn take_back(&mut self, turn: u64) {
        while let Some((_, place, before)) = self.before.pop_if(|(of, ..)| *of >= turn) {
            match before {
                Some(page) => {
                    let via_summary = page.entry.via_summary || self.pages[place].entry.via_summary;
                    self.pages[place] = page;
                    self.pages[place].entry.via_summary = via_summary;
                }
                // It was the last to come, for what came later has gone already.
                None => self.remove_last(),
            }
        }
        self.touched.clear();
    }

    fn remove_last(&mut self) {
        self.pages.pop();
        self.places.retain(|_, place| *place < self.pages.len());
    }

    /// The entries.
    pub(super) fn finish(self) -> Vec<Entry> {
        self.pages.into_iter().map(Page::finish).collect()
    }

    fn page(&mut self, moment: Moment<'_>, path: &str) -> &mut Page {
        let known = self.places.get(path).copied();
        let place = known.unwrap_or(self.pages.len());
        if self.turn > 0 && self.touched.insert(place) {
            self.before.push((self.turn, place, known.map(|place| self.pages[place].clone())));
        }
        if known.is_none() {
            self.places.insert(path.into(), place);
            self.pages.push(Page::new(path));
        }
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
        self.renew_as(belief, Vec::new());
    }

    fn renew_as(&mut self, belief: Belief, ranges: Vec<Range>) {
        self.belief = belief;
        self.entry.ranges = ranges;
    }

    fn add(&mut self, shown: &Shown<'_>) {
        let digest = blake3(shown.content.as_bytes());
        let content = Content(shown.content.into());
        let start = shown.start.max(1);
        let total = shown.total.unwrap_or(start.saturating_add(shown.lines) - 1);
        let range = Range { start, lines: shown.lines, digest, total, content };
        // Lines seen again replace what was seen of them before, whether or not they are the same.
        self.entry.ranges.retain(|earlier| !range.covers(earlier));
        self.entry.ranges.push(range);
        if !matches!(self.belief, Belief::Whole(_)) {
            self.belief = Belief::Parts;
        }
    }

    /// What the parts are after a change; each that the change goes across without being in it is known no more.
    fn patch_parts(&mut self, hunks: &[Hunk]) {
        let parts = mem::take(&mut self.entry.ranges);
        self.belief = Belief::Parts;
        let moved = |part: &Range| diff::moved(hunks, part.start, std::str::from_utf8(&part.content.0).ok()?);
        let moved: Vec<(u64, String)> = parts.iter().filter_map(moved).collect();
        for (start, content) in moved.iter().cloned().chain(hunks.iter().filter_map(Hunk::made)) {
            let lines = content.split('\n').count() as u64;
            let shown = Shown { path: "", content: &content, start, lines, total: None };
            if !self.entry.ranges.iter().any(|known| known.holds(start, lines)) {
                self.add(&shown);
            }
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

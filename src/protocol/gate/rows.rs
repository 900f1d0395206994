//! The rows of a report, and what its counts, its lists of labels and its reason say about them.
//!
//! A row with a fault is still read as far as it goes, so that one broken field costs one fault and does not hide
//! what the row says otherwise.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::contract::{EVIDENCE_TAGS, SIGNAL_TYPES, STATUSES, transition};
use super::fault::{Faults, shown};
use super::place::Label;

/// One row, as far as it could be read.
pub(super) struct Row<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) source: Option<Label>,
    pub(super) signal: Signal,
    pub(super) critical: bool,
    pub(super) stale: bool,
}

/// What a row's freshness was read from. Rows of different kinds may name one path and be different sources:
/// a tree `.` and the HEAD of the repository in `.`, a database and its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// The file or folder itself (mtime, hash, path).
    Content,
    /// The commit that HEAD resolves to.
    Head,
    /// The schema of a database.
    Schema,
}

/// All rows of a report.
pub(super) struct Rows<'a> {
    listed: Vec<Row<'a>>,
    by_id: HashMap<&'a str, usize>,
    /// Whether every row could be read. Names and numbers are not held against rows that could not.
    sound: bool,
    /// Whether no row was left out: there are no counts, or they count as many rows as there are.
    pub(super) complete: bool,
    /// Stale and unknown results by the counts; more than the stale rows when rows were left out.
    counted_stale: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn read(report: &'a Map<String, Value>, faults: &mut Faults) -> Self {
        let mut read = Self {
            listed: Vec::new(),
            by_id: HashMap::new(),
            sound: false,
            complete: true,
            counted_stale: 0,
        };
        let Some(rows) = report.get("staleness_results") else { return read };
        let Some(rows) = rows.as_array().filter(|rows| !rows.is_empty()) else {
            faults.add("$.staleness_results", "`staleness_results` must be an array with at least one row.");
            return read;
        };
        for (index, row) in rows.iter().enumerate() {
            read.read_row(row, &format!("$.staleness_results[{index}]"), faults);
        }
        read.sound = faults.is_empty();
        if let Some(counts) = report.get("counts") {
            read.read_counts(counts, rows.len() as u64, faults);
        }
        for name in ["drop", "stale"] {
            read.check_names(report, name, faults);
        }
        read
    }

    fn read_row(&mut self, row: &'a Value, at: &str, faults: &mut Faults) {
        let Some(row) = faults.object(row, at) else { return };
        let id = faults.text(row, at, "result_id");
        if let Some(id) = id
            && self.by_id.insert(id, self.listed.len()).is_some()
        {
            faults.add(format!("{at}.result_id"), format!("Two rows have the id `{id}`."));
        }
        let source =
            faults.field(row, at, "source").and_then(|source| faults.label(source, format!("{at}.source")));
        let signal = match faults.word(row, at, "signal_type", &SIGNAL_TYPES) {
            Some("head") => Signal::Head,
            Some("schema") => Signal::Schema,
            _ => Signal::Content,
        };
        let critical = faults.flag(row, at, "critical") == Some(true);
        let stale = faults.word(row, at, "status", &STATUSES) == Some("stale");
        faults.word(row, at, "evidence_tag", &EVIDENCE_TAGS);
        self.listed.push(Row { id, source, signal, critical, stale });
    }

    /// Counts speak of all rows, listed or left out, so the listed ones can never be more.
    fn read_counts(&mut self, counts: &Value, listed: u64, faults: &mut Faults) {
        let at = "$.counts";
        let Some(counts) = faults.object(counts, at) else { return };
        let numbers = ["results", "fresh", "stale", "unknown"].map(|name| count(counts, at, name, faults));
        let [Some(results), Some(fresh), Some(stale), Some(unknown)] = numbers else { return };
        let listed_stale = self.stale().count() as u64;
        self.complete = results == listed;
        self.counted_stale = stale.saturating_add(unknown);
        if !self.sound {
            return;
        }
        if fresh.checked_add(self.counted_stale) != Some(results) {
            faults.add(
                at,
                format!("{fresh} fresh, {stale} stale and {unknown} unknown are not {results} results."),
            );
        } else if results < listed {
            faults
                .add("$.counts.results", format!("{results} results are counted but {listed} rows listed."));
        } else if self.counted_stale < listed_stale
            || fresh < listed - listed_stale
            || (self.complete && self.counted_stale != listed_stale)
        {
            let message = format!(
                "{fresh} fresh and {} stale or unknown are counted, but {} fresh and {listed_stale} stale rows listed.",
                self.counted_stale,
                listed - listed_stale,
            );
            faults.add(at, message);
        }
    }

    /// Lists beside the rows may name rows only, by id or by source.
    fn check_names(&self, report: &Map<String, Value>, name: &str, faults: &mut Faults) {
        let at = "$";
        if !report.contains_key(name) {
            return;
        }
        let places: HashSet<_> =
            self.listed.iter().filter_map(|row| Some(row.source.as_ref()?.place())).collect();
        for (index, named) in faults.list(report, at, name).unwrap_or_default().iter().enumerate() {
            let at = format!("$.{name}[{index}]");
            let Some(label) = faults.label(named, at.clone()) else { continue };
            if self.sound && self.by_name(&label).is_none() && !places.contains(&label.place()) {
                faults.add(at, format!("{label} is neither the id nor the source of a row."));
            }
        }
    }

    /// Rule 2, and what follows from it: the reason rests on rows that exist, and a critical stale row is a world
    /// that changed.
    pub(super) fn check_transition(&self, report: &Map<String, Value>, faults: &mut Faults) {
        if let Some(evidence) = report.get("reason").and_then(|reason| reason.get("evidence")) {
            self.check_evidence(evidence, faults);
        }
        let Some(transition) = transition(report).filter(|transition| *transition != "fresh") else { return };
        if let Some(row) = self.listed.iter().find(|row| row.critical && row.stale) {
            let row = row.id.unwrap_or("without an id");
            let message =
                format!("The critical row `{row}` is stale, so this must be fresh, not {transition}.");
            faults.add("$.transition", message);
        }
    }

    fn check_evidence(&self, evidence: &Value, faults: &mut Faults) {
        let Some(evidence) = evidence.as_array() else {
            return faults.add("$.reason.evidence", "`evidence` must be an array of result ids.");
        };
        for (index, named) in evidence.iter().enumerate() {
            if self.sound && named.as_str().is_none_or(|id| !self.by_id.contains_key(id)) {
                let message = format!("{} is not the id of any row.", shown(named));
                faults.add(format!("$.reason.evidence[{index}]"), message);
            }
        }
    }

    pub(super) fn stale(&self) -> impl Iterator<Item = &Row<'a>> {
        self.listed.iter().filter(|row| row.stale)
    }

    /// How many results are stale or unknown, listed or left out.
    pub(super) fn stale_len(&self) -> u64 {
        self.counted_stale.max(self.stale().count() as u64)
    }

    /// The row whose id this label spells, byte by byte.
    pub(super) fn by_name(&self, label: &Label) -> Option<&Row<'a>> {
        let id = std::str::from_utf8(label.bytes()).ok()?;
        self.listed.get(*self.by_id.get(id)?)
    }
}

fn count(counts: &Map<String, Value>, at: &str, name: &str, faults: &mut Faults) -> Option<u64> {
    let number = faults.field(counts, at, name)?.as_u64();
    if number.is_none() {
        faults.add(format!("{at}.{name}"), format!("`{name}` must be a whole number, 0 or more."));
    }
    number
}

//! Rules 3 and 5: what a fresh start may carry over.
//!
//! A fresh report has a typed summary and never a transcript; the summary says what it dropped, and no verified
//! fact rests on anything that was dropped. Where two readings of a name differ, the fact falls: the price of a
//! wrong fact is higher than that of a lost one.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::contract::transition;
use super::fault::{Faults, is_blank};
use super::place::{Label, Place};
use super::rows::{Row, Rows, Signal};

const AT: &str = "$.typed_summary";

pub(super) fn check(report: &Map<String, Value>, rows: &Rows<'_>, faults: &mut Faults) {
    let (Some(transition), Some(summary)) = (transition(report), report.get("typed_summary")) else { return };
    match (transition, summary) {
        ("fresh", Value::Object(summary)) => check_summary(summary, rows, faults),
        ("fresh", _) => faults.add(AT, "A fresh start needs a typed summary, which is an object."),
        (_, Value::Null) => {}
        (other, _) => {
            faults.add(AT, format!("`typed_summary` must be null when the transition is {other}."));
        }
    }
}

fn check_summary(summary: &Map<String, Value>, rows: &Rows<'_>, faults: &mut Faults) {
    faults.text(summary, AT, "goal");
    for name in ["decisions", "open_questions"] {
        check_texts(summary, name, faults);
    }
    faults.exactly(summary, AT, "raw_transcript_allowed", false);
    let dropped = read_dropped(summary, rows, faults);
    let gone = Gone::new(rows, dropped);
    let facts = faults.list(summary, AT, "verified_facts").unwrap_or_default();
    for (index, fact) in facts.iter().enumerate() {
        check_fact(fact, &format!("{AT}.verified_facts[{index}]"), &gone, faults);
    }
}

fn check_texts(summary: &Map<String, Value>, name: &str, faults: &mut Faults) {
    for (index, text) in faults.list(summary, AT, name).unwrap_or_default().iter().enumerate() {
        if text.as_str().is_none_or(is_blank) {
            faults.add(format!("{AT}.{name}[{index}]"), "This must be text that is not blank.");
        }
    }
}

fn read_dropped(summary: &Map<String, Value>, rows: &Rows<'_>, faults: &mut Faults) -> Vec<Label> {
    let at = format!("{AT}.stale_dropped");
    let Some(listed) = faults.list(summary, AT, "stale_dropped") else { return Vec::new() };
    if listed.is_empty() && rows.stale_len() > 0 {
        faults.add(at, format!("Nothing is dropped although {} results are stale.", rows.stale_len()));
        return Vec::new();
    }
    let read = |(index, label)| faults.label(label, format!("{at}[{index}]"));
    let dropped: Vec<Label> = listed.iter().enumerate().filter_map(read).collect();
    if rows.complete && dropped.len() == listed.len() {
        check_coverage(&dropped, rows, &at, faults);
    }
    dropped
}

/// Every stale row is dropped, by its source or (as invariants are) by its name.
fn check_coverage(dropped: &[Label], rows: &Rows<'_>, at: &str, faults: &mut Faults) {
    let names: HashSet<&[u8]> = dropped.iter().map(Label::bytes).collect();
    let places: HashSet<Place> = dropped.iter().map(Label::place).collect();
    for row in rows.stale() {
        let Some(source) = &row.source else { continue };
        let by_name = row.id.is_some_and(|id| names.contains(id.as_bytes()));
        if !by_name && !places.contains(&source.place()) {
            faults.add(at, format!("The stale source {source} is not dropped."));
        }
    }
}

fn check_fact(fact: &Value, at: &str, gone: &Gone<'_>, faults: &mut Faults) {
    let Some(fact) = faults.object(fact, at) else { return };
    faults.text(fact, at, "statement");
    let mut grounds = Vec::new();
    for name in ["sources", "evidence"] {
        match fact.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let places =
                    items.iter().enumerate().map(|(index, item)| (format!("{at}.{name}[{index}]"), item));
                grounds.extend(places);
            }
            Some(one) => grounds.push((format!("{at}.{name}"), one)),
        }
    }
    if grounds.is_empty() {
        faults.add(at, "A verified fact must name at least one source or its evidence.");
    }
    for (at, ground) in grounds {
        let Some(label) = faults.label(ground, at.clone()) else { continue };
        if gone.has(&label) {
            faults.add(at, format!("The fact rests on {label}, which is stale."));
        }
    }
}

/// What no fact may rest on: everything dropped and everything stale.
struct Gone<'a> {
    rows: &'a Rows<'a>,
    names: HashSet<Vec<u8>>,
    /// With each place, what the stale rows there were read from; nothing when only the dropped list knows it.
    places: HashMap<Place, Vec<Signal>>,
}

impl<'a> Gone<'a> {
    fn new(rows: &'a Rows<'a>, dropped: Vec<Label>) -> Self {
        let mut places: HashMap<Place, Vec<Signal>> = HashMap::new();
        for label in &dropped {
            places.entry(label.place()).or_default();
        }
        for row in rows.stale() {
            if let Some(source) = &row.source {
                places.entry(source.place()).or_default().push(row.signal);
            }
        }
        let names = dropped.into_iter().map(|label| label.bytes().to_vec()).collect();
        Self { rows, names, places }
    }

    /// `a.rs:41` is judged both as the file of that name and as a line of `a.rs`.
    fn has(&self, label: &Label) -> bool {
        [label, &label.without_lines()].into_iter().any(|label| self.has_exactly(label))
    }

    fn has_exactly(&self, label: &Label) -> bool {
        self.names.contains(label.bytes())
            || self.places.contains_key(&label.place())
            || self.rows.by_name(label).is_some_and(|row| row.stale || self.has_source_of(row))
    }

    /// A fresh row falls with its path, unless all that is stale at that path is another kind of source: a moved
    /// HEAD of `.` says nothing about the names in the tree `.`.
    fn has_source_of(&self, row: &Row<'_>) -> bool {
        let Some(stale) = row.source.as_ref().and_then(|source| self.places.get(&source.place())) else {
            return false;
        };
        stale.is_empty() || stale.contains(&row.signal)
    }
}

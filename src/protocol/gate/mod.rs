//! The report gate: whether a report may be believed, judged from its own text alone.
//!
//! It asks no daemon, no disk and no clock, so the same report always gets the same faults in the same order.
//! It cannot know that a row told the truth about the world; it knows whether the conclusion follows from the
//! rows. A fault names one place and one reason, and what depends on a broken place is left unjudged.

mod contract;
mod fault;
mod forks;
mod place;
mod rows;
mod rubric;
mod strict;
mod summary;
mod text;

use serde_json::{Map, Value};

pub use contract::{
    EVIDENCE_TAGS, REQUIRED_CHECKS, REQUIRED_FIELDS, SCHEMA, SIGNAL_TYPES, SKILL, STATUSES, TRANSITIONS,
};
pub use fault::{Fault, is_blank};
pub use rubric::{BadRubric, Criterion, Mark, Rubric, Score, score};
pub use text::{Unusable, check_report, check_text};

use fault::{Faults, shown};
use rows::Rows;

/// Every reason why this report is not admitted; empty when it is.
///
/// A non-activation (`activated: false`, an `error`, the code `no_session_context`) is admitted when it carries
/// no transition; nothing else is asked of it.
#[must_use]
pub fn check(report: &Value) -> Vec<Fault> {
    let Some(report) = report.as_object() else {
        return vec![Fault::new("$", "The report is not a JSON object.")];
    };
    let found = Findings::of(report);
    [found.activation, found.contract, found.rows, found.transition, found.summary, found.forks].concat()
}

/// The faults of one report by the rule that found them, which is also what the rubric marks.
struct Findings {
    activation: Vec<Fault>,
    contract: Vec<Fault>,
    rows: Vec<Fault>,
    transition: Vec<Fault>,
    summary: Vec<Fault>,
    forks: Vec<Fault>,
}

impl Findings {
    fn of(report: &Map<String, Value>) -> Self {
        let activation = Faults::gather(|faults| check_activation(report, faults));
        if declined(report) {
            return Self { activation, ..Self::none() };
        }
        let mut row_faults = Faults::default();
        let rows = Rows::read(report, &mut row_faults);
        Self {
            activation,
            contract: Faults::gather(|faults| contract::check(report, faults)),
            rows: row_faults.into_vec(),
            transition: Faults::gather(|faults| rows.check_transition(report, faults)),
            summary: Faults::gather(|faults| summary::check(report, &rows, faults)),
            forks: Faults::gather(|faults| forks::check(report, faults)),
        }
    }

    fn none() -> Self {
        Self {
            activation: Vec::new(),
            contract: Vec::new(),
            rows: Vec::new(),
            transition: Vec::new(),
            summary: Vec::new(),
            forks: Vec::new(),
        }
    }
}

/// The code of an answer that knows no session.
const NO_CONTEXT: &str = "no_session_context";

/// Whether this object says that no decision was made.
///
/// The code counts inside `reason` too: that is where a report would carry it.
fn declined(report: &Map<String, Value>) -> bool {
    let code = |value: Option<&Value>| value.and_then(Value::as_str) == Some(NO_CONTEXT);
    report.get("activated") == Some(&Value::Bool(false))
        || report.get("error").is_some_and(|error| !error.is_null())
        || code(report.get("code"))
        || code(report.get("reason").and_then(|reason| reason.get("code")))
}

/// Rule 6: where nothing was activated, nothing was decided. A client that reads only the transition would act on
/// it, whatever the rest of the answer says.
fn check_activation(report: &Map<String, Value>, faults: &mut Faults) {
    if report.get("activated").is_some_and(|activated| !activated.is_boolean()) {
        faults.add("$.activated", "`activated` must be true or false.");
    }
    if let Some(transition) = report.get("transition").filter(|_| declined(report)) {
        let message = format!("A non-activation carries no transition, this one says {}.", shown(transition));
        faults.add("$.transition", message);
    }
}

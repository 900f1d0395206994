//! The public contract of a report: its names, its closed sets of words, and the shape of everything that is not
//! a row, a summary or a fork.
//!
//! The lists are data, so that a test can hold them against the contract's own file.

use serde_json::{Map, Value};

use super::fault::{Faults, is_blank, shown};

/// The name and version of the contract.
pub const SCHEMA: &str = "jm-labs.session-lifecycle-management.report.v1";

/// The skill that the contract belongs to.
pub const SKILL: &str = "session-lifecycle-management";

/// Fields that every report carries.
pub const REQUIRED_FIELDS: [&str; 9] = [
    "schema",
    "skill",
    "transition",
    "reason",
    "context",
    "staleness_results",
    "typed_summary",
    "forks",
    "validation",
];

/// Checks that every report says it passed.
pub const REQUIRED_CHECKS: [&str; 8] = [
    "assets",
    "deterministic_scripts",
    "quality_criteria",
    "staleness_detected",
    "typed_summary",
    "transition_traced",
    "fork_isolation",
    "evidence_required",
];

/// What a report may decide.
pub const TRANSITIONS: [&str; 3] = ["resume", "fork", "fresh"];

/// How a row's staleness was detected.
pub const SIGNAL_TYPES: [&str; 5] = ["mtime", "hash", "head", "path", "schema"];

/// What a row may say; an unknown source is said to be stale here.
pub const STATUSES: [&str; 2] = ["fresh", "stale"];

/// What kind of evidence stands behind a claim.
pub const EVIDENCE_TAGS: [&str; 6] =
    ["[CÓDIGO]", "[CONFIG]", "[DOC]", "[MÉTRICA]", "[ENTREVISTA]", "[INFERENCIA]"];

/// The transition, when it is one of the three.
pub(super) fn transition(report: &Map<String, Value>) -> Option<&str> {
    report.get("transition")?.as_str().filter(|word| TRANSITIONS.contains(word))
}

pub(super) fn check(report: &Map<String, Value>, faults: &mut Faults) {
    for name in REQUIRED_FIELDS {
        faults.field(report, "$", name);
    }
    check_name(report, "schema", SCHEMA, faults);
    check_name(report, "skill", SKILL, faults);
    if report.contains_key("transition") {
        faults.word(report, "$", "transition", &TRANSITIONS);
    }
    if report.get("reason").is_some_and(says_nothing) {
        faults.add("$.reason", "The reason is empty; it must say why in a sentence or an object.");
    }
    if let Some(context) = report.get("context") {
        check_context(context, transition(report), faults);
    }
    if let Some(validation) = report.get("validation") {
        check_validation(validation, faults);
    }
}

fn check_name(report: &Map<String, Value>, name: &str, wanted: &str, faults: &mut Faults) {
    if let Some(value) = report.get(name).filter(|value| value.as_str() != Some(wanted)) {
        faults.add(format!("$.{name}"), format!("`{name}` is {}; it must be {wanted:?}.", shown(value)));
    }
}

/// A number or a boolean is no reason, and neither is an object whose every field says nothing.
fn says_nothing(reason: &Value) -> bool {
    match reason {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => is_blank(text),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

fn check_context(context: &Value, transition: Option<&str>, faults: &mut Faults) {
    let at = "$.context";
    let Some(context) = faults.object(context, at) else { return };
    faults.text(context, at, "goal");
    let branchable = faults.flag(context, at, "goal_branchable");
    let shares = faults.flag(context, at, "shares_mutable_state");
    faults.word(context, at, "evidence_tag", &EVIDENCE_TAGS);
    if transition != Some("fork") {
        return;
    }
    if branchable == Some(false) {
        faults.add("$.context.goal_branchable", "A fork needs a goal that is branchable.");
    }
    if shares == Some(true) {
        faults.add("$.context.shares_mutable_state", "A fork must not share mutable state.");
    }
}

fn check_validation(validation: &Value, faults: &mut Faults) {
    let at = "$.validation";
    let Some(validation) = faults.object(validation, at) else { return };
    faults.word(validation, at, "status", &["pass"]);
    let Some(checks) = faults.list(validation, at, "checks") else { return };
    for name in REQUIRED_CHECKS {
        if !checks.iter().any(|check| check == name) {
            faults.add("$.validation.checks", format!("The required check `{name}` is missing."));
        }
    }
    for (index, check) in checks.iter().enumerate() {
        let at = format!("$.validation.checks[{index}]");
        if checks[..index].contains(check) {
            faults.add(at, format!("The check {} is listed twice.", shown(check)));
        } else if !REQUIRED_CHECKS.iter().any(|name| check == name) {
            faults.add(at, format!("{} is no check of this contract.", shown(check)));
        }
    }
}

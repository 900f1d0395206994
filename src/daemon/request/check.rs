//! `check`: the gate, for somebody else's report.

use super::Answer;
use crate::protocol::answer::{Checked, Fault, to_json};
use crate::protocol::gate;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::Check;

pub(super) fn check(ask: &Check) -> Answer {
    let faults = gate::check_report(ask.report.get()).map_err(Refusal::invalid_params)?;
    let status = if faults.is_empty() { "pass" } else { "fail" };
    let errors = faults.into_iter().map(|fault| Fault { path: fault.path, message: fault.message });
    Ok(to_json(&Checked { status, errors: errors.collect() }))
}

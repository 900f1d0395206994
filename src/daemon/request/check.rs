//! `check`: the gate, for somebody else's report.

use crate::protocol::answer::{Checked, Fault, to_json};
use crate::protocol::gate;
use crate::protocol::request::Check;

pub(super) fn check(ask: &Check) -> String {
    let faults = gate::check(&ask.report);
    let status = if faults.is_empty() { "pass" } else { "fail" };
    let errors = faults.into_iter().map(|fault| Fault { path: fault.path, message: fault.message });
    to_json(&Checked { status, errors: errors.collect() })
}

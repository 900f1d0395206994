//! Rule 4: branches of a fork cannot meet.
//!
//! Every branch has a name, a workspace and, where the report tells it, a scratchpad of its own; no two of these
//! paths are the same place and none lies inside another, a branch's own pair included. The public contract
//! carries no scratchpad paths, so their absence alone is no fault.

use serde_json::{Map, Value};

use super::contract::{EVIDENCE_TAGS, transition};
use super::fault::Faults;
use super::place::{Label, Place};

pub(super) fn check(report: &Map<String, Value>, faults: &mut Faults) {
    let Some(forks) = report.get("forks") else { return };
    let Some(forks) = forks.as_array() else {
        return faults.add("$.forks", "`forks` must be an array.");
    };
    match transition(report) {
        Some("fork") => check_branches(forks, faults),
        Some(other) if !forks.is_empty() => {
            faults.add("$.forks", format!("`forks` must be empty when the transition is {other}."));
        }
        _ => {}
    }
}

fn check_branches(forks: &[Value], faults: &mut Faults) {
    if forks.len() < 2 {
        faults.add("$.forks", format!("A fork needs at least two branches, this one has {}.", forks.len()));
    }
    let (mut names, mut grounds) = (Vec::new(), Vec::new());
    for (index, fork) in forks.iter().enumerate() {
        let at = format!("$.forks[{index}]");
        let Some(fork) = faults.object(fork, &at) else { continue };
        if let Some(name) = faults.text(fork, &at, "branch") {
            if names.contains(&name) {
                faults.add(format!("{at}.branch"), format!("Two branches are named `{name}`."));
            }
            names.push(name);
        }
        if let Some(workspace) = faults.field(fork, &at, "workspace") {
            claim(workspace, format!("{at}.workspace"), &mut grounds, faults);
        }
        if let Some(scratchpad) = fork.get("scratchpad") {
            claim(scratchpad, format!("{at}.scratchpad"), &mut grounds, faults);
        }
        faults.exactly(fork, &at, "isolated_scratchpad", true);
        faults.exactly(fork, &at, "isolated_workspace", true);
        faults.word(fork, &at, "evidence_tag", &EVIDENCE_TAGS);
    }
}

/// A path that a branch claims for itself.
struct Ground {
    at: String,
    label: Label,
    place: Place,
}

/// Takes the path for this branch, or says whose ground it treads on (the first one is enough to act on).
fn claim(value: &Value, at: String, grounds: &mut Vec<Ground>, faults: &mut Faults) {
    let Some(label) = faults.label(value, at.clone()) else { return };
    let place = label.path();
    let taken = grounds.iter().find(|held| place.is_within(&held.place) || held.place.is_within(&place));
    if let Some(held) = taken {
        let how = match (place.is_within(&held.place), held.place.is_within(&place)) {
            (true, true) => "is the same path as",
            (true, false) => "lies inside",
            _ => "contains",
        };
        faults.add(at.clone(), format!("{label} {how} {} of {}.", held.label, held.at));
    }
    grounds.push(Ground { at, label, place });
}

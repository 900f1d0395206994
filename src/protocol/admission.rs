//! The daemon's own gate: what [`gate`](super::gate) asks of anybody's report, asked of ours before it leaves.
//!
//! The types already say most of the contract (which fields there are, which words a status may be). What they do not
//! say is checked here, in a pass that costs microseconds; the tests put every report through both gates.

use super::report::Report;
use crate::session::source::normal;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A report that must not leave, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

impl Report<'_> {
    /// Checks the acceptance rules.
    pub fn admit(&self) -> Result<(), Refused> {
        self.names_its_evidence()?;
        self.starts_over_when_it_must()?;
        self.carries_what_its_transition_needs()?;
        self.drops_what_is_stale()?;
        self.carries_no_stale_fact()?;
        self.keeps_branches_apart()
    }

    fn names_its_evidence(&self) -> Result<(), Refused> {
        let ids: HashSet<&str> = self.rows().iter().map(super::report::Row::id).collect();
        let known = ids.len() == self.rows().len();
        let named = self.evidence().iter().all(|id| ids.contains(id.as_str()));
        ensure(!self.reason_text().trim().is_empty(), "the reason is empty")?;
        ensure(!ids.is_empty() && known, "rows are missing, or two have one id")?;
        ensure(named, "the evidence names a row that does not exist")
    }

    fn starts_over_when_it_must(&self) -> Result<(), Refused> {
        let critical = self.rows().iter().any(|row| row.is_stale() && row.is_critical());
        ensure(
            !critical || self.transition() == "fresh",
            "something critical is stale, and it does not start over",
        )
    }

    fn carries_what_its_transition_needs(&self) -> Result<(), Refused> {
        let (fresh, fork) = (self.transition() == "fresh", self.transition() == "fork");
        ensure(fresh == self.stale_dropped().is_some(), "a summary goes with fresh, and with nothing else")?;
        ensure(fork != self.fork_paths().is_empty(), "branches go with fork, and with nothing else")
    }

    fn drops_what_is_stale(&self) -> Result<(), Refused> {
        let Some(dropped) = self.stale_dropped() else { return Ok(()) };
        let dropped: HashSet<&Path> = dropped.iter().map(|label| label.0.as_path()).collect();
        let all = self.rows().iter().filter(|row| row.is_stale()).all(|row| dropped.contains(row.label()));
        ensure(all, "a stale source is not in stale_dropped")
    }

    fn carries_no_stale_fact(&self) -> Result<(), Refused> {
        let Some(dropped) = self.stale_dropped() else { return Ok(()) };
        let mut stale: HashSet<PathBuf> = dropped.iter().map(|label| normal(&label.0)).collect();
        stale.extend(self.rows().iter().filter(|row| row.is_stale()).map(|row| PathBuf::from(row.id())));
        let sound = self.fact_sources().all(|source| !stale.contains(&normal(source)));
        ensure(sound, "a verified fact rests on a stale source")
    }

    fn keeps_branches_apart(&self) -> Result<(), Refused> {
        let mut paths = self.fork_paths();
        // Sorted by their parts, whatever lies inside a path follows it at once: neighbours say it all, where comparing
        // each with each would take seconds for a thousand hypotheses.
        paths.sort_unstable();
        let apart = paths.windows(2).all(|pair| !pair[1].starts_with(pair[0]));
        ensure(apart, "two branches share a path")
    }
}

fn ensure(holds: bool, why: &str) -> Result<(), Refused> {
    if holds { Ok(()) } else { Err(Refused(why.to_owned())) }
}

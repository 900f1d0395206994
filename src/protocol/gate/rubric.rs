//! How good an admitted report is: points by criterion, with weights and a pass mark that live in a file.
//!
//! The gate says whether a report may be believed; the rubric says how well it lets itself be checked. What a
//! criterion asks is code, found by its id; what it is worth is the file's.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Fault, Findings};

/// The rubric as its file says it: `config/quality-rubric.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rubric {
    /// Points that a report needs, at most 100.
    pub pass_mark: u32,
    /// What is marked; the weights sum to 100.
    pub criteria: Vec<Criterion>,
}

/// One thing that is marked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Which question is asked of the report.
    pub id: String,
    /// Points for a full answer.
    pub weight: u32,
    /// The question, for people.
    pub sentence: String,
}

/// The points of one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// Sum of the marks, 0 to 100.
    pub points: u32,
    /// Points that the rubric asks for.
    pub pass_mark: u32,
    /// Whether the gate admits the report; without that no number of points is enough.
    pub admitted: bool,
    /// One mark a criterion, in the rubric's order.
    pub marks: Vec<Mark>,
}

/// What a report got for one criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The criterion.
    pub criterion: Criterion,
    /// Points reached, at most the criterion's weight.
    pub points: u32,
}

/// The rubric cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRubric(String);

impl fmt::Display for BadRubric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rubric cannot be used: {}", self.0)
    }
}

impl std::error::Error for BadRubric {}

impl Score {
    /// Admitted, and with enough points.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.admitted && self.points >= self.pass_mark
    }
}

impl Rubric {
    /// Reads a rubric and refuses one that cannot be scored: an unknown or doubled criterion, weights that do
    /// not sum to 100, a pass mark that nobody can reach.
    pub fn read(rubric: &Value) -> Result<Self, BadRubric> {
        let rubric = Self::deserialize(rubric).map_err(|error| BadRubric(error.to_string()))?;
        let mut ids = HashSet::new();
        for Criterion { id, .. } in &rubric.criteria {
            if question(id).is_none() {
                return Err(BadRubric(format!("there is no criterion `{id}`")));
            }
            if !ids.insert(id) {
                return Err(BadRubric(format!("the criterion `{id}` stands there twice")));
            }
        }
        let sum: u64 = rubric.criteria.iter().map(|criterion| u64::from(criterion.weight)).sum();
        if sum != 100 {
            return Err(BadRubric(format!("the weights sum to {sum}, not to 100")));
        }
        if rubric.pass_mark > 100 {
            return Err(BadRubric(format!("the pass mark {} is above 100", rubric.pass_mark)));
        }
        Ok(rubric)
    }
}

/// Marks a report by a rubric.
pub fn score(report: &Value, rubric: &Value) -> Result<Score, BadRubric> {
    let rubric = Rubric::read(rubric)?;
    let empty = Map::new();
    let report_fields = report.as_object().unwrap_or(&empty);
    let found = Findings::of(report_fields);
    let mark = |criterion: Criterion| {
        let asked = question(&criterion.id).map(|ask| ask(report_fields, &found)).unwrap_or_default();
        Mark { points: asked.points(criterion.weight), criterion }
    };
    let marks: Vec<Mark> = rubric.criteria.into_iter().map(mark).collect();
    Ok(Score {
        points: marks.iter().map(|mark| mark.points).sum(),
        pass_mark: rubric.pass_mark,
        admitted: super::check(report).is_empty(),
        marks,
    })
}

/// How many of the things asked for were there.
#[derive(Default)]
struct Asked {
    met: u64,
    of: u64,
}

impl Asked {
    fn all(answers: impl IntoIterator<Item = bool>) -> Self {
        answers
            .into_iter()
            .fold(Self::default(), |sum, answer| Self { met: sum.met + u64::from(answer), of: sum.of + 1 })
    }

    /// Without faults all of it counts, with any nothing does.
    fn unless(faults: &[Fault], asked: Self) -> Self {
        if faults.is_empty() { asked } else { Self { met: 0, of: 1 } }
    }

    /// The weight's share, rounded down; where nothing was to be asked, all of it.
    fn points(&self, weight: u32) -> u32 {
        let share = (u64::from(weight) * self.met).checked_div(self.of);
        share.and_then(|points| u32::try_from(points).ok()).unwrap_or(weight)
    }
}

type Question = fn(&Map<String, Value>, &Findings) -> Asked;

fn question(id: &str) -> Option<Question> {
    match id {
        "well_formed" => Some(well_formed),
        "transition_traced" => Some(transition_traced),
        "staleness_detected" => Some(staleness_detected),
        "typed_summary" => Some(typed_summary),
        "fork_isolation" => Some(fork_isolation),
        "evidence_required" => Some(evidence_required),
        _ => None,
    }
}

fn well_formed(_: &Map<String, Value>, found: &Findings) -> Asked {
    Asked::all([&found.activation, &found.contract, &found.rows].map(Vec::is_empty))
}

fn transition_traced(report: &Map<String, Value>, found: &Findings) -> Asked {
    let reason = report.get("reason").unwrap_or(&Value::Null);
    let text = reason.as_str().or_else(|| reason.get("text")?.as_str());
    let says_why = text.is_some_and(|text| !text.trim().is_empty());
    let names_rows = reason.get("evidence").is_some_and(Value::is_array);
    Asked::unless(&found.transition, Asked::all([says_why, says_why && names_rows]))
}

fn staleness_detected(report: &Map<String, Value>, found: &Findings) -> Asked {
    let stale = items(report, "staleness_results").iter().filter(|row| row["status"] == "stale");
    let asked = stale.flat_map(|row| ["cause", "since", "was"].map(|name| says(row, name)));
    Asked::unless(&found.rows, Asked::all(asked))
}

fn typed_summary(_: &Map<String, Value>, found: &Findings) -> Asked {
    Asked::all([found.summary.is_empty()])
}

fn fork_isolation(report: &Map<String, Value>, found: &Findings) -> Asked {
    let asked = items(report, "forks")
        .iter()
        .flat_map(|fork| ["workspace", "scratchpad"].map(|name| says(fork, name)));
    Asked::unless(&found.forks, Asked::all(asked))
}

fn evidence_required(report: &Map<String, Value>, found: &Findings) -> Asked {
    let facts = report.get("typed_summary").and_then(|summary| summary.get("verified_facts"));
    let facts = facts.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let tagged = items(report, "staleness_results").iter().map(|row| says(row, "evidence_tag"));
    let asked = Asked::all(tagged.chain(facts.iter().map(|fact| says(fact, "digest"))));
    Asked::unless(&found.summary, asked)
}

fn items<'a>(report: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    report.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn says(object: &Value, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null() && value != "")
}

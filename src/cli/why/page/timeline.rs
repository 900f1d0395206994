//! What happened, in its order: what the log says around the decision, and when its sources turned.

use super::told::Told;
use super::verdict::{class, tone};
use super::{moment, section};
use crate::cli::html::Markup;
use crate::cli::tail::said_by;
use crate::cli::words::{harmless, list, path, state, text, to_the_second};
use serde_json::Value;

/// Names that one step tells.
const NAMES_MAX: usize = 4;
/// Turns of sources that are told; the last ones.
const TURNS_MAX: usize = 40;

/// One step of the story, at a moment as it travels.
struct Step<'told> {
    at: &'told str,
    what: What<'told>,
}

enum What<'told> {
    /// This decision.
    This(&'told Value),
    /// Another decision of the session.
    Other(&'told Value),
    /// A line of the log that is no decision.
    Event(&'told Value),
    /// Rows that became the same for the same cause in the same second.
    Turned(Vec<&'told Value>),
}

pub(super) fn timeline(told: &Told, page: &mut Markup) {
    section("timeline", "Timeline", page, |page| {
        if told.more_before {
            page.say(
                "p",
                "faint",
                "The last lines of the log that concern this session; what was before them is left out.",
            );
        }
        page.with("ol", &[("class", "timeline")], |page| {
            for step in steps(told) {
                let now: &[_] =
                    if matches!(step.what, What::This(_)) { &[("aria-current", "step")] } else { &[] };
                page.with("li", now, |page| one(&step, told, page));
            }
        });
        if told.more_after {
            page.say("p", "faint", "What came after that is left out.");
        }
    });
}

/// All steps in the order of their moments, which are written so that text sorts them.
fn steps(told: &Told) -> Vec<Step<'_>> {
    let line = |line| -> Step<'_> {
        let is_decision = line_is_decision(line);
        let at = if is_decision { &line["decided_at"] } else { &line["at"] };
        let what = if is_decision { What::Other(line) } else { What::Event(line) };
        Step { at: at.as_str().unwrap_or_default(), what }
    };
    let this = Step { what: What::This(&told.decision), ..line(&told.decision) };
    let mut steps = turns(&told.decision);
    steps.extend(told.before.iter().map(line));
    steps.push(this);
    steps.extend(told.after.iter().map(line));
    steps.sort_by(|one, other| one.at.cmp(other.at));
    steps
}

fn line_is_decision(line: &Value) -> bool {
    line["event"].is_null()
}

/// When the sources of a decision turned.
fn turns(decision: &Value) -> Vec<Step<'_>> {
    let rows = list(decision, "staleness_results").iter().filter(|row| row["status"] != "fresh");
    let mut rows: Vec<(&str, &Value)> = rows.filter_map(|row| Some((row["since"].as_str()?, row))).collect();
    rows.sort_by_key(|(since, _)| *since);
    let mut turns: Vec<Step<'_>> = Vec::new();
    for (at, row) in rows {
        match turns.last_mut() {
            Some(Step { at: last, what: What::Turned(rows) })
                if to_the_second(last) == to_the_second(at)
                    && state(rows[0]) == state(row)
                    && rows[0]["cause"] == row["cause"] =>
            {
                rows.push(row);
            }
            _ => turns.push(Step { at, what: What::Turned(vec![row]) }),
        }
    }
    turns.split_off(turns.len().saturating_sub(TURNS_MAX))
}

fn one(step: &Step<'_>, told: &Told, page: &mut Markup) {
    moment(step.at, page);
    page.with("div", &[("class", "step")], |page| match &step.what {
        What::This(line) => {
            decision(line, page);
            page.say("p", "faint", "This decision.");
        }
        What::Other(line) => {
            decision(line, page);
            page.element("p", |page| {
                page.say("code", "digest", &text(line, "decision"));
                if line["supersedes"] == told.decision["decision"] {
                    page.text(" replaces this decision");
                }
            });
        }
        What::Event(line) => {
            page.say(
                "strong",
                "event",
                &harmless(line["event"].as_str().unwrap_or_default()).replace('_', " "),
            );
            page.text(" ");
            page.text(&said_by(line));
        }
        What::Turned(rows) => turned(rows, page),
    });
}

fn decision(line: &Value, page: &mut Markup) {
    let transition = text(line, "transition");
    page.say("strong", tone(&transition), &transition);
    page.text(" ");
    page.prose(line["reason"]["text"].as_str().unwrap_or_default());
}

fn turned(rows: &[&Value], page: &mut Markup) {
    for (number, row) in rows.iter().take(NAMES_MAX).enumerate() {
        page.text(if number > 0 { ", " } else { "" });
        page.element("bdi", |page| page.say("code", "path", &path(&row["source"])));
    }
    if rows.len() > NAMES_MAX {
        page.text(&format!(" and {} more", rows.len() - NAMES_MAX));
    }
    let (word, _) = state(rows[0]);
    page.text(" became ");
    page.say("span", class(word), word);
    page.text(&format!(" ({})", text(rows[0], "cause")));
}

//! What was decided, and why: the head of the page, and the reason with its evidence.

use super::{moment, name, pair, section};
use crate::cli::html::Markup;
use crate::cli::words::{change, list, number, span, state, text};
use serde_json::Value;

/// What each transition means, for whoever opens the page first.
fn meaning(transition: &str) -> &'static str {
    match transition {
        "resume" => "The context still holds: go on.",
        "fork" => "Several ways at once, each in a tree of its own.",
        "fresh" => "The world changed: start over from what is still true.",
        _ => "",
    }
}

/// The class that colours a transition.
pub(super) fn tone(transition: &str) -> &'static str {
    match transition {
        "resume" => "good",
        "fork" => "apart",
        "fresh" => "bad",
        _ => "plain",
    }
}

pub(super) fn header(decision: &Value, page: &mut Markup) {
    let transition = text(decision, "transition");
    page.element("h1", |page| {
        page.say("span", "session", &text(decision, "session"));
        page.say("span", tone(&transition), &transition);
    });
    page.with("p", &[("class", "lead")], |page| {
        page.prose(decision["reason"]["text"].as_str().unwrap_or(""));
    });
    page.say("p", "faint", meaning(&transition));
    page.with("dl", &[("class", "facts")], |page| {
        pair("Decided", page, |page| {
            moment(decision["decided_at"].as_str().unwrap_or(""), page);
            page.say("span", "faint", " UTC");
        });
        let goal = decision["context"]["goal"].as_str().unwrap_or("");
        if !goal.is_empty() {
            pair("Goal", page, |page| page.prose(goal));
        }
        pair("Decision", page, |page| page.say("code", "digest", &text(decision, "decision")));
        if decision["supersedes"].is_string() {
            pair("Replaces", page, |page| page.say("code", "digest", &text(decision, "supersedes")));
        }
        if decision["merge"].is_string() {
            pair("Merge of", page, |page| page.say("code", "digest", &text(decision, "merge")));
        }
        if !decision["held_by"].is_null() {
            let pid = number(&decision["held_by"], "pid").to_string();
            pair("Held by", page, |page| page.text(&format!("another live process, pid {pid}")));
        }
        pair("Clock", page, |page| {
            page.text(&format!("tick {} of epoch ", number(&decision["clock"], "tick")));
            page.say("code", "digest", &text(&decision["clock"], "epoch"));
        });
    });
}

/// The code, and the rows that it names.
pub(super) fn reason(decision: &Value, page: &mut Markup) {
    let reason = &decision["reason"];
    let evidence = list(reason, "evidence");
    section("reason", "Reason", page, |page| {
        page.element("p", |page| {
            page.say("code", "code", &text(reason, "code"));
            page.text(if evidence.is_empty() {
                " Nothing had to be named: no row speaks against it."
            } else {
                " The evidence, the most decisive first:"
            });
        });
        if evidence.is_empty() {
            return;
        }
        page.with("ol", &[("class", "evidence")], |page| {
            for id in evidence.iter().filter_map(Value::as_str) {
                page.element("li", |page| piece(id, decision, page));
            }
        });
    });
}

fn piece(id: &str, decision: &Value, page: &mut Markup) {
    let Some(row) = list(decision, "staleness_results").iter().find(|row| row["result_id"] == id) else {
        return page.say("code", "path", id);
    };
    name(&row["source"], page);
    if row["source"] != row["result_id"] {
        page.say("span", "faint", &format!(" {id}"));
    }
    page.element("p", |page| {
        let (word, _) = state(row);
        page.say("span", class(word), word);
        page.text(&format!(" {} ", text(row, "cause")));
        page.say("code", "digest", &change(row));
        if let Some(before) = before(row, decision) {
            page.say("span", "faint", &format!(" {before} the decision"));
        }
    });
}

/// The class that colours a state.
pub(super) fn class(state: &str) -> &'static str {
    match state {
        "fresh" => "good",
        "stale" => "bad",
        _ => "doubt",
    }
}

/// How long before the decision a row became what it was.
pub(super) fn before(row: &Value, decision: &Value) -> Option<String> {
    let read = |value: &Value| crate::protocol::time::from_text(value.as_str()?).ok();
    let (then, made) = (read(&row["since"])?, read(&decision["decided_at"])?);
    let seconds = u64::try_from((made.micros - then.micros) / 1_000_000).ok()?;
    Some(if seconds == 0 { "just before".to_owned() } else { format!("{} before", span(seconds)) })
}

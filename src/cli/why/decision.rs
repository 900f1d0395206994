//! The story of one decision: what it said, what the session was told before, and what became of it.

use super::history::{Entry, backward};
use crate::cli::paint::{Paint, Tone};
use crate::cli::report;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::words::{text, to_the_second};
use crate::client::Client;
use serde_json::Value;
use std::collections::HashMap;

/// A decision between its neighbours in the log.
struct Story {
    decision: Entry,
    before: Option<Value>,
    after: Option<Value>,
}

pub(super) fn run(decision: &str, shell: &mut Shell) -> Done {
    let Some(story) = find(decision, &mut shell.client()?)? else { return Err(unknown(decision)) };
    if shell.json {
        shell.out.line(&story.decision.raw)?;
        return Ok(0);
    }
    let paint = shell.out.paint;
    shell.out.lines(report::lines(&story.decision.line, paint))?;
    shell.out.lines(neighbours(&story, paint))?;
    Ok(0)
}

/// The line of a decision.
pub(super) fn line(decision: &str, client: &mut Client) -> Result<Value, Stop> {
    let mut found = None;
    backward(client, |entry| {
        if entry.is_decision() && is_called(&entry, decision) {
            found = Some(entry.line);
        }
        found.is_some()
    })?;
    found.ok_or_else(|| unknown(decision))
}

fn unknown(decision: &str) -> Stop {
    Stop::failed(format!("the decision log knows no decision {decision}"))
        .remedy("`staled tail --json` shows the last ones")
}

fn is_called(entry: &Entry, decision: &str) -> bool {
    entry.line["decision"].as_str().is_some_and(|id| id.starts_with(decision))
}

/// Looks from the end: each session's latest decision seen so far is what came after the one that is found.
fn find(decision: &str, client: &mut Client) -> Result<Option<Story>, Stop> {
    let mut later: HashMap<String, Value> = HashMap::new();
    let mut story: Option<Story> = None;
    backward(client, |entry| {
        if !entry.is_decision() {
            return false;
        }
        let session = entry.line["session"].as_str().unwrap_or_default().to_owned();
        match &mut story {
            Some(story) if story.decision.line["session"] == entry.line["session"] => {
                story.before = Some(entry.line);
                true
            }
            Some(_) => false,
            None if is_called(&entry, decision) => {
                story = Some(Story { decision: entry, before: None, after: later.remove(&session) });
                false
            }
            None => {
                later.insert(session, entry.line);
                false
            }
        }
    })?;
    Ok(story)
}

fn neighbours(story: &Story, paint: Paint) -> Vec<String> {
    let decision = &story.decision.line;
    let said =
        |name: &str, text: String| format!("  {}  {text}", paint.of(Tone::Faint, &format!("{name:<10}")));
    let moment = to_the_second(decision["decided_at"].as_str().unwrap_or_default());
    let mut lines = vec![said("made", format!("{moment} for session {}", text(decision, "session")))];
    lines.push(match &story.before {
        Some(before) => said("before it", short(before)),
        None => said("before it", "nothing was decided for this session".to_owned()),
    });
    if let Some(after) = &story.after {
        let replaces = after["supersedes"] == decision["decision"];
        lines.push(said(if replaces { "replaced by" } else { "after it" }, short(after)));
    }
    lines
}

fn short(line: &Value) -> String {
    let moment = to_the_second(line["decided_at"].as_str().unwrap_or_default());
    format!("{moment}  {}  {}", text(line, "transition"), text(line, "decision"))
}

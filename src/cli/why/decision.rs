//! The story of one decision: what it said, what the session was told before, and what became of it.

use crate::cli::paint::{Paint, Tone};
use crate::cli::report;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::words::{text, to_the_second};
use crate::client::story::OfDecision;
use serde_json::Value;

pub(super) fn run(decision: &str, shell: &mut Shell) -> Done {
    let Some(story) = OfDecision::find(decision, &mut shell.client()?)? else {
        return Err(unknown(decision));
    };
    if shell.json {
        shell.out.line(&story.decision.raw)?;
        return Ok(0);
    }
    let paint = shell.out.paint;
    shell.out.lines(report::lines(&story.decision.line, paint))?;
    shell.out.lines(neighbours(&story, paint))?;
    Ok(0)
}

/// No decision is called so.
pub(super) fn unknown(decision: &str) -> Stop {
    Stop::failed(format!("the decision log knows no decision {decision}"))
        .remedy("`staled tail --json` shows the last ones")
}

fn neighbours(story: &OfDecision, paint: Paint) -> Vec<String> {
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

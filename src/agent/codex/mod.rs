//! Rollouts of Codex (`sessions/YYYY/MM/DD/rollout-….jsonl`), line by line into beliefs.
//!
//! Codex has no tool that reads: it runs shell commands. So what one of these plainly shows of a file, all of it and
//! unabridged, is a read, and any other is a question to the tree. Shape decides, never the version: the first rollouts
//! had bare items without an envelope, later ones tell how a command ended, and the latest only what the model saw.

mod calls;
mod facts;
pub(super) mod output;
pub(super) mod patch;
mod ran;
mod replay;
mod searches;
#[cfg(test)]
mod tests;

pub use ran::{Ran, Saw, saw};
pub(super) use replay::Replay;

use super::line::Line;

/// Whether nobody else writes such lines.
pub(super) fn wrote(line: &Line) -> bool {
    const ENVELOPES: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
    const ITEMS: [&str; 6] = [
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "reasoning",
    ];
    let kind = line.text("type");
    let enveloped = line.part("payload").is_some() && kind.is_some_and(|kind| ENVELOPES.contains(&kind));
    let bare = kind.is_some_and(|kind| ITEMS.contains(&kind))
        || (kind == Some("message") && line.text("role").is_some() && line.part("content").is_some());
    let first = kind.is_none() && line.text("id").is_some() && line.part("instructions").is_some();
    enveloped || bare || first || line.text("record_type") == Some("state")
}

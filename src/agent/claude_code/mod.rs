//! Claude Code's session transcripts (`projects/<slug>/<session>.jsonl`), line by line into beliefs.
//!
//! Shape decides, never the version. A line that is unlike anything known is counted and passed over.

mod compaction;
mod edit;
mod facts;
mod line;
mod live;
mod replay;
mod searches;
#[cfg(test)]
mod tests;

pub(super) use live::live;
pub(super) use replay::Replay;

use super::line::Line;

/// Whether nobody else writes such lines.
pub(super) fn wrote(line: &Line) -> bool {
    let named = ["sessionId", "uuid", "leafUuid"].iter().any(|field| line.text(field).is_some());
    named || (matches!(line.text("type"), Some("user" | "assistant")) && line.part("message").is_some())
}

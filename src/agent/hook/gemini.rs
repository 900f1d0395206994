//! Hooks of Gemini: its payloads, and the answers that it takes.

use super::event::{Agent, Event, Payload, frame};
use super::turn::Reply;
use serde_json::Value;

pub(super) fn read(payload: &Value) -> Result<Payload, String> {
    frame(Agent::Gemini, payload, Event::Other)
}

pub(super) fn render(_event: &str, _reply: &Reply) -> String {
    String::new()
}

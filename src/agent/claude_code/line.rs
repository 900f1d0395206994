//! One line of a Claude Code transcript: the calls it makes and the answers it brings.

use crate::agent::line::{Line, flag, text};
use serde_json::Value;

/// A call of a tool.
pub(super) struct Call<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    /// The file that the call names.
    pub(super) path: Option<&'a str>,
    /// All that it is given.
    pub(super) input: &'a Value,
}

/// The answer to a call.
pub(super) struct Answer<'a> {
    pub(super) call: &'a str,
    pub(super) failed: bool,
    /// What the model was told, when that is one text.
    pub(super) told: Option<&'a str>,
    /// The structured result, when this answer is the only one on its line: with several there is no telling whose
    /// it is.
    pub(super) result: Option<&'a Value>,
}

impl Line {
    /// Whether it belongs to a sub-agent.
    pub(super) fn is_sidechain(&self) -> bool {
        flag(&self.value, "isSidechain")
    }

    /// The calls it makes.
    pub(super) fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.blocks("tool_use").filter_map(|block| {
            let input = block.get("input").unwrap_or(&Value::Null);
            let path = text(input, "file_path").or_else(|| text(input, "notebook_path"));
            Some(Call { id: text(block, "id")?, name: text(block, "name")?, path, input })
        })
    }

    /// The answers it brings.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer<'_>> {
        let alone = self.blocks("tool_result").count() == 1;
        let result = self.part("toolUseResult").filter(|_| alone);
        self.blocks("tool_result").filter_map(move |block| {
            let told = answer_text(block);
            let failed = flag(block, "is_error") || result.and_then(Value::as_str).is_some_and(is_failure);
            Some(Answer { call: text(block, "tool_use_id")?, failed, told, result })
        })
    }

    fn blocks<'a>(&'a self, kind: &'static str) -> impl Iterator<Item = &'a Value> {
        let content = self.part("message").and_then(|message| message.get("content"));
        let blocks = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        blocks.iter().filter(move |block| text(block, "type") == Some(kind))
    }
}

fn is_failure(result: &str) -> bool {
    result.starts_with("Error") || result.starts_with("<tool_use_error>")
}

/// The answer's text: a string, or the first text block of a list.
fn answer_text(block: &Value) -> Option<&str> {
    let content = block.get("content")?;
    content.as_str().or_else(|| content.as_array()?.iter().find_map(|part| text(part, "text")))
}

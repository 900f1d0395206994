//! Searches and commands of a session: which were answered, and with what.
//!
//! Asked again, a question stands where its last answer does. A failure is an answer when the command ran: that a test
//! fails is a belief; that it was not allowed to run is none.

use super::line::Answer;
use crate::agent::ledger::Moment;
use crate::agent::line::{flag, text, texts};
use crate::agent::transcript::{Asked, Content, Question, Unasked};
use serde_json::Value;
use std::collections::HashMap;

/// From this many bytes on the harness cuts what it shows of a command's output.
const SHOWN_BYTES_MAX: usize = 30_000;

/// What stands in a failure when nothing ran.
const REFUSALS: [&str; 9] = [
    "doesn't want to proceed",
    "doesn't want to take this action",
    "Permission to use",
    "requires approval",
    "Blocked:",
    "tool_use_error",
    "InputValidationError",
    "Sibling tool call errored",
    "posix_spawn",
];

/// What was asked so far, by question and folder.
#[derive(Clone, Default)]
pub(super) struct Searches {
    kept: HashMap<(Question, Option<String>), Kept>,
    pub(super) unasked: Unasked,
}

#[derive(Clone)]
struct Kept {
    asked: Asked,
    uuid: Option<String>,
    call: Option<String>,
}

/// The question that a call asks.
pub(super) fn question(tool: &str, input: &Value) -> Option<Question> {
    let said = |field: &str| text(input, field).filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let path = said("path");
    Some(match tool {
        "Grep" => Question::Grep { pattern: said("pattern")?, path, glob: said("glob"), kind: said("type") },
        "Glob" => Question::Glob { pattern: said("pattern")?, path },
        "LS" => Question::List { path, ignore: texts(input, "ignore").map(str::to_owned).collect() },
        "Bash" | "PowerShell" => Question::Command { text: said("command")?, shell: tool.to_owned() },
        _ => return None,
    })
}

impl Searches {
    /// An answer came.
    pub(super) fn answer(
        &mut self,
        moment: Moment<'_>,
        question: &Question,
        background: bool,
        cwd: Option<&str>,
        answer: &Answer<'_>,
    ) {
        let told = [answer.told, answer.result.and_then(Value::as_str)];
        let refused = |text: &str| {
            REFUSALS.iter().any(|refusal| text.contains(refusal)) || text.starts_with("Cancelled:")
        };
        let command = matches!(question, Question::Command { .. });
        if answer.failed && (!command || told.into_iter().flatten().any(refused)) {
            self.unasked.refused += 1;
            return;
        }
        let result = answer.result.filter(|result| result.is_object());
        if background || result.is_some_and(|result| text(result, "backgroundTaskId").is_some()) {
            self.unasked.background += 1;
            return;
        }
        let shown = result.filter(|_| command && !answer.failed).and_then(shown);
        let key = (question.clone(), cwd.map(str::to_owned));
        let before = self.kept.get(&key).is_none_or(|kept| kept.asked.via_sidechain);
        let asked = Asked {
            question: question.clone(),
            cwd: cwd.map(str::to_owned),
            captured_at: moment.timestamp.map(str::to_owned),
            line: moment.line,
            via_summary: false,
            via_sidechain: moment.sidechain && before,
            failed: answer.failed,
            shown,
        };
        let (uuid, call) = (moment.uuid.map(str::to_owned), moment.call.map(str::to_owned));
        self.kept.insert(key, Kept { asked, uuid, call });
    }

    /// A compaction: what it does not keep is known through its summary only.
    pub(super) fn compact(&mut self, keeps: impl Fn(u64, Option<&str>, Option<&str>) -> bool) {
        for kept in self.kept.values_mut() {
            let stays = keeps(kept.asked.line, kept.uuid.as_deref(), kept.call.as_deref());
            kept.asked.via_summary |= !stays;
        }
    }

    /// What was asked, in the order of the answers.
    pub(super) fn finish(self) -> Vec<Asked> {
        let mut asked: Vec<Kept> = self.kept.into_values().collect();
        // Two answers on one line are told apart by their calls, so that two runs print the same.
        asked.sort_by(|a, b| (a.asked.line, &a.call).cmp(&(b.asked.line, &b.call)));
        asked.into_iter().map(|kept| kept.asked).collect()
    }
}

/// What a command printed, when that is all it printed.
fn shown(result: &Value) -> Option<Content> {
    let stdout = text(result, "stdout")?;
    let more = text(result, "stderr").is_some_and(|stderr| !stderr.is_empty())
        || result.get("persistedOutputPath").is_some_and(|path| !path.is_null())
        || flag(result, "interrupted")
        || flag(result, "isImage");
    (!more && stdout.len() < SHOWN_BYTES_MAX).then(|| Content(stdout.into()))
}

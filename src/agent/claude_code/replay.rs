//! The transcript played again: calls paired with their answers, answers entered in the ledger.
//!
//! File order is the order of events; timestamps go backwards and parent links leave parallel answers out. Answers on
//! a sub-agent's lines count as well: its edits change the same files.

use super::compaction::Boundary;
use super::edit::{Edit, applied};
use super::facts::Facts;
use super::line::Answer;
use super::searches::{Searches, question};
use crate::agent::ledger::{Ledger, Moment};
use crate::agent::line::{Line, flag, text, texts};
use crate::agent::shown::Shown;
use crate::agent::spelling;
use crate::agent::transcript::{Agent, Counts, Question, Transcript, warnings};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Everything known after some lines.
#[derive(Clone, Default)]
pub(in crate::agent) struct Replay {
    /// Of results only; lines are counted by who reads them.
    counts: Counts,
    facts: Facts,
    calls: HashMap<String, Asked>,
    /// The line of each uuid; a second line with the same one is a copy.
    lines: HashMap<String, u64>,
    ledger: Ledger,
    searches: Searches,
    last_edit: Option<u64>,
    mentioned: Vec<PathBuf>,
    conversation: bool,
}

#[derive(Clone)]
struct Asked {
    tool: String,
    path: Option<String>,
    question: Option<Question>,
    background: bool,
    /// Where it was asked; the answer's line may tell where a `cd` led.
    cwd: Option<String>,
}

impl Replay {
    /// Takes in the next line.
    pub(in crate::agent) fn step(&mut self, line: &Line) {
        let kind = line.text("type").unwrap_or("(none)");
        self.facts.note(line);
        if self.is_copy(line) {
            return;
        }
        match kind {
            "user" | "assistant" => self.message(line),
            "attachment" => self.attachment(line),
            "system" => {
                if let Some(boundary) = Boundary::parse(line) {
                    let keeps = |line, uuid: Option<&str>, call: Option<&str>| {
                        boundary.keeps(line, uuid, call, &self.lines)
                    };
                    self.ledger.compact(keeps);
                    self.searches.compact(keeps);
                }
            }
            _ => {}
        }
    }

    /// The transcript.
    pub(in crate::agent) fn finish(self, lines: Counts, incomplete_tail: Option<u64>) -> Transcript {
        let Counts { tool_results, unmatched_results, .. } = self.counts.clone();
        let counts = Counts { tool_results, unmatched_results, ..lines };
        let warnings = warnings(&counts, self.conversation);
        Transcript {
            agent: Agent::ClaudeCode,
            head: None,
            session_id: self.facts.session_id(),
            first_cwd: self.facts.cwds.first().cloned(),
            cwds: self.facts.cwds,
            git_branch: self.facts.git_branch,
            versions: self.facts.versions.into_iter().collect(),
            counts,
            entries: self.ledger.finish(),
            unasked: self.searches.unasked,
            asked: self.searches.finish(),
            last_edit: self.last_edit,
            mentioned: self.mentioned,
            incomplete_tail,
            conversation: self.conversation,
            warnings,
        }
    }

    fn is_copy(&mut self, line: &Line) -> bool {
        line.text("uuid").is_some_and(|uuid| self.lines.insert(uuid.into(), line.number).is_some())
    }

    fn message(&mut self, line: &Line) {
        self.conversation = true;
        for call in line.calls() {
            let asked = Asked {
                tool: call.name.into(),
                path: call.path.map(str::to_owned),
                question: question(call.name, call.input),
                background: flag(call.input, "run_in_background"),
                cwd: line.text("cwd").map(str::to_owned),
            };
            self.calls.insert(call.id.into(), asked);
        }
        for answer in line.answers() {
            match self.calls.get(answer.call).cloned() {
                Some(asked) => self.answer(line, &asked, &answer),
                None => self.counts.unmatched_results += 1,
            }
        }
    }

    fn answer(&mut self, line: &Line, asked: &Asked, answer: &Answer<'_>) {
        let moment = Moment { call: Some(answer.call), tool: &asked.tool, ..moment(line) };
        let path = asked.path.as_deref();
        if let Some(question) = &asked.question {
            let cwd = asked.cwd.as_deref().or_else(|| line.text("cwd"));
            self.searches.answer(moment, question, asked.background, cwd, answer);
        }
        if !answer.failed && matches!(moment.tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit") {
            self.last_edit = Some(moment.line);
        }
        let kind = if answer.failed {
            self.failure(moment, path, answer);
            "err"
        } else {
            self.success(line, moment, path, answer.result)
        };
        count(&mut self.counts.tool_results, &format!("{}:{kind}", asked.tool));
    }

    /// A failure changed nothing and showed nothing, except that a file is not there.
    fn failure(&mut self, moment: Moment<'_>, path: Option<&str>, answer: &Answer<'_>) {
        let texts = [answer.told, answer.result.and_then(Value::as_str)];
        let missing = texts.into_iter().flatten().any(|text| text.contains("File does not exist"));
        if let Some(path) = path.filter(|_| missing && moment.tool == "Read") {
            self.ledger.miss(moment, path);
        }
    }

    /// Enters a success and names its kind.
    fn success(
        &mut self,
        line: &Line,
        moment: Moment<'_>,
        path: Option<&str>,
        result: Option<&Value>,
    ) -> &'static str {
        // The reference replay counts an answer without a structured result as an error; for a file tool it tells that
        // something was seen or done, but not what.
        let Some(result) = result.filter(|result| result.is_object()) else {
            if let ("Read" | "Edit" | "MultiEdit" | "Write" | "NotebookEdit", Some(path)) =
                (moment.tool, path)
            {
                self.ledger.doubt(moment, path).edited |= moment.tool != "Read";
            }
            return "err";
        };
        match moment.tool {
            "Read" => self.read(moment, path, result),
            "Edit" => {
                self.edit(moment, path, result, Edit::parse(result).map(|edit| vec![edit]), "originalFile")
            }
            "MultiEdit" => self.edit(moment, path, result, Edit::parse_all(result), "originalFileContents"),
            "Write" => self.write(moment, path, result),
            "NotebookEdit" => {
                if let Some(path) = path {
                    self.ledger.doubt(moment, path).edited = true;
                }
                "other"
            }
            "ExitPlanMode" => {
                if let Some(path) = text(result, "filePath") {
                    self.ledger.touch(moment, path).plan = true;
                }
                "other"
            }
            "Grep" => {
                self.mention(line.text("cwd"), result);
                "other"
            }
            _ => "other",
        }
    }

    fn read(&mut self, moment: Moment<'_>, path: Option<&str>, result: &Value) -> &'static str {
        let shown = result.get("file").and_then(shown);
        match (text(result, "type"), shown) {
            (Some("text"), Some(shown)) => {
                self.ledger.show(moment, &shown);
                if shown.is_whole() { "full" } else { "part" }
            }
            (Some("file_unchanged"), _) => {
                let named = result.get("file").and_then(|file| text(file, "filePath"));
                if let Some(path) = named.or(path) {
                    self.ledger.touch(moment, path);
                }
                "unchanged"
            }
            _ => {
                if let Some(path) = path {
                    self.ledger.doubt(moment, path);
                }
                "other"
            }
        }
    }

    fn edit(
        &mut self,
        moment: Moment<'_>,
        path: Option<&str>,
        result: &Value,
        edits: Option<Vec<Edit<'_>>>,
        original: &str,
    ) -> &'static str {
        let Some(path) = text(result, "filePath").or(path) else {
            return "nobase";
        };
        let Some(edits) = edits else {
            self.ledger.doubt(moment, path).edited = true;
            return "nobase";
        };
        let original = text(result, original).map(str::to_owned);
        let met = original.is_some();
        let known = self.ledger.edit(moment, path, met, |known| applied(&edits, original.or(known)));
        if known { "ok" } else { "nobase" }
    }

    fn write(&mut self, moment: Moment<'_>, path: Option<&str>, result: &Value) -> &'static str {
        match (text(result, "filePath").or(path), text(result, "content")) {
            (Some(path), Some(content)) => self.ledger.write(moment, path, content),
            (Some(path), None) => self.ledger.doubt(moment, path).edited = true,
            (None, _) => {}
        }
        "ok"
    }

    fn mention(&mut self, cwd: Option<&str>, result: &Value) {
        for path in texts(result, "filenames").filter_map(|name| spelling::resolve(cwd, name)) {
            if !self.mentioned.contains(&path) {
                self.mentioned.push(path);
            }
        }
    }

    fn attachment(&mut self, line: &Line) {
        let Some(attachment) = line.part("attachment") else { return };
        let moment = Moment { tool: "Attachment", ..moment(line) };
        let name = text(attachment, "filename").or_else(|| text(attachment, "path"));
        match (text(attachment, "type"), name) {
            (Some("file"), _) => self.attached_file(moment, name, attachment),
            (Some("nested_memory"), Some(path)) => self.attached_memory(moment, path, attachment),
            (Some("edited_text_file"), Some(path)) => {
                self.ledger.change(moment, path, text(attachment, "snippet").unwrap_or_default());
            }
            (Some("compact_file_reference"), Some(path)) => self.ledger.fade(path),
            _ => {}
        }
    }

    fn attached_file(&mut self, moment: Moment<'_>, name: Option<&str>, attachment: &Value) {
        let shown = attachment.get("content").and_then(|content| content.get("file")).and_then(shown);
        match (shown, name) {
            (Some(shown), _) => self.ledger.show(moment, &shown),
            (None, Some(path)) => drop(self.ledger.doubt(moment, path)),
            (None, None) => {}
        }
    }

    /// Memory files are shown without their front matter; the raw content is the file's.
    fn attached_memory(&mut self, moment: Moment<'_>, path: &str, attachment: &Value) {
        let memory = attachment.get("content").unwrap_or(&Value::Null);
        let differs = flag(memory, "contentDiffersFromDisk");
        let whole = text(memory, "rawContent").or_else(|| text(memory, "content").filter(|_| !differs));
        match whole {
            Some(whole) => self.ledger.show_whole(moment, path, whole),
            None => drop(self.ledger.doubt(moment, path)),
        }
    }
}

/// From the `file` of a text result.
fn shown(file: &Value) -> Option<Shown<'_>> {
    let number = |field: &str| file.get(field).and_then(Value::as_u64);
    Some(Shown {
        path: text(file, "filePath")?,
        content: text(file, "content")?,
        start: number("startLine")?,
        lines: number("numLines")?,
        total: Some(number("totalLines")?),
    })
}

fn moment(line: &Line) -> Moment<'_> {
    Moment {
        line: line.number,
        timestamp: line.text("timestamp"),
        uuid: line.text("uuid"),
        call: None,
        sidechain: line.is_sidechain(),
        tool: "",
    }
}

fn count(counts: &mut BTreeMap<String, u64>, key: &str) {
    *counts.entry(key.into()).or_default() += 1;
}

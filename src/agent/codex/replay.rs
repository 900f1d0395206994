//! The rollout played again: calls paired with their answers, answers entered in the ledger.
//!
//! A turn that was taken back is forgotten, though what it wrote stays written: the session believes again what it
//! believed before, and a file that the turn changed is stale.

use super::calls::{self, Call};
use super::facts::Facts;
use super::output::{self, Output};
use super::patch::{self, Change};
use super::ran::{Ran, asked, look};
use super::searches::Searches;
use crate::agent::command::moves_head;
use crate::agent::diff;
use crate::agent::ledger::{Ledger, Moment};
use crate::agent::line::{Line, text};
use crate::agent::spelling;
use crate::agent::transcript::{Agent, Counts, Transcript, warnings};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Everything known after some lines.
#[derive(Clone, Default)]
pub(in crate::agent) struct Replay {
    /// Of results only; lines are counted by who reads them.
    counts: Counts,
    facts: Facts,
    /// By id: the tool and what it was asked for.
    calls: HashMap<String, (String, Call)>,
    /// Commands that go on, by the number that asks for more of them.
    running: HashMap<u64, Call>,
    /// Patches whose changes were told before their answer.
    patched: HashSet<String>,
    /// What commands printed that the model was shown in part.
    printed: HashMap<String, String>,
    ledger: Ledger,
    searches: Searches,
    last_edit: Option<u64>,
    turns: Turns,
    conversation: bool,
}

/// Turns of the session, counted from 1.
#[derive(Clone, Default)]
struct Turns {
    now: u64,
    /// Their begins are told; otherwise each word of the user begins one.
    told: bool,
    /// Those in which the user spoke and that were not taken back.
    spoken: Vec<u64>,
}

impl Replay {
    /// Takes in the next line.
    pub(in crate::agent) fn step(&mut self, line: &Line) {
        let at = At { line: line.number, timestamp: line.text("timestamp") };
        let payload = line.part("payload").filter(|payload| payload.is_object());
        match (line.text("type"), payload) {
            (Some("session_meta"), Some(meta)) => self.facts.session(meta),
            (Some("turn_context"), Some(context)) => {
                if let Some(cwd) = text(context, "cwd") {
                    self.facts.at(cwd);
                }
            }
            (Some("compacted"), Some(_)) => {
                self.ledger.compact(|_, _, _| false);
                self.searches.compact();
            }
            (Some("event_msg"), Some(event)) => self.event(at, event),
            (Some("response_item"), Some(item)) => self.item(at, item, false),
            (Some(_), None) => self.item(at, &line.value, true),
            (None, _) if line.text("id").is_some() => self.facts.session(&line.value),
            _ => {}
        }
    }

    /// The transcript.
    pub(in crate::agent) fn finish(mut self, lines: Counts, incomplete_tail: Option<u64>) -> Transcript {
        let Counts { tool_results, unmatched_results, .. } = self.counts;
        let counts = Counts { tool_results, unmatched_results, ..lines };
        self.searches.unasked.background += self.running.len() as u64;
        Transcript {
            agent: Agent::Codex,
            head: self.facts.head,
            session_id: self.facts.session_id,
            first_cwd: self.facts.cwds.first().cloned(),
            cwds: self.facts.cwds,
            git_branch: self.facts.branch,
            versions: self.facts.versions.into_iter().collect(),
            warnings: warnings(&counts, self.conversation),
            counts,
            entries: self.ledger.finish(),
            unasked: self.searches.unasked,
            asked: self.searches.finish(),
            last_edit: self.last_edit,
            mentioned: Vec::new(),
            incomplete_tail,
            conversation: self.conversation,
        }
    }

    fn event(&mut self, at: At<'_>, event: &Value) {
        match text(event, "type") {
            Some("task_started" | "turn_started") => {
                self.turns.told = true;
                self.begin_turn();
            }
            Some("user_message") => self.user_spoke(),
            Some("thread_rolled_back") => {
                self.take_back(event.get("num_turns").and_then(Value::as_u64).unwrap_or(0));
            }
            Some("patch_apply_end") => self.patch_ended(at, event),
            Some("exec_command_end") => {
                let printed = text(event, "aggregated_output").filter(|printed| !output::is_cut(printed));
                if let Some((call, printed)) = text(event, "call_id").zip(printed) {
                    self.printed.insert(call.to_owned(), printed.to_owned());
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, at: At<'_>, item: &Value, bare: bool) {
        let call_id = text(item, "call_id").or_else(|| text(item, "id"));
        match text(item, "type") {
            Some("message") => self.message(item, bare),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                self.conversation = true;
                let parsed = calls::parse(item, self.facts.cwd.as_deref());
                // Before it is answered, for the answer may be missing.
                if matches!(&parsed, Some((_, Call::Command { text, .. })) if moves_head(text)) {
                    self.facts.head = None;
                }
                if let Some((id, call)) = call_id.zip(parsed) {
                    self.calls.insert(id.to_owned(), call);
                }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                match call_id.and_then(|id| Some((id, self.calls.get(id).cloned()?))) {
                    Some((id, (tool, call))) => {
                        let output = item.get("output").and_then(output::parse);
                        let kind = self.answer(at, id, (&tool, &call), output);
                        *self.counts.tool_results.entry(format!("{tool}:{kind}")).or_default() += 1;
                    }
                    None => self.counts.unmatched_results += 1,
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, item: &Value, bare: bool) {
        self.conversation = true;
        if text(item, "role") != Some("user") {
            return;
        }
        let parts = item.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for told in parts.iter().filter_map(|part| text(part, "text")) {
            self.facts.message(told);
            // What the harness says in the user's name stands in tags.
            if bare && !told.trim_start().starts_with(['<', '#']) {
                self.user_spoke();
            }
        }
    }

    fn answer(
        &mut self,
        at: At<'_>,
        id: &str,
        (tool, call): (&str, &Call),
        output: Option<Output>,
    ) -> &'static str {
        let moment = at.moment(id, tool);
        match (call, output) {
            (Call::Command { .. }, None) => {
                self.searches.unasked.refused += 1;
                "err"
            }
            (Call::Command { .. }, Some(output)) => self.ran(moment, call, output),
            (Call::More(number), Some(output)) => self.more(moment, *number, output),
            (Call::Patch { text, cwd }, output) => {
                let done = output.is_some_and(|output| output.exit_code == Some(0));
                if done && self.patched.insert(id.to_owned()) {
                    self.patch(moment, text, cwd.as_deref());
                }
                if done { "ok" } else { "err" }
            }
            (Call::Image(path), _) => {
                self.ledger.doubt(moment, path);
                "other"
            }
            _ => "other",
        }
    }

    /// A command ended, or went on.
    fn ran(&mut self, moment: Moment<'_>, call: &Call, mut output: Output) -> &'static str {
        let Call::Command { text, shell, cwd } = call else { return "other" };
        if let Some(number) = output.running {
            self.running.insert(number, call.clone());
            return "running";
        }
        // What was told of it beside the answer may be all of it.
        if let Some(printed) = moment.call.and_then(|id| self.printed.remove(id)).filter(|_| output.cut) {
            output = Output { text: printed, cut: false, ..output };
        }
        let ran = Ran {
            command: text,
            cwd: cwd.as_deref(),
            output: &output.text,
            exit_code: output.exit_code,
            captured_at: moment.timestamp,
            line: moment.line,
        };
        let plain = shell == "Bash" && !output.cut;
        if let Some(look) = plain.then(|| look(&ran)).flatten() {
            look.enter(&mut self.ledger, moment);
            return "read";
        }
        let mut asked = asked(&ran, shell);
        asked.shown.take_if(|_| output.cut);
        self.searches.answer(asked, self.turns.now);
        if output.exit_code == Some(0) { "ok" } else { "err" }
    }

    /// More of a command that went on: the last of it is when it ended, and what it printed before is not in it.
    fn more(&mut self, moment: Moment<'_>, number: u64, output: Output) -> &'static str {
        if output.running.is_some() {
            return "running";
        }
        match self.running.remove(&number) {
            Some(call) => self.ran(moment, &call, Output { cut: true, ..output }),
            None => "other",
        }
    }

    /// What a patch did, told with all its lines and their numbers.
    fn patch_ended(&mut self, at: At<'_>, event: &Value) {
        let changes = event.get("changes").and_then(Value::as_object);
        let done = event.get("success").and_then(Value::as_bool) == Some(true);
        let (Some(id), Some(changes), true) = (text(event, "call_id"), changes, done) else { return };
        if !self.patched.insert(id.to_owned()) {
            return;
        }
        let tool = self.calls.get(id).map_or("apply_patch", |(tool, _)| tool.as_str()).to_owned();
        let moment = at.moment(id, &tool);
        self.last_edit = Some(moment.line);
        // The order of an object's fields says nothing, so that two runs tell the same it is by name.
        for (path, change) in changes.iter().collect::<BTreeMap<_, _>>() {
            let cwd = self.facts.cwd.as_deref();
            let Some(path) = spelling::resolve(cwd, path) else { continue };
            self.changed(moment, &path.to_string_lossy(), change);
        }
    }

    fn changed(&mut self, moment: Moment<'_>, path: &str, change: &Value) {
        match (text(change, "type"), text(change, "content"), text(change, "unified_diff")) {
            (Some("delete"), ..) => self.ledger.delete(moment, path),
            (Some("add"), Some(content), _) => self.ledger.write(moment, path, content),
            (Some("update"), _, Some(told)) => {
                match diff::parse(told) {
                    Some(hunks) => drop(self.ledger.patch(moment, path, &hunks)),
                    // Moved as it was.
                    None if told.is_empty() => {}
                    None => self.ledger.doubt(moment, path).edited = true,
                }
                let to = text(change, "move_path");
                if let Some(to) = to.and_then(|to| spelling::resolve(self.facts.cwd.as_deref(), to)) {
                    self.ledger.rename(moment, path, &to.to_string_lossy());
                }
            }
            _ => self.ledger.doubt(moment, path).edited = true,
        }
    }

    /// What a patch did, as far as its own text tells.
    fn patch(&mut self, moment: Moment<'_>, patch: &str, cwd: Option<&str>) {
        self.last_edit = Some(moment.line);
        let place = |path: &str| spelling::resolve(cwd, path).map(|path| path.to_string_lossy().into_owned());
        for change in patch::parse(patch).unwrap_or_default() {
            match change {
                Change::Write { path, content } => {
                    if let Some(path) = place(&path) {
                        self.ledger.write(moment, &path, &content);
                    }
                }
                Change::Delete { path } => {
                    if let Some(path) = place(&path) {
                        self.ledger.delete(moment, &path);
                    }
                }
                Change::Update { path, to, chunks } => {
                    let Some(path) = place(&path) else { continue };
                    self.ledger.edit(moment, &path, false, |known| patch::apply(&chunks, &known?));
                    if let Some(to) = to.as_deref().and_then(place) {
                        self.ledger.rename(moment, &path, &to);
                    }
                }
            }
        }
    }

    fn begin_turn(&mut self) {
        self.turns.now += 1;
        self.ledger.begin(self.turns.now);
    }

    fn user_spoke(&mut self) {
        if !self.turns.told {
            self.begin_turn();
        }
        if self.turns.spoken.last() != Some(&self.turns.now) {
            self.turns.spoken.push(self.turns.now);
        }
    }

    /// The last turns in which the user spoke are taken back, with those between.
    fn take_back(&mut self, count: u64) {
        let left = self.turns.spoken.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        let Some(&first) = self.turns.spoken.get(left) else { return };
        self.turns.spoken.truncate(left);
        self.ledger.take_back(first);
        self.searches.take_back(first);
        self.begin_turn();
    }
}

/// Where an event stands.
#[derive(Clone, Copy)]
struct At<'a> {
    line: u64,
    timestamp: Option<&'a str>,
}

impl<'a> At<'a> {
    fn moment(self, call: &'a str, tool: &'a str) -> Moment<'a> {
        Moment {
            line: self.line,
            timestamp: self.timestamp,
            uuid: None,
            call: Some(call),
            sidechain: false,
            tool,
        }
    }
}

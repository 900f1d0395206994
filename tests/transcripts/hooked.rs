//! Every real session, told event by event as its hooks would have told it, and imported as a whole: both find the same.
//!
//! The world is made as the transcript shows it: what an agent read was there when it read it, what it wrote is there from
//! then on. What the agent did not do itself, and the transcript shows later, happened outside. Searches and commands are
//! compared one way: told live they are judged by the tree as it was then, imported by the tree as it is, so whatever is
//! stale for the import must be stale live, and not the other way round.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use super::made::{self, write};
use crate::harness::{Daemon, Place, say, skipped};
use serde_json::{Value, json};
use staled::agent;
use staled::agent::hook::spool::Spool;
use staled::agent::hook::turn::Options;
use staled::agent::hook::{Agent, Turn};
use staled::agent::rebase::{Places, Rebased, rebase};
use staled::client::Client;
use staled::config::Gate;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the live session knows better: the agent edited a file that something else had changed since all of it was read, and was not
/// shown where. A transcript tells what the edit met and cannot tell that nobody had seen it, so an import takes it for
/// known; told live, the file stays stale until it is read again. In the last one Codex found the lines of its patch loosely,
/// so that what the patch met cannot be told from what it left.
const MET_UNSEEN: [(&str, &str); 8] = [
    ("cc-1.0.117-120-obra-large", "app/lib/ai.server.ts"),
    ("cc-1.0.117-120-obra-large", "app/routes/api.plan-stream.ts"),
    ("cc-1.0.117-120-obra-large", "app/routes/api.stream.ts"),
    ("cc-2.1.37-compact", "cmd/entire/cli/strategy/mid_turn_commit_test.go"),
    ("cc-2.1.37-worktree", "cmd/entire/cli/sessions_fix.go"),
    ("cc-2.1.37-worktree", "cmd/entire/cli/strategy/manual_commit_condensation.go"),
    ("cc-2.1.37-worktree", "cmd/entire/cli/strategy/common.go"),
    ("codex-0.142.2-compacted", "apps/web/src/content/docs/docs/graders/composite.mdx"),
];

#[test]
fn a_session_told_by_its_hooks_is_as_stale_as_the_same_session_imported() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.file_name().unwrap().to_string_lossy().starts_with("cc-"));
    files.sort();
    let mut all = [0; 6];
    for file in files {
        let session = Session::tell(&file);
        let counts = session.compare();
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    say(&format!("events, files compared, changed, stale, searches and commands compared, stale: {all:?}"));
    assert_eq!(all, [1_583, 196, 71, 72, 99, 70]);
}

pub(super) struct Session {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) daemon: Daemon,
    pub(super) transcript: agent::transcript::Transcript,
    pub(super) events: usize,
    /// Paths that no hook tells of.
    pub(super) untold: BTreeSet<PathBuf>,
}

impl Session {
    fn tell(file: &Path) -> Self {
        let name = file.file_name().unwrap().to_string_lossy().replace(".jsonl.gz", "");
        let transcript = agent::open(file).unwrap();
        let place = Place::new();
        let daemon = Daemon::start(&place.home);
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(file).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        let (mut world, mut untold) = (World::of(&place), BTreeSet::new());
        let places = made::places(&transcript, &place);
        let mut hooks = Hooks::new(Agent::ClaudeCode, &name, &daemon, &place);
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let calls = calls(&lines);
        // What is read before anything writes it was there all along.
        calls.iter().for_each(|call| world.foresee(call, &places));
        world.settle();
        hooks.fire(&json!({ "hook_event_name": "SessionStart", "source": "startup", "cwd": place.root }));
        for (at, call) in calls.iter().enumerate() {
            if let Some(path) = &call.attached {
                untold.extend(inside(path, &places));
                continue;
            }
            // The harness edits only what was read after its last change: what an edit meets was there at the read before.
            let later =
                calls[at + 1..].iter().filter(|later| later.path() == call.path() && later.error.is_none());
            let met = later.take_while(|later| matches!(later.name.as_str(), "Read" | "Edit" | "MultiEdit"));
            let met = met.filter(|later| later.name != "Read").find_map(Call::original);
            world.happen(call, met, &places);
            hooks.fire(&call.payload(&places));
        }
        let events = hooks.events;
        drop(hooks);
        Self { name, place, daemon, transcript, events, untold }
    }

    /// At the end, and with every third file changed, and with all of them as they were.
    pub(super) fn compare(self) -> [usize; 6] {
        let mut context = made::import(&self.transcript, &self.place, "imported").context;
        context.session = Some("imported".to_owned());
        if context.results.is_empty() {
            return [self.events, 0, 0, 0, 0, 0];
        }
        self.daemon.ask("context.register", &serde_json::to_value(&context).unwrap());
        let at_first = self.agree("at its end");
        let paths: Vec<PathBuf> = at_first.keys().map(PathBuf::from).collect();
        let changed: Vec<&PathBuf> = paths.iter().step_by(3).collect();
        let mut before = BTreeMap::new();
        for (no, path) in changed.iter().enumerate() {
            let path = self.place.root.join(path);
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if no % 4 == 3 {
                std::fs::remove_file(&path).unwrap();
            } else {
                write(&path, &[b"another first line\n", bytes.as_slice()].concat());
            }
            before.insert(path, bytes);
        }
        let then = self.agree("with files changed");
        let stale = then.values().filter(|stale| **stale).count();
        let (answers, stale_answers) = self.answers_agree();
        before.iter().for_each(|(path, bytes)| write(path, bytes));
        assert_eq!(self.agree("put back"), at_first, "{}", self.name);
        say(&format!(
            "{}: {} events, {} files, {} changed, {stale} stale",
            self.name,
            self.events,
            then.len(),
            before.len()
        ));
        self.daemon.stop();
        [self.events, then.len(), before.len(), stale, answers, stale_answers]
    }

    /// Both sessions say the same of every file; returns what.
    fn agree(&self, when: &str) -> BTreeMap<String, bool> {
        let [live, imported] = [self.name.as_str(), "imported"].map(|session| self.files(session));
        let unseen: Vec<&str> =
            MET_UNSEEN.iter().filter(|(name, _)| *name == self.name).map(|(_, path)| *path).collect();
        assert!(unseen.iter().all(|path| live[*path]), "{} {when}", self.name);
        let apart = |path: &String| unseen.contains(&path.as_str());
        let untold = |path: &String| self.untold.contains(Path::new(path)) || apart(path);
        let differ: Vec<String> = live
            .keys()
            .chain(imported.keys())
            .filter(|path| !untold(path) && live.get(*path) != imported.get(*path))
            .map(|path| format!("{path}: live {:?}, imported {:?}", live.get(path), imported.get(path)))
            .collect();
        assert!(differ.is_empty(), "{} {when}: {differ:#?}", self.name);
        imported.into_iter().filter(|(path, _)| !untold(path)).collect()
    }

    /// Whatever search or command is stale for the import is stale live; returns how many both know, and how many are stale.
    fn answers_agree(&self) -> (usize, usize) {
        let [live, imported] = [self.name.as_str(), "imported"].map(|session| self.answers(session));
        let places = made::places(&self.transcript, &self.place);
        let imported = imported.into_iter().map(|(id, stale)| (spelled_here(&id, &places), stale));
        let both: Vec<(String, bool)> = imported.filter(|(id, _)| live.contains_key(id)).collect();
        let stale: Vec<&String> = both.iter().filter(|(_, stale)| *stale).map(|(id, _)| id).collect();
        let missed: Vec<&&String> = stale.iter().filter(|id| !live[id.as_str()]).collect();
        assert!(missed.is_empty(), "{}: {missed:#?}", self.name);
        (both.len(), stale.len())
    }

    fn answers(&self, session: &str) -> BTreeMap<String, bool> {
        let context = self.daemon.ask("context.get", &json!({ "session": session }));
        let told = context["results"].as_array().unwrap().iter();
        let of_tree = |told: &&Value| matches!(told["source"]["kind"].as_str(), Some("tree" | "command"));
        let asked: BTreeSet<&str> = told.filter(of_tree).filter_map(|told| told["id"].as_str()).collect();
        let status = self.daemon.ask("status", &json!({ "session": session }));
        let rows = status["rows"].as_array().unwrap().iter();
        rows.filter(|row| asked.contains(row["result_id"].as_str().unwrap()))
            .map(|row| (row["result_id"].as_str().unwrap().to_owned(), row["status"] != "fresh"))
            .collect()
    }

    /// Of every file that a session knows, whether it is stale, as a whole or in some part.
    fn files(&self, session: &str) -> BTreeMap<String, bool> {
        let context = self.daemon.ask("context.get", &json!({ "session": session }));
        let status = self.daemon.ask("status", &json!({ "session": session }));
        let stale: HashMap<&str, bool> = status["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["result_id"].as_str().unwrap(), row["status"] != "fresh"))
            .collect();
        let mut files = BTreeMap::new();
        for told in context["results"].as_array().unwrap() {
            let (id, path) =
                (told["id"].as_str().unwrap(), told["source"]["path"].as_str().unwrap_or_default());
            let own = id == path || id.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'));
            if matches!(told["source"]["kind"].as_str(), Some("file" | "absent")) && own {
                let path =
                    path.strip_prefix(self.place.root.to_str().unwrap()).map_or(path, |path| &path[1..]);
                if path.starts_with('/') {
                    // Elsewhere on the machine where it ran; told live, the daemon looks there.
                    continue;
                }
                *files.entry(path.to_owned()).or_insert(false) |= stale[id];
            }
        }
        files
    }
}

/// Hooks of one session, each told to the daemon as its process would.
pub(super) struct Hooks<'a> {
    agent: Agent,
    session: &'a str,
    client: Client,
    spool: Spool,
    place: &'a Place,
    pub(super) events: usize,
}

impl<'a> Hooks<'a> {
    pub(super) fn new(agent: Agent, session: &'a str, daemon: &Daemon, place: &'a Place) -> Self {
        let spool = Spool::of(&place.home, session);
        Self { agent, session, client: daemon.client(), spool, place, events: 0 }
    }

    pub(super) fn fire(&mut self, payload: &Value) {
        let mut payload = payload.clone();
        payload["session_id"] = json!(self.session);
        let payload = self.agent.read(&payload).unwrap();
        let options = Options {
            target: Gate::Deny,
            others: Gate::Warn,
            holder: None,
            fork: None,
            brief: None,
            patience_ms: 10_000,
            home: None,
            at: "2026-11-30T10:00:00Z".to_owned(),
        };
        let turn = Turn::new(&payload, &options, Some(&self.place.root));
        turn.ask(&mut self.client, &self.spool).unwrap();
        self.events += 1;
    }
}

/// A call with its answer, or something that the harness attached.
struct Call {
    cwd: String,
    name: String,
    input: Value,
    response: Value,
    error: Option<String>,
    attached: Option<String>,
}

/// The calls of a transcript in the order of their answers, as its hooks are told them.
fn calls(lines: &[Value]) -> Vec<Call> {
    let (mut asked, mut seen, mut calls) = (HashMap::new(), BTreeSet::new(), Vec::new());
    for line in lines {
        if line["uuid"].as_str().is_some_and(|uuid| !seen.insert(uuid.to_owned())) {
            continue;
        }
        let cwd = line["cwd"].as_str().unwrap_or_default().to_owned();
        let attachment = &line["attachment"];
        let name = attachment["filename"].as_str().or(attachment["path"].as_str());
        if let (Some("attachment"), Some(name)) = (line["type"].as_str(), name) {
            calls.push(Call {
                cwd,
                name: String::new(),
                input: Value::Null,
                response: Value::Null,
                error: None,
                attached: Some(name.to_owned()),
            });
            continue;
        }
        let blocks = line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let alone = blocks.iter().filter(|block| block["type"] == "tool_result").count() == 1;
        for block in blocks {
            if block["type"] == "tool_use" {
                asked.insert(block["id"].as_str().unwrap_or_default(), block);
            }
            let Some(call) = block["tool_use_id"].as_str().and_then(|id| asked.get(id)) else { continue };
            let result = &line["toolUseResult"];
            let told = block["content"].as_str().or(block["content"][0]["text"].as_str()).unwrap_or_default();
            let failed = block["is_error"] == true
                || result
                    .as_str()
                    .is_some_and(|text| text.starts_with("Error") || text.starts_with("<tool_use_error>"));
            calls.push(Call {
                cwd: cwd.clone(),
                name: call["name"].as_str().unwrap_or_default().to_owned(),
                input: call["input"].clone(),
                response: if alone { result.clone() } else { Value::Null },
                error: failed.then(|| format!("{}\n{told}", result.as_str().unwrap_or_default())),
                attached: None,
            });
        }
    }
    calls
}

impl Call {
    fn payload(&self, places: &Places<'_>) -> Value {
        let cwd = here(&self.cwd, places);
        let (mut input, mut response) = (self.input.clone(), self.response.clone());
        for field in ["file_path", "notebook_path", "path"] {
            rebase_field(&mut input[field], places);
        }
        if let Some(command) = input["command"].as_str() {
            input["command"] = json!(spelled_here(command, places));
        }
        if response.is_object() {
            rebase_field(&mut response["filePath"], places);
            if response["file"].is_object() {
                rebase_field(&mut response["file"]["filePath"], places);
            }
            for name in response["filenames"].as_array_mut().into_iter().flatten() {
                if name.as_str().is_some_and(|name| name.starts_with('/')) {
                    rebase_field(name, places);
                }
            }
        }
        let event = if self.error.is_some() { "PostToolUseFailure" } else { "PostToolUse" };
        json!({
            "hook_event_name": event, "cwd": cwd, "tool_name": self.name, "tool_input": input, "tool_response": response,
            "error": self.error, "tool_use_id": "t",
        })
    }

    fn path(&self) -> Option<&str> {
        let told = self.response["filePath"].as_str().or(self.response["file"]["filePath"].as_str());
        told.or(self.input["file_path"].as_str())
    }
}

/// A command names its folders in its text.
pub(super) fn spelled_here(text: &str, places: &Places<'_>) -> String {
    let mut text = text.to_owned();
    for cwd in places.first_cwd.iter().copied().chain(places.cwds.iter().map(PathBuf::as_path)) {
        let (there, here) = (cwd.to_string_lossy(), here(&cwd.to_string_lossy(), places));
        for there in [there.replace('\\', "/"), there.into_owned()] {
            text = text.replace(&there, &here.to_string_lossy());
        }
    }
    text
}

fn rebase_field(field: &mut Value, places: &Places<'_>) {
    if let Some(path) = field.as_str() {
        *field = json!(here(path, places));
    }
}

pub(super) fn here(path: &str, places: &Places<'_>) -> PathBuf {
    match rebase(Path::new(path), places) {
        Rebased::Inside(path) => places.root.join(path),
        Rebased::Outside(path) => path,
    }
}

pub(super) fn inside(path: &str, places: &Places<'_>) -> Option<PathBuf> {
    match rebase(Path::new(path), places) {
        Rebased::Inside(path) => Some(path),
        Rebased::Outside(_) => None,
    }
}

/// The files, as far as the transcript has shown them.
struct World<'a> {
    place: &'a Place,
    first: BTreeMap<PathBuf, Option<String>>,
    now: BTreeMap<PathBuf, String>,
}

impl<'a> World<'a> {
    fn of(place: &'a Place) -> Self {
        Self { place, first: BTreeMap::new(), now: BTreeMap::new() }
    }

    fn foresee(&mut self, call: &Call, places: &Places<'_>) {
        let Some(path) = call.path().and_then(|path| inside(path, places)) else { return };
        if self.first.contains_key(&path) || call.attached.is_some() {
            return;
        }
        let before = match call.name.as_str() {
            _ if call.error.is_some() => None,
            "Write" => call.response["originalFile"].as_str().map(str::to_owned),
            "Edit" if call.response["oldString"] == "" => None,
            _ => Some(call.shown(None)),
        };
        self.first.insert(path, before);
    }

    fn settle(&mut self) {
        for (path, text) in std::mem::take(&mut self.first) {
            if let Some(text) = text {
                self.put(path, text);
            }
        }
    }

    fn happen(&mut self, call: &Call, met: Option<&str>, places: &Places<'_>) {
        let Some(path) = call.path().and_then(|path| inside(path, places)) else { return };
        if let Some(error) = &call.error {
            if call.name == "Read" && error.contains("File does not exist") {
                let _ = std::fs::remove_file(self.place.root.join(&path));
                self.now.remove(&path);
            }
            return;
        }
        let text = match call.name.as_str() {
            "Read" => {
                let met = met.filter(|met| call.shown(Some(met)) == **met);
                call.shown(met.or(self.now.get(&path).map(String::as_str)))
            }
            "Edit" | "MultiEdit" => call.edited(self.now.get(&path).map(String::as_str)),
            "Write" => call.response["content"]
                .as_str()
                .or(call.input["content"].as_str())
                .unwrap_or_default()
                .to_owned(),
            _ => return,
        };
        self.put(path, text);
    }

    fn put(&mut self, path: PathBuf, text: String) {
        if self.now.get(&path) != Some(&text) {
            write(&self.place.root.join(&path), text.as_bytes());
            self.now.insert(path, text);
        }
    }
}

impl Call {
    /// The text that an edit met.
    fn original(&self) -> Option<&str> {
        self.response["originalFile"].as_str().or(self.response["originalFileContents"].as_str())
    }

    /// The file as a read shows it, between lines as they were.
    fn shown(&self, before: Option<&str>) -> String {
        let file = &self.response["file"];
        let original = self.original();
        let Some(content) = file["content"].as_str() else {
            return original.or(before).unwrap_or("known by name only\n").to_owned();
        };
        let number = |field: &str| usize::try_from(file[field].as_u64().unwrap_or_default()).unwrap();
        let (start, shown, total) = (number("startLine").max(1), number("numLines"), number("totalLines"));
        if start == 1 && shown >= total {
            return content.to_owned();
        }
        let mut lines: Vec<String> =
            before.map(|text| text.split('\n').map(str::to_owned).collect()).unwrap_or_default();
        lines.resize_with(total, || "a line that was not shown".to_owned());
        content
            .split('\n')
            .zip(lines.iter_mut().skip(start - 1).take(shown))
            .for_each(|(line, place)| line.clone_into(place));
        lines.join("\n")
    }

    /// The file after an edit; where the text before is not what it must have been, with the patch's lines in place.
    fn edited(&self, before: Option<&str>) -> String {
        let base = self.original().or(before).unwrap_or_default();
        let one = [json!({
            "old_string": self.response["oldString"], "new_string": self.response["newString"],
            "replace_all": self.response["replaceAll"],
        })];
        let edits = self.response["edits"].as_array().map_or(&one[..], Vec::as_slice);
        let mut text = base.to_owned();
        for edit in edits {
            let [old, new] =
                ["old_string", "new_string"].map(|field| edit[field].as_str().unwrap_or_default());
            let line = format!("{old}\n");
            let old =
                if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &line } else { old };
            if old.is_empty() {
                new.clone_into(&mut text);
            } else if !text.contains(old) {
                return self.patched(base);
            } else if edit["replace_all"] == true {
                text = text.replace(old, new);
            } else {
                text = text.replacen(old, new, 1);
            }
        }
        text
    }

    fn patched(&self, base: &str) -> String {
        let mut lines: Vec<String> = base.split('\n').map(str::to_owned).collect();
        for hunk in self.response["structuredPatch"].as_array().into_iter().flatten() {
            let start = usize::try_from(hunk["newStart"].as_u64().unwrap_or(1)).unwrap().max(1) - 1;
            let after = hunk["lines"].as_array().unwrap().iter().filter_map(Value::as_str);
            let after: Vec<&str> =
                after.filter(|line| line.starts_with([' ', '+'])).map(|line| &line[1..]).collect();
            if lines.len() < start + after.len() {
                lines.resize(start + after.len() + 1, "a line that was not shown".to_owned());
            }
            after.iter().zip(&mut lines[start..]).for_each(|(line, place)| (*line).clone_into(place));
        }
        lines.join("\n")
    }
}

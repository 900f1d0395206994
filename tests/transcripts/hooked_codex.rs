//! The real rollouts of Codex, told command by command and patch by patch as its hooks would have told them, and imported:
//! both find the same files stale. A command that failed has no hook, so what it did not find only the import knows.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use super::FOLDER;
use super::codex::{plain, shown, unpacked};
use super::hooked::{Hooks, Session, here, inside, spelled_here};
use super::made::{self, write};
use crate::harness::{Daemon, Place, say, skipped};
use serde_json::{Value, json};
use staled::agent;
use staled::agent::hook::Agent;
use staled::agent::rebase::Places;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[test]
fn a_rollout_told_by_its_hooks_is_as_stale_as_the_same_rollout_imported() {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        return skipped(&format!("{FOLDER} is missing"));
    }
    let mut all = [0; 6];
    for name in [
        "codex-0.118",
        "codex-0.126-vscode",
        "codex-0.140-tiny",
        "codex-0.141-52reads",
        "codex-0.142.2-compacted",
    ] {
        let counts = tell(name, &folder.join(format!("{name}.jsonl.gz"))).compare();
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    say(&format!("events, files compared, changed, stale, searches and commands compared, stale: {all:?}"));
    assert_eq!(all, [482, 81, 21, 21, 26, 20]);
}

fn tell(name: &str, file: &Path) -> Session {
    let transcript = agent::open(file).unwrap();
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    let places = made::places(&transcript, &place);
    let lines: Vec<Value> = unpacked(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut world = World { place: &place, now: BTreeMap::new() };
    let mut untold = BTreeSet::new();
    let steps = steps(&lines);
    // What is read before anything writes it was there all along.
    let mut written = BTreeSet::new();
    for step in &steps {
        match step {
            Step::Read { path, first, shown, to_end, .. } => {
                let path = inside(&path.to_string_lossy(), &places);
                let path = path.filter(|path| !written.contains(path) && !world.now.contains_key(path));
                path.into_iter().for_each(|path| world.show(path, *first, shown, *to_end));
            }
            Step::Patched { changes, .. } => {
                written.extend(changes.keys().filter_map(|path| inside(path, &places)));
            }
            Step::Missing { path } => untold.extend(inside(&path.to_string_lossy(), &places)),
            Step::Ran { .. } => {}
        }
    }
    let mut hooks = Hooks::new(Agent::Codex, name, &daemon, &place);
    hooks.fire(&json!({ "hook_event_name": "SessionStart", "source": "startup", "cwd": place.root }));
    for step in &steps {
        match step {
            Step::Read { path, first, shown, to_end, call, output } => {
                if let Some(path) = inside(&path.to_string_lossy(), &places) {
                    world.show(path, *first, shown, *to_end);
                }
                hooks.fire(&ran(call, output, &places));
            }
            Step::Ran { call, output } => hooks.fire(&ran(call, output, &places)),
            Step::Patched { patch, changes } => {
                for (path, change) in changes {
                    // Of what it changed and had never shown, nobody can make the rest.
                    let place = inside(path, &places).filter(|_| change["type"] == "update");
                    untold.extend(place.filter(|place| !world.now.contains_key(place)));
                    world.patch(path, change, &places);
                }
                hooks.fire(&json!({
                    "hook_event_name": "PostToolUse", "cwd": place.root, "tool_name": "apply_patch",
                    "tool_input": { "command": spelled_here(patch, &places) }, "tool_response": "Success",
                }));
            }
            Step::Missing { .. } => {}
        }
    }
    let events = hooks.events;
    drop(hooks);
    Session { name: name.to_owned(), place, daemon, transcript, events, untold }
}

fn ran(call: &Value, output: &str, places: &Places<'_>) -> Value {
    let cwd = call["workdir"].as_str().map_or(places.root.to_owned(), |folder| here(folder, places));
    let command = spelled_here(call["cmd"].as_str().unwrap(), places);
    json!({
        "hook_event_name": "PostToolUse", "cwd": cwd, "tool_name": "Bash", "tool_input": { "command": command },
        "tool_response": output,
    })
}

enum Step {
    Read { path: PathBuf, first: u64, shown: String, to_end: bool, call: Value, output: String },
    Ran { call: Value, output: String },
    Missing { path: PathBuf },
    Patched { patch: String, changes: BTreeMap<String, Value> },
}

fn steps(lines: &[Value]) -> Vec<Step> {
    let (mut calls, mut patches, mut steps) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for line in lines {
        let item = &line["payload"];
        let id = || item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str().unwrap_or_default() {
            "function_call" if item["name"] == "exec_command" => {
                let told = item["arguments"].as_str().unwrap();
                calls.insert(id(), serde_json::from_str::<Value>(told).unwrap());
            }
            "custom_tool_call" if item["name"] == "apply_patch" => {
                patches.insert(id(), item["input"].as_str().unwrap().to_owned());
            }
            "function_call_output" => {
                let Some(call) = calls.get(&id()).cloned() else { continue };
                let output = item["output"].as_str().unwrap_or_default().to_owned();
                let read = plain(&call);
                if !output.contains("Process exited with code 0\n") {
                    steps.extend(read.map(|(path, ..)| Step::Missing { path }));
                    continue;
                }
                let seen = read.and_then(|(path, first, last, numbered)| {
                    let (shown, to_end) = shown(&output, first, last, numbered)?;
                    Some((path, first, shown, to_end))
                });
                steps.push(match seen {
                    Some((path, first, shown, to_end)) => {
                        Step::Read { path, first, shown, to_end, call, output }
                    }
                    None => Step::Ran { call, output },
                });
            }
            "patch_apply_end" if item["success"] == true => {
                let changes = item["changes"].as_object().unwrap().clone().into_iter().collect();
                let patch = patches.get(&id()).cloned().unwrap_or_default();
                steps.push(Step::Patched { patch, changes });
            }
            _ => {}
        }
    }
    steps
}

struct World<'a> {
    place: &'a Place,
    now: BTreeMap<PathBuf, String>,
}

impl World<'_> {
    fn put(&mut self, path: PathBuf, text: String) {
        if self.now.get(&path) != Some(&text) {
            write(&self.place.root.join(&path), text.as_bytes());
            self.now.insert(path, text);
        }
    }

    /// Lets the lines stand there, between lines as they were.
    fn show(&mut self, path: PathBuf, first: u64, shown: &str, to_end: bool) {
        if first == 1 && to_end {
            return self.put(path, shown.to_owned());
        }
        let first = usize::try_from(first).unwrap() - 1;
        let seen: Vec<&str> = shown.lines().collect();
        let before = self.now.get(&path).cloned().unwrap_or_default();
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let least = first + seen.len() + usize::from(!to_end);
        if lines.len() < least {
            lines.resize(least, "a line that was not shown".to_owned());
        }
        seen.iter().zip(&mut lines[first..]).for_each(|(line, place)| (*line).clone_into(place));
        if to_end {
            lines.truncate(first + seen.len());
        }
        self.put(path, lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect());
    }

    fn patch(&mut self, path: &str, change: &Value, places: &Places<'_>) {
        let Some(place) = inside(path, places) else { return };
        let gone = |world: &mut Self| {
            let _ = std::fs::remove_file(world.place.root.join(&place));
            world.now.remove(&place);
        };
        match change["type"].as_str().unwrap() {
            "add" => self.put(place.clone(), change["content"].as_str().unwrap().to_owned()),
            "delete" => gone(self),
            _ => {
                let before = self.now.get(&place).cloned().unwrap_or_default();
                let after = patched(&before, change["unified_diff"].as_str().unwrap());
                match change["move_path"].as_str().and_then(|to| inside(to, places)) {
                    Some(to) => {
                        gone(self);
                        self.put(to, after);
                    }
                    None => self.put(place.clone(), after),
                }
            }
        }
    }
}

/// The text after a diff, whose lines are put where it says; what was there was never shown where it is not the same.
fn patched(before: &str, diff: &str) -> String {
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let mut hunks: Vec<(usize, Vec<&str>, Vec<&str>)> = Vec::new();
    for line in diff.lines() {
        if let Some(place) = line.strip_prefix("@@ -") {
            let start = place.split([',', ' ']).next().unwrap().parse::<usize>().unwrap();
            hunks.push((start.max(1) - 1, Vec::new(), Vec::new()));
        } else if let Some((_, old, new)) = hunks.last_mut() {
            match line.split_at_checked(1) {
                Some(("-", text)) => old.push(text),
                Some(("+", text)) => new.push(text),
                Some((" ", text)) => {
                    old.push(text);
                    new.push(text);
                }
                _ => {}
            }
        }
    }
    for (start, old, new) in hunks.into_iter().rev() {
        if lines.len() < start + old.len() {
            lines.resize(start + old.len(), "a line that was not shown".to_owned());
        }
        lines.splice(start..start + old.len(), new.into_iter().map(str::to_owned));
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

//! Hooks, run as an agent runs them: by the commands that stand in its settings, with an event on stdin.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

mod claude_code;
mod edits;
mod gates;
mod goes_on;
mod others;

use crate::harness::{Place, wait_until};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An agent that does what a test tells it, and fires hooks as Claude Code documents them.
struct Agent<'a> {
    place: &'a Place,
    settings: Value,
    session: String,
    environment: Vec<(String, String)>,
}

/// What the hooks of one event said.
#[derive(Debug, Default)]
struct Said {
    /// What went into the model's context.
    context: String,
    /// `deny` or `ask`, with the reason.
    decision: Option<(String, String)>,
    /// What was complained about.
    complaints: String,
}

impl<'a> Agent<'a> {
    /// One whose settings are those that `staled install claude-code` wrote.
    fn new(place: &'a Place, socket: &Path, session: &str) -> Self {
        crate::cli::staled(place, socket, &["install", "claude-code"]).ends(0);
        let settings = std::fs::read(place.home.join(".claude/settings.json")).unwrap();
        let settings: Value = serde_json::from_slice(&settings).unwrap();
        let agent = Self {
            place,
            settings,
            session: session.to_owned(),
            environment: vec![("STALED_SOCKET".to_owned(), socket.to_string_lossy().into_owned())],
        };
        // No test is about how late a loaded machine is.
        agent.configure("deadline_ms = 60_000");
        agent
    }

    /// What stands under `[hook]`.
    fn configure(&self, keys: &str) {
        let folder = self.place.home.join(".config/staled");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), format!("[hook]\n{keys}\n")).unwrap();
    }

    /// What the hooks of an event say. A process that another test is just starting has copies of our files between its
    /// fork and its exec, and counts as a writer until then; so what cannot be told for that reason is asked again.
    fn fire(&self, event: &str, more: &Value) -> Said {
        let mut said = self.fire_once(event, more);
        wait_until("nobody writes any more", || {
            let written = said.context.contains("(live_writer)");
            if written {
                said = self.fire_once(event, more);
            }
            !written
        });
        said
    }

    fn fire_once(&self, event: &str, more: &Value) -> Said {
        let mut payload = json!({
            "session_id": self.session, "transcript_path": "/nowhere", "cwd": self.place.root, "hook_event_name": event,
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut said = Said::default();
        for group in self.settings["hooks"][event].as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            let tool = more["tool_name"].as_str().unwrap_or_default();
            if !matcher.is_empty() && !matcher.split('|').any(|name| name == tool) {
                continue;
            }
            for hook in group["hooks"].as_array().unwrap() {
                self.run(hook["command"].as_str().unwrap(), event, &payload.to_string(), &mut said);
            }
        }
        said
    }

    /// As Claude Code does: by a shell, with the project's folder in the environment.
    fn run(&self, command: &str, event: &str, payload: &str, said: &mut Said) {
        let mut child = Command::new("sh");
        child.args(["-c", command]).current_dir(&self.place.root).env_clear();
        child
            .env("HOME", &self.place.home)
            .env("PATH", "/usr/bin:/bin")
            .env("CLAUDE_PROJECT_DIR", &self.place.root);
        child.env("STALED_JOURNAL_SOCKET", "/nowhere/journal").envs(self.environment.iter().cloned());
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(payload.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{event}: {output:?}");
        said.complaints.push_str(&String::from_utf8(output.stderr).unwrap());
        let out = String::from_utf8(output.stdout).unwrap();
        if out.is_empty() {
            return;
        }
        let answer: Value = serde_json::from_str(&out).unwrap();
        let specific = &answer["hookSpecificOutput"];
        assert_eq!(specific["hookEventName"], event, "{answer}");
        let context = specific["additionalContext"].as_str().unwrap_or_default();
        assert!(context.chars().count() <= 10_000, "{} characters", context.chars().count());
        said.context.push_str(context);
        if let Some(decision) = specific["permissionDecision"].as_str() {
            let reason = specific["permissionDecisionReason"].as_str().unwrap_or_default();
            said.decision = Some((decision.to_owned(), reason.to_owned()));
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.place.root.join(path)
    }

    fn start(&self, source: &str) -> Said {
        self.fire("SessionStart", &json!({ "source": source }))
    }

    fn prompt(&self) -> Said {
        self.fire("UserPromptSubmit", &json!({ "prompt": "go on" }))
    }

    /// Reads a file as it is on the disk.
    fn read(&self, path: &str) -> Said {
        let content = std::fs::read_to_string(self.path(path)).unwrap();
        self.shown(path, &content, 1, content.split('\n').count(), content.split('\n').count())
    }

    /// Reads some lines of it.
    fn read_lines(&self, path: &str, start: usize, lines: usize) -> Said {
        let content = std::fs::read_to_string(self.path(path)).unwrap();
        let all: Vec<&str> = content.split('\n').collect();
        self.shown(path, &all[start - 1..start - 1 + lines].join("\n"), start, lines, all.len())
    }

    fn shown(&self, path: &str, content: &str, start: usize, lines: usize, total: usize) -> Said {
        let path = self.path(path);
        let file = json!({
            "filePath": path, "content": content, "startLine": start, "numLines": lines, "totalLines": total,
        });
        self.fire(
            "PostToolUse",
            &json!({
                "tool_name": "Read", "tool_use_id": "t1", "tool_input": { "file_path": path },
                "tool_response": { "type": "text", "file": file },
            }),
        )
    }

    /// Edits a file, if its hooks let it; what they said before.
    fn edit(&self, path: &str, old: &str, new: &str) -> Said {
        let path = self.path(path);
        let input = json!({ "file_path": path, "old_string": old, "new_string": new });
        let call = json!({ "tool_name": "Edit", "tool_use_id": "t2", "tool_input": input });
        let said = self.fire("PreToolUse", &call);
        if said.decision.is_some() {
            return said;
        }
        let before = std::fs::read_to_string(&path).unwrap();
        let after = before.replacen(old, new, 1);
        std::fs::write(&path, &after).unwrap();
        let line = before[..before.find(old).unwrap()].matches('\n').count() + 1;
        let shown = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let (before_lines, after_lines) = (shown(&before), shown(&after));
        let at = |text: &str, no: usize| text.split('\n').nth(line - 1 + no).unwrap().to_owned();
        let [removed, added] = [old, new].map(|text| text.matches('\n').count() + 1);
        let minus = (0..removed).map(|no| format!("-{}", at(&before_lines, no)));
        let plus = (0..added).map(|no| format!("+{}", at(&after_lines, no)));
        let lines: Vec<String> = minus.chain(plus).collect();
        let patch = json!([{
            "oldStart": line, "oldLines": removed, "newStart": line, "newLines": added, "lines": lines,
        }]);
        let response = json!({
            "filePath": path, "oldString": old, "newString": new, "originalFile": null, "structuredPatch": patch,
        });
        let mut answered = call;
        answered["tool_response"] = response;
        let after = self.fire("PostToolUse", &answered);
        assert_eq!(after.complaints, "");
        said
    }

    /// Tells several calls at once.
    fn batch(&self, calls: &[Value]) {
        let command = self.settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        let payload = json!({
            "session_id": self.session, "cwd": self.place.root, "hook_event_name": "PostToolBatch", "tool_calls": calls,
        });
        let mut said = Said::default();
        self.run(command, "PostToolBatch", &payload.to_string(), &mut said);
        said.nothing();
    }

    /// Runs a command that prints something.
    fn bash(&self, command: &str, stdout: &str) -> Said {
        self.fire(
            "PostToolUse",
            &json!({
                "tool_name": "Bash", "tool_use_id": "t3", "tool_input": { "command": command },
                "tool_response": { "stdout": stdout, "stderr": "", "interrupted": false, "isImage": false },
            }),
        )
    }
}

impl Said {
    /// Nothing was said, and nothing complained about.
    fn nothing(&self) {
        assert_eq!((self.context.as_str(), &self.decision, self.complaints.as_str()), ("", &None, ""));
    }

    /// Every one of these was told, and nothing complained about.
    fn tells(&self, names: &[&str]) {
        assert_eq!(self.complaints, "");
        assert!(
            names.iter().all(|name| self.context.contains(name)),
            "{names:?} are not all in {:?}",
            self.context
        );
    }
}

//! What the lines say about the session itself: who, where, at which commit, by which version.

use crate::agent::line::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What was said so far.
#[derive(Clone, Default)]
pub(super) struct Facts {
    pub(super) session_id: Option<String>,
    pub(super) cwds: Vec<PathBuf>,
    /// Where commands run that say nothing else.
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
    pub(super) versions: BTreeSet<String>,
}

impl Facts {
    /// What a session says of itself. Forked and resumed sessions begin with the lines of those they come from; the
    /// first that speaks is the one whose file it is.
    pub(super) fn session(&mut self, meta: &Value) {
        self.versions.extend(text(meta, "cli_version").map(str::to_owned));
        if self.session_id.is_some() {
            return;
        }
        self.session_id = text(meta, "id").map(str::to_owned);
        if let Some(cwd) = text(meta, "cwd") {
            self.at(cwd);
        }
        if let Some(git) = meta.get("git") {
            self.head = text(git, "commit_hash").map(str::to_owned);
            self.branch = text(git, "branch").map(str::to_owned);
        }
    }

    /// Commands run there from now on.
    pub(super) fn at(&mut self, cwd: &str) {
        let path = PathBuf::from(cwd);
        if !self.cwds.contains(&path) {
            self.cwds.push(path);
        }
        self.cwd = Some(cwd.to_owned());
    }

    /// What a message tells of where the session is; the first rollouts said it nowhere else.
    pub(super) fn message(&mut self, told: &str) {
        if self.cwd.is_some() || !told.contains("<environment_context>") {
            return;
        }
        let tagged = between(told, "<cwd>", "</cwd>");
        if let Some(cwd) = tagged.or_else(|| between(told, "Current working directory: ", "\n")) {
            self.at(cwd.trim());
        }
    }
}

fn between<'text>(text: &'text str, start: &str, end: &str) -> Option<&'text str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

//! What the lines say about the session itself: who, where, on which branch, by which version.

use crate::agent::line::Line;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What was said so far.
#[derive(Clone, Default)]
pub(super) struct Facts {
    sessions: Vec<(String, u64)>,
    pub(super) cwds: Vec<PathBuf>,
    pub(super) git_branch: Option<String>,
    pub(super) versions: BTreeSet<String>,
}

impl Facts {
    /// Takes in one line.
    pub(super) fn note(&mut self, line: &Line) {
        if let Some(session) = line.text("sessionId") {
            match self.sessions.iter_mut().find(|(known, _)| known == session) {
                Some((_, votes)) => *votes += 1,
                None => self.sessions.push((session.into(), 1)),
            }
        }
        if let Some(cwd) = line.text("cwd").map(PathBuf::from).filter(|cwd| !self.cwds.contains(cwd)) {
            self.cwds.push(cwd);
        }
        self.versions.extend(line.text("version").map(str::to_owned));
        if let Some(branch) = line.text("gitBranch").filter(|branch| !branch.is_empty()) {
            self.git_branch = Some(branch.into());
        }
    }

    /// The session that most lines name, the first of equals.
    pub(super) fn session_id(&self) -> Option<String> {
        let most = self.sessions.iter().map(|(_, votes)| *votes).max()?;
        self.sessions.iter().find(|(_, votes)| *votes == most).map(|(session, _)| session.clone())
    }
}

//! What the log and the daemon tell about one decision, or about one path: who rests on it, and which decisions named it.

use super::log::{Entry, backward};
use super::{Client, ClientError, parse};
use crate::protocol::path::WirePath;
use crate::protocol::request::{List, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Decisions that are told of a path.
const DECISIONS_MAX: usize = 5;
/// Lines of the log that are looked through, from its end.
const LINES_MAX: usize = 10_000;

/// A decision between its neighbours in the log.
#[derive(Debug)]
pub struct OfDecision {
    /// The decision.
    pub decision: Entry,
    /// What the session had been told before.
    pub before: Option<Value>,
    /// What it was told next.
    pub after: Option<Value>,
}

impl OfDecision {
    /// The latest decision whose id begins so.
    ///
    /// Looked for from the end: each session's latest decision seen so far is what came after the one that is found.
    pub fn find(id: &str, client: &mut Client) -> Result<Option<Self>, ClientError> {
        let mut later: BTreeMap<String, Value> = BTreeMap::new();
        let mut story: Option<Self> = None;
        backward(client, |entry| {
            if !entry.is_decision() {
                return false;
            }
            let session = entry.line["session"].as_str().unwrap_or_default().to_owned();
            match &mut story {
                Some(story) if story.decision.line["session"] == entry.line["session"] => {
                    story.before = Some(entry.line);
                    true
                }
                Some(_) => false,
                None if entry.line["decision"].as_str().is_some_and(|found| found.starts_with(id)) => {
                    story = Some(Self { decision: entry, before: None, after: later.remove(&session) });
                    false
                }
                None => {
                    later.insert(session, entry.line);
                    false
                }
            }
        })?;
        Ok(story)
    }
}

/// The latest decision of a session; none where nothing was decided for it, or too long ago.
pub fn last_decision(session: &str, client: &mut Client) -> Result<Option<Entry>, ClientError> {
    let (mut looked, mut found) = (0, None);
    backward(client, |entry| {
        looked += 1;
        if entry.is_decision() && entry.line["session"] == session {
            found = Some(entry);
        }
        found.is_some() || looked >= LINES_MAX
    })?;
    Ok(found)
}

/// What is known about a path.
#[derive(Debug, Default)]
pub struct OfPath {
    /// Session, row; sorted by session.
    pub rows: Vec<(String, Value)>,
    /// The decision, its row; the latest first.
    pub decisions: Vec<(Entry, Value)>,
}

impl OfPath {
    /// Asks every session, or this one alone, and then the log.
    pub fn find(target: &Target, only: Option<&str>, client: &mut Client) -> Result<Self, ClientError> {
        let mut roots = roots(client)?;
        roots.retain(|session, _| only.is_none_or(|only| only == session));
        let mut story = Self::default();
        for (session, root) in &roots {
            story.rows.extend(rows_of(client, session, root, target)?);
        }
        let mut looked = 0;
        backward(client, |entry| {
            looked += 1;
            let session = entry.line["session"].as_str();
            if only.is_none() || only == session {
                let row = session.and_then(|session| named_by(&entry, roots.get(session), target));
                story.decisions.extend(row.map(|row| (entry, row)));
            }
            story.decisions.len() >= DECISIONS_MAX || looked >= LINES_MAX
        })?;
        Ok(story)
    }
}

/// Where each session's relative paths begin.
pub fn roots(client: &mut Client) -> Result<BTreeMap<String, PathBuf>, ClientError> {
    let listed: Value = parse(&client.ask("context.list", &List::default())?)?;
    let root = |session: &Value| {
        let root: WirePath = serde_json::from_value(session["root"].clone()).ok()?;
        Some((session["session"].as_str()?.to_owned(), root.0))
    };
    Ok(listed["sessions"].as_array().into_iter().flatten().filter_map(root).collect())
}

fn rows_of(
    client: &mut Client,
    session: &str,
    root: &Path,
    target: &Target,
) -> Result<Vec<(String, Value)>, ClientError> {
    let answer: Value =
        match client.ask("status", &Status { session: Some(session.to_owned()), ..Status::default() }) {
            Ok(answer) => parse(&answer)?,
            // Dropped since it was listed, or without a row.
            Err(ClientError::Refused(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
    let rows = answer["rows"].as_array().into_iter().flatten();
    let about = rows.filter(|row| target.is_source_of(row, Some(root)));
    Ok(about.map(|row| (session.to_owned(), row.clone())).collect())
}

fn named_by(entry: &Entry, root: Option<&PathBuf>, target: &Target) -> Option<Value> {
    let rows = entry.line["staleness_results"].as_array()?;
    rows.iter().find(|row| target.is_source_of(row, root.map(PathBuf::as_path))).cloned()
}

/// The path that is asked about: as it was spelled, absolute, and where it leads.
#[derive(Debug)]
pub struct Target {
    spelled: PathBuf,
    /// Without `.` and, as far as its spelling tells, without `..`.
    pub plain: PathBuf,
    real: Option<PathBuf>,
}

impl Target {
    /// A path as it is meant from the working directory.
    pub fn from_here(path: &Path) -> io::Result<Self> {
        Ok(Self::absolute(path, &std::path::absolute(path)?))
    }

    /// A path as a session with this root means it.
    #[must_use]
    pub fn below(path: &Path, root: &Path) -> Self {
        Self::absolute(path, &root.join(path))
    }

    fn absolute(spelled: &Path, absolute: &Path) -> Self {
        Self { spelled: spelled.to_owned(), plain: plain(absolute), real: absolute.canonicalize().ok() }
    }

    /// What a row of a session with this root is about; none where it is about no path.
    #[must_use]
    pub fn of_row(row: &Value, root: &Path) -> Option<Self> {
        source_of(row).map(|source| Self::below(&source, root))
    }

    /// Where it is: as it is called, and where that leads, if it is another place.
    #[must_use]
    pub fn places(self) -> Vec<PathBuf> {
        let real = self.real.filter(|real| *real != self.plain);
        [Some(self.plain), real].into_iter().flatten().collect()
    }

    /// Whether a row of a session below `root` is about it. Without a root only the spelling can tell.
    fn is_source_of(&self, row: &Value, root: Option<&Path>) -> bool {
        let Some(source) = source_of(row) else { return false };
        match root {
            Some(root) => {
                let absolute = root.join(&source);
                plain(&absolute) == self.plain
                    || self.real.is_some() && absolute.canonicalize().ok() == self.real
            }
            None => source == self.spelled || plain(&source) == self.plain,
        }
    }
}

fn source_of(row: &Value) -> Option<PathBuf> {
    // A command is called by its text, which may read like a path: `./build.sh` is fresh when what it read is.
    let pathless = ["head", "mtime"].iter().any(|signal| row["signal_type"] == *signal)
        || row["evidence_tag"] == "[MÉTRICA]";
    let WirePath(source) = serde_json::from_value(row["source"].clone()).ok().filter(|_| !pathless)?;
    Some(source)
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

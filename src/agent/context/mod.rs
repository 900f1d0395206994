//! From a transcript to the context that its session still believes in, against the disk it is imported to.
//!
//! What the agent saw is the baseline, never what is on the disk now. The disk is read for a few things only: whether
//! what was seen differs from it in line ends alone, whether a path that a search or a command named is a file or a
//! folder, and HEAD and lockfiles, which no agent reads and every agent relies on. What a search found and what a
//! command printed cannot be had again from a transcript: the tree as it is at registration stands in for it, and the
//! answer shows that it does. So nothing of these two is critical.

mod files;
mod globs;
mod invariants;
mod looks;
mod notes;
mod questions;
#[cfg(test)]
mod tests;

pub(super) use files::part;
pub use invariants::LOCKFILES;
pub(super) use questions::rests_on;

use super::rebase::{Places, Rebased, rebase};
use super::transcript::{Entry, Knowledge, Transcript};
use crate::protocol::context::{Belief, Context, Goal, Source};
use files::Known;
use notes::Notes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files above this are not compared for their line ends, in bytes.
const COMPARED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What an import gives.
#[derive(Debug)]
pub struct Imported {
    /// The context, ready to be registered.
    pub context: Context,
    /// What the user may want to know, one sentence each.
    pub notes: Vec<String>,
    /// How much of what the session asked was registered.
    pub counts: Counts,
}

/// How much was registered of what the session asked by searches and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Searches and listings.
    pub searches: usize,
    /// Commands that rest on something that can be watched.
    pub commands: usize,
    /// Commands that do not.
    pub volatile: usize,
    /// Searches and commands that were left out; the notes say why.
    pub left_out: usize,
}

/// The context of a transcript. `session` replaces the transcript's own id.
#[must_use]
pub fn context(
    transcript: &Transcript,
    places: &Places<'_>,
    session: Option<String>,
    goal: Option<String>,
) -> Imported {
    let mut import = Import::of(transcript, places);
    let mut invariants: Vec<Belief> = import.head(transcript.head.as_deref()).into_iter().collect();
    invariants.extend(import.lockfiles());
    let context = Context {
        session: session.or_else(|| transcript.session_id.clone()),
        agent: Some(transcript.agent.name().to_owned()),
        captured_at: import.results.iter().filter_map(|told| told.captured_at.clone()).max(),
        root: Some(places.root.into()),
        goal: goal.map(|statement| Goal { statement, ..Goal::default() }),
        results: import.results,
        invariants,
        replace: true,
        ..Context::default()
    };
    let mut notes = transcript.warnings.clone();
    notes.extend(import.notes.sentences());
    let Notes { searches, commands, volatile, ref left_out, .. } = import.notes;
    let counts = Counts { searches, commands, volatile, left_out: left_out.count() };
    Imported { context, notes, counts }
}

/// The results alone, for a session whose invariants are registered already.
#[must_use]
pub fn results(transcript: &Transcript, places: &Places<'_>) -> Vec<Belief> {
    Import::of(transcript, places).results
}

/// What no agent reads and every agent relies on: HEAD and the lockfiles of a root, as the disk has them.
#[must_use]
pub fn invariants(root: &Path) -> Vec<Belief> {
    let places = Places { root, first_cwd: None, cwds: &[], maps: &[], home: None };
    let mut import = Import::of(&Transcript::default(), &places);
    let head = import.head(None);
    head.into_iter().chain(import.lockfiles()).collect()
}

/// The content that the agent last saw of each file it knows whole, by its path below the root.
#[must_use]
pub fn known_files<'transcript>(
    transcript: &'transcript Transcript,
    places: &Places<'_>,
) -> Vec<(PathBuf, &'transcript [u8])> {
    let known = |entry: &'transcript Entry| match (&entry.knowledge, rebase(&entry.path, places)) {
        (Knowledge::Full { content, .. }, Rebased::Inside(path)) => Some((path, content.as_slice())),
        _ => None,
    };
    transcript.entries.iter().filter_map(known).collect()
}

/// Whether the session ran on this machine: paths outside its root then mean what they say.
fn is_native(transcript: &Transcript) -> bool {
    transcript.first_cwd.as_deref().is_none_or(Path::is_dir)
}

struct Import<'places> {
    places: &'places Places<'places>,
    native: bool,
    /// The root is in a repository.
    repository: bool,
    notes: Notes,
    /// What the transcript's entries tell of each path.
    known: HashMap<PathBuf, Known>,
    results: Vec<Belief>,
    ids: HashMap<String, usize>,
    /// What the session edited, with the line that tells the last of it.
    edited: Vec<(PathBuf, u64)>,
}

impl<'places> Import<'places> {
    fn of(transcript: &Transcript, places: &'places Places<'places>) -> Self {
        let mut import = Self {
            places,
            native: is_native(transcript),
            repository: invariants::in_repository(places.root),
            notes: Notes::default(),
            known: HashMap::new(),
            results: Vec::new(),
            ids: HashMap::new(),
            edited: Vec::new(),
        };
        transcript.entries.iter().for_each(|entry| import.file(entry));
        transcript.mentioned.iter().for_each(|path| import.mentioned(path));
        import.questions(transcript);
        import
    }

    /// Where a path is on this machine: below the root, or absolute; the root itself is `.`.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        match rebase(path, self.places) {
            Rebased::Inside(path) if path.as_os_str().is_empty() => Some(PathBuf::from(".")),
            Rebased::Inside(path) => Some(path),
            Rebased::Outside(here) if here.is_absolute() && (self.native || here != path) => Some(here),
            Rebased::Outside(_) => None,
        }
    }

    /// Adds a result. One that has its id already made place for it: what was seen later counts.
    fn put(&mut self, belief: Belief) {
        let id = belief.id.clone().unwrap_or_default();
        match self.ids.get(&id) {
            Some(&at) => {
                let critical = belief.critical == Some(true) || self.results[at].critical == Some(true);
                self.results[at] = Belief { critical: Some(critical), ..belief };
            }
            None => {
                self.ids.insert(id, self.results.len());
                self.results.push(belief);
            }
        }
    }
}

pub(super) fn source(path: &Path, kind: &str) -> Source {
    Source { kind: kind.to_owned(), path: Some(path.into()), ..Source::default() }
}

pub(super) fn belief(id: String, source: Source) -> Belief {
    Belief { id: Some(id), name: None, ..invariant("", source) }
}

pub(super) fn invariant(name: &str, source: Source) -> Belief {
    Belief {
        id: None,
        name: Some(name.to_owned()),
        tool: None,
        critical: None,
        captured_at: None,
        source,
        digest: None,
        content: None,
        lf_digest: None,
        encoding: None,
        stat: None,
        baseline: None,
    }
}

pub(super) fn read_small(path: &Path) -> Option<Vec<u8>> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > COMPARED_BYTES_MAX {
        return None;
    }
    std::fs::read(path).ok()
}

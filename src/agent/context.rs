//! From a transcript to the context that its session still believes in, against the disk it is imported to.
//!
//! What the agent saw is the baseline, never what is on the disk now. The disk is read for three things only: whether
//! a file differs in its line ends alone, whether a file that a search named is here, and HEAD and lockfiles, which no
//! agent reads and every agent relies on.

use super::line_ends::{Rung, same};
use super::rebase::{Places, Rebased, rebase};
use super::transcript::{Entry, Knowledge, Transcript};
use crate::protocol::context::{Belief, Context, Goal, Source};
use crate::protocol::path::WirePath;
use crate::protocol::time;
use crate::world::digest;
use crate::world::probe::git::{self, Head};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Dependency lockfiles that are registered as invariants when they stand in the root.
pub const LOCKFILES: [&str; 17] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
    "flake.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "deno.lock",
];

/// Files above this are not compared for their line ends, in bytes.
const COMPARED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What an import gives.
#[derive(Debug)]
pub struct Imported {
    /// The context, ready to be registered.
    pub context: Context,
    /// What the user may want to know, one sentence each.
    pub notes: Vec<String>,
}

/// The context of a transcript. `session` replaces the transcript's own id.
#[must_use]
pub fn context(
    transcript: &Transcript,
    places: &Places<'_>,
    session: Option<String>,
    goal: Option<String>,
) -> Imported {
    let mut import =
        Import { places, native: is_native(transcript), notes: Notes::default(), taken: HashSet::new() };
    let mut results: Vec<Belief> =
        transcript.entries.iter().filter_map(|entry| import.result(entry)).collect();
    results.extend(transcript.mentioned.iter().filter_map(|path| import.mentioned(path)));
    let mut invariants: Vec<Belief> = import.head().into_iter().collect();
    invariants.extend(import.lockfiles());
    let context = Context {
        session: session.or_else(|| transcript.session_id.clone()),
        agent: Some("claude-code".to_owned()),
        captured_at: results.iter().filter_map(|told| told.captured_at.clone()).max(),
        root: Some(places.root.into()),
        goal: goal.map(|statement| Goal { statement, ..Goal::default() }),
        results,
        invariants,
        replace: true,
        ..Context::default()
    };
    let mut notes = transcript.warnings.clone();
    notes.extend(import.notes.sentences());
    Imported { context, notes }
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

#[derive(Debug, Default)]
struct Notes {
    in_part: usize,
    line_ends: usize,
    elsewhere: usize,
    contradicted: usize,
    no_repository: bool,
}

impl Notes {
    fn sentences(&self) -> Vec<String> {
        let counted = [
            (self.in_part, "known only in part: what is on disk now stands in as their baseline"),
            (self.contradicted, "changed under the agent while it worked: what it saw first is out of date"),
            (self.line_ends, "differ from what the agent saw in line ends alone, and count as the same"),
            (
                self.elsewhere,
                "outside the root belong to another machine and were left out (name them with --map)",
            ),
        ];
        let files = |n: usize| if n == 1 { "1 file".to_owned() } else { format!("{n} files") };
        let mut sentences: Vec<String> =
            counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", files(*n))).collect();
        if self.no_repository {
            sentences.push("the root is in no git repository, so HEAD is not watched".to_owned());
        }
        sentences
    }
}

struct Import<'places> {
    places: &'places Places<'places>,
    native: bool,
    notes: Notes,
    taken: HashSet<PathBuf>,
}

impl Import<'_> {
    fn result(&mut self, entry: &Entry) -> Option<Belief> {
        let path = self.place(&entry.path)?;
        if !self.taken.insert(path.clone()) {
            return None;
        }
        let kind = if entry.knowledge == Knowledge::Absent { "absent" } else { "file" };
        let told = self.digest(entry, &path);
        self.notes.in_part += usize::from(told.is_none() && kind == "file");
        self.notes.contradicted += usize::from(entry.contradicted);
        // What the agent wrote is what it builds on; it holds the plan to be what it follows.
        let critical = kind == "file" && (entry.edited || entry.plan);
        Some(Belief {
            tool: Some(entry.tool.clone()),
            critical: Some(critical),
            captured_at: entry.captured_at.clone().filter(|moment| time::from_text(moment).is_ok()),
            digest: told,
            ..belief(&path, kind)
        })
    }

    /// Where a path is on this machine: below the root, or absolute.
    fn place(&mut self, path: &Path) -> Option<PathBuf> {
        match rebase(path, self.places) {
            Rebased::Inside(path) => (!path.as_os_str().is_empty()).then_some(path),
            Rebased::Outside(here) if here.is_absolute() && (self.native || here != path) => Some(here),
            Rebased::Outside(_) => {
                self.notes.elsewhere += 1;
                None
            }
        }
    }

    /// What the agent saw, in the disk's own spelling where they differ in line ends alone.
    fn digest(&mut self, entry: &Entry, path: &Path) -> Option<String> {
        let Knowledge::Full { digest, content, .. } = &entry.knowledge else { return None };
        match read_small(&self.places.root.join(path)).map(|disk| (same(content, &disk), disk)) {
            Some((Some(rung), disk)) if rung > Rung::Exact => {
                self.notes.line_ends += 1;
                Some(digest::blake3(&disk).to_string())
            }
            _ => Some(digest.to_string()),
        }
    }

    /// A file that a search named: the agent knows that it is there.
    fn mentioned(&mut self, path: &Path) -> Option<Belief> {
        let Rebased::Inside(path) = rebase(path, self.places) else { return None };
        let here = self.places.root.join(&path).is_file();
        if !here || !self.taken.insert(path.clone()) {
            return None;
        }
        Some(Belief { tool: Some("Grep".to_owned()), critical: Some(false), ..belief(&path, "file") })
    }

    fn head(&mut self) -> Option<Belief> {
        if let Head::NoRepository | Head::Unreadable { .. } = git::head(self.places.root).head {
            self.notes.no_repository = true;
            return None;
        }
        let source = Source {
            kind: "git_head".to_owned(),
            path: Some(WirePath(PathBuf::from("."))),
            policy: Some("relevant".to_owned()),
            ..Source::default()
        };
        // Without a digest: the agent did not say, so the daemon's own look stands in and the answer shows that it does.
        Some(invariant("git_head", source))
    }

    fn lockfiles(&self) -> Vec<Belief> {
        let here = LOCKFILES.iter().filter(|name| self.places.root.join(name).is_file());
        let lockfile = |name: &&str| {
            let path = Some(WirePath(PathBuf::from(name)));
            let source = Source { kind: "lockfile".to_owned(), path, ..Source::default() };
            invariant(&format!("lockfile:{name}"), source)
        };
        here.map(lockfile).collect()
    }
}

fn belief(path: &Path, kind: &str) -> Belief {
    let source = Source { kind: kind.to_owned(), path: Some(path.into()), ..Source::default() };
    Belief { id: Some(path.to_string_lossy().into_owned()), name: None, ..invariant("", source) }
}

fn invariant(name: &str, source: Source) -> Belief {
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
    }
}

fn read_small(path: &Path) -> Option<Vec<u8>> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > COMPARED_BYTES_MAX {
        return None;
    }
    std::fs::read(path).ok()
}
